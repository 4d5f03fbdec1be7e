"""Programs whose counted comparisons change at most once: whether some word is accepted, exactly.

In C-RASP_+ a comparison compares a sum of counts, all with the same sign, with a constant. Such a sum never
falls (or never rises) along a word, so its truth changes at most once, and with G comparisons a word has at
most G + 1 phases in which all truth values stay.

In a phase a formula depends on the letter alone. So a phase matters only through its first letter and through
how many n_a of each letter a it has: with S the counts before it, a count is S + [its formula holds of the
first letter] at the first position of the phase, and S + the sum of n_a over the letters of which its formula
holds at the last one. A truth value that is the same at both ends of the phase is the same in between. All of
this is linear in the n_a.

Only comparisons inside counts make phases. Others are evaluated once, at the end, and may have any signs, so
that C-RASP_1 with one phase is included. A strict count, #P - ind(P), never falls either, so the counts of a
comparison may be strict: with a > 0 and a + b >= 0 >= b, the sum a #P + b ind(P) grows by
-b [P(i)] + (a + b) [P(i + 1)] >= 0 from one position to the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lengthwise.crasp.nodes import Ge, Node, sym
from lengthwise.crasp.program import Program
from lengthwise.crasp.programs.arithmetic import (
    Integer,
    Known,
    Truth,
    accepted,
    all_of,
    any_of,
    below_counts,
    checked,
    holds,
    least,
    letters,
    margin,
    new_solver,
    number,
    one_letter,
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
    length,
    totals,
)


def applies(program: Program) -> bool:
    """Whether no positions are used and comparisons inside counts change at most once."""
    return not is_positional(program) and all(direction(node) for node in below_counts(program)[0])


def direction(node: Ge) -> int:
    """1 if the sum of a comparison is seen never to fall, -1 if never to rise, 0 if neither is seen."""
    whole: dict[Node, int] = {}
    here: dict[Node, int] = {}
    for one, alpha in node.terms:
        (whole if one.distances is None else here)[one.operand] = alpha
    for sign in (1, -1):
        strict = all(0 <= -sign * beta <= sign * whole.get(operand, 0) for operand, beta in here.items())
        if strict and all(sign * alpha > 0 for alpha in whole.values()):
            return sign
    return 0


def threshold(node: Ge) -> int:
    """A comparison of one sign, or its negation, says that the sum of |alpha| * count is at least this k.

    Where k <= 0 the truth is the same at every position.
    """
    return -node.constant if direction(node) > 0 else node.constant + 1


def search(program: Program, clock: Clock) -> Outcome:
    """A shortest word that is accepted, or the proof that there is none."""
    assert applies(program)
    encoding = _Encoding(program)
    most = 1 + sum(threshold(node) >= 1 for node in encoding.comparisons)
    best: Blocks | None = None
    phases, enough, sure = 0, most, False
    while phases < enough and not clock.over():
        phases = min(max(1, 2 * phases), enough)
        while len(encoding.phases) < phases and not clock.over():
            encoding.add()
        found, sure = encoding.search(best, clock)
        best = best if found is None else found
        # A word has at most as many phases as letters, so that few are enough for shorter ones.
        enough = most if best is None else min(most, length(best) - 1)
    certain = sure and phases >= enough
    details = {"phases": phases, "most_phases": most}
    return Outcome(best, best is not None and certain, best is None and certain, details)


@dataclass(frozen=True)
class _Phase:
    """Unknowns of a phase.

    - ``used``: the word does not end before it;
    - ``truths``: of the comparisons inside counts; ``held``: by letter, what holds of it in this phase;
    - ``first``, ``last``: tests for the letters at its ends; ``amounts``: how many there are of each letter;
    - ``after``: counts at its end.
    """

    used: Truth
    truths: dict[Node, Truth]
    held: dict[str, dict[Node, Any]]
    first: dict[Node, Truth]
    last: dict[Node, Truth]
    amounts: dict[str, Integer]
    after: dict[Node, Integer]

    @property
    def size(self) -> Integer:
        """How many positions it has."""
        return weighted((amount, 1) for amount in self.amounts.values())

    def holds(self, node: Node, tests: Known) -> Truth:
        """Whether something holds of the letter that passes the tests."""
        return any_of(all_of([tests[sym(letter)], held[node]]) for letter, held in self.held.items())


class _Encoding:
    """A solver that knows what a word of at most some number of phases is.

    Phases that are not used come last, have no letters, and repeat the truths and the last letter before.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.solver = new_solver()
        self.phases: list[_Phase] = []
        self.counts = totals(program)
        self.comparisons, self.order = below_counts(program)

    def before(self) -> Known:
        """Counts at the end of the phases so far."""
        return self.phases[-1].after if self.phases else dict.fromkeys(self.counts, 0)

    def add(self) -> None:
        """One more phase."""
        phase, before = self._unknown(len(self.phases)), self.before()
        for one in self.counts:
            grown = ((where(phase.held[a][one.operand], n), 1) for a, n in phase.amounts.items())
            told(self.solver, phase.after[one] == weighted([(before[one], 1), *grown]))
        at_first = {
            one: weighted([(before[one], 1), (where(phase.holds(one.operand, phase.first), 1), 1)])
            for one in self.counts
        }
        facts = [
            *self._letters(phase),
            *self._right(phase, phase.first, at_first),
            *self._right(phase, phase.last, phase.after),
        ]
        idle = [amount == 0 for amount in phase.amounts.values()]
        if self.phases:
            last = self.phases[-1]
            told(self.solver, any_of([opposite(phase.used), last.used]))
            for node in self.comparisons:
                # A truth changes in one direction alone.
                low, high = (last, phase) if direction(node) > 0 else (phase, last)
                told(self.solver, any_of([opposite(low.truths[node]), high.truths[node]]))
            # Phases are as long as can be: something changes from one to the next.
            facts.append(any_of(opposite(same(last.truths[n], phase.truths[n])) for n in self.comparisons))
            idle += [same(last.truths[node], phase.truths[node]) for node in self.comparisons]
            idle += [same(last.last[test], phase.last[test]) for test in phase.last]
        told(self.solver, *(any_of([opposite(phase.used), fact]) for fact in facts))
        told(self.solver, *(any_of([phase.used, fact]) for fact in idle))
        self.phases.append(phase)

    def _unknown(self, index: int) -> _Phase:
        z3, alphabet = z3_module(), self.program.alphabet
        # Under "last" a word has at least one letter.
        used = True if index == 0 and self.program.mode == "last" else z3.Bool(f"u{index}")
        truths: dict[Node, Truth] = {}
        for place, node in enumerate(self.comparisons):
            changes = threshold(node) >= 1
            truths[node] = z3.Bool(f"b{index},{place}") if changes else direction(node) > 0
        held = {a: values(self.order, {**one_letter(a, alphabet), **truths}) for a in alphabet}
        first, one_first = letters(f"f{index}", alphabet)
        last, one_last = letters(f"l{index}", alphabet)
        amounts = {letter: z3.Int(f"n{index},{place}") for place, letter in enumerate(alphabet)}
        after: dict[Node, Integer] = {one: z3.Int(f"s{index},{p}") for p, one in enumerate(self.counts)}
        told(self.solver, one_first, one_last, *(amount >= 0 for amount in amounts.values()))
        return _Phase(used, truths, held, first, last, amounts, after)

    def _letters(self, phase: _Phase) -> Iterator[Truth]:
        """The letters at the ends are among those of the phase."""
        for letter, amount in phase.amounts.items():
            first, last = phase.first[sym(letter)], phase.last[sym(letter)]
            yield any_of([opposite(any_of([first, last])), amount >= 1])
            yield any_of([opposite(all_of([first, last])), amount >= 2, phase.size == 1])

    def _right(self, phase: _Phase, tests: Known, counts: Known) -> Iterator[Truth]:
        """The truth values of the phase are right at a position with this letter and these counts."""
        for node in self.comparisons:
            if threshold(node) >= 1:
                known = {
                    one: where(phase.holds(one.operand, tests), 1) if one.distances else counts[one]
                    for one, _ in node.terms
                }
                yield same(phase.truths[node], margin(node, known) >= 0)

    def search(self, best: Blocks | None, clock: Clock) -> tuple[Blocks | None, bool]:
        """A shortest word of at most so many phases that is accepted and shorter than the best; and whether
        the answer is certain.
        """
        solver = self.solver
        total = weighted((phase.size, 1) for phase in self.phases)
        solver.push()
        end = self.phases[-1]
        told(solver, accepted(self.program, end.after, {**end.last, **end.truths}))
        if best is not None:
            told(solver, total < length(best))
        answer = checked(solver, clock)
        found, sure = None, answer is not None
        if answer:
            model, sure = least(solver, total, 1 if self.program.mode == "last" else 0, clock)
            found = self._word(model)
        solver.pop()
        return found, sure

    def _word(self, model: Any) -> Blocks:
        """The word of a model: each phase has its first letter, all others, and its last letter."""
        blocks: list[tuple[str, int]] = []
        for phase in self.phases:
            if not holds(model, phase.used):
                break
            left = {letter: number(model, amount) for letter, amount in phase.amounts.items()}
            first, last = (
                next(letter for letter in left if holds(model, tests[sym(letter)]))
                for tests in (phase.first, phase.last)
            )
            left[first] -= 1
            ends = sum(left.values()) > 0
            left[last] -= ends
            blocks += [(first, 1), *left.items(), (last, int(ends))]
        return joined(((letter,), times) for letter, times in blocks)


def length_bound(program: Program) -> int | None:
    """If a program of C-RASP_+ accepts a word that is not empty, it accepts one of at most this length.

    With the thresholds k of its comparisons, this is the sum of max(0, k), plus 1: keep the last position,
    and those that add to a sum that is below its k before them, at most k for each comparison. All that is
    added to a sum until it reaches its k is kept, so at positions that are kept all truths stay as they were,
    and what is left is accepted too. Under "eos" the last position is not one of the word.

    None for programs of other fragments.
    """
    comparisons = [node for node in program.nodes if isinstance(node, Ge)]
    one_sign = all(len({alpha > 0 for _, alpha in node.terms}) == 1 for node in comparisons)
    strict = any(one.distances for node in comparisons for one, _ in node.terms)
    if is_positional(program) or strict or not one_sign:
        return None
    return sum(max(0, threshold(node)) for node in comparisons) + (program.mode == "last")
