"""What is true of a program after every word, found by guessing and checking.

An invariant is a clause of linear inequalities between numbers that the program remembers: counts, values
that local counts look back at (0 or 1), and whether the length is r modulo the period (0 or 1). The guesses
are

    x <= y,  x <= y + 1,  comparisons of the program and their negations,  x = 0 => y = 0,
    x = 0 => comparison,  x <= y + z,  y + z <= x,  x = 0 => y <= z.

Those that are wrong on some words that are tried are dropped. Then, until none fails, those are dropped that
one letter can make wrong in a state where all that are left hold (Houdini, Flanagan and Leino 2001). What is
left holds after the empty word, and one more letter keeps it, so it is true of every word.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import Any

import numpy as np
import torch

from lengthwise.crasp import nodes
from lengthwise.crasp.batch import LARGEST, node_values
from lengthwise.crasp.nodes import Ge, Node
from lengthwise.crasp.printer import show
from lengthwise.crasp.programs.arithmetic import (
    Integer,
    Truth,
    any_of,
    checked,
    holds,
    letters,
    new_solver,
    opposite,
    told,
    weighted,
    where,
)
from lengthwise.crasp.programs.outcome import Clock, fits
from lengthwise.crasp.programs.transition import State, System

MOST_FOR_PAIRS, MOST_FOR_TRIPLES = 40, 14
"""Guesses about two and about three numbers are made if there are at most so many numbers."""

MOST_PHASES = 8
"""The length modulo the period is among the numbers if the period is at most this."""

WORDS, LONG = 512, 48
"""All words are tried of lengths with at most so many words, and a few random ones of this length."""

Row = tuple[tuple[tuple[int, int], ...], int]
"""An inequality: places of numbers with coefficients, and a constant; the sum is at least 0."""

Clause = tuple[Row, ...]
"""One of these inequalities holds."""


class Numbers:
    """The numbers that a program remembers, each at its place."""

    def __init__(self, system: System) -> None:
        self.counts = {count: place for place, count in enumerate(system.counts)}
        self.bits = [(node, back) for node, reach in system.reach.items() for back in range(reach)]
        self.period = system.program.period if 1 < system.program.period <= MOST_PHASES else 0
        self.size = len(self.counts) + len(self.bits) + self.period

    def of(self, state: State) -> list[Integer]:
        """The numbers in a state."""
        return [
            *state.counts.values(),
            *(where(state.rings[node][back], 1) for node, back in self.bits),
            *(where(state.phase == r, 1) for r in range(self.period)),
        ]

    def formula(self, clause: Clause, state: State) -> Truth:
        """What a clause says in a state."""
        return _formula(clause, self.of(state))

    def words(self, clauses: Iterable[Clause]) -> list[str]:
        """Clauses as formulas in the syntax of programs, true at the last letter of every word."""
        local = [nodes.count(node, [back]) for node, back in self.bits]
        local += [nodes.count(nodes.mod(self.period, r), [0]) for r in range(self.period)]
        counts = [one for one in (*self.counts, *local) if one is not None]
        clauses = list(clauses)
        used = {place for clause in clauses for terms, _ in clause for place, _ in terms}
        names = {place: show(counts[place]) for place in used}
        return [" || ".join(_inequality(row, names) for row in clause) for clause in clauses]


def _formula(clause: Clause, numbers: Sequence[Integer]) -> Truth:
    return any_of(
        weighted(((numbers[place], alpha) for place, alpha in terms), constant) >= 0
        for terms, constant in clause
    )


def _inequality(row: Row, names: Mapping[int, str]) -> str:
    """An inequality with positive numbers on both sides."""
    sides: list[list[str]] = [[], []]
    for place, alpha in row[0]:
        sides[alpha > 0].append(names[place] if abs(alpha) == 1 else f"{abs(alpha)} * {names[place]}")
    if row[1]:
        sides[row[1] > 0].append(str(abs(row[1])))
    return " <= ".join(" + ".join(side) or "0" for side in sides)


def invariants(system: System, numbers: Numbers, clock: Clock) -> list[Clause]:
    """Clauses that are true of every word; simple ones first, then those that say more than these."""
    if numbers.size > MOST_FOR_PAIRS:
        return []
    tried = _tried(system, numbers)
    kept: list[Clause] = []
    for guesses in (_single, _conditional, _double):
        known = {clause[0] for clause in kept if len(clause) == 1}
        candidates = _true_of(tried, (c for c in guesses(system, numbers) if not _implied(c, known)))
        inductive = _inductive(system, numbers, kept, candidates, clock)
        if inductive is None:
            break
        kept += inductive
    return kept


def _implied(clause: Clause, known: set[Row]) -> bool:
    """Whether a clause is seen to say nothing new: numbers are never negative, and some rows are known."""
    for terms, constant in clause:
        negative = [place for place, alpha in terms if alpha < 0]
        unit = all(abs(alpha) == 1 for _, alpha in terms)
        if constant < 0:
            continue
        if not negative or (terms, constant) in known:
            return True
        # x <= y gives x <= y + z and x <= y + 1.
        if unit and len(negative) == 1 and any(_at_most(negative[0], y) in known for y, _ in terms):
            return True
        # x >= 1 or x <= 0.
        if unit and len(terms) == 1 and _at_least_one(negative[0]) in clause:
            return True
    return False


def _row(terms: Iterable[tuple[int, int]], constant: int = 0) -> Row:
    """Terms in the order of their places, so that equal rows are the same."""
    return tuple(sorted(terms)), constant


def _at_most(x: int, y: int, constant: int = 0) -> Row:
    return _row([(y, 1), (x, -1)], constant)


def _at_least_one(x: int) -> Row:
    return ((x, 1),), -1


def _comparisons(system: System, numbers: Numbers) -> Iterator[Row]:
    """The comparisons between numbers alone, and their negations."""
    for node in system.program.nodes:
        if isinstance(node, Ge) and all(one in numbers.counts for one, _ in node.terms):
            terms = [(numbers.counts[one], alpha) for one, alpha in node.terms]
            yield _row(terms, node.constant)
            yield _row([(place, -alpha) for place, alpha in terms], -node.constant - 1)


def _single(system: System, numbers: Numbers) -> Iterator[Clause]:
    yield from ((row,) for row in _comparisons(system, numbers))
    yield from ((_at_most(x, y),) for x, y in permutations(range(numbers.size), 2))


def _conditional(system: System, numbers: Numbers) -> Iterator[Clause]:
    for x, y in permutations(range(numbers.size), 2):
        yield (_at_most(x, y, 1),)
        yield _at_least_one(x), _row([(y, -1)])
    for x in numbers.counts.values():
        yield from ((_at_least_one(x), row) for row in _comparisons(system, numbers))


def _double(system: System, numbers: Numbers) -> Iterator[Clause]:
    if numbers.size <= MOST_FOR_TRIPLES:
        for x in range(numbers.size):
            for y, z in combinations([place for place in range(numbers.size) if place != x], 2):
                yield (_row([(y, 1), (z, 1), (x, -1)]),)
                yield (_row([(x, 1), (y, -1), (z, -1)]),)
        for x in numbers.counts.values():
            for y, z in permutations([place for place in range(numbers.size) if place != x], 2):
                yield _at_least_one(x), _at_most(y, z)


def _tried(system: System, numbers: Numbers) -> np.ndarray:
    """The numbers after each of many words, the empty one included, without repetitions."""
    program, size = system.program, len(system.program.alphabet)
    width = 1
    while size ** (width + 1) <= WORDS and width < LONG:
        width += 1
    start = [0] * numbers.size
    if numbers.period:
        start[-numbers.period] = 1
    if not fits(program, LONG):
        return np.array([start])
    every = torch.arange(size**width).unsqueeze(1) // size ** torch.arange(width).unsqueeze(0) % size
    generator = torch.Generator().manual_seed(0)
    found = [np.array([start])]
    for tokens in (every, torch.randint(size, (16, LONG), generator=generator)):
        wanted: list[Node] = [*numbers.counts, *(node for node, _ in numbers.bits)]
        values = node_values(wanted, tokens, program.alphabet)
        columns = [values[count] for count in numbers.counts]
        for node, back in numbers.bits:
            columns.append(torch.nn.functional.pad(values[node].long(), (back, 0))[:, : tokens.shape[1]])
        length = torch.arange(1, tokens.shape[1] + 1).expand(tokens.shape)
        columns += [(length % numbers.period == r).long() for r in range(numbers.period)]
        if columns:
            found.append(torch.stack(columns, -1).reshape(-1, numbers.size).numpy())
    return np.unique(np.concatenate(found), axis=0)


def _true_of(tried: np.ndarray, guesses: Iterable[Clause]) -> list[Clause]:
    """The guesses that hold after all words that were tried; each row is evaluated once."""
    known: dict[Row, Any] = {}
    kept: list[Clause] = []
    for clause in dict.fromkeys(guesses):
        right = np.zeros(len(tried), bool)
        for row in clause:
            if row not in known:
                terms, constant = row
                large = abs(constant) + LONG * sum(abs(alpha) for _, alpha in terms) >= LARGEST
                exact = tried.astype(object) if large else tried
                known[row] = sum((exact[:, place] * alpha for place, alpha in terms), constant) >= 0
            right = right | known[row]
        if right.all():
            kept.append(clause)
    return kept


def _inductive(
    system: System, numbers: Numbers, known: Sequence[Clause], candidates: list[Clause], clock: Clock
) -> list[Clause] | None:
    """The largest part of the candidates that one more letter keeps true, given what is known to be true;
    None if time is over first.
    """
    solver = new_solver()
    state, facts = system.unknown("s")
    tests, one = letters("a", system.program.alphabet)
    now, then = numbers.of(state), numbers.of(system.step(state, tests))
    told(solver, *facts, one, *(_formula(clause, now) for clause in known))
    after = {clause: _formula(clause, then) for clause in candidates}
    while candidates:
        solver.push()
        told(solver, *(_formula(clause, now) for clause in candidates))
        told(solver, any_of(opposite(after[clause]) for clause in candidates))
        answer = checked(solver, clock)
        if answer is None:
            return None
        if not answer:
            return candidates
        model = solver.model()
        candidates = [clause for clause in candidates if holds(model, after[clause])]
        solver.pop()
    return []
