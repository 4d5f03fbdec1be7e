"""How far the output of a one-layer model moves when its attention moves.

Axes: H head, K key type, Q query type, P pair of key types, m hidden unit, d width.
"""

import math

import torch
from torch import Tensor

from lengthwise.limit.hard import HardAttention
from lengthwise.limit.norms import diameter, lipschitz, operator_norm
from lengthwise.limit.transformer import LimitLayer, LimitTransformer

ROUNDING = 1e-12
"""Relative to the size of its terms, how close to zero a pre-activation counts as either sign."""


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
    all values lie on one line (what rounding leaves beside it counts by ``lipschitz``), the output along it
    is piecewise linear, and its largest slope is taken instead. Steps (heaviside) that can be crossed make it
    infinite.

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
