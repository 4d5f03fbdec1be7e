"""A program as a transition system: what it remembers of a word, and how one more letter changes that."""

from dataclasses import dataclass
from typing import Any

from lengthwise.crasp.nodes import Bool, Count, Mod, Node
from lengthwise.crasp.program import Program
from lengthwise.crasp.programs.arithmetic import (
    Integer,
    Known,
    Truth,
    down_to,
    no_letter,
    values,
    weighted,
    where,
    z3_module,
)
from lengthwise.crasp.programs.outcome import totals


@dataclass(frozen=True)
class State:
    """What a program remembers of a word.

    - ``counts``: the counts over all positions;
    - ``rings``: of each formula that local counts look back at, its last values, the newest first;
    - ``phase``: the length of the word modulo the period of the program.
    """

    counts: dict[Node, Integer]
    rings: dict[Bool, tuple[Truth, ...]]
    phase: Integer


class System:
    """The states of a program and the steps between them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.counts = totals(program)
        self.reach: dict[Bool, int] = {}
        for one in program.counts:
            if one.distances is not None:
                self.reach[one.operand] = max(self.reach.get(one.operand, 0), one.distances[-1])
        self._remembered = down_to([*(one.operand for one in self.counts), *self.reach], ())

    def start(self) -> State:
        """The state of the empty word."""
        rings = {node: (False,) * reach for node, reach in self.reach.items()}
        return State(dict.fromkeys(self.counts, 0), rings, 0)

    def unknown(self, name: str) -> tuple[State, list[Truth]]:
        """Any state, and what is true of it by its kind."""
        z3 = z3_module()
        counts: dict[Node, Integer] = {c: z3.Int(f"{name}.c{p}") for p, c in enumerate(self.counts)}
        rings = {
            node: tuple(z3.Bool(f"{name}.r{place},{back}") for back in range(reach))
            for place, (node, reach) in enumerate(self.reach.items())
        }
        phase = z3.Int(f"{name}.i") if self.program.period > 1 else 0
        facts = [count >= 0 for count in counts.values()]
        return State(counts, rings, phase), [*facts, phase >= 0, phase < self.program.period]

    def holds(self, state: State, tests: Known | None = None) -> Truth:
        """Whether the formula of the program holds at the next position: one with a letter that passes the
        tests, or, without tests, one with no letter.
        """
        root = self.program.root()
        order = down_to([root], ())
        return self._at_next(order, state, no_letter(self.program.alphabet) if tests is None else tests)[root]

    def step(self, state: State, tests: Known) -> State:
        """The state after one more letter."""
        found = self._at_next(self._remembered, state, tests)
        counts: dict[Node, Integer] = {
            one: weighted([(state.counts[one], 1), (where(found[one.operand], 1), 1)]) for one in self.counts
        }
        rings = {node: (found[node], *ring)[: len(ring)] for node, ring in state.rings.items()}
        return State(counts, rings, self._next_phase(state.phase))

    def _next_phase(self, phase: Integer) -> Integer:
        if isinstance(phase, int):
            return (phase + 1) % self.program.period
        return z3_module().If(phase == self.program.period - 1, 0, phase + 1)

    def _at_next(self, order: list[Node], state: State, tests: Known) -> dict[Node, Any]:
        phase = self._next_phase(state.phase)
        given = dict(tests)
        given |= {node: phase % node.modulus == node.residue for node in order if isinstance(node, Mod)}

        def counted(one: Count, held: Truth) -> Integer:
            if one.distances is None:
                return weighted([(state.counts[one], 1), (where(held, 1), 1)])
            seen = (held, *state.rings[one.operand])
            return weighted((where(seen[back], 1), 1) for back in one.distances)

        return values(order, given, counted)


def named(state: State, name: str) -> tuple[State, list[Truth]]:
    """The same state under new names, with what they mean; keeps the formulas of later steps small."""
    z3 = z3_module()
    facts: list[Truth] = []

    def call(value: Any, new: Any) -> Any:
        if isinstance(value, bool | int):
            return value
        facts.append(new == value)
        return new

    counts = {c: call(v, z3.Int(f"{name}.c{place}")) for place, (c, v) in enumerate(state.counts.items())}
    rings = {
        node: tuple(call(v, z3.Bool(f"{name}.r{place},{back}")) for back, v in enumerate(ring))
        for place, (node, ring) in enumerate(state.rings.items())
    }
    return State(counts, rings, call(state.phase, z3.Int(f"{name}.i"))), facts
