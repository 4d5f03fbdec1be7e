"""One layer in finite precision: Theorem C (certified), Theorem 4.1 of the paper (order)."""

import math
from collections.abc import Sequence
from fractions import Fraction

from lengthwise.limit.hard import HardAttention
from lengthwise.simulation.counts import theorem_b_length
from lengthwise.simulation.one_layer import ROUNDING
from lengthwise.simulation.pair import Pair


def certified_length(
    vocabulary: int,
    period: int,
    locality: int,
    heads: int,
    eta: Fraction | float,
    hardmax_length: int | float,
) -> int | float:
    """N_cert of Theorem B for ``heads`` far sets at once; infinite if attention is never hard or eta is 0."""
    if eta <= 0 or hardmax_length == math.inf:
        return math.inf
    assert isinstance(hardmax_length, int)
    share = min(Fraction(eta), Fraction(1, 2))
    return theorem_b_length(vocabulary, period, locality, heads, share, hardmax_length)


def joint_tolerance(sensitivities: Sequence[float], tolerance: float) -> Fraction:
    """Eta = min(1/2, eps/(Lambda_f + Lambda_g)), rounded down; 0 where a sensitivity is infinite."""
    total = sum(sensitivities)
    if total == math.inf:
        return Fraction(0)
    if total == 0 or tolerance == math.inf:
        return Fraction(1, 2)
    return min(Fraction(1, 2), Fraction(tolerance) / (Fraction(total) * ROUNDING))


def far_sets(pair: Pair) -> int:
    """H: for one query, at most how many different sets of far types the heads of f and g attend to.

    Heads whose output the ranks decide do not matter; heads that rank the far types alike, for a query, have
    the same set whatever the string.
    """
    hards = [HardAttention.of(model) for model in pair.models]
    most = 0
    for query in range(pair.vocabulary * pair.period):
        rows = [row for hard in hards for row in hard.far[hard.varied[:, query], query].tolist()]
        most = max(most, len({_order(row) for row in rows}))
    return most


def _order(ranks: list[int]) -> tuple[int, ...]:
    """The ranks without their gaps."""
    place = {rank: index for index, rank in enumerate(sorted(set(ranks)))}
    return tuple(place[rank] for rank in ranks)


def order_one_layer(
    vocabulary: int,
    period: int,
    locality: int,
    lipschitz: float,
    tolerance: float,
    hardmax_length: int | float,
) -> tuple[float, float]:
    """Theorem 4.1, of this order (paper), constant 1, not certified: agreement up to the larger of the
    hardmax length and L^2 Delta^7 |Sigma|^6 tau^2 / eps^2 carries over to every length. Both are returned.

    L is a composite of norms whose formula is not public; our sensitivity stands for it. tau counts as 1
    where there is no locality.
    """
    size = lipschitz**2 * period**7 * vocabulary**6 * max(locality, 1) ** 2
    hard = float(hardmax_length) if hardmax_length < 2**1023 else math.inf
    squared = tolerance * tolerance
    return hard, size / squared if squared > 0 else math.inf
