"""Learning a program from labelled words, from an oracle, or from an automaton."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lengthwise.automata import DFA
from lengthwise.crasp.learning.automata import from_automaton
from lengthwise.crasp.learning.deadline import Deadline, OutOfTime
from lengthwise.crasp.learning.learned import Learned
from lengthwise.crasp.learning.oracles import FunctionOracle, Oracle, ProgramOracle
from lengthwise.crasp.learning.progress import Progress
from lengthwise.crasp.learning.search import Search
from lengthwise.crasp.learning.slots import Shape
from lengthwise.crasp.learning.teachers import Questions, Teacher, examples
from lengthwise.crasp.learning.words import told
from lengthwise.crasp.program import Program

MOST_ERRORS = 20
"""So many words that are still wrong are told."""

Target = Mapping[Any, Any] | Iterable[Any] | Program | DFA | Callable[[Any], Any]
"""What is learned from: see ``learn``."""


def learn(
    target: Target,
    alphabet: Sequence[str] | None = None,
    *,
    seconds: float = 60.0,
    seed: int = 0,
    shape: Shape | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Learned:
    """A program, which accepts at the last letter, for a language that is given by

    - labelled words, as a mapping from words to truth values or as pairs; the program fits these, and nothing
      is known beyond them;
    - an oracle: a ``Program``, or a function from words (strings, or tuples of letters where a letter has
      more than one character) to truth values, which needs the ``alphabet``. A sample is asked for, a program
      that fits it is compared on all short words and on some longer ones, and the search goes on from there
      with the words on which it was wrong. A program that is right on all of them is made smaller and, if the
      oracle is a program, compared with it by ``equivalent``;
    - a ``DFA`` (see ``compile_regex``): nothing is searched for. ``decide`` gives a program or says that
      there is none; the program is made smaller as far as each step can be proved.

    ``shape`` bounds the programs that are searched for; distances and moduli, none by default, let them use
    positions. All ends after ``seconds``, but for a call of the oracle that has begun. What is found depends
    on the ``seed`` alone as long as time does not cut in: not at the end, not for an oracle that is slow, and
    not for a proof, which has a time limit of its own. ``progress`` is called now and then.
    """
    deadline = Deadline(seconds)
    if seed < 0:
        raise ValueError(f"seed must be a whole number of at least 0, got {seed}")
    shape = shape or Shape()
    if alphabet is not None:
        _check_alphabet(alphabet)
    if isinstance(target, DFA):
        _check_same(alphabet, target.alphabet, "an automaton")
        return from_automaton(target, shape, seed, deadline, progress)
    if isinstance(target, str):
        raise ValueError("a text is no target: give compile_regex(text) or parse(text)")
    if callable(target):
        oracle = _oracle(target, alphabet, deadline)
        try:
            teacher: Teacher = Questions(oracle, seed, deadline)
        except OutOfTime:
            return _nothing(deadline)
    elif isinstance(target, Iterable):
        teacher = examples(target, alphabet)
    else:
        raise ValueError(f"a target is labelled words, a function, a Program or a DFA, got {target!r}")
    search = Search(teacher, shape, seed, deadline, progress)
    search.run()
    return _learned(search, teacher, deadline)


def _check_alphabet(alphabet: Sequence[str]) -> None:
    if not alphabet:
        raise ValueError("the alphabet is empty: give at least one letter")
    if not all(isinstance(letter, str) and letter for letter in alphabet):
        raise ValueError(f"a letter is a string that is not empty, got the alphabet {list(alphabet)!r}")
    if len(set(alphabet)) != len(alphabet):
        raise ValueError(f"the alphabet names a letter twice: {' '.join(alphabet)}")


def _check_same(alphabet: Sequence[str] | None, own: Sequence[str], who: str) -> None:
    if alphabet is not None and tuple(alphabet) != tuple(own):
        raise ValueError(f"{who} has its own alphabet, {' '.join(own)}: leave alphabet out")


def _oracle(target: Callable[[Any], Any], alphabet: Sequence[str] | None, deadline: Deadline) -> Oracle:
    if not isinstance(target, Program):
        if alphabet is None:
            raise ValueError("a function does not tell its letters: give the alphabet")
        return FunctionOracle(target, alphabet, deadline)
    _check_same(alphabet, target.alphabet, "a program")
    if target.accept is None:
        raise ValueError(
            "this program predicts symbols: only a program that accepts words can be learned from"
        )
    return ProgramOracle(target, deadline)


def _nothing(deadline: Deadline) -> Learned:
    """The time was over before there was a sample."""
    return Learned(None, False, (), "search", None, None, 0, (), 0, 0, deadline.passed())


def _learned(search: Search, teacher: Teacher, deadline: Deadline) -> Learned:
    found = search.program is not None
    program, wrong = (search.program, []) if found else search.nearest()
    return Learned(
        program=program,
        found=found,
        errors=tuple(told(word, teacher.alphabet) for word in wrong[:MOST_ERRORS]),
        method="search",
        checked=teacher.checked if found else None,
        verdict=search.verdict,
        rounds=search.rounds,
        counterexamples=tuple(told(word, teacher.alphabet) for word in search.counterexamples),
        examples=teacher.examples,
        moves=search.moves,
        seconds=deadline.passed(),
    )
