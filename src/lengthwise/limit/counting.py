"""One layer, exactly, from counts: the cost after counting does not depend on the length.

Position j far from the end contributes through its type (token, residue) alone, a near one through its
type and its distance. Axes: B string, H head, K type, W distance 0..locality, d width.
"""

import math

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lengthwise._messages import shown
from lengthwise.limit.precision import Finite, Infinite
from lengthwise.limit.transformer import LimitTransformer
from lengthwise.sequences import Summary, residue_sizes, summarize


def evaluate_tokens(f: LimitTransformer, tokens: Integer[Tensor, "B T"]) -> Float[Tensor, "B o"]:
    """The output of a one-layer model at the end of each string."""
    return evaluate_summary(f, summarize(tokens, f.vocabulary, f.period, f.locality))


def check_summary(f: LimitTransformer, summary: Summary) -> Summary:
    """The summary with one batch axis on the model's device, or what is wrong with it.

    Counts and length must belong together: of the far positions 1 .. T - locality - 1, the number with
    each residue is fixed by T.
    """
    for name in ("counts", "suffix", "length"):
        if not isinstance(getattr(summary, name, None), Tensor):
            raise ValueError(f"a summary holds tensors, got {shown(getattr(summary, name, None))} for {name}")
    counts, suffix = summary.counts, summary.suffix
    if counts.dim() < 2 or suffix.dim() < 1 or counts.shape[:-2] != suffix.shape[:-1]:
        shapes = f"{tuple(counts.shape)} and {tuple(suffix.shape)}"
        raise ValueError(f"counts and suffix must have one batch, got shapes {shapes}")
    if counts.dtype == torch.bool or counts.is_complex() or _fractions(suffix) or _fractions(summary.length):
        raise ValueError("counts, suffix and length of a summary must be whole numbers")
    if not _broadcasts(summary.length.shape, suffix.shape[:-1]):
        raise ValueError(f"length has shape {tuple(summary.length.shape)}, expected one number a string")
    expected = (f.vocabulary, f.period)
    if tuple(counts.shape[-2:]) != expected:
        raise ValueError(f"counts end in shape {tuple(counts.shape[-2:])}, expected {expected}, types")
    if suffix.shape[-1] != f.locality + 1:
        raise ValueError(f"suffix holds {suffix.shape[-1]} tokens, expected {f.locality + 1}, locality + 1")
    device = f.embedding.device
    counts = counts.reshape(-1, *expected).to(device)
    suffix = suffix.reshape(-1, f.locality + 1).to(device)
    length = summary.length.to(device).expand(summary.suffix.shape[:-1]).reshape(-1)
    if (counts < 0).any() or (counts != counts.round()).any():
        raise ValueError("counts must be whole numbers of at least 0")
    distance = torch.arange(f.locality + 1, device=device)
    inside = distance < length.unsqueeze(-1)
    if (length < 1).any() or ((suffix >= 0) != inside).any() or (suffix >= f.vocabulary).any():
        raise ValueError(f"suffix must hold the last min(length, {f.locality + 1}) tokens and -1 before them")
    if (counts.sum(-2) != residue_sizes(length - f.locality - 1, f.period)).any():
        raise ValueError("counts do not add up to the number of far positions with each residue")
    return Summary(counts, suffix, length)


def _fractions(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool


def _broadcasts(shape: torch.Size, batch: torch.Size) -> bool:
    ends = list(zip(reversed(shape), reversed(batch), strict=False))
    return len(shape) <= len(batch) and all(one in (1, other) for one, other in ends)


def evaluate_summary(f: LimitTransformer, summary: Summary) -> Float[Tensor, "B o"]:
    """The output of a one-layer model at the end of strings known by their summaries (one batch axis)."""
    (layer,) = f.layers
    types = f.types()
    distance = torch.arange(layer.locality + 1, device=types.device)
    residue = (summary.length.unsqueeze(-1) - distance) % f.period
    inside = summary.suffix >= 0
    near_BW = summary.suffix.clamp_min(0) * f.period + residue
    query_Bd = types[near_BW[:, 0]]
    log_length = summary.length.double().log()

    logits_BHK = torch.einsum("ke,hed,bd->bhk", types, layer.key_query, query_Bd)
    local = layer.local * log_length[..., None, None] if isinstance(f.precision, Infinite) else layer.local
    near_BHW = logits_BHK.gather(2, near_BW.unsqueeze(1).expand(-1, layer.heads, -1)) + local
    logits = torch.cat([logits_BHK, near_BHW], -1)
    count = torch.cat([summary.counts.double().flatten(-2), inside.double()], -1).unsqueeze(1)
    if isinstance(f.precision, Finite):
        largest = logits.masked_fill(count == 0, -math.inf).amax(-1, keepdim=True)
        below = (logits - largest) * (summary.length.double().log2()[..., None, None])
        logits = (below * math.log(2)).masked_fill(below <= -f.precision.bits, -math.inf)
    weights = torch.softmax(logits + count.log(), -1)
    far_BHK, near_BHW = weights.split([types.shape[0], layer.locality + 1], -1)

    values_HKd = types @ layer.value.mT
    y = query_Bd + torch.einsum("bhk,hkd->bd", far_BHK, values_HKd)
    for head in range(layer.heads):
        y = y + torch.einsum("bw,bwd->bd", near_BHW[:, head], values_HKd[head][near_BW])
    return layer.after_mlp(y) @ f.readout.mT
