"""The forward pass of decoders, from streams or from counts of tokens.

Streams come in groups of like length, each a batch padded to its own longest. All that is done token by token
is done on the rows of all groups at once; attention, group by group.

Axes: M model, B stream of a group, T position, A place after which something is predicted, N row (a token or
a place of any group), P position, d width, C class.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengthwise.models import native
from lengthwise.models.attention import attend
from lengthwise.models.layers import folded, gelu_linear, joined_normed, linear, looked_up, normed, picked
from lengthwise.models.positions import Positions, slopes
from lengthwise.models.token_counts import TokenCounts, attend_by_counts

Weights = Mapping[str, Tensor]
"""What ``fold`` makes of the parameters."""


class Streams(NamedTuple):
    """A group of streams: their tokens, the places after which something is predicted, and the positions of
    the tokens, which count from 0 where none are given.
    """

    tokens: Int[Tensor, "M B T"]
    places: Int[Tensor, "M B A"]
    positions: Int[Tensor, "M B T"] | None = None


class Shape(NamedTuple):
    """What the forward pass must know of a model beside its weights; ``waves`` are added by position where
    the scheme has fixed vectors.
    """

    layers: int
    heads: int
    positions: Positions
    log_scaling: bool
    waves: Float[Tensor, "P d"] | None


def fold(parameters: Mapping[str, Tensor], layers: int, *, counted: bool) -> dict[str, Tensor]:
    """The parameters, with the weights of every LayerNorm folded into the matrix behind it.

    The last layer's queries are made apart from its keys and values, unless tokens are counted.
    """
    weights = dict(parameters)
    for layer in range(layers):
        for name in (f"layers.{layer}.attention", f"layers.{layer}.mlp"):
            norm, shift = weights.pop(f"{name}_norm"), weights.pop(f"{name}_norm_bias")
            matrix, bias = weights[f"{name}_in"], weights[f"{name}_in_bias"]
            weights[f"{name}_in"], weights[f"{name}_in_bias"] = folded(norm, shift, matrix, bias)
    if not counted:
        last = f"layers.{layers - 1}"
        for name in ("in", "in_bias"):
            query, key, value = weights.pop(f"{last}.attention_{name}").chunk(3, -1)
            weights[f"{last}.query_{name}"] = query
            weights[f"{last}.key_value_{name}"] = torch.cat([key, value], -1)
    matrix = weights.get("readout", weights["embedding"]).mT
    norm, shift = weights.pop("norm"), weights.pop("norm_bias")
    weights["readout"], weights["readout_bias"] = folded(norm, shift, matrix, None)
    return weights


def forward_streams(shape: Shape, weights: Weights, groups: Sequence[Streams]) -> Float[Tensor, "M N C"]:
    """Logits at the places of all groups, one group after the other.

    All layers but the last are computed everywhere; the last one's queries, and all that follows, at the
    places alone.
    """
    x_MNd = _embedded(shape, weights, groups)
    normed_MNd = normed(x_MNd)
    for layer in range(shape.layers - 1):
        x_MNd, normed_MNd = _layer(shape, _of_layer(weights, layer), x_MNd, normed_MNd, groups)
    normed_MNd = _last_layer(shape, _of_layer(weights, shape.layers - 1), x_MNd, normed_MNd, groups)
    return _readout(weights, normed_MNd)


def forward_counts(shape: Shape, weights: Weights, counts: TokenCounts) -> Float[Tensor, "M N C"]:
    """Logits of one layer without positions, from the counts of tokens up to each place."""
    x_MNd = attend_by_counts(
        weights["embedding"],
        (weights["layers.0.attention_in"], weights["layers.0.attention_in_bias"]),
        (weights["layers.0.attention_out"], weights["layers.0.attention_out_bias"]),
        counts,
        heads=shape.heads,
        log_scaling=shape.log_scaling,
    )
    return _readout(weights, _mlp(_of_layer(weights, 0), x_MNd, normed(x_MNd), exact=True)[1])


def _of_layer(weights: Weights, layer: int) -> Weights:
    """The weights of one layer, by their names in it, and those that all layers share."""
    start = f"layers.{layer}."
    own = {name.removeprefix(start): weight for name, weight in weights.items() if name.startswith(start)}
    return own | {name: weights[name] for name in ("by_bucket",) if name in weights}


def _embedded(shape: Shape, weights: Weights, groups: Sequence[Streams]) -> Float[Tensor, "M N d"]:
    """The vectors of the tokens, and of their positions where the scheme adds some."""
    table = weights["embedding"]
    x_MNd = looked_up(table, _rows([group.tokens for group in groups]))
    if shape.positions != "learned" and shape.waves is None:
        return x_MNd
    places = []
    for tokens, _, positions in groups:
        counted = torch.arange(tokens.shape[-1], device=tokens.device).expand_as(tokens)
        places.append(counted if positions is None else positions)
    rows_MN = _rows(places)
    return x_MNd + (looked_up(weights["positions"], rows_MN) if shape.waves is None else shape.waves[rows_MN])


def _layer(
    shape: Shape, weights: Weights, x_MNd: Tensor, normed_MNd: Tensor, groups: Sequence[Streams]
) -> tuple[Float[Tensor, "M N d"], Float[Tensor, "M N d"]]:
    """One layer, at every token: the residual stream behind it, and its normalised rows."""
    rows_MNn = _onto(weights, "attention", normed_MNd)
    return _joined(weights, x_MNd, _mixed(shape, weights, rows_MNn, None, groups))


def _last_layer(
    shape: Shape, weights: Weights, x_MNd: Tensor, normed_MNd: Tensor, groups: Sequence[Streams]
) -> Float[Tensor, "M rows d"]:
    """One layer, at the places: the normalised rows behind it, which are not rounded."""
    key_value_MNn = _onto(weights, "key_value", normed_MNd)
    x_MNd = picked(x_MNd, _place_rows(groups))
    query_MNd = _onto(weights, "query", normed(x_MNd))
    mixed_MNd = _mixed(shape, weights, query_MNd, key_value_MNn, groups)
    return _joined(weights, x_MNd, mixed_MNd, exact=True)[1]


def _onto(weights: Weights, name: str, normed_MNd: Tensor) -> Tensor:
    return linear(normed_MNd, weights[f"{name}_in"], weights[f"{name}_in_bias"])


def _mixed(
    shape: Shape, weights: Weights, own: Tensor, other: Tensor | None, groups: Sequence[Streams]
) -> Float[Tensor, "M N d"]:
    """Attention of all groups. There is a query at every token, with its key and value behind it, or, if
    there are ``other`` rows with these, at every place.
    """
    into = shape.heads, weights["attention_out"].shape[-1] // shape.heads
    if native.suits(own) and shape.positions not in ("rotary", "relative"):
        return _mixed_natively(shape, own, other, groups, into)
    parts = _split(own, [group.tokens if other is None else group.places for group in groups], into)
    if other is not None:
        keys_values = _split(other, [group.tokens for group in groups], into)
        parts = [part + more for part, more in zip(parts, keys_values, strict=True)]
    mixed = [
        attend(
            query,
            key,
            value,
            None if other is None else group.places,
            scheme=shape.positions,
            log_scaling=shape.log_scaling,
            by_bucket=weights.get("by_bucket"),
        )
        for (query, key, value), group in zip(parts, groups, strict=True)
    ]
    return _rows([part.flatten(3) for part in mixed])


def _mixed_natively(
    shape: Shape, own: Tensor, other: Tensor | None, groups: Sequence[Streams], into: tuple[int, int]
) -> Float[Tensor, "M N d"]:
    """The same, by the library of C."""
    sizes, places = [], None
    for tokens, at, _ in groups:
        sizes.append((tokens.shape[1], (tokens if other is None else at).shape[2], tokens.shape[2]))
    if other is not None:
        places = _rows([group.places for group in groups]).int()
        other = other.unflatten(-1, (-1, *into))
    slope_H = slopes(shape.heads, own.device, own.dtype) if shape.positions == "alibi" else None
    return native.attend(
        own.unflatten(-1, (-1, *into)),
        other,
        torch.tensor(sizes, dtype=torch.int32),
        places,
        slope_H,
        log_scaling=shape.log_scaling,
    )


def _joined(
    weights: Weights, x_MNd: Tensor, mixed_MNd: Tensor, *, exact: bool = False
) -> tuple[Float[Tensor, "M N d"], Float[Tensor, "M N d"]]:
    """The residual stream after attention and the MLP, and its normalised rows."""
    joined = joined_normed(x_MNd, mixed_MNd, weights["attention_out"], weights["attention_out_bias"])
    return _mlp(weights, *joined, exact=exact)


def _mlp(
    weights: Weights, x_MNd: Tensor, normed_MNd: Tensor, *, exact: bool
) -> tuple[Float[Tensor, "M N d"], Float[Tensor, "M N d"]]:
    hidden_MNn = gelu_linear(normed_MNd, weights["mlp_in"], weights["mlp_in_bias"])
    return joined_normed(x_MNd, hidden_MNn, weights["mlp_out"], weights["mlp_out_bias"], exact=exact)


def _readout(weights: Weights, normed_MNd: Tensor) -> Float[Tensor, "M N C"]:
    """Logits, which are not rounded even where the products of the layers are."""
    with torch.autocast(normed_MNd.device.type, enabled=False):
        # Rows run along the last axis in memory: what is then done to a few classes of each is faster.
        return torch.baddbmm(weights["readout_bias"].mT, weights["readout"].mT, normed_MNd.mT).mT


def _rows(groups: Sequence[Tensor]) -> Tensor:
    """The streams of all groups as rows behind each other."""
    rows = [group.flatten(1, 2) for group in groups]
    return rows[0] if len(rows) == 1 else torch.cat(rows, 1)


def _split(rows_MNn: Tensor, like: Sequence[Tensor], into: tuple[int, int]) -> list[tuple[Tensor, ...]]:
    """Rows as groups of streams again, with the streams of ``like``: the parts that rows hold one behind
    another, (M, B, T, *into) each.
    """
    parts = rows_MNn.split([group.shape[1] * group.shape[2] for group in like], 1)
    # Attention takes the streams of all models for one batch: one copy here saves it one of each part.
    return [
        part.contiguous().unflatten(1, group.shape[1:]).unflatten(-1, (-1, *into)).unbind(3)
        for part, group in zip(parts, like, strict=True)
    ]


def _place_rows(groups: Sequence[Streams]) -> Int[Tensor, "M N"]:
    """The rows at which the places are."""
    found, start = [], 0
    for tokens, places, _ in groups:
        batch, length = tokens.shape[1:]
        first_B1 = start + length * torch.arange(batch, device=places.device).unsqueeze(1)
        found.append(places + first_B1)
        start += batch * length
    return _rows(found)
