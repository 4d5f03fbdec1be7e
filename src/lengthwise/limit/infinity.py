"""What limit transformers of one or two layers tend to on ever longer strings.

Axes: M model, B string, W window of some tokens (numbered in base S, its last token the last digit), Q query,
K key, t distance, S token, H head, d width, o output.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.limit.precision import Infinite
from lengthwise.limit.transformer import LimitTransformer

NUMBERS_AT_ONCE = 2**24
"""About how many numbers a tensor may hold."""


class Layer(NamedTuple):
    """A layer of M models, in float64; ``after_mlp`` takes their streams after attention, (M, ..., d)."""

    key_query: Float[Tensor, "M H d d"]
    value: Float[Tensor, "M H d d"]
    local: Float[Tensor, "M H t"]
    after_mlp: Callable[[Tensor], Tensor]


def end_width(f: LimitTransformer) -> int:
    """How many of the last tokens of an endless string decide the output, beside the frequencies."""
    return sum(layer.locality for layer in f.layers) + 1


def at_infinity(f: LimitTransformer, frequencies: Float[Tensor, "B windows"]) -> Float[Tensor, "B windows o"]:
    """The limit of f(x) in infinite precision as x grows, by the last w = ``end_width(f)`` tokens of x.

    ``frequencies`` says how often each of the S^w windows of w tokens in a row occurs.

    Let the share of each window among those of x up to position i tend to its frequency as i grows, and let x
    end with one of them. A head whose largest phi is over 1 ends up at the distances where it is reached,
    with weights e^A; one whose largest phi is under 1 at all positions, in proportion to e^A; if it is 1, at
    both. For at distance t stands i^phi(t) e^A, and at all others together i times the mean of e^A, while all
    A are bounded. So the first layer tends to a function of the last tokens and of the frequencies of tokens,
    and the second layer to means over windows of that function; the first positions, where the first layer is
    far from its limit, are a vanishing share of all.
    """
    if not isinstance(f.precision, Infinite) or f.period > 1 or len(f.layers) > 2:
        raise ValueError(
            "the limit is computed for one or two layers without positions, in infinite precision"
        )
    windows = f.vocabulary ** end_width(f)
    if frequencies.dim() != 2 or frequencies.shape[1] != windows:
        raise ValueError(
            f"frequencies of windows of {end_width(f)} tokens have shape (strings, {windows}), got "
            f"{tuple(frequencies.shape)}"
        )
    sums = frequencies.sum(-1)
    if not bool((frequencies >= 0).all() and ((sums - 1).abs() <= 1e-9).all()):
        raise ValueError("frequencies must be at least 0 and sum to 1 for each string")
    layers = [Layer(one.key_query[None], one.value[None], one.local[None], one.after_mlp) for one in f.layers]
    return outputs_at_infinity(f.types()[None], layers, f.readout[None], frequencies.double()[None])[0]


def outputs_at_infinity(
    y_MSd: Float[Tensor, "M S d"],
    layers: Sequence[Layer],
    readout: Float[Tensor, "M o d"],
    often_MBW: Float[Tensor, "M B W"],
) -> Float[Tensor, "M B W o"]:
    """The same for M models of one shape, each with its own frequencies."""
    keys = y_MSd.shape[1] ** layers[0].local.shape[2] + y_MSd.shape[2]
    at_once = max(1, NUMBERS_AT_ONCE // (len(y_MSd) * often_MBW.shape[2] * keys))
    parts = [_outputs(y_MSd, layers, readout, part) for part in often_MBW.split(at_once, 1)]
    return torch.cat(parts, 1)


def _outputs(y_MSd: Tensor, layers: Sequence[Layer], readout: Tensor, often_MBW: Tensor) -> Tensor:
    first, *others = layers
    size, seen = y_MSd.shape[1], first.local.shape[2]
    strings, device = often_MBW.shape[1], often_MBW.device
    # The first layer looks at the last tokens of a window, as many as it has local logits.
    windows = torch.arange(size**seen, device=device)
    tokens_Wt = torch.stack([windows // size**t % size for t in range(seen)], -1)
    often_MBV = often_MBW.unflatten(2, (-1, size**seen)).sum(2)
    often_MBS = often_MBV.unflatten(2, (-1, size)).sum(2)
    y_MBSd = y_MSd.unsqueeze(1).expand(-1, strings, -1, -1)
    y_MBVd = _after(first, y_MBSd[:, :, tokens_Wt], y_MBSd, often_MBS)
    for layer in others:
        ends = torch.arange(often_MBW.shape[2], device=device)
        near_Wt = torch.stack([ends // size**t % size**seen for t in range(layer.local.shape[2])], -1)
        y_MBVd = _after(layer, y_MBVd[:, :, near_Wt], y_MBVd, often_MBV)
    return y_MBVd @ readout.unsqueeze(1).mT


def _after(
    layer: Layer,
    near_MBQtd: Float[Tensor, "M B Q t d"],
    far_MBKd: Float[Tensor, "M B K d"],
    often_MBK: Float[Tensor, "M B K"],
) -> Float[Tensor, "M B Q d"]:
    """The stream after a layer whose keys are ``near``, by distance (the query at 0), and ``far``, with their
    shares of all positions.
    """
    query_MBQd = near_MBQtd[:, :, :, 0]
    y_MBQd, log_often_MBK = query_MBQd, often_MBK.log()
    for head in range(layer.key_query.shape[1]):
        local_Mt = layer.local[:, head]
        largest_M = local_Mt.amax(-1)
        seen_MBQd = query_MBQd @ layer.key_query[:, head].mT.unsqueeze(1)
        near_MBQt = (near_MBQtd * seen_MBQd.unsqueeze(3)).sum(-1)
        below_Mt = local_Mt < largest_M.clamp_min(1.0).unsqueeze(1)
        near_MBQt = near_MBQt.masked_fill(below_Mt[:, None, None], -math.inf)
        far_MBQK = seen_MBQd @ far_MBKd.mT + log_often_MBK.unsqueeze(2)
        far_MBQK = far_MBQK.masked_fill((largest_M > 1)[:, None, None, None], -math.inf)
        weights = torch.cat([far_MBQK, near_MBQt], -1).softmax(-1)
        far_MBQK, near_MBQt = weights.split([far_MBQK.shape[-1], near_MBQt.shape[-1]], -1)
        mean_MBQd = far_MBQK @ far_MBKd + (near_MBQt.unsqueeze(-1) * near_MBQtd).sum(3)
        y_MBQd = y_MBQd + mean_MBQd @ layer.value[:, head].mT.unsqueeze(1)
    return layer.after_mlp(y_MBQd)
