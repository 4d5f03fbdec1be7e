"""The shortest string with nearly the attention of a long one, by integer programming; and, where all shorter
strings can be tried, the shortest with nearly its outputs.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from scipy import optimize, sparse

from lengthwise.sequences import Summary
from lengthwise.simulation.attended import Attended
from lengthwise.simulation.configurations import Configurations, one_thread
from lengthwise.simulation.pair import Pair

SPEED = 10**6
"""About how many configurations are tried in a second, until it is measured."""

TIGHTENINGS = (0.0, 1e-7, 1e-5, 1e-3)
"""The solver allows small violations; where exact arithmetic finds one, it is asked again for a bit less."""


@dataclass(frozen=True)
class Program:
    """The outcome of the integer program: far ``counts`` (None if it found nothing better than what was
    known), whether they are ``optimal``, and a proved lower bound on the far positions of the scarcest
    residue.
    """

    counts: list[int] | None
    optimal: bool
    fewest: int


def fewest_positions(
    counts: Sequence[int],
    heads: Sequence[Attended],
    *,
    period: int,
    eta: Fraction,
    least: int,
    known: int,
    time_limit: float,
) -> Program:
    """The far counts of the shortest string with the suffix and residue of x whose attention differs from
    that on x by at most eta < 1 in total variation, for every head.

    Variables: m_i for every type that no head prefers to what it attends to on x (any other would change the
    attention entirely), and the size c' of the scarcest residue, between ``least`` and ``known``. Every head
    must find a key of the rank that it attends to on x. For a head whose values vary there, with far types
    S, near atoms k, W = k + sum of m_i over S and shares p_i on x, TV <= eta is linear in m:
    t_i >= p_i W - m_i, t_near >= p_near W - k, sum of t <= eta W.
    """
    kinds = len(counts)
    sizes = [sum(counts[kind] for kind in range(residue, kinds, period)) for residue in range(period)]
    allowed = [kind for kind in range(kinds) if not any(kind in head.above for head in heads)]
    blocks = {(head.far & frozenset(allowed), head.near, head.varied) for head in heads}
    blocks = sorted((sorted(far), near, varied) for far, near, varied in blocks if far)
    proved, answer, optimal = least, None, False
    deadline = time.monotonic() + time_limit
    for tightening in TIGHTENINGS:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        result = _solve(counts, sizes, allowed, blocks, float(eta) * (1 - tightening), least, known, left)
        if tightening == 0.0 and result.mip_dual_bound is not None and np.isfinite(result.mip_dual_bound):
            proved = max(proved, int(np.ceil(result.mip_dual_bound - 1e-4)))
        if result.x is None:
            continue
        found = [0] * kinds
        for kind, value in zip(allowed, result.x, strict=False):
            found[kind] = round(value)
        if _holds(found, counts, sizes, heads, period, eta):
            answer = found
            smallest = min(sum(found[kind] for kind in range(r, kinds, period)) for r in range(period))
            optimal = smallest <= proved
            break
    return Program(answer, optimal, proved)


def _solve(
    counts: Sequence[int],
    sizes: Sequence[int],
    allowed: Sequence[int],
    blocks: Sequence[tuple[list[int], int, bool]],
    eta: float,
    least: int,
    known: int,
    time_limit: float,
) -> optimize.OptimizeResult:
    period, fewest = len(sizes), min(sizes)
    place = {kind: index for index, kind in enumerate(allowed)}
    size = len(allowed)  # the column of c'
    columns = size + 1 + sum(len(far) + (near > 0) for far, near, varied in blocks if varied)
    rows: list[dict[int, float]] = []
    low: list[float] = []
    high: list[float] = []

    def add(row: dict[int, float], at_least: float, at_most: float) -> None:
        rows.append(row)
        low.append(at_least)
        high.append(at_most)

    for residue in range(period):
        row = {place[kind]: 1.0 for kind in allowed if kind % period == residue}
        surplus = sizes[residue] - fewest
        add({**row, size: -1.0}, surplus, surplus)
    slack = size + 1
    for far, near, varied in blocks:
        total = near + sum(counts[kind] for kind in far)
        if near == 0:
            add({place[kind]: 1.0 for kind in far}, 1, np.inf)
        if not varied:
            continue
        sum_row = {place[kind]: -eta for kind in far}
        for kind in far:
            share = counts[kind] / total
            row = {place[other]: -share for other in far}
            row[place[kind]] += 1.0
            add({**row, slack: 1.0}, share * near, np.inf)
            sum_row[slack] = 1.0
            slack += 1
        if near:
            share = near / total
            add({**{place[kind]: -share for kind in far}, slack: 1.0}, share * near - near, np.inf)
            sum_row[slack] = 1.0
            slack += 1
        add(sum_row, -np.inf, eta * near)
    entries = [(index, column, value) for index, row in enumerate(rows) for column, value in row.items()]
    where = ([entry[0] for entry in entries], [entry[1] for entry in entries])
    matrix = sparse.csr_array(([entry[2] for entry in entries], where), shape=(len(rows), columns))
    objective = np.zeros(columns)
    objective[size] = 1.0
    lower, upper = np.zeros(columns), np.full(columns, np.inf)
    lower[size], upper[size] = least, known
    whole = np.zeros(columns)
    whole[: size + 1] = 1
    return optimize.milp(
        objective,
        integrality=whole,
        bounds=optimize.Bounds(lower, upper),  # pyright: ignore[reportArgumentType]
        constraints=optimize.LinearConstraint(matrix, low, high),  # pyright: ignore[reportArgumentType]
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )


def _holds(
    found: Sequence[int],
    counts: Sequence[int],
    sizes: Sequence[int],
    heads: Sequence[Attended],
    period: int,
    eta: Fraction,
) -> bool:
    """Whether these counts are those of a string, with attention within eta, in exact arithmetic."""
    kinds = len(counts)
    kept = [sum(found[kind] for kind in range(residue, kinds, period)) for residue in range(period)]
    lost = {had - has for had, has in zip(sizes, kept, strict=True)}
    if min(found) < 0 or len(lost) != 1:
        return False
    for head in heads:
        if any(found[kind] for kind in head.above):
            return False
        if head.near == 0 and not any(found[kind] for kind in head.far):
            return False
        if head.distance(counts, found) > eta:
            return False
    return True


@dataclass(frozen=True)
class Trial:
    """The outcome of trying all strings: the shortest one's ``summary``, if there is one shorter than the
    limit, and the length up to which all strings were tried.
    """

    summary: Summary | None
    tried: int


def shortest_of_all(
    pair: Pair,
    outputs: Sequence[torch.Tensor],
    tolerances: Sequence[float],
    *,
    below: int,
    time_limit: float,
) -> Trial:
    """The shortest string below a length on which f and g come within the tolerances of the given outputs,
    by evaluating every different summary, length by length, until the time is up.
    """
    deadline, started = time.monotonic() + time_limit, time.monotonic()
    spent, speed = 0, SPEED
    with one_thread():
        for length in range(1, below):
            configurations = Configurations(pair, length)
            if spent > SPEED:
                speed = spent / (time.monotonic() - started)
            if time.monotonic() + configurations.number / speed > deadline:
                return Trial(None, length - 1)
            for counts_KB, suffix_NW, *reached in configurations.outputs():
                excess_NB = torch.stack(
                    [
                        torch.linalg.vector_norm(one - output.unsqueeze(-1), dim=1) - tolerance
                        for one, output, tolerance in zip(reached, outputs, tolerances, strict=True)
                    ]
                ).amax(0)
                smallest, where = excess_NB.flatten().min(0)
                if smallest <= 0:
                    suffix, matrix = divmod(int(where), excess_NB.shape[1])
                    found = configurations.summary(counts_KB[:, matrix], suffix_NW[suffix])
                    return Trial(found, length - 1)
            spent += configurations.number
    return Trial(None, below - 1)
