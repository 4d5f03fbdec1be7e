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
from torch.nn.functional import layer_norm

from lengthwise.models.attention import attend
from lengthwise.models.layers import folded, gelu, joined, linear, looked_up
from lengthwise.models.positions import Positions
from lengthwise.models.products import spare_rows
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
    for layer in range(shape.layers):
        x_MNd = _layer(shape, weights, layer, x_MNd, groups)
    return _readout(weights, x_MNd)[:, : _rows_of([group.places for group in groups])]


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
    return _readout(weights, _mlp(weights, 0, x_MNd))


def _embedded(shape: Shape, weights: Weights, groups: Sequence[Streams]) -> Float[Tensor, "M N d"]:
    """The vectors of the tokens, and of their positions where the scheme adds some."""
    table = weights["embedding"]
    x_MNd = looked_up(table, _filled(table, _rows([group.tokens for group in groups])))
    if shape.positions != "learned" and shape.waves is None:
        return x_MNd
    places = []
    for tokens, _, positions in groups:
        counted = torch.arange(tokens.shape[-1], device=tokens.device).expand_as(tokens)
        places.append(counted if positions is None else positions)
    rows_MN = _filled(table, _rows(places))
    return x_MNd + (looked_up(weights["positions"], rows_MN) if shape.waves is None else shape.waves[rows_MN])


def _layer(
    shape: Shape, weights: Weights, layer: int, x_MNd: Tensor, groups: Sequence[Streams]
) -> Float[Tensor, "M rows d"]:
    """One layer; of the last one, its outcome at the places."""

    def onto(x_MNd: Tensor, name: str) -> Tensor:
        matrix, bias = weights[f"layers.{layer}.{name}_in"], weights[f"layers.{layer}.{name}_in_bias"]
        return linear(layer_norm(x_MNd, x_MNd.shape[-1:]), matrix, bias)

    last = layer == shape.layers - 1
    tokens = [group.tokens for group in groups]
    if last:
        key_value = _split(onto(x_MNd, "key_value"), tokens, (2, shape.heads))
        x_MNd = looked_up(x_MNd, _filled(x_MNd, _place_rows(groups)))
        queries = _split(onto(x_MNd, "query"), [group.places for group in groups], (1, shape.heads))
        heads = [(q.squeeze(3), *kv.unbind(3)) for q, kv in zip(queries, key_value, strict=True)]
    else:
        heads = [qkv.unbind(3) for qkv in _split(onto(x_MNd, "attention"), tokens, (3, shape.heads))]
    mixed = [
        attend(
            query,
            key,
            value,
            group.places if last else None,
            scheme=shape.positions,
            log_scaling=shape.log_scaling,
            by_bucket=weights.get("by_bucket"),
        )
        for (query, key, value), group in zip(heads, groups, strict=True)
    ]
    out, bias = weights[f"layers.{layer}.attention_out"], weights[f"layers.{layer}.attention_out_bias"]
    x_MNd = joined(x_MNd, _filled(x_MNd, _rows([part.flatten(3) for part in mixed])), out, bias)
    return _mlp(weights, layer, x_MNd)


def _mlp(weights: Weights, layer: int, x_MNd: Tensor) -> Float[Tensor, "M N d"]:
    name = f"layers.{layer}.mlp"
    normed_MNd = layer_norm(x_MNd, x_MNd.shape[-1:])
    hidden_MNn = gelu(linear(normed_MNd, weights[f"{name}_in"], weights[f"{name}_in_bias"]))
    return joined(x_MNd, hidden_MNn, weights[f"{name}_out"], weights[f"{name}_out_bias"])


def _readout(weights: Weights, x_MNd: Tensor) -> Float[Tensor, "M N C"]:
    """Logits, which are not rounded even where the products of the layers are."""
    with torch.autocast(x_MNd.device.type, enabled=False):
        normed_MNd = layer_norm(x_MNd, x_MNd.shape[-1:])
        # Rows run along the last axis in memory: what is then done to a few classes of each is faster.
        return torch.baddbmm(weights["readout_bias"].mT, weights["readout"].mT, normed_MNd.mT).mT


def _rows(groups: Sequence[Tensor]) -> Tensor:
    """The streams of all groups as rows behind each other."""
    rows = [group.flatten(1, 2) for group in groups]
    return rows[0] if len(rows) == 1 else torch.cat(rows, 1)


def _rows_of(groups: Sequence[Tensor]) -> int:
    """How many rows the streams of all groups have."""
    return sum(group.shape[1] * group.shape[2] for group in groups)


def _filled(like: Tensor, rows: Tensor) -> Tensor:
    """Rows of models like those of ``like``, with zeros behind them so that products are fast; what becomes
    of these is not read.
    """
    spare = spare_rows(like, rows.shape[1])
    return torch.cat([rows, rows.new_zeros(len(rows), spare, *rows.shape[2:])], 1) if spare else rows


def _split(rows_MNn: Tensor, like: Sequence[Tensor], heads: tuple[int, int]) -> list[Tensor]:
    """Rows as groups of streams again, (M, B, T, *heads, d) each, with the streams of ``like``."""
    parts = rows_MNn[:, : _rows_of(like)].split([group.shape[1] * group.shape[2] for group in like], 1)
    # Attention takes the streams of all models for one batch: one copy here saves it one of each part.
    return [
        part.contiguous().unflatten(1, group.shape[1:]).unflatten(-1, (*heads, -1))
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
