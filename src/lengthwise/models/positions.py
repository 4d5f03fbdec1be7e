"""Where a token stands: how a decoder is told, and where training puts it.

Axes: N stream, T position in a stream, A place of a query, U uniform number, H head, d width, h half of it.
"""

import math
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

Positions = Literal["none", "learned", "sinusoidal", "rotary", "alibi", "relative", "randomised"]
"""- "none": a query knows only which tokens came before it;
- "learned": a vector for each position is added to the token's. A stream starts at a random one in training,
  so that all up to the end of the longest test stream are trained, and at the first one in testing;
- "sinusoidal": sines and cosines of geometrically spaced frequencies are added (Vaswani et al., 2017), at the
  size at which learned vectors start;
- "rotary": queries and keys are turned by angles that grow with the position (Su et al., 2021), the first
  half of a head's coordinates against the second;
- "alibi": a logit falls with the distance, at slope 2^(-8 h / H) in head h = 1..H (Press et al., 2022);
- "relative": a logit is learned for each bucket of distances and each head, the same in all layers (Raffel et
  al., 2020);
- "randomised": sinusoids of sorted random positions from a range longer than any stream, in training and in
  testing (Ruoss et al., 2023)."""

SCHEMES = get_args(Positions)

DEVIATION = 0.02
"""Of the first embeddings, of tokens and of positions."""

BUCKETS, FARTHEST = 32, 128
"""Distances below BUCKETS / 2 have a bucket each, those up to FARTHEST share the others on a logarithmic
scale, and all beyond are in the last."""


def sinusoids(positions: Int[Tensor, "*N"], width: int, dtype: torch.dtype) -> Float[Tensor, "*N d"]:
    """(sin w_0 t, cos w_0 t, sin w_1 t, ..) with w_k = 10000^(-2 k / width), scaled to a mean square of
    DEVIATION^2.
    """
    pairs = torch.arange(-(-width // 2), device=positions.device, dtype=torch.float64)
    angle = positions.double().unsqueeze(-1) * 10_000.0 ** (-2 * pairs / width)
    waves = torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)[..., :width]
    return (math.sqrt(2) * DEVIATION * waves).to(dtype)


def turned(
    x: Float[Tensor, "N H A d"], places: Int[Tensor, "#N A"], longest: int
) -> Float[Tensor, "N H A d"]:
    """Coordinates k and k + d/2 turned by the angle t 10000^(-2 k / d), for x at places t < longest."""
    width = x.shape[-1]
    frequency_h = 10_000.0 ** (-2 * torch.arange(width // 2, device=x.device, dtype=torch.float64) / width)
    angle_Th = torch.arange(longest, device=x.device).double().unsqueeze(1) * frequency_h
    cos, sin = (table.to(x.dtype)[places].unsqueeze(1) for table in (angle_Th.cos(), angle_Th.sin()))
    left, right = x.chunk(2, -1)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)


def slopes(heads: int, device: torch.device, dtype: torch.dtype) -> Float[Tensor, " H"]:
    """Of ALiBi, by head."""
    head = torch.arange(1, heads + 1, device=device, dtype=torch.float64)
    return (2.0 ** (-8 * head / heads)).to(dtype)


def bucket(distance: Int[Tensor, "*N"]) -> Int[Tensor, "*N"]:
    """The bucket of a distance from 0 on."""
    exact = BUCKETS // 2
    share = (distance.clamp_min(exact).double() / exact).log() / math.log(FARTHEST / exact)
    # The small number keeps distances that begin a bucket from rounding into the one before.
    shared = exact + (share * (BUCKETS - exact) + 1e-9).long()
    return torch.where(distance < exact, distance, shared.clamp_max(BUCKETS - 1))


def drawn_positions(
    scheme: Positions, lengths: Int[Tensor, "N"], chances: Float[Tensor, "N U"], *, width: int, span: int
) -> Int[Tensor, "N {width}"]:
    """Positions below ``span`` for streams that are padded to ``width`` tokens; those of the padding mean
    nothing.

    For "learned", consecutive ones from a start that is uniform among those that leave room for the stream,
    decided by one uniform number; for "randomised", a uniform subset of as many as the stream has tokens, in
    ascending order, decided by one number a token.
    """
    at_T = torch.arange(width, device=lengths.device)
    if scheme == "learned":
        room = span - lengths.unsqueeze(1) + 1
        start = (chances * room).long().minimum(room - 1)
        return (start + at_T).clamp_max(span - 1)
    # Floyd's sampling: choice i is uniform from 0 to span - length + i, or this last one if that is taken.
    chosen = lengths.new_full((len(lengths), width), span)
    for i in range(width):
        last = span - lengths + i
        choice = (chances[:, i] * (last + 1)).long().minimum(last)
        taken = (chosen[:, :i] == choice.unsqueeze(1)).any(1)
        chosen[:, i] = torch.where(i < lengths, torch.where(taken, last, choice), span)
    return chosen.sort(1).values.clamp_max(span - 1)
