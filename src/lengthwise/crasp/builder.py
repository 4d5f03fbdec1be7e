"""C-RASP in Python: formulas and counts that combine with operators.

::

    d = count(Q("a")) - count(Q("b"))
    Program("ab", accept=(count((d < 0) | (d > 3)) == 0) & (d == 0), accepts_empty=True)

A ``Formula`` is true or false at every position and combines with ``~ & |``; a ``Number`` is an integer there
and combines with ``+ -``, integer factors, and comparisons, which give formulas.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lengthwise.crasp import nodes
from lengthwise.crasp.nodes import FALSE, FARTHEST, Bool, Count

MOST_CASES = 4096
"""A count may depend on at most so many combinations of conditions."""


class Formula:
    """True or false at every position."""

    __slots__ = ("node",)
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, node: Bool) -> None:
        self.node = node

    def __invert__(self) -> "Formula":
        return Formula(nodes.negation(self.node))

    def __and__(self, other: "Formula") -> "Formula":
        return Formula(nodes.conjunction((self.node, formula(other).node)))

    def __or__(self, other: "Formula") -> "Formula":
        return Formula(nodes.disjunction((self.node, formula(other).node)))

    def __bool__(self) -> bool:
        raise ValueError(
            "a formula has a truth value at each position, none by itself: use & | ~, not and or not"
        )

    def __eq__(self, other: object) -> bool:
        raise ValueError("formulas are compared by equivalence, not by ==")

    def ite(self, holds: "Number | int", fails: "Number | int") -> "Number":
        """The first number where this holds, the second elsewhere."""
        cases = [
            (nodes.conjunction((guard, side)), terms, constant)
            for guard, chosen in ((self.node, holds), (nodes.negation(self.node), fails))
            for side, terms, constant in number(chosen).cases
        ]
        return _of_cases(cases)

    def __repr__(self) -> str:
        from lengthwise.crasp.printer import show

        return show(self.node)


@dataclass(frozen=True, eq=False)
class Number:
    """An integer at every position: in each of some cases, exactly one of which holds, a sum of counts with
    coefficients and a constant.
    """

    cases: tuple[tuple[Bool, Mapping[Count, int], int], ...]

    def __add__(self, other: "Number | int") -> "Number":
        return self._with(other, 1)

    __radd__ = __add__

    def __sub__(self, other: "Number | int") -> "Number":
        return self._with(other, -1)

    def __rsub__(self, other: "Number | int") -> "Number":
        return number(other) - self

    def __neg__(self) -> "Number":
        return self * -1

    def __mul__(self, factor: int) -> "Number":
        if isinstance(factor, Number):
            raise ValueError("a product of two counts is not in C-RASP")
        factor = _whole(factor)
        return _of_cases(
            [
                (guard, {one: factor * alpha for one, alpha in terms.items()}, factor * constant)
                for guard, terms, constant in self.cases
            ]
        )

    __rmul__ = __mul__

    def _with(self, other: "Number | int", sign: int) -> "Number":
        cases, added = [], number(other)
        if len(self.cases) * len(added.cases) > 16 * MOST_CASES:  # before making them: most may be impossible
            raise ValueError(f"a count depends on more than {MOST_CASES} combinations of conditions")
        for guard, terms, constant in self.cases:
            for second, others, extra in added.cases:
                total = dict(terms)
                for one, alpha in others.items():
                    total[one] = total.get(one, 0) + sign * alpha
                cases.append((nodes.conjunction((guard, second)), total, constant + sign * extra))
        return _of_cases(cases)

    def _compared(self, other: "Number | int", shift: int) -> Formula:
        """Whether self - other + shift >= 0."""
        return Formula(
            nodes.disjunction(
                nodes.conjunction((guard, nodes.at_least(terms, constant + shift)))
                for guard, terms, constant in (self - other).cases
            )
        )

    def __ge__(self, other: "Number | int") -> Formula:
        return self._compared(other, 0)

    def __gt__(self, other: "Number | int") -> Formula:
        return self._compared(other, -1)

    def __le__(self, other: "Number | int") -> Formula:
        return number(other)._compared(self, 0)

    def __lt__(self, other: "Number | int") -> Formula:
        return number(other)._compared(self, -1)

    def __eq__(self, other: object) -> Formula:  # pyright: ignore[reportIncompatibleMethodOverride]
        return (self >= number(other)) & (self <= number(other))

    def __ne__(self, other: object) -> Formula:  # pyright: ignore[reportIncompatibleMethodOverride]
        return (self > number(other)) | (self < number(other))

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __bool__(self) -> bool:
        raise ValueError("a count has a value at each position, none by itself: compare it with a number")


def _of_cases(cases: Iterable[tuple[Bool, Mapping[Count, int], int]]) -> Number:
    kept = [
        (guard, {one: alpha for one, alpha in terms.items() if alpha}, constant)
        for guard, terms, constant in cases
        if guard is not FALSE
    ]
    if len(kept) > MOST_CASES:
        raise ValueError(f"a count depends on more than {MOST_CASES} combinations of conditions")
    return Number(tuple(kept))


def number(value: object) -> Number:
    """An integer, or what is one already."""
    if isinstance(value, Number):
        return value
    if isinstance(value, Formula):
        raise ValueError("expected a count, got a formula: # counts where a formula holds")
    return Number(((nodes.TRUE, {}, _whole(value)),))


def formula(value: object) -> Formula:
    """A formula, or what is wrong."""
    if isinstance(value, bool):
        return Formula(nodes.TRUE if value else FALSE)
    if not isinstance(value, Formula):
        raise ValueError("expected a formula, got a count: compare it with a number")
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected a whole number, got {value!r}")
    return value


TRUE = Formula(nodes.TRUE)


def Q(letter: str) -> Formula:
    """The letter here is this one."""
    return Formula(nodes.sym(letter))


def mod(modulus: int, residue: int) -> Formula:
    """The position, from 1, is the residue modulo the modulus."""
    return Formula(nodes.mod(_whole(modulus), _whole(residue)))


def count(
    operand: Formula,
    *,
    at: Iterable[int] | None = None,
    strict: bool = False,
    at_least: int | None = None,
) -> Number:
    """How many positions up to this one satisfy a formula; of the distances ``at`` alone; without this
    position (``strict``); or of the positions ``at_least`` so far back.
    """
    node = formula(operand).node
    if sum((at is not None, strict, at_least is not None)) > 1:
        raise ValueError("a count takes one of at, strict and at_least")
    if at is not None:
        return _counted(nodes.count(node, [_whole(distance) for distance in at]))
    back = 1 if strict else 0 if at_least is None else _whole(at_least)
    if not 0 <= back <= FARTHEST:
        raise ValueError(f"at_least must be from 0 to {FARTHEST}, got {back}")
    return _counted(nodes.count(node)) - _counted(nodes.count(node, range(back)))


def _counted(found: Count | None) -> Number:
    return Number(((nodes.TRUE, {} if found is None else {found: 1}, 0),))


def ind(operand: Formula) -> Number:
    """1 where the formula holds, 0 elsewhere."""
    return count(operand, at=[0])


def prev(operand: Formula) -> Formula:
    """The formula held one position before."""
    return count(operand, at=[1]) >= 1


def exists(operand: Formula) -> Formula:
    """The formula holds here or held before."""
    return count(operand) >= 1


def forall(operand: Formula) -> Formula:
    """The formula holds here and at every position before."""
    return count(~operand) <= 0


def minimum(one: Number | int, other: Number | int) -> Number:
    """The smaller of two numbers."""
    return (number(one) <= other).ite(one, other)


def maximum(one: Number | int, other: Number | int) -> Number:
    """The larger of two numbers."""
    return (number(one) >= other).ite(one, other)
