"""Norms and Lipschitz constants: how far an output moves when attention moves.

Axes: H head, K key type, Q query type, m hidden unit, d width, o output.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.limit.hard import HardAttention
from lengthwise.limit.margins import head_margin, regimes
from lengthwise.limit.precision import Infinite
from lengthwise.limit.transformer import LimitLayer, LimitTransformer

ROUNDING = 1e-12
"""Relative to the size of its terms, how close to zero a pre-activation counts as either sign."""


def operator_norm(matrix: Float[Tensor, "m n"]) -> float:
    """The largest factor by which the matrix lengthens a vector."""
    return float(torch.linalg.matrix_norm(matrix, 2)) if matrix.numel() else 0.0


def diameter(points: Float[Tensor, "K d"]) -> float:
    """The largest Euclidean distance between two of the points."""
    return float((points.unsqueeze(0) - points.unsqueeze(1)).norm(dim=-1).max())


@dataclass(frozen=True)
class HeadNorms:
    """Of one head: |key_query|, |value|, the diameter of its values (what moving its attention changes), and
    the oscillation of its token logits (largest difference between two keys, for one query).

    The last two are exact over the types of the model in the first layer, bounds over every string in the
    second (``Parts``), and None beyond.
    """

    key_query: float
    value: float
    diameter: float | None
    oscillation: float | None


@dataclass(frozen=True)
class LayerNorms:
    """Of one layer: |mlp_in|, |mlp_out|, and a Lipschitz constant of y -> y + MLP(y)."""

    heads: tuple[HeadNorms, ...]
    mlp_in: float
    mlp_out: float
    lipschitz: float


def layer_norms(f: LimitTransformer) -> tuple[LayerNorms, ...]:
    """The norms of every layer."""
    result, parts = [], Parts.after_first_layer(f)
    for index, layer in enumerate(f.layers):
        heads = []
        for key_query, value in zip(layer.key_query, layer.value, strict=True):
            spread = None, None
            if index == 0:
                spread = _spread(f.types(), key_query, value)
            elif index == 1:
                spread = parts.diameter(value), parts.oscillation(key_query)
            heads.append(HeadNorms(operator_norm(key_query), operator_norm(value), *spread))
        eye = torch.eye(layer.width, dtype=torch.float64, device=layer.value.device)
        norms = operator_norm(layer.mlp_in), operator_norm(layer.mlp_out)
        result.append(LayerNorms(tuple(heads), *norms, mlp_lipschitz(layer, eye)))
    return tuple(result)


def _spread(types: Tensor, key_query: Tensor, value: Tensor) -> tuple[float, float]:
    logits_KQ = types @ key_query @ types.mT
    return diameter(types @ value.mT), float((logits_KQ.amax(0) - logits_KQ.amin(0)).max())


def mlp_lipschitz(layer: LimitLayer, readout: Float[Tensor, "o d"]) -> float:
    """A Lipschitz constant of Y -> U (Y + B act(A Y + b)), for U = ``readout``.

    For relu, the smaller of |U| + |UB| |A| and |U + UBA/2| + sum over units k of |(UB)_k| |A_k| / 2, since
    the derivative of relu is 1/2 plus something in [-1/2, 1/2]. A step has none: infinite, unless the units
    are not read.
    """
    into, out = layer.mlp_in, readout @ layer.mlp_out
    if layer.activation == "heaviside":
        steps = bool((out.norm(dim=0) * into.norm(dim=1) > 0).any())
        return math.inf if steps else operator_norm(readout)
    apart = operator_norm(readout) + operator_norm(out) * operator_norm(into)
    halves = operator_norm(readout + out @ into / 2) + float((out.norm(dim=0) * into.norm(dim=1)).sum()) / 2
    return min(apart, halves)


def lipschitz(f: LimitTransformer) -> float:
    """L_f: a Lipschitz constant of the last MLP and readout together, Y -> U (Y + B act(A Y + b))."""
    return mlp_lipschitz(f.layers[-1], f.readout)


def sensitivity(f: LimitTransformer, *, hard: bool = False) -> float:
    """Lambda_f of a one-layer model: if the attention of every head moves by at most eta in total variation,
    the output moves by at most Lambda_f eta (Euclidean norm). At most ``lipschitz`` times the sum of the
    heads' diameters, and usually far less.

    Proof. For a fixed query type, the stream after attention lies in a convex set, y_q plus the hulls of the
    heads' values. Moving head h by eta moves it along eta times an average of differences V_h (y_i - y_j).
    On the segment between the two streams the derivative of the output is U (I + B D A), D diagonal with 1
    for units that are on over the whole set, 0 for units that are off, and anything in [0, 1] for the rest R;
    so a difference v moves the output by at most

        |U (I + B D' A) v| + sum over R of |(UB)_k| |A_k v| / 2,  D' = 1, 0 and 1/2.

    Sum over the heads the largest of this over pairs of types, and take the largest sum over query types. If
    all values lie on one line (what rounding leaves beside it counts by ``lipschitz``), the output along it is
    piecewise linear, and its largest slope is taken instead. Steps (heaviside) that can be crossed make it infinite.

    With ``hard``, for two strings with hard attention on which every head attends to keys of the same rank:
    then attention moves only between keys of one rank, and only their differences count.
    """
    if len(f.layers) != 1:
        raise ValueError(f"the sensitivity is defined for one layer, this model has {len(f.layers)}")
    (layer,) = f.layers
    types = f.types()
    if layer.heads == 0:
        return 0.0
    values_HKd = types @ layer.value.mT
    on_Qm, undecided_Qm = _reach(layer, types, values_HKd)
    out = f.readout @ layer.mlp_out
    if layer.activation == "heaviside":
        crossed = undecided_Qm.any(0) & (out.norm(dim=0) > 0)
        if crossed.any():
            return math.inf
        on_Qm = torch.zeros_like(on_Qm)
    ranks = HardAttention.of(f) if hard else None
    line = _line(values_HKd)
    if line is not None and layer.activation == "relu":
        return _on_a_line(f, types, values_HKd, line, ranks)
    largest = 0.0
    differences_HPd = (values_HKd.unsqueeze(1) - values_HKd.unsqueeze(2)).flatten(1, 2)
    through_HPm = differences_HPd @ layer.mlp_in.mT
    for query, (on_m, undecided_m) in enumerate(zip(on_Qm, undecided_Qm, strict=True)):
        share = on_m.double() + undecided_m.double() / 2
        straight = differences_HPd @ f.readout.mT + (through_HPm * share) @ out.mT
        moved_HP = straight.norm(dim=-1) + (through_HPm.abs() * undecided_m) @ out.norm(dim=0) / 2
        if ranks is not None:
            moved_HP = moved_HP * ranks.together(query).flatten(1)
        largest = max(largest, float(moved_HP.amax(-1).sum()))
    return largest


def _reach(layer: LimitLayer, types: Tensor, values_HKd: Tensor) -> tuple[Tensor, Tensor]:
    """For each query type, which hidden units are on, and which may be either, after any attention."""
    through_HKm = values_HKd @ layer.mlp_in.mT
    low_m, high_m = through_HKm.amin(1).sum(0), through_HKm.amax(1).sum(0)
    own_Qm = types @ layer.mlp_in.mT + layer.mlp_bias
    size = types.abs() @ layer.mlp_in.abs().mT + layer.mlp_bias.abs() + through_HKm.abs().amax(1).sum(0)
    on = own_Qm + low_m > ROUNDING * size
    off = own_Qm + high_m < -ROUNDING * size
    return on, ~(on | off)


def _line(values_HKd: Tensor) -> Tensor | None:
    """The direction of the line on which every head's values lie, if there is one."""
    apart = (values_HKd - values_HKd[:, :1]).flatten(0, 1)
    size = operator_norm(apart)
    if size == 0:
        return None
    _, sizes, rows = torch.linalg.svd(apart, full_matrices=False)
    return rows[0] if len(sizes) < 2 or sizes[1] <= ROUNDING * size else None


def _on_a_line(
    f: LimitTransformer,
    types: Tensor,
    values_HKd: Tensor,
    direction: Tensor,
    ranks: HardAttention | None,
) -> float:
    (layer,) = f.layers
    reach_HK = values_HKd @ direction
    low, high = float(reach_HK.amin(1).sum()), float(reach_HK.amax(1).sum())
    base_Qd = types + values_HKd[:, 0].sum(0) - direction * reach_HK[:, 0].sum()
    through_m, out = layer.mlp_in @ direction, f.readout @ layer.mlp_out
    apart_HKK = (reach_HK.unsqueeze(1) - reach_HK.unsqueeze(2)).abs()
    largest = 0.0
    for query, base_d in enumerate(base_Qd):
        before_m = layer.mlp_in @ base_d + layer.mlp_bias
        kinks = -before_m[through_m != 0] / through_m[through_m != 0]
        kinks = kinks[(kinks > low) & (kinks < high)].sort().values
        ends = torch.cat([kinks.new_tensor([low]), kinks, kinks.new_tensor([high])])
        middles = (ends[1:] + ends[:-1]) / 2
        active = (before_m + middles.unsqueeze(1) * through_m > 0).double()
        slopes = f.readout @ direction + (active * through_m) @ out.mT
        moved_HKK = apart_HKK if ranks is None else apart_HKK * ranks.together(query)
        largest = max(largest, float(slopes.norm(dim=-1).max() * moved_HKK.amax((1, 2)).sum()))
    beside_HKd = values_HKd - values_HKd[:, :1]
    beside_HKd = beside_HKd - (beside_HKd @ direction).unsqueeze(-1) * direction
    return largest + lipschitz(f) * sum(diameter(beside_Kd) for beside_Kd in beside_HKd)


@dataclass(frozen=True)
class Parts:
    """A set that holds the stream after the first layer: sums of one point from the hull of each part.

    The parts are the types, the values of each head, and for each hidden unit the segment from its smallest
    to its largest activation along its output direction. Whatever is convex in each point is largest at the
    ``points``: first those of types and heads, then the two ends of each unit.
    """

    points: tuple[Float[Tensor, "K d"], ...]
    ends: Float[Tensor, "m 2 d"]

    @staticmethod
    def after_first_layer(f: LimitTransformer) -> "Parts":
        """The parts of a model's stream after its first layer."""
        layer, types = f.layers[0], f.types()
        points = (types, *(types @ layer.value.mT))
        before = torch.stack([part @ layer.mlp_in.mT for part in points])
        range_m2 = layer.mlp_bias + torch.stack([before.amin(1).sum(0), before.amax(1).sum(0)])
        active = range_m2.relu() if layer.activation == "relu" else (range_m2 >= 0).double()
        return Parts(points, active.mT.unsqueeze(-1) * layer.mlp_out.mT.unsqueeze(1))

    def norm(self) -> float:
        """A bound on the norm of a point of the set."""
        units = self.ends.norm(dim=-1).amax(-1).sum()
        return float(sum(part.norm(dim=-1).max() for part in self.points) + units)

    def diameter(self, matrix: Tensor | None = None) -> float:
        """A bound on the diameter of the set, or of its image under a matrix."""
        sides = self.ends[:, 1] - self.ends[:, 0]
        points = self.points
        if matrix is not None:
            sides, points = sides @ matrix.mT, tuple(part @ matrix.mT for part in points)
        return sum(diameter(part) for part in points) + float(sides.norm(dim=-1).sum())

    def oscillation(self, key_query: Float[Tensor, "d d"]) -> float:
        """A bound on (y - y')^T ``key_query`` q over y, y', q in the set: the sum over pairs of
        parts, since the largest difference is subadditive in the parts of q and adds over those of y.
        """
        sides = self.ends[:, 1] - self.ends[:, 0]

        def spread(queries: Tensor) -> Tensor:
            """For each part of y, its range against each of the query points (..., d)."""
            seen = key_query @ queries.reshape(-1, queries.shape[-1]).mT
            ranges = [(part @ seen).amax(0) - (part @ seen).amin(0) for part in self.points]
            return torch.cat([torch.stack(ranges), (sides @ seen).abs()]).unflatten(1, queries.shape[:-1])

        total = sum(spread(part).amax(1).sum() for part in self.points)
        return float(total + spread(self.ends).amax(2).sum())


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


def times(*factors: float) -> float:
    """The product, where nothing times infinity is nothing."""
    return 0.0 if 0.0 in factors else math.prod(factors)


def exp(number: float) -> float:
    """e^number, infinite where a double cannot hold it."""
    return math.exp(number) if number < 709 else math.inf
