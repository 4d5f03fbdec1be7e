"""What sums of counts tell about the states of a strongly connected component of an automaton.

Let the states of the component be parted into blocks. A sum of counts, each of a letter read in the states of
one block, is bounded only if it is 0 around every cycle; then it is a *potential*: a number for each state,
with ``V(q) = V(p) + E(letter, block of p)`` on every edge inside the component. States of one block to which
all potentials give the same number stay together; the others part, and the finer blocks may be counted in the
next round, until nothing parts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lengthwise.automata.automaton import Transitions, numbered
from lengthwise.crasp.regular.linear import PRIME, Relations, primitive

Edge = tuple[int, int, int]
"""A state, the number of a letter, and the state that it leads to."""

Blocks = Mapping[int, int]
"""The block of every state of a component; blocks are numbered from 0."""


@dataclass(frozen=True)
class Potential:
    """Whole numbers with ``values[q] = values[p] + weights[letter, block of p]`` on every edge."""

    values: Mapping[int, int]
    weights: Mapping[tuple[int, int], int]


@dataclass(frozen=True)
class Round:
    """Potentials over ``blocks`` that together part all that any potentials over them do."""

    blocks: Blocks
    potentials: tuple[Potential, ...]


def edges_inside(component: Iterable[int], transitions: Transitions) -> list[Edge]:
    """The transitions that stay in a component."""
    inside = dict.fromkeys(component)
    return [
        (state, letter, after)
        for state in inside
        for letter, after in enumerate(transitions[state])
        if after in inside
    ]


def together(blocks: Blocks) -> tuple[int, int] | None:
    """Two states in one block."""
    seen: dict[int, int] = {}
    for state, block in blocks.items():
        if seen.setdefault(block, state) != state:
            return seen[block], state
    return None


def merged(edges: Iterable[Edge], blocks: Blocks) -> tuple[int, int] | None:
    """Two states of one block that a letter leads to the same state: they never part."""
    seen: dict[tuple[int, int, int], int] = {}
    for state, letter, after in edges:
        if seen.setdefault((blocks[state], letter, after), state) != state:
            return seen[blocks[state], letter, after], state
    return None


def stable_blocks(edges: Sequence[Edge], blocks: Blocks) -> Blocks:
    """The blocks after all rounds, solved modulo 2^61 - 1; those of several states confirmed over the
    rationals.

    For that, rational rounds go on from the blocks found. Whatever these were, the true rounds, which start
    from coarser blocks, end with blocks at least as coarse as theirs: every potential over coarser blocks is
    one over finer blocks.
    """
    found = _refined(edges, blocks, PRIME)
    if together(found) is None:
        return found
    exact = _refined(edges, found, None)
    return _refined(edges, blocks, None) if together(exact) is None else exact


def rounds(edges: Sequence[Edge], blocks: Blocks) -> tuple[list[Round], Blocks]:
    """The rounds of potentials, in whole numbers, and the blocks that they end with."""
    done: list[Round] = []
    while True:
        relations, finer = _round(edges, blocks, None)
        if _size(finer) == _size(blocks):
            return done, blocks
        done.append(Round(blocks, tuple(_potentials(edges, blocks, finer, relations))))
        blocks = finer


def _size(blocks: Blocks) -> int:
    return len(set(blocks.values()))


def _refined(edges: Sequence[Edge], blocks: Blocks, prime: int | None) -> Blocks:
    """The blocks after all rounds."""
    while True:
        _, finer = _round(edges, blocks, prime)
        if _size(finer) in (_size(blocks), len(blocks)):
            return finer
        blocks = finer


def _round(edges: Sequence[Edge], blocks: Blocks, prime: int | None) -> tuple[Relations, Blocks]:
    """The relations between the values of all potentials over the blocks, and the blocks that these part.

    The edges of one letter and block have one weight, so that all change the value alike. The variables are
    the value of the first state of each block (number ``-1 - block``) and, for the other states, how much
    more theirs is (the number of the state). Where a letter leads from one block to one block the former
    cancel, and where blocks are small there are few of the latter: products with windows and phases stay
    cheap.
    """
    leaders = _leaders(blocks)
    references: dict[tuple[int, int], Edge] = {}
    rows = []
    for edge in edges:
        state, letter, after = edge
        first, _, second = references.setdefault((letter, blocks[state]), edge)
        if first != state:
            row: dict[int, int] = {}
            for one, sign in (after, 1), (state, -1), (second, -1), (first, 1):
                for variable in _value(one, blocks, leaders):
                    row[variable] = row.get(variable, 0) + sign
            rows.append({variable: factor for variable, factor in row.items() if factor})
    relations = Relations(prime)
    for row in sorted(rows, key=len):
        relations.add(row)
    looks = {
        state: (block, frozenset(relations.reduced({} if state in leaders else {state: 1}).items()))
        for state, block in blocks.items()
    }
    number = numbered(looks.values())
    return relations, {state: number[look] for state, look in looks.items()}


def _leaders(blocks: Blocks) -> set[int]:
    """The first state of every block."""
    first: dict[int, int] = {}
    for state, block in blocks.items():
        first.setdefault(block, state)
    return set(first.values())


def _value(state: int, blocks: Blocks, leaders: set[int]) -> tuple[int, ...]:
    """The variables whose sum is the value of a state."""
    return (-1 - blocks[state],) if state in leaders else (-1 - blocks[state], state)


def _potentials(
    edges: Sequence[Edge], blocks: Blocks, finer: Blocks, relations: Relations
) -> Iterator[Potential]:
    """Potentials that part the blocks into the finer ones: of those where one free variable is 1 and the
    others are 0, the ones that part something new.
    """
    leaders = _leaders(blocks)
    solved = {state: relations.reduced(dict.fromkeys(_value(state, blocks, leaders), 1)) for state in blocks}
    parted: Mapping[int, object] = blocks
    for free in dict.fromkeys(variable for row in solved.values() for variable in row):
        candidate = {state: (parted[state], row.get(free, 0)) for state, row in solved.items()}
        # Values may differ between blocks without parting any: only new parts of a block count.
        number = numbered(candidate.values())
        if len(number) == len(set(parted.values())):
            continue
        parted = {state: number[look] for state, look in candidate.items()}
        origin = Fraction(next(iter(solved.values())).get(free, 0))
        values = primitive({state: row.get(free, 0) - origin for state, row in solved.items()})
        weights = {(letter, blocks[state]): values[after] - values[state] for state, letter, after in edges}
        assert all(
            values[after] == values[state] + weights[letter, blocks[state]] for state, letter, after in edges
        ), "a potential must change alike on all edges of a letter and a block"
        yield Potential(values, weights)
        if len(number) == _size(finer):
            return
