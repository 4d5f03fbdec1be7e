"""Margins: how far apart logits are, and from which length on attention is what the theory takes it for."""

import math
from typing import Literal

from lengthwise.limit.hard import HardAttention
from lengthwise.limit.precision import Finite
from lengthwise.limit.transformer import LimitTransformer

Regime = Literal["token", "balanced", "position"]

LARGEST_EXPONENT = 2**20
"""Hardmax lengths beyond 2 to this power are reported as infinite."""


def logit_margin(f: LimitTransformer) -> float:
    """gamma(f): the smallest positive gap between two logits of one query type, over all heads of a
    one-layer model in finite precision; infinite if no query type has two different logits.

    For a query of type q at residue r, the logits are those of every far type, A(i; q), of the query itself,
    A(q; q) + phi(0), and of every token s at distance t = 1..tau, A((s, r - t); q) + phi(t).

    Two logits count as equal if they differ by no more than rounding can account for: 4 (d + 2) units in the
    last place of the sum of the absolute values of the terms, which bounds the error of evaluating both (see
    ``lengthwise.limit.hard``).
    """
    if not isinstance(f.precision, Finite):
        raise ValueError("the logit margin is defined in finite precision: there logits do not grow with i")
    if len(f.layers) != 1:
        raise ValueError(f"the logit margin is defined for one layer, this model has {len(f.layers)}")
    return HardAttention.of(f).margin


def hardmax_length(f: LimitTransformer) -> int | float:
    """N_hard = ceil(2^(p / gamma)): from this length on, every logit but the largest has weight zero.

    A smaller logit has weight N^-gap <= N^-gamma <= 2^-p there. Exact up to 2^52; rounded up to a power of
    two beyond, and infinite beyond 2^(2^20).
    """
    gamma = logit_margin(f)
    if gamma == math.inf:
        return 1
    assert isinstance(f.precision, Finite)
    bits = f.precision.bits
    exponent = bits / gamma
    if exponent > LARGEST_EXPONENT:
        return math.inf
    if exponent > 52:
        return 2 ** math.ceil(exponent)
    length = math.ceil(2**exponent)
    while math.log2(length) * gamma < bits:
        length += 1
    while length > 1 and math.log2(length - 1) * gamma >= bits:
        length -= 1
    return length


def positional_margin(f: LimitTransformer) -> float:
    """The smallest ``head_margin`` over all heads; infinite for a model without heads.

    In infinite precision the weight that a head's limit neglects falls like i to the minus this margin, if it
    is at most 1.
    """
    return min((head_margin(local) for layer in f.layers for local in layer.local.tolist()), default=math.inf)


def head_margin(local: list[float]) -> float:
    """The gap between the two largest different numbers in {phi(t)} and 1 (1 stands for the far positions
    together); 1 for a head whose phi(t) are all 1.
    """
    distinct = sorted({*local, 1.0})
    return distinct[-1] - distinct[-2] if len(distinct) > 1 else 1.0


def regimes(f: LimitTransformer) -> tuple[tuple[Regime, ...], ...]:
    """For each layer and head, what dominates attention at great length in infinite precision: the far
    "token"s if max phi < 1, near "position"s if max phi > 1, both ("balanced") if it is 1.
    """
    return tuple(
        tuple(
            "token" if max(local) < 1 else ("balanced" if max(local) == 1 else "position")
            for local in layer.local.tolist()
        )
        for layer in f.layers
    )
