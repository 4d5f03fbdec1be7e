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
from lengthwise.models.layers import (
    Norm,
    Products,
    folded,
    fuses_attention,
    gelu_linear,
    joined_normed,
    linear,
    looked_up,
    normed,
    picked,
)
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


def fold(
    parameters: Mapping[str, Tensor], layers: int, *, counted: bool, norms: bool = True
) -> dict[str, Tensor]:
    """The parameters, with the weights of every LayerNorm folded into the matrix behind it, unless ``norms``
    are to stay.

    The last layer's queries are made apart from its keys and values, unless tokens are counted.
    """
    weights = dict(parameters)
    weights["readout"] = weights.get("readout", weights["embedding"]).mT
    if norms:
        for layer in range(layers):
            for name in (f"layers.{layer}.attention", f"layers.{layer}.mlp"):
                _fold(weights, f"{name}_norm", f"{name}_in")
        _fold(weights, "norm", "readout")
    else:
        weights |= {name: weights[name].unsqueeze(1) for name in weights if name.endswith("_in_bias")}
    if not counted:
        last = f"layers.{layers - 1}"
        for name in ("in", "in_bias"):
            own = weights.pop(f"{last}.attention_{name}")
            query, key_value = own.split([own.shape[-1] // 3, own.shape[-1] // 3 * 2], -1)
            weights[f"{last}.query_{name}"], weights[f"{last}.key_value_{name}"] = query, key_value
    return weights


def _fold(weights: dict[str, Tensor], norm: str, matrix: str) -> None:
    """Of one LayerNorm."""
    own = weights.pop(norm), weights.pop(f"{norm}_bias")
    weights[matrix], weights[f"{matrix}_bias"] = folded(*own, weights[matrix], weights.get(f"{matrix}_bias"))


def forward_streams(shape: Shape, weights: Weights, groups: Sequence[Streams]) -> Float[Tensor, "M N C"]:
    """Logits at the places of all groups, one group after the other.

    All layers but the last are computed everywhere; the last one's queries, and all that follows, at the
    places alone.
    """
    x_MNd = _embedded(shape, weights, groups)
    normed_MNd = normed(x_MNd, _norm(weights, "layers.0.attention_norm"))
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
    """The weights of one layer, by their names in it, those that all layers share, and the LayerNorm behind
    it, if there is one.
    """
    start, behind = f"layers.{layer}.", f"layers.{layer + 1}.attention_norm"
    own = {name.removeprefix(start): weight for name, weight in weights.items() if name.startswith(start)}
    if norm := _norm(weights, behind) or _norm(weights, "norm"):
        own |= zip(("next_norm", "next_norm_bias"), norm, strict=True)
    return own | {name: weights[name] for name in ("by_bucket",) if name in weights}


def _norm(weights: Weights, name: str) -> Norm | None:
    """A LayerNorm that is not folded."""
    return (weights[name], weights[f"{name}_bias"]) if name in weights else None


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
    mixed_MNd = _mixed(shape, weights, _onto(weights, "attention", normed_MNd), None, groups)
    return _joined(weights, x_MNd, mixed_MNd)


def _last_layer(
    shape: Shape, weights: Weights, x_MNd: Tensor, normed_MNd: Tensor, groups: Sequence[Streams]
) -> Float[Tensor, "M rows d"]:
    """One layer, at the places: the normalised rows behind it, which are not rounded."""
    keys_values = _onto(weights, "key_value", normed_MNd)
    x_MNd = picked(x_MNd, _place_rows(groups))
    queries = _onto(weights, "query", normed(x_MNd, _norm(weights, "attention_norm")))
    mixed_MNd = _mixed(shape, weights, queries, keys_values, groups)
    return _joined(weights, x_MNd, mixed_MNd, exact=True)[1]


def _onto(weights: Weights, name: str, normed_MNd: Tensor) -> Products:
    return Products(normed_MNd, weights[f"{name}_in"], weights[f"{name}_in_bias"])


def _mixed(
    shape: Shape, weights: Weights, own: Products, other: Products | None, groups: Sequence[Streams]
) -> Float[Tensor, "M N d"]:
    """Attention of all groups. There is a query at every token, with its key and value behind it, or, if
    there are ``other`` products with these, at every place.
    """
    into = shape.heads, weights["attention_out"].shape[-1] // shape.heads
    if shape.positions not in ("rotary", "relative"):
        if native.suits(own.x):
            return _mixed_natively(shape, own, other, groups, into)
        if fuses_attention(own.x, into[1]):
            return _mixed_on_gpu(shape, own, other, groups)
    parts = _split(linear(*own), [group.tokens if other is None else group.places for group in groups], into)
    if other is not None:
        keys_values = _split(linear(*other), [group.tokens for group in groups], into)
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
    shape: Shape, own: Products, other: Products | None, groups: Sequence[Streams], into: tuple[int, int]
) -> Float[Tensor, "M N d"]:
    """The same, by the library of C."""
    keys_values = None if other is None else linear(*other).unflatten(-1, (-1, *into))
    places = None if other is None else _rows([group.places for group in groups]).int()
    return native.attend(
        linear(*own).unflatten(-1, (-1, *into)),
        keys_values,
        torch.tensor(_sizes(other, groups), dtype=torch.int32),
        places,
        _slopes(shape, own.x.device),
        log_scaling=shape.log_scaling,
    )


def _mixed_on_gpu(
    shape: Shape, own: Products, other: Products | None, groups: Sequence[Streams]
) -> Float[Tensor, "M N d"]:
    """The same, by one kernel, which also adds the biases."""
    from lengthwise.models import fused_attention

    return fused_attention.attend(
        (own.x @ own.matrix, own.bias),
        None if other is None else (other.x @ other.matrix, other.bias),
        tuple(_sizes(other, groups)),
        None if other is None else _rows([group.places for group in groups]),
        _slopes(shape, own.x.device),
        heads=shape.heads,
        log_scaling=shape.log_scaling,
    )


def _sizes(other: Products | None, groups: Sequence[Streams]) -> list[tuple[int, int, int]]:
    """Of each group, how many streams there are, and how many queries and keys each has."""
    return [
        (tokens.shape[1], (tokens if other is None else places).shape[2], tokens.shape[2])
        for tokens, places, _ in groups
    ]


def _slopes(shape: Shape, device: torch.device) -> Float[Tensor, " H"] | None:
    """What ALiBi takes off the logits, in float32."""
    return slopes(shape.heads, device, torch.float32) if shape.positions == "alibi" else None


def _joined(
    weights: Weights, x_MNd: Tensor, mixed_MNd: Tensor, *, exact: bool = False
) -> tuple[Float[Tensor, "M N d"], Float[Tensor, "M N d"]]:
    """The residual stream after attention and the MLP, and its normalised rows."""
    out = weights["attention_out"], weights["attention_out_bias"]
    return _mlp(weights, *joined_normed(x_MNd, mixed_MNd, *out, _norm(weights, "mlp_norm")), exact=exact)


def _mlp(
    weights: Weights, x_MNd: Tensor, normed_MNd: Tensor, *, exact: bool
) -> tuple[Float[Tensor, "M N d"], Float[Tensor, "M N d"]]:
    hidden_MNn = gelu_linear(normed_MNd, weights["mlp_in"], weights["mlp_in_bias"])
    out = weights["mlp_out"], weights["mlp_out_bias"]
    return joined_normed(x_MNd, hidden_MNn, *out, _norm(weights, "next_norm"), exact=exact)


def _readout(weights: Weights, normed_MNd: Tensor) -> Float[Tensor, "M N C"]:
    """Logits, which are not rounded even where the products of the layers are."""
    with torch.autocast(normed_MNd.device.type, enabled=False):
        # Rows run along the last axis in memory: what is then done to a few classes of each is faster.
        if "readout_bias" not in weights:
            return (weights["readout"].mT @ normed_MNd.mT).mT
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
