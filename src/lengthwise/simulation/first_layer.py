"""The stream after the first layer at every position, and the limit that it approaches along the string.

In infinite precision the first layer of a limit transformer sees, at a late position, only the window of the
last tau + 1 tokens, the residue, and the histogram of types so far. Subsampling keeps these three.

Axes: T or L position, H head, K key type (token, residue), Q query type, W distance 0..tau, d width.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lengthwise.limit import Infinite, LimitTransformer
from lengthwise.sequences import check_tokens, types

NUMBERS = 2**20
"""How many numbers a chunk of positions may hold in its largest tensor."""


@dataclass(frozen=True)
class FirstLayer:
    """The stream after the first layer at every position, ``true``, and its ``limit``.

    Statement (E1). With gamma1 the smallest margin of a head of the first layer, capped at 1, and
    C1 = Lm (tau + 1) sum_h diam_h e^omega_h (``TwoLayerConstants``), at every position i > tau

        |true_i - limit_i| <= C1 i^-gamma1.

    Proof. The weights of a head before normalising, divided by i (or by i^phi* for a head with phi* > 1),
    differ from those of the limit by at most (tau + 1) e^max i^-gamma1 in total, while they sum to at least
    e^min; so attention differs by (tau + 1) e^omega_h i^-gamma1 in total variation, a head's output by diam_h
    times that, and the MLP stretches by Lm. At i <= tau the limit is not defined; ``limit`` holds the true
    stream there.
    """

    true: Float[Tensor, "T d"]
    limit: Float[Tensor, "T d"]


def first_layer(f: LimitTransformer, tokens: Integer[Tensor, "T"]) -> FirstLayer:
    """Both streams, in time linear in the length."""
    check_infinite(f)
    check_tokens(tokens, f.vocabulary)
    layer, length, kinds = f.layers[0], tokens.shape[0], f.vocabulary * f.period
    window, device = layer.locality + 1, tokens.device
    size = max(1, NUMBERS // max(layer.heads * (kinds + window), kinds, layer.width, layer.hidden))
    # One type more stands for positions before the first.
    types_T = torch.nn.functional.pad(types(tokens, f.period), (window, 0), value=kinds)
    tables = _Tables.of(f)
    true_Td = torch.empty(length, layer.width, dtype=torch.float64, device=f.embedding.device)
    limit_Td = torch.empty_like(true_Td)
    far_K = torch.zeros(kinds + 1, dtype=torch.float64, device=device)
    for start in range(0, length, size):
        end = min(start + size, length)
        near_LW = types_T[start + 1 : end + window].unfold(0, window, 1).flip(-1)
        leaving_LK = torch.nn.functional.one_hot(types_T[start:end], kinds + 1).double()
        far_LK = far_K + leaving_LK.cumsum(0)
        position_L = torch.arange(start + 1, end + 1, device=device)
        inside_LW = near_LW < kinds
        safe_LW = torch.where(inside_LW, near_LW, 0)
        local_HLW = layer.local.unsqueeze(1) * position_L.double().log().unsqueeze(-1)
        atoms_HLW = local_HLW.masked_fill(~inside_LW, -math.inf)
        true_Ld = tables.stream(safe_LW, far_LK[:, :kinds].log().expand(layer.heads, -1, -1), atoms_HLW)
        true_Td[start:end] = limit_Td[start:end] = true_Ld
        late = max(0, window - 1 - start)  # the first positions have no full window
        if late < end - start:
            counts_LK = far_LK[late:, :kinds].clone()
            counts_LK.scatter_add_(1, near_LW[late:], torch.ones_like(near_LW[late:], dtype=torch.float64))
            histogram_LK = counts_LK / position_L[late:].unsqueeze(-1)
            limit_Td[start + late : end] = tables.limit(near_LW[late:], histogram_LK)
        far_K = far_LK[-1]
    return FirstLayer(true_Td, limit_Td)


def limit_stream(
    f: LimitTransformer, near: Integer[Tensor, "L W"], histogram: Float[Tensor, "L K"]
) -> Float[Tensor, "L d"]:
    """Phi(u, r, mu): the limit of the stream after the first layer, for windows given by the types
    ``token * period + residue`` at distances 0..tau, and histograms of types.

    A head with phi* = max phi < 1 attends to type k by mu(k) e^A(k); with phi* = 1, beside that, to each
    distance where phi = 1 by e^A; with phi* > 1, only to the distances where phi = phi*, by e^A.

    Statement (E2). |Phi(u, r, mu) - Phi(u, r, nu)| <= L_Phi TV(mu, nu), where L_Phi = Lm times the sum of
    diam_h e^omega_h over the heads with phi* <= 1.

    Proof. Before normalising, weights move by at most e^max TV either way and sum to at least e^min.
    """
    check_infinite(f)
    return _Tables.of(f).limit(near, histogram)


def check_infinite(*models: LimitTransformer) -> None:
    """Raise ``ValueError`` unless every model has two layers and infinite precision."""
    for f in models:
        if len(f.layers) != 2 or not isinstance(f.precision, Infinite):
            raise ValueError(
                "subsampling needs two layers in infinite precision, "
                f"this model has {len(f.layers)} in {f.precision!r}"
            )


@dataclass(frozen=True)
class _Tables:
    """What the first layer needs of each type."""

    f: LimitTransformer
    types_Kd: Float[Tensor, "K d"]
    logits_HQK: Float[Tensor, "H Q K"]
    values_HKd: Float[Tensor, "H K d"]

    @staticmethod
    def of(f: LimitTransformer) -> "_Tables":
        layer, types_Kd = f.layers[0], f.types()
        logits_HKQ = types_Kd @ layer.key_query @ types_Kd.mT
        return _Tables(f, types_Kd, logits_HKQ.mT.contiguous(), types_Kd @ layer.value.mT)

    def limit(
        self, near_LW: Integer[Tensor, "L W"], histogram_LK: Float[Tensor, "L K"]
    ) -> Float[Tensor, "L d"]:
        """Phi, see ``limit_stream``."""
        local_HW = self.f.layers[0].local
        largest_H1 = local_HW.amax(-1, keepdim=True)
        stands_out_HW = (local_HW == largest_H1) & (largest_H1 >= 1)
        atoms_HLW = torch.where(stands_out_HW, 0.0, -math.inf).double().unsqueeze(1)
        bulk_HLK = torch.where(largest_H1.unsqueeze(-1) > 1, -math.inf, histogram_LK.log())
        return self.stream(near_LW, bulk_HLK, atoms_HLW.expand(-1, len(near_LW), -1))

    def stream(
        self,
        near_LW: Integer[Tensor, "L W"],
        bulk_HLK: Float[Tensor, "H L K"],
        atoms_HLW: Float[Tensor, "H L W"],
    ) -> Float[Tensor, "L d"]:
        """The stream after the layer, where a type weighs e^(bulk + A) and a near position e^(atoms + A)."""
        query_L, kinds = near_LW[:, 0], len(self.types_Kd)
        logits_HLK = self.logits_HQK[:, query_L]
        near_HLW = near_LW.expand(atoms_HLW.shape)
        logits = torch.cat([logits_HLK + bulk_HLK, logits_HLK.gather(2, near_HLW) + atoms_HLW], -1)
        far, near = torch.softmax(logits, -1).split([kinds, near_LW.shape[1]], -1)
        attention_HLK = far.clone().scatter_add_(2, near_HLW, near)
        y_Ld = self.types_Kd[query_L] + (attention_HLK @ self.values_HKd).sum(0)
        return self.f.layers[0].after_mlp(y_Ld)
