"""Words of few runs: a search for witnesses that may be very long, for any signs.

A run is a letter, repeated, along which no comparison inside a count changes its truth. Along a run every
formula inside a count has one value, so with S the counts before it, a count is S + t [its formula holds] at
position t of the run: sums of counts are affine in t, and truth values that are right at both ends are right
in between. A word of R runs is thus a formula of linear integer arithmetic, whatever the lengths of the runs.

The search goes on to more and more runs. Not to find a word says only that there is none with so few runs.
Positions are not allowed: no moduli, and no distances but 0.
"""

from dataclasses import dataclass

from lengthwise.crasp.nodes import Node, sym
from lengthwise.crasp.program import Program
from lengthwise.crasp.programs.arithmetic import (
    Integer,
    Known,
    Truth,
    accepted,
    any_of,
    below_counts,
    checked,
    holds,
    least,
    letters,
    margin,
    new_solver,
    number,
    opposite,
    same,
    told,
    values,
    weighted,
    where,
    z3_module,
)
from lengthwise.crasp.programs.outcome import (
    Blocks,
    Clock,
    Outcome,
    is_positional,
    joined,
    totals,
)


def applies(program: Program) -> bool:
    """Whether no positions are used."""
    return not is_positional(program)


def search(program: Program, clock: Clock, most: int = 64) -> Outcome:
    """A word of at most so many runs that is accepted, as short as time allows.

    ``details["runs"]`` says up to how many runs there is none; -1 if nothing is known.
    """
    assert applies(program)
    encoding = _Encoding(program)
    fewest = 0 if program.mode == "eos" else 1
    for runs in range(fewest, most + 1):
        while len(encoding.runs) < runs and not clock.over():
            encoding.add()
        found, sure = encoding.search(clock) if len(encoding.runs) == runs else (None, False)
        if found is not None or not sure:
            return Outcome(found, details={"runs": runs - 1})
    return Outcome(details={"runs": most})


@dataclass(frozen=True)
class _Run:
    """Unknowns of a run: the tests for its letter, its length, the truths of the comparisons inside counts
    along it, and the counts at its end.
    """

    letter: dict[Node, Truth]
    length: Integer
    truths: dict[Node, Truth]
    after: dict[Node, Integer]


class _Encoding:
    """A solver that knows what a word of some number of runs is."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.solver = new_solver()
        self.runs: list[_Run] = []
        self.counts = totals(program)
        self.comparisons, self.order = below_counts(program)

    def before(self) -> Known:
        """Counts at the end of the runs so far."""
        return self.runs[-1].after if self.runs else dict.fromkeys(self.counts, 0)

    def add(self) -> None:
        """One more run."""
        z3, index, before = z3_module(), len(self.runs), self.before()
        letter, one = letters(f"a{index}", self.program.alphabet)
        truths: dict[Node, Truth] = {n: z3.Bool(f"b{index},{p}") for p, n in enumerate(self.comparisons)}
        after: dict[Node, Integer] = {c: z3.Int(f"s{index},{p}") for p, c in enumerate(self.counts)}
        run = _Run(letter, z3.Int(f"n{index}"), truths, after)
        held = values(self.order, {**letter, **truths})
        grown = {c: where(held[c.operand], 1) for c in self.counts}
        told(self.solver, one, run.length >= 1)
        for count in self.counts:
            total = weighted([(before[count], 1), (where(held[count.operand], run.length), 1)])
            told(self.solver, after[count] == total)
        first = {c: weighted([(before[c], 1), (grown[c], 1)]) for c in self.counts}
        for counts in (first, after):
            for node in self.comparisons:
                known = {c: where(held[c.operand], 1) if c.distances else counts[c] for c, _ in node.terms}
                told(self.solver, same(truths[node], margin(node, known) >= 0))
        if self.runs:
            # Runs are as long as can be.
            last = self.runs[-1]
            pairs = [(last.letter[n], letter[n]) for n in letter]
            pairs += [(last.truths[n], truths[n]) for n in truths]
            told(self.solver, any_of(opposite(same(*pair)) for pair in pairs))
        self.runs.append(run)

    def search(self, clock: Clock) -> tuple[Blocks | None, bool]:
        """A word of so many runs that is accepted, or None; and whether None is certain."""
        solver = self.solver
        last = self.runs[-1] if self.runs else None
        known = {**last.letter, **last.truths} if last else {}
        solver.push()
        told(solver, accepted(self.program, self.before(), known))
        answer, found = checked(solver, clock), None
        if answer:
            total = weighted((run.length, 1) for run in self.runs)
            model, _ = least(solver, total, len(self.runs), clock.share(0.5))
            found = joined(
                ((letter,), number(model, run.length))
                for run in self.runs
                for letter in self.program.alphabet
                if holds(model, run.letter[sym(letter)])
            )
        solver.pop()
        return found, answer is False
