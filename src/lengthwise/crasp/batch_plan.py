"""In which order nodes are evaluated on many positions at once, and which sums comparisons share.

Every comparison says that a sum of counts is at least k, or that it is not: -s + c >= 0 says that s is not at
least c + 1. Comparisons of the same counts with the same coefficients, up to sign, share the sum, and those
with the same k also share the answer. Where k is beyond what the sum can be, the answer is known.

The sum of alpha * #P over some P is the running total of the sum of alpha * ind(P): one running total for any
number of counts. A sum is computed so if one of its counts has no other use; then no more running totals are
computed than if every count had its own.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lengthwise.crasp.nodes import And, Bool, Count, Ge, Node, Not, Or, True_, in_order

Terms = tuple[tuple[Count, int], ...]


@dataclass(frozen=True, eq=False)
class Sum:
    """A running total of alpha * ind(P) over the ``steps`` (P, alpha), plus alpha * count over ``counts``.

    It is between ``least`` and ``greatest`` if it runs over a tile and the counts over whole words.
    """

    steps: tuple[tuple[Bool, int], ...]
    counts: Terms
    least: int
    greatest: int


@dataclass(frozen=True, eq=False)
class AtLeast:
    """Whether a sum is at least k."""

    total: Sum
    k: int


@dataclass(frozen=True, eq=False)
class Ever:
    """Whether a formula holds at this position or held before."""

    operand: Bool


Item = Node | Sum | AtLeast | Ever
"""What has a value at every position."""

Steps = tuple[tuple[Item, tuple[Item, ...]], ...]
"""What to evaluate, in order, each with what nobody needs from then on."""


@dataclass(frozen=True)
class Plan:
    """How some nodes are evaluated.

    - ``steps``: what it takes to know their values;
    - ``carrying``: what it takes to go on behind positions whose values nobody asks for;
    - ``known``: formulas that are true everywhere, or false;
    - ``joined``: what conjunctions and disjunctions join, without what is known;
    - ``answers``: what the other comparisons are, and whether they are the opposite of that.
    """

    steps: Steps
    carrying: Steps
    known: Mapping[Item, bool]
    joined: Mapping[And | Or, tuple[Bool, ...]]
    answers: Mapping[Ge, tuple[AtLeast | Ever, bool]]


def plan(wanted: Iterable[Node], width: int, tile: int) -> Plan:
    """How to evaluate some nodes on words so wide, at most so many positions of a word at a time."""
    chosen = dict.fromkeys(wanted)
    order = in_order(chosen)
    known = _known(order, width)
    joined = {
        node: tuple(one for one in node.operands if one not in known)
        for node in order
        if isinstance(node, And | Or) and node not in known
    }
    compared = _compared([node for node in order if isinstance(node, Ge) and node not in known], order, width)
    uses = Counter(one for terms in compared for one, _ in terms)
    uses.update(node for node in chosen if isinstance(node, Count))
    answers: dict[Ge, tuple[AtLeast | Ever, bool]] = {}
    for terms, thresholds in compared.items():
        together = any(one.distances is None and uses[one] == 1 for one, _ in terms)
        shared = _shared(terms, {k for k, _ in thresholds.values()}, width, tile, together=together)
        answers |= {node: (shared[k], opposite) for node, (k, opposite) in thresholds.items()}
    inputs: dict[Item, tuple[Item, ...]] = {}
    waiting: list[Item] = list(chosen)
    while waiting:
        item = waiting.pop()
        if item not in inputs:
            inputs[item] = () if item in known else _inputs(item, joined, answers)
            waiting += inputs[item]
    carried = [item for item in inputs if _is_carried(item)] if width > tile else []
    return Plan(_steps(inputs, chosen, chosen), _steps(inputs, carried, ()), known, joined, answers)


def most(one: Count, width: int) -> int:
    """The greatest that a count could be on words so wide."""
    return width if one.distances is None else bisect_left(one.distances, width)


def _is_carried(item: Item) -> bool:
    """Whether the value at a position depends on earlier ones by itself."""
    match item:
        case Sum():
            return bool(item.steps)
        case Count():
            return item.distances != (0,)
    return isinstance(item, Ever)


def _inputs(
    item: Item,
    joined: Mapping[And | Or, tuple[Bool, ...]],
    answers: Mapping[Ge, tuple[AtLeast | Ever, bool]],
) -> tuple[Item, ...]:
    match item:
        case Sum():
            return tuple(one for one, _ in (*item.steps, *item.counts))
        case AtLeast():
            return (item.total,)
        case Ever():
            return (item.operand,)
        case And() | Or():
            return joined[item]
        case Ge():
            return (answers[item][0],)
    return item.children


def _steps(inputs: Mapping[Item, tuple[Item, ...]], roots: Iterable[Item], wanted: Iterable[Item]) -> Steps:
    """What the roots need, each with what nobody reads after it, or ever, and is not wanted."""
    kept = set(wanted)
    found: list[tuple[Item, tuple[Item, ...]]] = []
    for item in reversed(_in_order(inputs, roots)):
        done = tuple(one for one in dict.fromkeys((*inputs[item], item)) if one not in kept)
        kept.update(done)
        found.append((item, done))
    return tuple(reversed(found))


def _in_order(inputs: Mapping[Item, tuple[Item, ...]], roots: Iterable[Item]) -> list[Item]:
    """All that the roots need, depth first, so that few values are alive at a time; without recursion."""
    found: dict[Item, None] = {}
    for root in roots:
        stack: list[tuple[Item, Iterator[Item]]] = [(root, iter(inputs[root]))]
        while stack:
            item, others = stack[-1]
            other = next((one for one in others if one not in found), None)
            if other is None:
                found[item] = None
                stack.pop()
            else:
                stack.append((other, iter(inputs[other])))
    return list(found)


def _known(order: Iterable[Node], width: int) -> dict[Item, bool]:
    """Formulas that are true at every position, or false, as bounds on their sums show."""
    known: dict[Item, bool] = {}
    for node in order:
        match node:
            case True_():
                known[node] = True
            case Not() if node.operand in known:
                known[node] = not known[node.operand]
            case And() | Or():
                end = isinstance(node, Or)
                if any(known.get(one) is end for one in node.operands):
                    known[node] = end
                elif all(one in known for one in node.operands):
                    known[node] = not end
            case Ge():
                least, greatest = _range(alpha * most(one, width) for one, alpha in node.terms)
                if least + node.constant >= 0 or greatest + node.constant < 0:
                    known[node] = least + node.constant >= 0
    return known


def _compared(
    comparisons: Iterable[Ge], order: Iterable[Node], width: int
) -> dict[Terms, dict[Ge, tuple[int, bool]]]:
    """Comparisons by what they sum; with k, and whether they say that the sum is not at least k. Counts that
    are 0 on words so wide are left out.
    """
    place = {node: index for index, node in enumerate(order)}
    found: dict[Terms, dict[Ge, tuple[int, bool]]] = {}
    for node in comparisons:
        nonzero = [(one, alpha) for one, alpha in node.terms if most(one, width)]
        terms = tuple(sorted(nonzero, key=lambda term: place[term[0]]))
        opposite = terms[0][1] < 0
        if opposite:
            terms = tuple((one, -alpha) for one, alpha in terms)
        found.setdefault(terms, {})[node] = (node.constant + 1 if opposite else -node.constant), opposite
    return found


def _shared(
    terms: Terms, thresholds: set[int], width: int, tile: int, *, together: bool
) -> dict[int, AtLeast | Ever]:
    """Whether a sum is at least each of some k, with its global counts summed ``together`` or not."""
    if together and len(terms) == 1 and thresholds == {1}:
        return {1: Ever(terms[0][0].operand)}
    steps = tuple((one.operand, alpha) for one, alpha in terms if together and one.distances is None)
    counts = tuple((one, alpha) for one, alpha in terms if not together or one.distances is not None)
    ends = [alpha * min(width, tile) for _, alpha in steps]
    total = Sum(steps, counts, *_range([*ends, *(alpha * most(one, width) for one, alpha in counts)]))
    return {k: AtLeast(total, k) for k in thresholds}


def _range(ends: Iterable[int]) -> tuple[int, int]:
    """The least and the greatest sum of numbers from 0 to each of the ends."""
    found = list(ends)
    return sum(end for end in found if end < 0), sum(end for end in found if end > 0)
