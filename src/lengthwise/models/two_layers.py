"""Forward pass of two-layer limit transformers in infinite precision, linear in the length.

The first layer sees a prefix through the counts of its types: a far position counts once, one at distance t
of the window counts i^phi(t) times, and attention to type k is proportional to this count times e^A. Without
an MLP behind it, the stream is a mixture of K + H K fixed vectors, and everything later is done on the shares
of these, not on the vectors.

Axes: M model, B string, T position, H head, K type, W distance 0..tau, F = K + H K, d width, o output.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from lengthwise.sequences import types

Layer = dict[str, Tensor]


def forward_two_layers(
    layers: tuple[Layer, Layer],
    y_MKd: Float[Tensor, "M K d"],
    readout: Float[Tensor, "M o d"],
    tokens: Int[Tensor, "M B T"],
    period: int,
) -> Float[Tensor, "M B o"]:
    """The output at the last position of each string; ``y_MKd`` are the vectors of the types."""
    first, second = layers
    kinds = y_MKd.shape[1]
    every_K = torch.arange(kinds, device=tokens.device)
    here_MBTK = (types(tokens, period).unsqueeze(-1) == every_K).to(y_MKd.dtype)
    position_T = torch.arange(1, tokens.shape[-1] + 1, device=tokens.device)
    log_T = position_T.double().log().to(y_MKd.dtype)
    attention_MBTHK = _first_attention(first, y_MKd, here_MBTK, log_T)
    features_MBTF = torch.cat([here_MBTK, attention_MBTHK.flatten(3)], -1)
    values_MHKd = y_MKd.unsqueeze(1) @ first["value"].mT
    vectors_MFd = torch.cat([y_MKd, values_MHKd.flatten(1, 2)], 1)
    if first["mlp_bias"].shape[-1]:
        stream_MBTd = features_MBTF.flatten(1, 2) @ vectors_MFd
        features_MBTF = after_mlp(first, stream_MBTd).unflatten(1, tokens.shape[1:])
        width = y_MKd.shape[-1]
        eye = torch.eye(width, dtype=y_MKd.dtype, device=tokens.device)
        vectors_MFd = eye.expand(len(y_MKd), -1, -1)

    query_MBd = features_MBTF[:, :, -1] @ vectors_MFd
    seen_MBHd = torch.einsum("mhde,mbe->mbhd", second["key_query"], query_MBd)
    logits_MBHT = (seen_MBHd @ vectors_MFd.mT.unsqueeze(1)) @ features_MBTF.mT
    if "local" in second:
        reach = min(second["local"].shape[-1], tokens.shape[-1])
        local_MHW = second["local"][..., :reach].flip(-1) * log_T[-1]
        logits_MBHT = logits_MBHT + pad(local_MHW, (tokens.shape[-1] - reach, 0)).unsqueeze(1)
    mean_MBHd = (torch.softmax(logits_MBHT, -1) @ features_MBTF) @ vectors_MFd.unsqueeze(1)
    stream_MBd = query_MBd + torch.einsum("mhde,mbhe->mbd", second["value"], mean_MBHd)
    return after_mlp(second, stream_MBd) @ readout.mT


def _first_attention(
    layer: Layer, y_MKd: Tensor, here_MBTK: Tensor, log_T: Tensor
) -> Float[Tensor, "M B T H K"]:
    """How much each head attends to each type, at every position."""
    seen_MBTK = here_MBTK.cumsum(2)
    heads, kinds = layer["key_query"].shape[1], y_MKd.shape[1]
    table_MKHK = (y_MKd.unsqueeze(1) @ layer["key_query"] @ y_MKd.unsqueeze(1).mT).permute(0, 3, 1, 2)
    logits_MBTHK = (here_MBTK.flatten(1, 2) @ table_MKHK.flatten(2)).unflatten(1, here_MBTK.shape[1:3])
    logits_MBTHK = logits_MBTHK.unflatten(-1, (heads, kinds))
    if "local" not in layer:
        return torch.softmax(logits_MBTHK + seen_MBTK.log().unsqueeze(3), -1)
    # Counts relative to i^max(phi, 0), so that no power overflows.
    local_MHW = layer["local"]
    largest_MH = local_MHW.detach().amax(-1).clamp_min(0.0)
    once_MTH = torch.exp(-largest_MH.unsqueeze(1) * log_T.unsqueeze(-1))
    window = min(local_MHW.shape[-1], here_MBTK.shape[2])
    near = [pad(here_MBTK[:, :, : here_MBTK.shape[2] - t], (0, 0, t, 0)) for t in range(window)]
    far_MBTK = seen_MBTK - torch.stack(near).sum(0)
    counted = far_MBTK.unsqueeze(3) * once_MTH[:, None, :, :, None]
    for t, shifted_MBTK in enumerate(near):
        power_MTH = torch.exp((local_MHW[:, None, :, t] - largest_MH.unsqueeze(1)) * log_T.unsqueeze(-1))
        counted = torch.addcmul(counted, shifted_MBTK.unsqueeze(3), power_MTH[:, None, :, :, None])
    logits = logits_MBTHK + counted.clamp_min(torch.finfo(counted.dtype).tiny).log()
    return torch.softmax(logits.masked_fill((seen_MBTK == 0).unsqueeze(3), -torch.inf), -1)


def after_mlp(layer: Layer, y: Tensor) -> Tensor:
    """Y + B relu(A y + b), for y (M, ..., d)."""
    if layer["mlp_bias"].shape[-1] == 0:
        return y
    rows = y.flatten(1, -2)
    hidden = torch.relu(rows @ layer["mlp_in"].mT + layer["mlp_bias"].unsqueeze(1))
    return y + (hidden @ layer["mlp_out"].mT).view_as(y)
