"""Programs from automata, made smaller as far as each step can be proved."""

import contextlib
import importlib.util
from collections.abc import Callable
from dataclasses import replace

from lengthwise.automata import DFA
from lengthwise.crasp.learning.deadline import Deadline, OutOfTime
from lengthwise.crasp.learning.following import follows
from lengthwise.crasp.learning.learned import Learned
from lengthwise.crasp.learning.progress import Progress, Reporter
from lengthwise.crasp.learning.simpler import measure, smaller, specialised
from lengthwise.crasp.learning.slots import Shape
from lengthwise.crasp.learning.walks import walks
from lengthwise.crasp.program import Program
from lengthwise.crasp.programs.outcome import Clock
from lengthwise.crasp.regular import decide
from lengthwise.crasp.verdict import Verdict

STEP_SECONDS = 3.0
"""The longest time to look for a proof that a smaller program is right."""

MOST_STATES, LARGEST = 60, 2000
"""Programs of automata with more states, and programs of larger size, stay as they are."""


def from_automaton(
    dfa: DFA,
    shape: Shape,
    seed: int,
    deadline: Deadline,
    progress: Callable[[Progress], object] | None = None,
) -> Learned:
    """The program that ``decide`` finds for an automaton, made smaller; none if it finds none.

    Positions are used if the shape has distances or moduli, whichever windows and periods that takes.
    """
    verdict: Verdict | None = None
    with contextlib.suppress(OutOfTime):
        verdict = deadline.of(lambda: decide(dfa, positional=shape.positional))
    program, checked, tried = None, None, 0
    if verdict is not None and verdict.answer:
        program = verdict.witness
        if _can_shrink(program, dfa.minimal()):
            program, checked, tried = shrunk(program, dfa.minimal(), seed, deadline, progress)
        more = {"depth": program.depth, "extracted_size": verdict.witness.size}
        verdict = replace(verdict, witness=program, details=verdict.details | more)
    return Learned(
        program=program,
        found=program is not None,
        errors=(),
        method="extraction",
        checked=checked,
        verdict=verdict,
        rounds=0,
        counterexamples=(),
        examples=0,
        moves=tried,
        seconds=deadline.passed(),
    )


def _can_shrink(program: Program, dfa: DFA) -> bool:
    """Whether a program is not too large to be made smaller, and the solver is there to prove it right."""
    small = len(dfa.states) <= MOST_STATES and program.size <= LARGEST
    return small and importlib.util.find_spec("z3") is not None


def shrunk(
    program: Program,
    dfa: DFA,
    seed: int,
    deadline: Deadline,
    progress: Callable[[Progress], object] | None = None,
) -> tuple[Program, int, int]:
    """A program not larger than the one given, which must accept the words of the minimal automaton; up to
    which length all words were compared; and how many changes were tried.

    A change is made if it makes the program smaller, and if it is proved that the program accepts the words
    of the automaton.
    """
    words = walks(dfa, seed)
    assert all(walk.fits(program) for walk in words)
    reporter, smallest, tried = Reporter(deadline, progress), program, 0

    def is_right(candidate: Program) -> bool:
        nonlocal tried
        reporter.tick(lambda left: Progress(found=True, size=smallest.size, moves=tried, left=left))
        tried += 1
        limit = Clock(max(1e-3, min(STEP_SECONDS, deadline.left())))
        return all(walk.fits(candidate) for walk in words) and follows(candidate, dfa, words, limit)

    with contextlib.suppress(OutOfTime):
        # What knows its letter may be larger, but most of it can then be left out.
        found = special if is_right(special := specialised(program)) else program
        while found is not None:
            smallest = min(smallest, found, key=measure)
            found = next(filter(is_right, smaller(found)), None)
    return smallest, words[0].letters_BN.shape[1], tried
