"""Causal attention of many streams, with what each scheme of positions adds to it.

Axes: M model, B stream, A query, T key, N = M B, H head, d width of a head.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from lengthwise.models.positions import Positions, bucket, slopes, turned

SHORT = 128
"""Up to this many keys, a CPU is faster with the whole matrix of weights than without it."""


def attend(
    query: Float[Tensor, "M B A H d"],
    key: Float[Tensor, "M B T H d"],
    value: Float[Tensor, "M B T H d"],
    places: Int[Tensor, "M B A"] | None,
    *,
    scheme: Positions,
    log_scaling: bool,
    by_bucket: Float[Tensor, "M buckets H"] | None,
) -> Float[Tensor, "M B A H d"]:
    """Means of the values up to each query's place, weighted by softmax of the logits q . k / sqrt(d).

    Without ``places`` there is a query at every position. "alibi" and "relative" (``by_bucket``) add to the
    logits; ``log_scaling`` then multiplies them by the logarithm of the number of keys that the query sees.
    """
    models, batch, longest = key.shape[:3]
    q, k, v = (x.flatten(0, 1).transpose(1, 2) for x in (query, key, value))
    key_T = torch.arange(longest, device=key.device)
    place_NA = key_T.unsqueeze(0) if places is None else places.flatten(0, 1)
    if scheme == "rotary":
        q, k = turned(q, place_NA, longest), turned(k, key_T.unsqueeze(0), longest)
    biased = scheme in ("alibi", "relative")
    log_seen = (place_NA + 1).to(q.dtype).log()[:, None, :, None] if log_scaling else 1.0
    if log_scaling:
        q = q * log_seen
    short = not biased and not key.is_cuda and longest <= SHORT
    if places is None and not biased and not short:
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        return mixed.transpose(1, 2).unflatten(0, (models, batch))

    distance_NAT = place_NA.unsqueeze(-1) - key_T
    if short:
        mixed = _whole(q, k, v, distance_NAT < 0)
        return mixed.transpose(1, 2).unflatten(0, (models, batch))
    mask = (distance_NAT >= 0).unsqueeze(1)
    if biased:
        if by_bucket is None:
            bias = slopes(q.shape[1], q.device, q.dtype).view(-1, 1, 1) * -distance_NAT.unsqueeze(1)
        else:
            bias = _by_bucket(by_bucket, distance_NAT, models)
        mask = (bias * log_seen).masked_fill(~mask, -torch.inf)
    if places is None and by_bucket is not None:
        # All streams of a model have the same logits, which are broadcast, not copied.
        q, k, v = (x.unflatten(0, (models, batch)) for x in (q, k, v))
        mixed = scaled_dot_product_attention(q, k, v, mask.unsqueeze(1)).flatten(0, 1)
    else:
        mixed = scaled_dot_product_attention(q, k, v, mask)
    return mixed.transpose(1, 2).unflatten(0, (models, batch))


def _by_bucket(
    by_bucket: Float[Tensor, "M buckets H"], distance_NAT: Int[Tensor, "N A T"], models: int
) -> Float[Tensor, "streams H A T"]:
    """The logits at these distances: of every stream, or of every model where all streams agree (N = 1)."""
    bucket_NAT = bucket(distance_NAT.clamp_min(0))
    bucket_MNAT = bucket_NAT.unflatten(0, (models, -1)) if len(bucket_NAT) > 1 else bucket_NAT.unsqueeze(0)
    model_M111 = torch.arange(models, device=by_bucket.device).view(-1, 1, 1, 1)
    return by_bucket[model_M111, bucket_MNAT].flatten(0, 1).permute(0, 3, 1, 2)


def _whole(
    q: Float[Tensor, "N H A d"],
    k: Float[Tensor, "N H T d"],
    v: Float[Tensor, "N H T d"],
    unseen_NAT: Bool[Tensor, "#N A T"],
) -> Float[Tensor, "N H A d"]:
    """Attention by way of all its weights."""
    hidden_NAT = torch.zeros_like(unseen_NAT, dtype=q.dtype).masked_fill_(unseen_NAT, -torch.inf)
    if len(hidden_NAT) > 1:
        hidden_NAT = hidden_NAT.repeat_interleave(q.shape[1], 0)
    mixed = _Whole.apply(*(x.flatten(0, 1) for x in (q, k, v)), hidden_NAT)
    return mixed.unflatten(0, q.shape[:2])  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]


class _Whole(torch.autograd.Function):
    """Attention of short streams (N, A, d), by way of all its weights; ``hidden`` is added to the logits."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, hidden: Tensor) -> Tensor:
        weights = torch.baddbmm(hidden, q, k.mT, alpha=q.shape[-1] ** -0.5).softmax(-1)
        ctx.save_for_backward(q, k, v, weights)
        return torch.bmm(weights, v)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, None]:
        (g,) = grad_outputs
        q, k, v, weights = ctx.saved_tensors
        change = torch.ops.aten._softmax_backward_data(torch.bmm(g, v.mT), weights, -1, weights.dtype)
        change.mul_(q.shape[-1] ** -0.5)
        return torch.bmm(change, k), torch.bmm(change.mT, q), torch.bmm(weights.mT, g), None
