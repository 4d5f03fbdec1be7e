"""Pairs of words that no program of C-RASP tells apart in the long run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lengthwise.automata.automaton import DFA, Transitions, difference, paths
from lengthwise.crasp.program import Mode
from lengthwise.crasp.regular.linear import Relations
from lengthwise.crasp.regular.membership import Inseparable, inseparable, inseparable_last
from lengthwise.crasp.regular.potentials import edges_inside, stable_blocks

Word = str | tuple[str, ...]
"""A word: a string where all letters of the alphabet are single characters, otherwise its letters."""

LONGEST = 10**7
"""Longer words are not written out."""


@dataclass(frozen=True)
class Family:
    """For whole numbers c, N >= 1 the words ``x u(c)^N w1 v`` and ``x u(c)^N w2 v``, where ``u(c) =
    u_1^(c^(r-1)) u_2^(c^(r-2)) ... u_r`` and u_1, ..., u_r are the ``loops``. Exactly one of the two is in
    the language; or, where the question is what may follow, both begin words and go on differently.

    Claim: for every program of C-RASP (without positions, under the acceptance the family was made for) there
    is a c0 such that for every c >= c0 there is an N0(c) such that for all N >= N0(c) the program gives both
    words the same answer, which is wrong for one of them.

    No fixed c proves anything: the words then repeat one loop, and there may be a program that is right on
    these pairs for all N, such as ``350*#a - 112*#b == 350`` for parity and a loop with 8 a and 25 b. For a
    fixed c the pairs are hard tests, no more.

    Why the claim holds: the loops start and end in one state, x leads there, and w1 and w2 lead on to two
    states that no potentials part. After enough repetitions the truth of each formula inside a program
    depends on the letter and the block of the state alone, in one of finitely many ways, whatever c. So the
    change of each sum around u(c) is one of finitely many functionals of the vectors of the loops, which
    span those of all cycles. One that is not 0 on all cycles is a polynomial in c that is not 0, and from
    c0 on its sum grows without bounds; one that is 0 on them is a potential, and has the same value at both
    ends. (Derived for this project, after arXiv 2608.13433, Lemma 86.)
    """

    x: Word
    loops: tuple[Word, ...]
    w1: Word
    w2: Word
    v: Word

    def loop(self, c: int) -> tuple[tuple[Word, int], ...]:
        """u(c) as words and how often each is repeated."""
        if c < 1:
            raise ValueError(f"c must be at least 1, got {c}")
        powers = range(len(self.loops) - 1, -1, -1)
        return tuple((one, c**power) for one, power in zip(self.loops, powers, strict=True))

    def pair(self, c: int, N: int) -> tuple[tuple[tuple[Word, int], ...], tuple[tuple[Word, int], ...]]:
        """The two words, each as words and how often each is repeated."""
        if N < 1:
            raise ValueError(f"N must be at least 1, got {N}")
        loop = _written_out(self.loop(c))
        first, second = (
            tuple((part, times) for part, times in ((self.x, 1), (loop, N), (w, 1), (self.v, 1)) if part)
            for w in (self.w1, self.w2)
        )
        return first, second

    def strings(self, c: int, N: int) -> tuple[Word, Word]:
        """The two words written out."""
        first, second = self.pair(c, N)
        return _written_out(first), _written_out(second)


def family(dfa: DFA, acceptance: Mode = "last") -> Family | None:
    """A family for the language of a minimal automaton that is not in C-RASP; None if it is in C-RASP."""
    if acceptance == "eos":
        found = inseparable(dfa)
        return None if found is None else _of_states(dfa, found, ())
    last = inseparable_last(dfa)
    if last is None:
        return None
    letter, found = last
    return _of_states(dfa.quotient(letter).minimal(), found, (letter,))


def _of_states(dfa: DFA, found: Inseparable, end: tuple[str, ...]) -> Family:
    """The family of two inseparable states; ``end`` is appended to all words."""
    first, second = found.pair
    told_apart = difference(replace(dfa, start=first), replace(dfa, start=second))
    assert told_apart is not None, "states of a minimal automaton differ"
    return family_of(dfa, found, told_apart + end)


def family_of(dfa: DFA, found: Inseparable, end: tuple[str, ...]) -> Family:
    """The family of words that lead to two inseparable states and go on with ``end``."""
    first, second = found.pair

    def word(symbols: Sequence[int]) -> Word:
        return _word(dfa.alphabet, tuple(dfa.alphabet[symbol] for symbol in symbols))

    return Family(
        x=word(paths(dfa.transitions, dfa.start)[first]),
        loops=tuple(word(loop) for loop in _spanning_loops(dfa.transitions, found.component, first)),
        w1=word(()),
        w2=word(paths(dfa.transitions, first)[second]),
        v=_word(dfa.alphabet, end),
    )


def _spanning_loops(transitions: Transitions, component: Sequence[int], at: int) -> list[tuple[int, ...]]:
    """Loops at a state, short ones first, whose vectors of letters read in blocks are a basis of those of all
    cycles of the component. Each goes to one edge by a shortest path and back by another.
    """
    edges = edges_inside(component, transitions)
    blocks = stable_blocks(edges, dict.fromkeys(component, 0))
    there = paths(transitions, at)
    back = {state: paths(transitions, state)[at] for state in component}
    labels: dict[tuple[int, int], int] = {}
    relations = Relations(None)
    chosen = []
    loops = [(*there[state], letter, *back[after]) for state, letter, after in edges]
    for loop in sorted(loops, key=len):
        vector: dict[int, int] = {}
        state = at
        for letter in loop:
            label = labels.setdefault((letter, blocks[state]), len(labels))
            vector[label] = vector.get(label, 0) + 1
            state = transitions[state][letter]
        if relations.add(vector):
            chosen.append(loop)
    return chosen


def _word(alphabet: Sequence[str], letters: tuple[str, ...]) -> Word:
    return "".join(letters) if all(len(letter) == 1 for letter in alphabet) else letters


def _written_out(blocks: Sequence[tuple[Word, int]]) -> Word:
    length = sum(len(word) * times for word, times in blocks)
    if length > LONGEST:
        raise ValueError(f"the word has {length} letters, more than {LONGEST}: take a smaller c or N")
    repeated = [word * times for word, times in blocks]
    strings = [word for word in repeated if isinstance(word, str)]
    if len(strings) == len(repeated):
        return "".join(strings)
    return tuple(letter for word in repeated for letter in word)
