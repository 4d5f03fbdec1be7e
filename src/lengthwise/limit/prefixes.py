"""Two layers, exactly, from prefix counts: time linear in the length, memory bounded by the chunk.

The first layer is needed at every position, where it depends on the prefix counts of types and on the window;
the second only at the last one, where it is a softmax over positions that can be summed as they come.

Positions are the innermost axis of everything, so that each operation runs along them. Axes: B string,
L position in the chunk, H head, K key type (token, residue), Q query type, W distance 0..tau, d width.
"""

import math
from collections.abc import Iterator

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lengthwise.limit.precision import Finite, Infinite
from lengthwise.limit.transformer import LimitTransformer
from lengthwise.sequences import counts

NUMBERS, NUMBERS_ON_GPU = 2**19, 2**25
"""How many numbers a chunk may hold at once in its largest tensor: what fits a cache, what fills a GPU."""

WIDEST = 600.0
"""Weights whose logarithms stay within this range are multiplied; beyond, their logarithms are added."""


def evaluate_two_layers(
    f: LimitTransformer, tokens: Integer[Tensor, "B T"], chunk: int | None = None
) -> Float[Tensor, "B o"]:
    """The output of a two-layer model at the end of each string."""
    second, length = f.layers[1], tokens.shape[1]
    first = _FirstLayer(f, tokens)
    chunk = chunk or first.positions_at_once()
    query_Bd = first.last()
    seen_BHd = torch.einsum("hed,bd->bhe", second.key_query, query_Bd)

    def logits(start: int, y_BdL: Tensor) -> Tensor:
        logits_BHL = seen_BHd @ y_BdL
        end = start + y_BdL.shape[2]
        nearest = max(start, length - second.locality - 1)
        if nearest < end:
            near = torch.arange(nearest, end, device=tokens.device)
            local = second.local[:, length - 1 - near]
            logits_BHL[..., near - start] += local * math.log(length) if first.infinite else local
        return logits_BHL

    largest_BH1 = torch.full((*seen_BHd.shape[:2], 1), -math.inf, dtype=torch.float64, device=tokens.device)
    if isinstance(f.precision, Finite):
        # What is cut off depends on the largest logit of all, so it must be known first.
        for start, y_BdL in first.chunks(chunk):
            largest_BH1 = torch.maximum(largest_BH1, logits(start, y_BdL).amax(-1, keepdim=True))
    total_BH1, mean_BHd = torch.zeros_like(largest_BH1), torch.zeros_like(seen_BHd)
    for start, y_BdL in first.chunks(chunk):
        logits_BHL = logits(start, y_BdL)
        if isinstance(f.precision, Finite):
            below = (logits_BHL - largest_BH1) * math.log2(length)
            weights_BHL = torch.exp2(below).masked_fill(below <= -f.precision.bits, 0.0)
        else:
            new_BH1 = torch.maximum(largest_BH1, logits_BHL.amax(-1, keepdim=True))
            shrink_BH1 = torch.exp(largest_BH1 - new_BH1)
            total_BH1, mean_BHd, largest_BH1 = total_BH1 * shrink_BH1, mean_BHd * shrink_BH1, new_BH1
            weights_BHL = torch.exp(logits_BHL - largest_BH1)
        total_BH1 = total_BH1 + weights_BHL.sum(-1, keepdim=True)
        mean_BHd = mean_BHd + weights_BHL @ y_BdL.mT
    y_Bd = query_Bd + torch.einsum("hde,bhe->bd", second.value, mean_BHd / total_BH1)
    return second.after_mlp(y_Bd) @ f.readout.mT


