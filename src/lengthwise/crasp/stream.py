"""Reading a word letter by letter: a C-RASP program as an online algorithm.

The state is one integer per global count, the last values of every formula that a local count looks back at,
and the position. It does not grow with the word, except for the digits of the integers. One letter costs time
proportional to the size of the program.

What the letter and the phase of the position decide (formulas of depth 0) is looked up in a table. Any other
node has a rule, a function of the values of the nodes before it, so that reading a letter does not ask what
kind a node is. An indicator has the value of its operand and needs no rule. Only what is counted, and what is
below it, is evaluated at every letter; all else waits until somebody asks.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter, mul
from typing import Any
from weakref import WeakKeyDictionary

from lengthwise.crasp.nodes import And, Bool, Count, Ge, Mod, Node, Not, Or, Sym, True_, in_order
from lengthwise.crasp.program import Program

MOST_TABLE = 1 << 18
"""Tables hold at most so many values; a program with too long a period for them computes its phases."""

Value = bool | int
"""Whether a formula holds, or how many a count counts."""

_Rings = list[deque[Any]]
_Rule = Callable[[list[Any], _Rings], Value]


class Stream:
    """A program that has read a word, and can go on.

    Before the first letter the position is 0: every letter test is false there, and every count, indicators
    included, is 0.
    """

    __slots__ = ("_late", "_plan", "_rings", "_values", "program")

    def __init__(self, program: Program) -> None:
        plan = _PLANS.get(program)
        if plan is None:
            plan = _PLANS[program] = _plan(program)
        self.program = program
        self._plan = plan
        self._values: list[Any] = [0] * plan.width
        self._rings: _Rings = [deque([False] * length, length) for _, length in plan.rings]
        self._late = False

    def step(self, symbol: int) -> None:
        """Reads one letter, given by its number in the alphabet."""
        plan, values, rings = self._plan, self._values, self._rings
        _move(plan, values, rings, symbol)
        if rings:
            for ring, (slot, _) in zip(rings, plan.rings, strict=True):
                ring.appendleft(values[slot])
        self._late = True

    @property
    def position(self) -> int:
        """How many letters were read."""
        return self._values[self._plan.position]

    def value(self, node: Node) -> Value:
        """The value of a node of the program at this position."""
        if node not in self._plan.slots:
            raise ValueError("this node is no part of the program: ask for one of program.nodes")
        return self._value(node, self._now()) if self.position else self._plan.at_start[node]

    @property
    def values(self) -> dict[Node, Value]:
        """The value of every node at this position."""
        return {node: self.value(node) for node in self._plan.slots}

    def end_values(self) -> dict[Node, Value]:
        """The value of every node at one more position, which has no letter; the state does not change."""
        values = self._at_end()
        return {node: self._value(node, values) for node in self._plan.slots}

    def accepted(self) -> bool:
        """Whether the word read so far is accepted."""
        program = self.program
        if program.accept is None:
            raise ValueError("this program predicts symbols, it does not accept words: use predictions")
        root = program.accept.node
        if program.mode == "eos":
            return bool(self._value(root, self._at_end()))
        if not self.position and program.accepts_empty is not None:
            return program.accepts_empty
        return bool(self.value(root))

    def predictions(self) -> frozenset[str]:
        """The symbols whose formula in ``next`` holds at this position."""
        if self.program.accept is not None:
            raise ValueError("this program accepts words, it does not predict symbols: use accepted")
        return frozenset(symbol for symbol, one in self.program.next.items() if self.value(one.node))

    def margins(self) -> list[int]:
        """The sum, with its constant, of every comparison at this position, in the order of the nodes."""
        values = self._now()
        return [
            sum([alpha * values[slot] for slot, alpha in terms], constant)
            for terms, constant in self._plan.comparisons
        ]

    def counters(self) -> list[int]:
        """The position and every global count."""
        return [self._values[slot] for slot in self._plan.counters]

    def slopes(self, increments: Sequence[int]) -> list[int]:
        """How much each of the ``margins`` grows when the ``counters`` grow by the increments."""
        grown = dict(zip(self._plan.counters, increments, strict=True))
        return [
            sum([alpha * grown.get(slot, 0) for slot, alpha in terms]) for terms, _ in self._plan.comparisons
        ]

    def advance(self, increments: Sequence[int], times: int) -> None:
        """Adds the increments to the ``counters`` so many times.

        This is what it does to read letters that add these increments and leave all else as it is.
        """
        for slot, increment in zip(self._plan.counters, increments, strict=True):
            self._values[slot] += times * increment

    def _now(self) -> list[Any]:
        if self._late:
            _finish(self._plan, self._values, self._rings)
            self._late = False
        return self._values

    def _at_end(self) -> list[Any]:
        # A move changes the values alone: on a copy, it leaves the state as it was.
        values = self._values.copy()
        _move(self._plan, values, self._rings, None)
        _finish(self._plan, values, self._rings)
        return values

    def _value(self, node: Node, values: list[Any]) -> Value:
        found = values[self._plan.slots[node]]
        return bool(found) if isinstance(node, Bool) else int(found)


@dataclass(eq=False)
class _Plan:
    """How a program moves from one position to the next, with its nodes as slots in a list of values.

    - ``slots``: the slot of every node; first come those of the ``fixed`` nodes, which the letter and the
      phase decide, then the ``position``, then all others;
    - ``counters``: slots of the position and of the global counts; ``tallies``: slots of the global counts of
      fixed nodes, each with that of its operand;
    - ``rules``: slots of all other nodes that counts need, with their rules; ``late_rules``: those of the
      nodes that no count needs;
    - ``rings``: slots that local counts look back at, and how far;
    - ``comparisons``: slots with coefficients, and the constant;
    - ``at_start``: values at position 0;
    - ``tables``: by phase and letter (None where there is none), the values of the fixed nodes and the slots
      that grow by 1; filled when first asked for.
    """

    alphabet: tuple[str, ...]
    period: int
    slots: dict[Node, int]
    fixed: list[Node]
    position: int
    width: int
    counters: list[int]
    tallies: list[tuple[int, int]]
    rules: list[tuple[int, _Rule]]
    late_rules: list[tuple[int, _Rule]]
    rings: list[tuple[int, int]]
    comparisons: list[tuple[list[tuple[int, int]], int]]
    at_start: dict[Node, Value]
    tables: list[dict[int | None, tuple[list[Value], list[int]]]] = field(init=False)

    def __post_init__(self) -> None:
        self.tables = [{} for _ in range(self.period)]

    def fill(self, phase: int, symbol: int | None) -> tuple[list[Value], list[int]]:
        """An entry of the tables."""
        if symbol is not None and not 0 <= symbol < len(self.alphabet):
            raise ValueError(f"symbol {symbol} is not between 0 and {len(self.alphabet) - 1}")
        letter = None if symbol is None else self.alphabet[symbol]
        known: dict[Node, Value] = {}
        values: list[Value] = [False] * self.position
        for node in self.fixed:
            is_formula = isinstance(node, Bool)
            known[node] = _holds(node, known, letter, phase) if is_formula else known[node.children[0]]
            values[self.slots[node]] = known[node]
        entry = values, [self.position, *(slot for slot, operand in self.tallies if values[operand])]
        self.tables[phase][None if symbol is None else int(symbol)] = entry
        return entry


# A program that is called on many words is planned once, and a plan is forgotten with its program.
_PLANS: WeakKeyDictionary[Program, _Plan] = WeakKeyDictionary()


def _move(plan: _Plan, values: list[Any], rings: _Rings, symbol: int | None) -> None:
    """Changes the values that counts need to those of the next position, which has this letter."""
    phase = (values[plan.position] + 1) % plan.period
    try:
        fixed, grown = plan.tables[phase][symbol]
    except KeyError:
        fixed, grown = plan.fill(phase, symbol)
    values[: plan.position] = fixed
    for slot in grown:
        values[slot] += 1
    for slot, rule in plan.rules:
        values[slot] = rule(values, rings)


def _finish(plan: _Plan, values: list[Any], rings: _Rings) -> None:
    """Changes all other values to those of the same position."""
    for slot, rule in plan.late_rules:
        values[slot] = rule(values, rings)


def _plan(program: Program) -> _Plan:
    """Slots for the nodes, and rules for those that no table decides."""
    table = program.period * (len(program.alphabet) + 1) * len(program.nodes)
    period = program.period if table <= MOST_TABLE else 1
    decided = _decided(program.nodes, phases=period == program.period)
    fixed = [node for node in program.nodes if node in decided]
    others = [node for node in program.nodes if node not in decided]
    slots: dict[Node, int] = {}
    position = _number(fixed, slots, start=0)
    width = _number(others, slots, start=position + 1)
    totals = [node for node in others if isinstance(node, Count) and node.distances is None]
    tallies = [node for node in totals if node.operand in decided]
    rings: dict[Node, int] = {}
    for node in others:
        if isinstance(node, Count) and node.distances is not None and not _is_indicator(node):
            rings[node.operand] = max(rings.get(node.operand, 0), node.distances[-1] + 1)
    ring_numbers = {operand: index for index, operand in enumerate(rings)}
    without_rule = {*tallies, *filter(_is_indicator, others)}
    rules = {node: _rule(node, slots, position, ring_numbers) for node in others if node not in without_rule}
    needed = set(in_order(program.counts))
    return _Plan(
        alphabet=tuple(program.alphabet),
        period=period,
        slots={node: slots[node] for node in program.nodes},
        fixed=fixed,
        position=position,
        width=width,
        counters=[position, *(slots[node] for node in totals)],
        tallies=[(slots[node], slots[node.operand]) for node in tallies],
        rules=[(slots[node], rule) for node, rule in rules.items() if node in needed],
        late_rules=[(slots[node], rule) for node, rule in rules.items() if node not in needed],
        rings=[(slots[operand], length) for operand, length in rings.items()],
        comparisons=[
            ([(slots[one], alpha) for one, alpha in node.terms], node.constant)
            for node in program.nodes
            if isinstance(node, Ge)
        ],
        at_start=_at_start(program),
    )


def _is_indicator(node: Node) -> bool:
    return isinstance(node, Count) and node.distances == (0,)


def _decided(nodes: Iterable[Node], *, phases: bool) -> set[Node]:
    """The nodes that the letter decides, or the letter and the phase."""
    found: set[Node] = set()
    for node in nodes:
        looks_back = isinstance(node, Count) and not _is_indicator(node)
        if not looks_back and (phases or not isinstance(node, Mod)) and found.issuperset(node.children):
            found.add(node)
    return found


def _number(nodes: Iterable[Node], slots: dict[Node, int], start: int) -> int:
    """Gives slots to nodes, to an indicator that of its operand; returns the first slot left."""
    for node in nodes:
        if _is_indicator(node):
            slots[node] = slots[node.children[0]]
        else:
            slots[node] = start
            start += 1
    return start


def _rule(node: Node, slots: Mapping[Node, int], position: int, rings: Mapping[Node, int]) -> _Rule:
    """The value of a node as a function of the list of values and of the rings."""
    slot, below = slots[node], [slots[child] for child in node.children]
    x, y = below[0] if below else 0, below[-1] if below else 0
    match node:
        case Count() if node.distances is None:
            return lambda v, _: v[slot] + v[x]
        case Count():
            return _window(slot, x, rings[node.operand], node.distances or ())
        case Ge():
            alphas, bound = node.data[:-1], -node.constant
            if alphas in ((1,), (-1,)):
                return (lambda v, _: v[x] >= bound) if alphas == (1,) else (lambda v, _: v[x] <= -bound)
            if alphas in ((1, -1), (-1, 1)):
                x, y = (x, y) if alphas == (1, -1) else (y, x)
                return lambda v, _: v[x] - v[y] >= bound
            chosen = itemgetter(*below)
            return lambda v, _: sum(map(mul, alphas, chosen(v))) >= bound
        case Not():
            return lambda v, _: not v[x]
        case And() if len(below) == 2:
            return lambda v, _: v[x] and v[y]
        case Or() if len(below) == 2:
            return lambda v, _: v[x] or v[y]
        case And() | Or():
            chosen, combined = itemgetter(*below), all if isinstance(node, And) else any
            return lambda v, _: combined(chosen(v))
        case Mod():
            modulus, residue = node.modulus, node.residue
            return lambda v, _: v[position] % modulus == residue
    raise AssertionError(f"the letter decides a node of kind {type(node).__name__}")


def _window(slot: int, operand: int, ring_number: int, distances: tuple[int, ...]) -> _Rule:
    """A local count as what it was before, plus what enters its intervals of distances, less what leaves.

    Place k of a ring has the value k + 1 positions back.
    """
    breaks = [(left, right) for left, right in pairwise(distances) if right > left + 1]
    starts, ends = (
        [distances[0], *(right for _, right in breaks)],
        [*(left for left, _ in breaks), distances[-1]],
    )
    here, entering = starts[0] == 0, [start - 1 for start in starts if start]

    def rule(v: list[Any], rings: _Rings) -> int:
        ring = rings[ring_number]
        total = v[slot] + (here and v[operand])
        for place in entering:
            total += ring[place]
        for place in ends:
            total -= ring[place]
        return total

    return rule


def _at_start(program: Program) -> dict[Node, Value]:
    """Values at position 0."""
    known: dict[Node, Value] = {}
    for node in program.nodes:
        known[node] = _holds(node, known, None, 0) if isinstance(node, Bool) else 0
    return known


def _holds(node: Bool, known: Mapping[Node, Value], letter: str | None, position: int) -> bool:
    """A formula at a position with this letter, from the values of the nodes below."""
    match node:
        case True_():
            return True
        case Sym():
            return node.letter == letter
        case Mod():
            return position % node.modulus == node.residue
        case Not():
            return not known[node.operand]
        case And():
            return all(known[one] for one in node.operands)
        case Or():
            return any(known[one] for one in node.operands)
        case Ge():
            return sum(alpha * known[one] for one, alpha in node.terms) + node.constant >= 0
    raise AssertionError(f"not a formula: {type(node).__name__}")
