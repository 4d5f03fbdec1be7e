"""The constants of a two-layer model, and C(f), on which training-length bounds depend."""

import math
from dataclasses import dataclass

import torch

from lengthwise.limit.margins import head_margin, regimes
from lengthwise.limit.norms import Parts, diameter, exp, layer_norms, lipschitz, times
from lengthwise.limit.precision import Infinite
from lengthwise.limit.sensitivity import sensitivity
from lengthwise.limit.transformer import LimitTransformer


@dataclass(frozen=True)
class SecondHead:
    """Of one head of the second layer: ``logits`` kappa = |key_query|, ``values`` |value|, ``oscillation``
    omega of its logits over the keys of one query (at most kappa Y1 diam1), ``moves`` dv, the diameter of its
    values (at most |value| diam1), the ``rank`` of value, its ``margin`` (at most 1), and whether it is
    ``positional``, its largest local logit above 1.
    """

    logits: float
    values: float
    oscillation: float
    moves: float
    rank: int
    margin: float
    positional: bool


@dataclass(frozen=True)
class TwoLayerConstants:
    """The numbers of a two-layer model in infinite precision on which its training-length bound depends.

    With types y, first-layer values V_h y, token logits of oscillation omega_h, and all bounds over every
    string and position:

    - ``mlp``: Lm, a Lipschitz constant of the first MLP, y -> y + MLP(y);
    - ``norm``: Y1 <= Lm (max |y| + sum of max |V_h y|) + |MLP(0)| bounds the stream after the first layer;
    - ``diameter``: diam1 <= Lm (diam y + sum of diam_h), of the set in which that stream lies;
    - ``convergence``: C1 = Lm (tau + 1) sum of diam_h e^omega_h: at position i > tau the stream is within
      C1 i^-gamma1 of its limit, a function of the window, the residue and the histogram of types;
    - ``histogram``: L_Phi, Lipschitz constant of that limit in the histogram (total variation): Lm times the
      sum of diam_h e^omega_h over the heads that are not position-dominated;
    - ``margin_first``: gamma1, the smallest margin of a head of the first layer, at most 1;
    - ``out``: L_out, a Lipschitz constant of the second MLP and the readout together;
    - ``heads``: of the second layer.

    Y1, diam1 and the second layer's oscillations and diameters are the smaller of the product of norms and a
    bound from the parts of which the stream is a sum (``Parts``); both hold for the stream at every position
    of every string, and for its limit.
    """

    vocabulary: int
    period: int
    locality: int
    mlp: float
    norm: float
    diameter: float
    convergence: float
    histogram: float
    margin_first: float
    out: float
    heads: tuple[SecondHead, ...]

    @property
    def margin(self) -> float:
        """gamma, the smallest margin of any head, at most 1."""
        return (
            min(self.margin_first, *(head.margin for head in self.heads)) if self.heads else self.margin_first
        )


def two_layer_constants(f: LimitTransformer) -> TwoLayerConstants:
    """The constants of a two-layer model in infinite precision."""
    if len(f.layers) != 2 or not isinstance(f.precision, Infinite):
        raise ValueError(
            "these constants are defined for two layers in infinite precision, "
            f"this model has {len(f.layers)} in {f.precision!r}"
        )
    first, second = f.layers
    types, known = f.types(), layer_norms(f)
    mlp, diameters, scaled, largest = known[0].lipschitz, [], [], []
    for head, value in zip(known[0].heads, first.value, strict=True):
        assert head.diameter is not None
        assert head.oscillation is not None
        diameters.append(head.diameter)
        scaled.append(times(head.diameter, exp(head.oscillation)))
        largest.append(float((types @ value.mT).norm(dim=-1).max()))
    loose = [size for size, regime in zip(scaled, regimes(f)[0], strict=True) if regime != "position"]
    origin = first.after_mlp(torch.zeros_like(types[:1]))
    parts = Parts.after_first_layer(f)
    norm = times(mlp, float(types.norm(dim=-1).max()) + sum(largest)) + float(origin.norm())
    norm = min(norm, parts.norm())
    across = min(times(mlp, diameter(types) + sum(diameters)), parts.diameter())
    heads = tuple(
        SecondHead(
            logits=head.key_query,
            values=head.value,
            oscillation=min(times(head.key_query, norm, across), parts.oscillation(key_query)),
            moves=min(times(head.value, across), parts.diameter(value)),
            rank=int(torch.linalg.matrix_rank(value)),
            margin=min(1.0, head_margin(local)),
            positional=regime == "position",
        )
        for head, key_query, value, local, regime in zip(
            known[1].heads,
            second.key_query,
            second.value,
            second.local.tolist(),
            regimes(f)[1],
            strict=True,
        )
    )
    return TwoLayerConstants(
        vocabulary=f.vocabulary,
        period=f.period,
        locality=f.locality,
        mlp=mlp,
        norm=norm,
        diameter=across,
        convergence=times(mlp, (first.locality + 1) * sum(scaled)),
        histogram=times(mlp, sum(loose)),
        margin_first=min((min(1.0, head_margin(local)) for local in first.local.tolist()), default=1.0),
        out=lipschitz(f),
        heads=heads,
    )


