"""One layer without positions, from counts: all tokens of a kind have the same key and the same value.

A query's attention to the tokens of a kind is then proportional to e^logit times how many of them it sees,
and a stream of any length is a few numbers at each place.

Axes: M model, A place, T position, S kind of token, N place of any stream, H head, d width, n columns.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import layer_norm, one_hot

from lengthwise.models.layers import linear


class TokenCounts(NamedTuple):
    """What one layer without positions sees at each place of a stream.

    - ``query``: indicators of the token there;
    - ``log_counts``: logarithms of how many tokens of each kind there are up to it, itself included;
    - ``log_seen``: the logarithm of how many there are in all.
    """

    query: Float[Tensor, "*M A S"]
    log_counts: Float[Tensor, "*M A S"]
    log_seen: Float[Tensor, "*M A"]


def token_counts(
    tokens: Int[Tensor, "*M T"], places: Int[Tensor, "*M A"], vocabulary: int, dtype: torch.dtype
) -> TokenCounts:
    """The counts, several kinds at a time: each has its own digits of a whole number that is summed along
    the stream.
    """
    bits = tokens.shape[-1].bit_length()
    at_once = 63 // bits
    digits = torch.arange(at_once, device=tokens.device) * bits
    counts = []
    for first in range(0, vocabulary, at_once):
        kinds = torch.arange(vocabulary, device=tokens.device) - first
        inside = (kinds >= 0) & (kinds < at_once)
        worth_S = torch.where(inside, 1 << (kinds * bits).clamp(0, 62), 0)
        sums = worth_S[tokens].cumsum(-1).gather(-1, places)
        counts.append(sums.unsqueeze(-1) >> digits & (1 << bits) - 1)
    counts_AS = torch.cat(counts, -1)[..., :vocabulary]
    return TokenCounts(
        one_hot(tokens.gather(-1, places), vocabulary).to(dtype),
        counts_AS.to(dtype).log(),
        (places + 1).to(dtype).log(),
    )


def attend_by_counts(
    embedding: Float[Tensor, "M S d"],
    into: tuple[Float[Tensor, "M d n"], Float[Tensor, "M 1 n"]],
    out: tuple[Float[Tensor, "M d d"], Float[Tensor, "M d"]],
    counts: TokenCounts,
    *,
    heads: int,
    log_scaling: bool,
) -> Float[Tensor, "M N d"]:
    """The residual stream at the places after attention.

    - ``into``: matrix and bias from normalised embeddings to queries, keys and values;
    - ``out``: those from the heads' values to the residual stream.
    """
    width = embedding.shape[-1]
    split = linear(layer_norm(embedding, (width,)), *into).unflatten(-1, (3, heads, -1))
    q_MHSd, k_MHSd, v_MHSd = split.permute(2, 0, 3, 1, 4)
    table_MHSS = (q_MHSd @ k_MHSd.mT) * (width // heads) ** -0.5
    values_MHSd = v_MHSd @ out[0].unflatten(1, (heads, -1))

    # Places run along the last axis: softmax over a few kinds is then as fast as its arithmetic.
    query_MNS = counts.query.flatten(1, 2)
    logits_MHSN = (table_MHSS.mT.flatten(1, 2) @ query_MNS.mT).unflatten(1, (heads, -1))
    if log_scaling:
        logits_MHSN = logits_MHSN * counts.log_seen.flatten(1, 2)[:, None, None]
    attention_MHSN = torch.softmax(logits_MHSN + counts.log_counts.flatten(1, 2).mT.unsqueeze(1), 2)
    here_MNd = query_MNS @ (embedding + out[1].unsqueeze(1))
    return torch.baddbmm(here_MNd, attention_MHSN.flatten(1, 2).mT, values_MHSd.flatten(1, 2))
