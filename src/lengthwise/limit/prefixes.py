"""Two layers, exactly, from prefix counts: time linear in the length, memory bounded by the chunk.

The first layer is needed at every position, where it depends on the prefix counts of types and on the window;
the second only at the last one, where it is a softmax over positions that can be summed as they come. Weights
are kept as logarithms, relative to the largest so far, so that no length overflows them.

Axes: B string, L position in the chunk, H head, K type (token, residue), W distance 0..tau, d width.
"""

import math
from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengthwise.limit.precision import Finite, Infinite
from lengthwise.limit.transformer import LimitLayer, LimitTransformer

CHUNK, CHUNK_ON_GPU = 2**13, 2**19
"""How many positions are computed at once, over all strings."""


def evaluate_two_layers(
    f: LimitTransformer, tokens: Int[Tensor, "B T"], chunk: int | None = None
) -> Float[Tensor, "B o"]:
    """The output of a two-layer model at the end of each string."""
    chunk = chunk or max(1, (CHUNK_ON_GPU if tokens.is_cuda else CHUNK) // len(tokens))
    first, second = f.layers
    length = tokens.shape[1]
    left = max(0, length - 1 - (first.locality + 1))
    query_Bd = _first_layer(f, first, tokens, _count(f, tokens, 0, left), left, length - 1, length)[:, -1]
    seen_BHd = torch.einsum("hed,bd->bhe", second.key_query, query_Bd)

    def logits(start: int, y_BLd: Tensor) -> Tensor:
        logits_BHL = seen_BHd @ y_BLd.mT
        end = start + y_BLd.shape[1]
        nearest = max(start, length - second.locality - 1)
        if nearest < end:
            near = torch.arange(nearest, end, device=tokens.device)
            local = second.local[:, length - 1 - near]
            logits_BHL[..., near - start] += local * math.log(length) if _infinite(f) else local
        return logits_BHL

    largest_BH1 = torch.full((*seen_BHd.shape[:2], 1), -math.inf, dtype=torch.float64, device=tokens.device)
    if isinstance(f.precision, Finite):
        # What is cut off depends on the largest logit of all, so it must be known first.
        for start, y_BLd in _chunks(f, first, tokens, chunk):
            largest_BH1 = torch.maximum(largest_BH1, _amax(logits(start, y_BLd)))
    total_BH1, mean_BHd = torch.zeros_like(largest_BH1), torch.zeros_like(seen_BHd)
    for start, y_BLd in _chunks(f, first, tokens, chunk):
        logits_BHL = logits(start, y_BLd)
        if isinstance(f.precision, Finite):
            below = (logits_BHL - largest_BH1) * math.log2(length)
            weights_BHL = torch.exp2(below).masked_fill(below <= -f.precision.bits, 0.0)
        else:
            new_BH1 = torch.maximum(largest_BH1, _amax(logits_BHL))
            shrink_BH1 = torch.exp(largest_BH1 - new_BH1)
            total_BH1, mean_BHd, largest_BH1 = total_BH1 * shrink_BH1, mean_BHd * shrink_BH1, new_BH1
            weights_BHL = torch.exp(logits_BHL - largest_BH1)
        total_BH1 = total_BH1 + weights_BHL.sum(-1, keepdim=True)
        mean_BHd = mean_BHd + weights_BHL @ y_BLd
    y_Bd = query_Bd + torch.einsum("hde,bhe->bd", second.value, mean_BHd / total_BH1)
    return second.after_mlp(y_Bd) @ f.readout.mT


def _infinite(f: LimitTransformer) -> bool:
    return isinstance(f.precision, Infinite)


def _amax(logits_BHL: Tensor) -> Tensor:
    return logits_BHL.amax(-1, keepdim=True)


def _chunks(
    f: LimitTransformer, layer: LimitLayer, tokens: Tensor, chunk: int
) -> Iterator[tuple[int, Tensor]]:
    """The stream after the first layer, chunk by chunk, with the number of positions before each."""
    length, left = tokens.shape[1], 0
    before_BK = _count(f, tokens, 0, 0)
    for start in range(0, length, chunk):
        reached = max(0, start - layer.locality - 1)
        before_BK, left = before_BK + _count(f, tokens, left, reached), reached
        yield start, _first_layer(f, layer, tokens, before_BK, left, start, min(start + chunk, length))


def _first_layer(
    f: LimitTransformer,
    layer: LimitLayer,
    tokens: Int[Tensor, "B T"],
    before_BK: Float[Tensor, "B K"],
    left: int,
    start: int,
    end: int,
) -> Float[Tensor, "B L d"]:
    """The stream after the first layer at positions start + 1 .. end.

    ``before_BK`` counts the types of positions 1 .. left, all of them far from these: left = start - tau - 1,
    or 0 if that is negative.
    """
    device, kinds, window = tokens.device, f.vocabulary * f.period, layer.locality + 1
    position_L = torch.arange(start + 1, end + 1, device=device)
    distance_W = torch.arange(window, device=device)
    place_LW = position_L.unsqueeze(1) - distance_W
    inside_LW = place_LW >= 1
    near_BLW = tokens[:, (place_LW - 1).clamp_min(0)] * f.period + place_LW % f.period

    # Far counts of position i: those of positions 1 .. i - window.
    passed_BLK = torch.nn.functional.one_hot(_types(f, tokens, left, max(left, end - window)), kinds)
    passed_BLK = torch.nn.functional.pad(passed_BLK, (0, 0, 1, 0)).cumsum(1)
    far_L = (position_L - window - left).clamp_min(0)
    count_BLK = before_BK.unsqueeze(1) + passed_BLK[:, far_L].double()

    types_Kd = (f.embedding.unsqueeze(1) + f.positions).flatten(0, 1)
    table_QHK = (types_Kd @ layer.key_query @ types_Kd.mT).permute(2, 0, 1)
    logits_BLHK = table_QHK[near_BLW[..., 0]]
    index_BLHW = near_BLW.unsqueeze(2).expand(-1, -1, layer.heads, -1)
    local_LHW = layer.local.expand(len(position_L), -1, -1)
    if _infinite(f):
        local_LHW = local_LHW * position_L.double().log()[:, None, None]
    logits = torch.cat([logits_BLHK, logits_BLHK.gather(-1, index_BLHW) + local_LHW], -1)
    count = torch.cat([count_BLK, inside_LW.double().expand(tokens.shape[0], -1, -1)], -1).unsqueeze(2)
    if isinstance(f.precision, Finite):
        largest = logits.masked_fill(count == 0, -math.inf).amax(-1, keepdim=True)
        below = (logits - largest) * math.log2(tokens.shape[1])
        logits = (below * math.log(2)).masked_fill(below <= -f.precision.bits, -math.inf)
    far_BLHK, near_BLHW = torch.softmax(logits + count.log(), -1).split([kinds, window], -1)
    attention_BLHK = far_BLHK.scatter_add(-1, index_BLHW, near_BLHW)
    values_HKd = types_Kd @ layer.value.mT
    y_BLd = types_Kd[near_BLW[..., 0]] + attention_BLHK.flatten(-2) @ values_HKd.flatten(0, 1)
    return layer.after_mlp(y_BLd)


def _types(f: LimitTransformer, tokens: Tensor, start: int, end: int) -> Int[Tensor, "B L"]:
    """The types of positions start + 1 .. end."""
    position = torch.arange(start + 1, end + 1, device=tokens.device)
    return tokens[:, start:end] * f.period + position % f.period


def _count(f: LimitTransformer, tokens: Tensor, start: int, end: int) -> Float[Tensor, "B K"]:
    """How often each type occurs at positions start + 1 .. end."""
    kinds = _types(f, tokens, start, end)
    zero = torch.zeros(len(tokens), f.vocabulary * f.period, dtype=torch.float64, device=tokens.device)
    return zero.scatter_add(1, kinds, torch.ones_like(kinds, dtype=torch.float64))
