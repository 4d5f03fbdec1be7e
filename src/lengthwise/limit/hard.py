"""Hard attention: which keys of one query tie for the largest logit, decided once and for all.

Two logits of one query count as equal if rounding can account for their difference; since that relation is
not transitive, logits are sorted, and a new *rank* begins where the gap to the next is larger than rounding.
Ranks are whole numbers: comparing them is exact. What is certified is certified for the model whose logits of
one rank are equal.

Axes: H head, Q query type, K key type (token, residue), W distance 0..tau, S token.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor

from lengthwise.limit.transformer import LimitTransformer


@dataclass(frozen=True)
class HardAttention:
    """The ranks of all logits of a one-layer model, larger for larger logits of the same query.

    - ``far[h, q, k]``: of a far key of type k for a query of type q;
    - ``near[h, q, t, s]``: of a key at distance t with token s; at t = 0 only the query's own token occurs;
    - ``gaps[h, q]``: the smallest gap between logits of two ranks, infinite if there is one rank;
    - ``varied[h, q]``: whether two keys of one rank have different values. If none have, the head's output is
      decided by the rank alone, whatever the counts.
    """

    far: Integer[Tensor, "H Q K"]
    near: Integer[Tensor, "H Q W S"]
    gaps: Float[Tensor, "H Q"]
    varied: Bool[Tensor, "H Q"]

    @cached_property
    def margin(self) -> float:
        """gamma: the smallest gap of all; infinite if no query has two different logits."""
        return float(self.gaps.min()) if self.gaps.numel() else float("inf")

    def together(self, query: int) -> Bool[Tensor, "H K K"]:
        """Which two key types can be attended to together, by a query of this type: some key of the one, far
        or near, has the rank of some key of the other.
        """
        far_HK, near_HWS = self.far[:, query], self.near[:, query]
        kinds, tokens = far_HK.shape[1], near_HWS.shape[2]
        period = kinds // tokens
        rank_HA = torch.cat([far_HK, near_HWS.flatten(1)], -1)
        distance = torch.arange(near_HWS.shape[1]).unsqueeze(1)
        near_kind = torch.arange(tokens) * period + (query - distance) % period
        near_kind[0] = query  # the query itself; its other tokens have no rank of their own
        rank_HA[:, kinds : kinds + tokens] = near_HWS[:, 0, query // period].unsqueeze(1)
        kind_A = torch.cat([torch.arange(kinds), near_kind.flatten()]).to(far_HK.device)
        ranks = int(rank_HA.max()) + 1 if rank_HA.numel() else 1
        has_HRK = torch.zeros(len(far_HK), ranks, kinds, dtype=torch.float64, device=far_HK.device)
        head = torch.arange(len(far_HK), device=far_HK.device).unsqueeze(1)
        has_HRK[head, rank_HA, kind_A] = 1.0
        return has_HRK.mT @ has_HRK > 0

    @staticmethod
    def of(f: LimitTransformer) -> "HardAttention":
        """The ranks of a one-layer model."""
        if len(f.layers) != 1:
            raise ValueError(f"hard attention is defined for one layer, this model has {len(f.layers)}")
        (layer,) = f.layers
        types, period, window = f.types(), f.period, layer.locality + 1
        table_HQK = (types @ layer.key_query @ types.mT).mT
        size_HQK = (types.abs() @ layer.key_query.abs() @ types.abs().mT).mT
        query, token = torch.arange(len(types)), torch.arange(f.vocabulary)
        residue_QW = (query.unsqueeze(1) - torch.arange(window)) % period
        key_QWS = (token * period + residue_QW.unsqueeze(-1)).to(types.device)
        index = key_QWS.flatten(1).expand(layer.heads, -1, -1)
        local_HWS = layer.local.unsqueeze(-1).expand(-1, -1, f.vocabulary).flatten(1).unsqueeze(1)
        logits = torch.cat([table_HQK, table_HQK.gather(2, index) + local_HWS], -1)
        sizes = torch.cat([size_HQK, size_HQK.gather(2, index) + local_HWS.abs()], -1)
        # At distance 0 stands the query itself: other tokens there are no logits of this query.
        real = torch.ones(len(types), window, f.vocabulary, dtype=torch.bool)
        real[:, 0] = token == query.unsqueeze(1) // period
        real = torch.cat(
            [torch.ones_like(query).bool().unsqueeze(1).expand(-1, len(types)), real.flatten(1)], 1
        )
        real = real.to(types.device)
        logits = torch.where(real, logits, logits[..., :1])

        unit = 4 * (types.shape[1] + 2) * torch.finfo(torch.float64).eps
        error_HQ1 = unit * sizes.amax(-1, keepdim=True)
        ordered, order = logits.sort(-1)
        steps = ordered.diff(dim=-1)
        larger = steps > error_HQ1
        rank = torch.nn.functional.pad(larger.long().cumsum(-1), (1, 0))
        ranks = torch.empty_like(order).scatter_(-1, order, rank)
        far, near = ranks.split([len(types), window * f.vocabulary], -1)
        gaps = torch.where(larger, steps, torch.inf)
        gaps = torch.cat([gaps, torch.full_like(error_HQ1, torch.inf)], -1).amin(-1)
        everything = torch.arange(len(types), device=types.device).expand(len(types), -1)
        kind_QA = torch.where(real, torch.cat([everything, key_QWS.flatten(1)], -1), 0)
        values_HKd = types @ layer.value.mT
        varied = torch.zeros_like(gaps, dtype=torch.bool)
        for head in range(layer.heads):
            sorted_QAd = values_HKd[head][kind_QA.gather(1, order[head])]
            differs = (sorted_QAd[:, 1:] != sorted_QAd[:, :-1]).any(-1)
            varied[head] = (differs & ~larger[head]).any(-1)
        return HardAttention(far, near.unflatten(-1, (window, f.vocabulary)), gaps, varied)