def closed_form(
    c: TwoLayerConstants, dimension: int, locality: int, log_m: float = 1.0, log_n: float = 1.0
) -> tuple[float, float, float]:
    """(A, B, C) such that the output on a balanced subsample of m runs of length l, n_ = m l + 2 tau + 1 long
    at least, is within A/l + B/m + C n_^-gamma of the output on the string, for l >= max(tau, 1).

    ``dimension`` is the number d of quantities that the subsample balances, ``locality`` tau, ``log_m``
    1 + max(0, ln(m/(d + 1))), ``log_n`` 1/(1 - gamma1), or 1 + ln n if gamma1 = 1.
    """
    loose = [head for head in c.heads if not head.positional]
    runs = times(3 * locality * c.out, sum(times(exp(h.oscillation), h.moves) for h in loose))
    through = 1 + sum(
        times(h.logits, c.diameter, h.moves) + h.values + times(h.logits, c.norm, h.moves) for h in c.heads
    )
    blocks = times(c.histogram * (dimension + 3), through) + sum(
        times(
            exp(h.oscillation),
            (18 + 2 * dimension) * h.moves
            + times(
                h.values + 2 * times(h.logits, c.norm, h.moves), c.histogram, (dimension + 1) * log_m + 1
            ),
        )
        for h in loose
    )
    ends = 2 * c.convergence + sum(
        times(2 * h.moves * (locality + 1), exp(h.oscillation))
        + times(
            2 * h.values,
            1 + times(h.logits, c.norm, c.diameter),
            times(exp(h.oscillation), locality * c.diameter + c.convergence * log_n) + 2 * c.convergence,
        )
        + times(2 * h.logits, h.moves, c.diameter, c.convergence)
        for h in c.heads
    )
    return runs, times(c.out, blocks), times(c.out, ends)


def balanced_dimension(*models: TwoLayerConstants) -> int:
    """D = D (S - 1) + 1 + sum over heads that are not position-dominated of 1 + rank V_h."""
    period = math.lcm(*(c.period for c in models))
    heads = [head for c in models for head in c.heads if not head.positional]
    return period * (models[0].vocabulary - 1) + 1 + sum(1 + head.rank for head in heads)


def complexity(f: LimitTransformer) -> float:
    """C(f), the number that training-length bounds set against the tolerance.

    - One layer: Lambda_f, the ``sensitivity``.
    - Two layers in infinite precision: the largest of the three constants of ``closed_form``, for f alone and
      with its logarithms set to 1. It is exponential in the logits of both layers.

    The papers leave their C(f) implicit; this one is ours.
    """
    if len(f.layers) == 1:
        return sensitivity(f)
    if len(f.layers) != 2 or not isinstance(f.precision, Infinite):
        raise ValueError(
            "the complexity is defined for one layer, or for two in infinite precision; "
            f"this model has {len(f.layers)} in {f.precision!r}"
        )
    constants = two_layer_constants(f)
    return max(closed_form(constants, balanced_dimension(constants), f.locality))