class _FirstLayer:
    """The stream after the first layer, for any stretch of positions."""

    def __init__(self, f: LimitTransformer, tokens: Integer[Tensor, "B T"]) -> None:
        self.tokens, self.layer, self.precision = tokens, f.layers[0], f.precision
        self.infinite = isinstance(f.precision, Infinite)
        self.vocabulary, self.period, self.kinds = f.vocabulary, f.period, f.vocabulary * f.period
        self.window = self.layer.locality + 1
        types_Kd = f.types()
        self.types_dK = types_Kd.mT.contiguous()
        self.logits_HKQ = types_Kd @ self.layer.key_query @ types_Kd.mT
        # One type more stands for positions before the first; it weighs nothing and has value zero.
        values_HKd = torch.nn.functional.pad(types_Kd @ self.layer.value.mT, (0, 0, 0, 1))
        self.values_dHK = values_HKd.permute(2, 0, 1).flatten(1)
        weights_HKQ = torch.exp(self.logits_HKQ - self.logits_HKQ.amax(1, keepdim=True))
        self.weights_HKQ = torch.nn.functional.pad(weights_HKQ, (0, 0, 0, 1))
        self.farther_H = self.layer.local.amax(-1).clamp_min(0.0)
        self.by_products = self.infinite and self._range(tokens.shape[1]) < WIDEST

    def _range(self, length: int) -> float:
        """How far apart the logarithms of two weights of one query can be."""
        if self.layer.heads == 0:
            return 0.0
        token = self.logits_HKQ.amax(1) - self.logits_HKQ.amin(1)
        local = self.farther_H - self.layer.local.amin(-1).clamp_max(0.0)
        return float((token.amax(-1) + local * math.log(length)).max())

    def positions_at_once(self) -> int:
        """A size for chunks, by the numbers that one position needs."""
        layer = self.layer
        each = max(layer.heads * (self.kinds + self.window), self.kinds, layer.width, layer.hidden)
        numbers = NUMBERS_ON_GPU if self.tokens.is_cuda else NUMBERS
        return max(1, numbers // max(1, each * len(self.tokens)))

    def last(self) -> Float[Tensor, "B d"]:
        """The stream at the last position."""
        length = self.tokens.shape[1]
        far = self.tokens[:, : max(0, length - self.window)]
        far_BK = torch.nn.functional.pad(counts(far, self.vocabulary, self.period).flatten(1), (0, 1))
        stretch = self._stretch(length - 1, length)
        return self._after(length - 1, stretch, far_BK.mT.double().unsqueeze(-1)).squeeze(-1)

    def chunks(self, size: int) -> Iterator[tuple[int, Float[Tensor, "B d L"]]]:
        """The stream at all positions, chunk by chunk, with the number of positions before each."""
        batch, length = self.tokens.shape
        shape = (self.kinds + 1, batch, min(size, length))
        zero_KBL = torch.zeros(shape, dtype=torch.float64, device=self.tokens.device)
        before_KB1 = zero_KBL[..., :1]
        for start in range(0, length, size):
            end = min(start + size, length)
            types_BL = self._stretch(start, end)
            leaving = types_BL[:, : end - start].unsqueeze(0)  # at distance tau + 1: now they are far
            far_KBL = zero_KBL[..., : end - start].scatter(0, leaving, 1.0).cumsum(-1).add_(before_KB1)
            yield start, self._after(start, types_BL, far_KBL)
            before_KB1 = far_KBL[..., -1:]

    def _stretch(self, start: int, end: int) -> Integer[Tensor, "B wL"]:
        """The types at positions start - tau .. end; before position 1, the number of types."""
        begin = max(0, start - self.window)
        position = torch.arange(begin + 1, end + 1, device=self.tokens.device)
        types = self.tokens[:, begin:end].long() * self.period + position % self.period
        return torch.nn.functional.pad(types, (self.window - start + begin, 0), value=self.kinds)

    def _after(
        self, start: int, types: Integer[Tensor, "B wL"], far_KBL: Float[Tensor, "K B L"]
    ) -> Float[Tensor, "B d L"]:
        """The stream after the first layer at the positions after ``start``, given the types from tau + 1
        positions earlier on and the counts of far types at each.
        """
        size, window = far_KBL.shape[-1], self.window
        position_L = torch.arange(start + 1, start + size + 1, device=types.device)
        near_WBL = torch.stack([types[:, window - t : window - t + size] for t in range(window)])
        query_BL = near_WBL[0]
        attend = self._products if self.by_products else self._logarithms
        attention_HKBL = attend(position_L, query_BL, near_WBL, far_KBL)
        update_dP = self.values_dHK @ attention_HKBL.flatten(2).flatten(0, 1)
        y_dBL = self.types_dK[:, query_BL] + update_dP.unflatten(1, query_BL.shape)
        return self.layer.after_mlp(y_dBL.permute(1, 2, 0)).mT

    def _products(self, position_L: Tensor, query_BL: Tensor, near_WBL: Tensor, far_KBL: Tensor) -> Tensor:
        """Attention to each type, (H, K, B, L), in infinite precision: a near position at distance t counts
        i^phi(t) times, a far one once, and all times e^A.
        """
        log_L = position_L.double().log()
        near_HWL = torch.exp((self.layer.local - self.farther_H.unsqueeze(1)).unsqueeze(-1) * log_L)
        counted_HKBL = far_KBL * torch.exp(-self.farther_H.unsqueeze(1) * log_L)[:, None, None]
        shape = (self.layer.heads, *near_WBL.shape)
        counted_HKBL.scatter_add_(1, near_WBL.expand(shape), near_HWL.unsqueeze(2).expand(shape))
        weights_HKBL = counted_HKBL.mul_(self.weights_HKQ[..., query_BL])
        return weights_HKBL.mul_(weights_HKBL.sum(1, keepdim=True).reciprocal_())

    def _logarithms(self, position_L: Tensor, query_BL: Tensor, near_WBL: Tensor, far_KBL: Tensor) -> Tensor:
        """The same in either precision, from logarithms relative to the largest that is there."""
        inside_WBL = near_WBL < self.kinds
        near_HWBL = torch.where(inside_WBL, near_WBL, 0).expand(self.layer.heads, *near_WBL.shape)
        local_HWBL = self.layer.local[..., None, None]
        if self.infinite:
            local_HWBL = local_HWBL * position_L.double().log()
        logits_HKBL = self.logits_HKQ[..., query_BL]
        logits = torch.cat([logits_HKBL, logits_HKBL.gather(1, near_HWBL) + local_HWBL], 1)
        count = torch.cat([far_KBL[: self.kinds], inside_WBL.double()])
        logits = logits.masked_fill_(count == 0, -math.inf)
        below = logits.sub_(logits.amax(1, keepdim=True))
        if isinstance(self.precision, Finite):
            # (At length 1 there is a single weight, and any base will do; 0 times -inf would not.)
            below = below.mul_(math.log2(max(self.tokens.shape[1], 2)))
            weights = torch.exp2(below).masked_fill_(below <= -self.precision.bits, 0.0)
        else:
            weights = torch.exp(below)
        far, near = weights.mul_(count).split([self.kinds, self.window], 1)
        weights_HKBL = torch.nn.functional.pad(far, (0, 0, 0, 0, 0, 1)).scatter_add_(1, near_HWBL, near)
        return weights_HKBL / weights_HKBL.sum(1, keepdim=True)
