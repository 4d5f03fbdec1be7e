"""The normal form of C-RASP: what every evaluator, decision and compiler reads.

At a position i (from 1) of a word, a ``Bool`` is true or false and a ``Count`` is a number:

- ``Sym(a)``: the letter at i is a; ``True_``; ``Mod(m, r)``: i = r (mod m);
- ``Not(p)``, ``And(ps)``, ``Or(ps)``;
- ``Ge(terms, constant)``: the sum of alpha * count over ``terms``, plus ``constant``, is at least 0;
- ``Count(p, None)``: how many positions j <= i satisfy p;
- ``Count(p, distances)``: how many d of the distances have i - d >= 1 and p true at i - d. With distances
  (0,), written ind(p), it is 1 if p holds at i and 0 otherwise.

Nodes are shared: the same node is made only once, so that equality is identity and a program is a graph, not
a tree. The functions below simplify as they build; only they make nodes.
"""

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd, lcm
from typing import Any, ClassVar, final

MOST_INDICATORS = 4096
"""A comparison of indicators alone becomes a formula over their operands with at most so many cases."""

DEEPEST_INDICATORS = 256
"""A comparison of indicators alone may have so many."""

FARTHEST = 10_000
"""A count looks back at most so many positions."""


class Node:
    """A formula or a count; made by the functions of this module alone.

    - ``depth``: how deeply counts are nested; ind(p) is as deep as p;
    - ``rank``: the largest number of comparisons on a path downward, through counts and indicators;
    - ``period``: the least common multiple of all moduli below.
    """

    __slots__ = ("__weakref__", "children", "data", "depth", "period", "rank")
    _made: ClassVar[weakref.WeakValueDictionary[Any, Any]] = weakref.WeakValueDictionary()

    children: tuple["Node", ...]
    data: Any
    depth: int
    rank: int
    period: int

    @classmethod
    def _of(cls, children: Sequence["Node"], data: Any = None) -> Any:
        key = cls, tuple(map(id, children)), data
        found = Node._made.get(key)
        if found is None:
            found = object.__new__(cls)
            found.children, found.data = tuple(children), data
            deeper = cls is Count and data != (0,)
            found.depth = max((child.depth for child in children), default=0) + deeper
            found.rank = max((child.rank for child in children), default=0) + (cls is Ge)
            found.period = lcm(data[0] if cls is Mod else 1, *(child.period for child in children))
            Node._made[key] = found
        return found


class Bool(Node):
    """A formula: true or false at every position."""

    __slots__ = ()


@final
class True_(Bool):
    """Always true."""

    __slots__ = ()


@final
class Sym(Bool):
    """Whether the letter is ``letter``."""

    __slots__ = ()

    @property
    def letter(self) -> str:
        """The letter."""
        return self.data


@final
class Mod(Bool):
    """Whether the position is ``residue`` modulo ``modulus``."""

    __slots__ = ()

    @property
    def modulus(self) -> int:
        """m, at least 2."""
        return self.data[0]

    @property
    def residue(self) -> int:
        """r, from 0 to m - 1."""
        return self.data[1]


@final
class Not(Bool):
    """The opposite of ``operand``."""

    __slots__ = ()

    @property
    def operand(self) -> Bool:
        """What is negated; never itself a negation."""
        return self.children[0]  # pyright: ignore[reportReturnType]


@final
class And(Bool):
    """Whether all of ``operands`` hold; there are at least two, all different."""

    __slots__ = ()

    @property
    def operands(self) -> tuple[Bool, ...]:
        """What must hold."""
        return self.children  # pyright: ignore[reportReturnType]


@final
class Or(Bool):
    """Whether one of ``operands`` holds; there are at least two, all different."""

    __slots__ = ()

    @property
    def operands(self) -> tuple[Bool, ...]:
        """What may hold."""
        return self.children  # pyright: ignore[reportReturnType]


@final
class Ge(Bool):
    """Whether the sum of alpha * count over ``terms``, plus ``constant``, is at least 0.

    There is at least one term, no count twice, no alpha is 0, and the alphas have no common divisor.
    """

    __slots__ = ()

    @property
    def terms(self) -> tuple[tuple["Count", int], ...]:
        """The counts with their coefficients."""
        return tuple(zip(self.children, self.data[:-1], strict=True))  # pyright: ignore[reportReturnType]

    @property
    def constant(self) -> int:
        """What is added to the sum."""
        return self.data[-1]


@final
class Count(Node):
    """How many positions up to i, or how many of the ``distances`` back from i, satisfy ``operand``."""

    __slots__ = ()

    @property
    def operand(self) -> Bool:
        """What is counted; never false."""
        return self.children[0]  # pyright: ignore[reportReturnType]

    @property
    def distances(self) -> tuple[int, ...] | None:
        """Distances in increasing order, or None for all positions up to i."""
        return self.data


