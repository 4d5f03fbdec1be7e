"""Causal attention of many streams, with what each scheme of positions adds to it.

Axes: M model, B stream, A query, T key, N = M B, H head, d width of a head.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from lengthwise.models.positions import Positions, bucket, slopes, turned


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
    if places is None and not biased:
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        return mixed.transpose(1, 2).unflatten(0, (models, batch))

    distance_NAT = place_NA.unsqueeze(-1) - key_T
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
