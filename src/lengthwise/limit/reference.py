"""The definition of a limit transformer, as it is written: dense, quadratic, every position.

This is what every other evaluation is compared with. Axes: B string, H head, I query, J key, d width.
"""

import math

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lengthwise.limit.precision import Finite, Infinite
from lengthwise.limit.transformer import LimitLayer, LimitTransformer


def stream(f: LimitTransformer, tokens: Integer[Tensor, "B T"]) -> Float[Tensor, "B T d"]:
    """The stream after the last layer, at every position."""
    position = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
    y = f.embedding[tokens] + f.positions[position % f.period]
    for layer in f.layers:
        y = after(layer, y, f.precision)
    return y


def attentions(f: LimitTransformer, tokens: Integer[Tensor, "B T"]) -> list[Float[Tensor, "B H T T"]]:
    """The attention weights of every layer, of every query to every key."""
    position = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
    y = f.embedding[tokens] + f.positions[position % f.period]
    weights = []
    for layer in f.layers:
        weights.append(attention(layer, y, f.precision))
        y = after(layer, y, f.precision)
    return weights


def after(
    layer: LimitLayer, y: Float[Tensor, "B T d"], precision: Finite | Infinite
) -> Float[Tensor, "B T d"]:
    """The stream after one layer."""
    weights = attention(layer, y, precision)
    values = torch.einsum("hde,bje->bhjd", layer.value, y)
    y = y + torch.einsum("bhij,bhjd->bid", weights, values)
    return layer.after_mlp(y)


def attention(
    layer: LimitLayer, y: Float[Tensor, "B T d"], precision: Finite | Infinite
) -> Float[Tensor, "B H T T"]:
    """Weights w_ij with which the query at i attends to the keys j <= i."""
    length = y.shape[1]
    position = torch.arange(1, length + 1, device=y.device)
    distance = position.unsqueeze(1) - position
    local = torch.nn.functional.pad(layer.local, (0, 1))  # 0 beyond the locality
    local = local[:, distance.clamp(0, layer.locality + 1)]
    if isinstance(precision, Infinite):
        local = local * position.double().log().unsqueeze(1)
    logits = torch.einsum("bje,hed,bid->bhij", y, layer.key_query, y) + local
    logits = logits.masked_fill(distance < 0, -math.inf)
    if isinstance(precision, Infinite):
        return torch.softmax(logits, -1)
    # The cut-off is tested in powers of two: exp(log N gap) would round to either side of 2^-p.
    below = (logits - logits.amax(-1, keepdim=True)) * math.log2(length)
    return torch.softmax((below * math.log(2)).masked_fill(below <= -precision.bits, -math.inf), -1)