TRUE: Bool = True_._of(())
FALSE: Bool = Not._of((TRUE,))


def sym(letter: str) -> Bool:
    """The letter here is this one."""
    return Sym._of((), letter)


def mod(modulus: int, residue: int) -> Bool:
    """The position is the residue modulo the modulus."""
    if modulus < 1:
        raise ValueError(f"a modulus must be at least 1, got {modulus}")
    return TRUE if modulus == 1 else Mod._of((), (modulus, residue % modulus))


def negation(operand: Bool) -> Bool:
    """Not."""
    return operand.operand if isinstance(operand, Not) else Not._of((operand,))


def conjunction(operands: Iterable[Bool]) -> Bool:
    """And, over any number of formulas."""
    kept = _flat(operands, And, TRUE)
    if FALSE in kept or any(one.operand in kept for one in kept if isinstance(one, Not)):
        return FALSE
    return TRUE if not kept else next(iter(kept)) if len(kept) == 1 else And._of(tuple(kept))


def disjunction(operands: Iterable[Bool]) -> Bool:
    """Or, over any number of formulas."""
    kept = _flat(operands, Or, FALSE)
    if TRUE in kept or any(one.operand in kept for one in kept if isinstance(one, Not)):
        return TRUE
    return FALSE if not kept else next(iter(kept)) if len(kept) == 1 else Or._of(tuple(kept))


def _flat(operands: Iterable[Bool], kind: type[And] | type[Or], unit: Bool) -> dict[Bool, None]:
    """The operands without repetitions and units, those of the same kind opened."""
    kept: dict[Bool, None] = {}
    for operand in operands:
        for one in operand.operands if isinstance(operand, kind) else (operand,):
            if one is not unit:
                kept[one] = None
    return kept


def count(operand: Bool, distances: Iterable[int] | None = None) -> Count | None:
    """How many positions; None where it is always 0."""
    if distances is None:
        return None if operand is FALSE else Count._of((operand,), None)
    chosen = tuple(sorted(set(distances)))
    for distance in chosen[:1] + chosen[-1:]:
        if not 0 <= distance <= FARTHEST:
            raise ValueError(f"distances must be from 0 to {FARTHEST}, got {distance}")
    return None if operand is FALSE or not chosen else Count._of((operand,), chosen)


def at_least(terms: Mapping[Count, int], constant: int) -> Bool:
    """Whether the sum of alpha * count, plus the constant, is at least 0."""
    kept = {one: alpha for one, alpha in terms.items() if alpha}
    # ind(true) is 1 wherever a formula has a value.
    for one in [one for one in kept if one.operand is TRUE and one.distances == (0,)]:
        constant += kept.pop(one)
    if not kept:
        return TRUE if constant >= 0 else FALSE
    if all(one.distances == (0,) and one.depth == 0 for one in kept):
        return _of_indicators(list(kept.items()), constant)
    divisor = gcd(*kept.values())
    alphas = [alpha // divisor for alpha in kept.values()]
    return Ge._of(tuple(kept), (*alphas, constant // divisor))


def _of_indicators(terms: list[tuple[Count, int]], constant: int) -> Bool:
    """A comparison of indicators alone, as the formula over their operands that it is."""
    if len(terms) > DEEPEST_INDICATORS:
        raise ValueError(f"a comparison has at most {DEEPEST_INDICATORS} indicators alone, got {len(terms)}")
    known: dict[tuple[int, int], Bool] = {}

    def rest(index: int, total: int) -> Bool:
        left = [alpha for _, alpha in terms[index:]]
        if total + sum(alpha for alpha in left if alpha < 0) >= 0:
            return TRUE
        if total + sum(alpha for alpha in left if alpha > 0) < 0:
            return FALSE
        if (index, total) not in known:
            if len(known) >= MOST_INDICATORS:
                raise ValueError(f"a comparison of {len(terms)} indicators has too many cases")
            one, alpha = terms[index]
            holds, fails = rest(index + 1, total + alpha), rest(index + 1, total)
            known[index, total] = if_else(one.operand, holds, fails)
        return known[index, total]

    return rest(0, constant)


def if_else(condition: Bool, holds: Bool, fails: Bool) -> Bool:
    """``holds`` where the condition does, ``fails`` elsewhere."""
    if holds is fails:
        return holds
    first, second = conjunction((condition, holds)), conjunction((negation(condition), fails))
    return disjunction((first, second))


def in_order(roots: Iterable[Node]) -> list[Node]:
    """Every node below the roots once, children before parents, without recursion."""
    found: dict[Node, None] = {}
    stack: list[tuple[Node, Iterator[Node]]] = [(root, iter(root.children)) for root in reversed(list(roots))]
    while stack:
        node, children = stack[-1]
        child = next((child for child in children if child not in found), None)
        if child is not None:
            stack.append((child, iter(child.children)))
            continue
        stack.pop()
        found[node] = None
    return list(found)
