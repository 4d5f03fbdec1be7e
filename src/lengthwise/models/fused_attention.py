"""Causal attention of many short streams on a GPU, from rows that hold queries, keys and values.

Streams lie behind each other in these rows, so that nothing is copied apart, padded alike or put together
again, which costs as much as PyTorch's attention itself. Biases are added as rows are read.

The query at place p of its stream sees the keys j = 0, .., p with weights

    softmax_j (f (q . k_j / sqrt(d) - slope (p - j))),   f = log(p + 1) or 1,

where the slope is ALiBi's or 0. For gradients the weights are computed anew, once for each block of keys and
once for each block of queries, so that every sum is taken in an order that is always the same. Of float32 a
product is that of two halves of each factor, so that nothing but the last bits is rounded.

Axes: M model, S stream, N row, H head, Q block of queries, d width of a head, n columns.
"""

# pyright: reportMissingImports=false, reportArgumentType=false, reportIndexIssue=false

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from lengthwise.models.fused import kernel

WIDEST = {torch.bfloat16: 128, torch.float32: 64}
"""Heads of more columns do not fit into what a program can hold."""


Rows = tuple[Float[Tensor, "M N n"], Float[Tensor, "M 1 n"]]
KeyRows = tuple[Float[Tensor, "M NK nk"], Float[Tensor, "M 1 nk"]]
"""Products, and the bias that belongs to them but was not added."""


@kernel
def _begin(streams, slopes, S, NQ, NK, d: tl.constexpr, HEAD: tl.constexpr, SLOPED: tl.constexpr):
    """The model of a program, its columns and the first of its head, the slope of the head; where the keys of
    its stream begin and how many there are; the same of the queries.
    """
    model, row = tl.program_id(0) // S, streams + 4 * (tl.program_id(0) % S)
    slope = tl.load(slopes + tl.program_id(1)) if SLOPED else 0.0
    first_key, keys = model * NK + tl.load(row), tl.load(row + 1)
    first_query, queries = model * NQ + tl.load(row + 2), tl.load(row + 3)
    return model, tl.arange(0, HEAD), tl.program_id(1) * d, slope, first_key, keys, first_query, queries


@kernel
def _placed(places, query, row, inside, PLACED: tl.constexpr):
    """The last key that each query sees, and the last that any sees; none if there are no queries."""
    place = tl.load(places + row, mask=inside, other=0) if PLACED else tl.where(inside, query, 0)
    return place, tl.max(tl.where(inside, place, -1), 0)


@kernel
def _read(rows, bias, row, inside, start, column, n, d: tl.constexpr):
    """Some columns of some rows, with their bias, as products take them."""
    mask = inside[:, None] & (column < d)[None, :]
    x = tl.load(rows + row.to(tl.int64)[:, None] * n + start + column[None, :], mask=mask, other=0.0)
    added = tl.load(bias + start + column, mask=column < d, other=0.0)
    return tl.where(mask, x.to(tl.float32) + added.to(tl.float32)[None, :], 0.0).to(rows.dtype.element_ty)


@kernel
def _keys_values(rows, bias, first, key, keys, start, width, column, n, d: tl.constexpr):
    """Those of some numbers, in the rows that begin at the first key."""
    row, inside = first + key, key < keys
    k = _read(rows, bias, row, inside, start, column, n, d)
    return k, _read(rows, bias, row, inside, width + start, column, n, d)


@kernel
def _factor(place, LOGGED: tl.constexpr):
    """What the logits of a query are multiplied by."""
    seen = place.to(tl.float32) + 1
    return tl.log(seen) if LOGGED else tl.full(seen.shape, 1.0, tl.float32)


@kernel
def _logits(
    q, k, place, key, scale, slope, LOGGED: tl.constexpr, PRECISION: tl.constexpr
):  # fmt: skip
    """Of some queries and keys; minus infinity where a key is not seen."""
    z = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
    away = place[:, None] - key[None, :]
    z = (z - slope * away.to(tl.float32)) * _factor(place, LOGGED)[:, None]
    return tl.where(away >= 0, z, float("-inf"))


@kernel
def _forward(
    own, own_bias, other, other_bias, streams, places, slopes, out, logs,
    S, NQ, NK, OWN, OTHER, KEYS_AT, width, scale,
    d: tl.constexpr, HEAD: tl.constexpr, BLOCK: tl.constexpr, PLACED: tl.constexpr,
    SLOPED: tl.constexpr, LOGGED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    model, column, start, slope, first_key, keys, first_query, queries = _begin(
        streams, slopes, S, NQ, NK, d, HEAD, SLOPED
    )
    query = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside, row = query < queries, first_query + query
    place, last = _placed(places, query, row, inside, PLACED)
    q = _read(own, own_bias + model * OWN, row, inside, start, column, OWN, d)
    most = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    mixed = tl.zeros([BLOCK, HEAD], tl.float32)
    for first in range(0, last + 1, BLOCK):
        key = first + tl.arange(0, BLOCK)
        k, v = _keys_values(
            other, other_bias + model * OTHER, first_key, key, keys, KEYS_AT + start, width, column, OTHER, d
        )
        z = _logits(q, k, place, key, scale, slope, LOGGED, PRECISION)
        higher = tl.maximum(most, tl.max(z, 1))
        weight, kept = tl.exp(z - higher[:, None]), tl.exp(most - higher)
        total = total * kept + tl.sum(weight, 1)
        mixed = tl.dot(weight.to(v.dtype), v, mixed * kept[:, None], input_precision=PRECISION)
        most = higher
    mask = inside[:, None] & (column < d)[None, :]
    to = row.to(tl.int64)[:, None] * width + start + column[None, :]
    tl.store(out + to, mixed / total[:, None], mask=mask)
    tl.store(logs + row * tl.num_programs(1) + tl.program_id(1), most + tl.log(total), mask=inside)


@kernel
def _changes(
    q, k, v, row, inside, place, key, start, column, out, logs, of_out, width, scale, slope,
    d: tl.constexpr, LOGGED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The weights of some queries on some keys, the gradients of q . k, and what came from behind."""
    mask = inside[:, None] & (column < d)[None, :]
    at = row.to(tl.int64)[:, None] * width + start + column[None, :]
    behind = tl.load(of_out + at, mask=mask, other=0.0)
    result = tl.load(out + at, mask=mask, other=0.0)
    along = tl.sum(behind.to(tl.float32) * result.to(tl.float32), 1)
    at = row * tl.num_programs(1) + tl.program_id(1)
    log = tl.load(logs + at, mask=inside, other=float("inf"))  # then weights are 0
    weight = tl.exp(_logits(q, k, place, key, scale, slope, LOGGED, PRECISION) - log[:, None])
    of_weight = tl.dot(behind, tl.trans(v), input_precision=PRECISION)
    change = weight * (of_weight - along[:, None]) * (scale * _factor(place, LOGGED))[:, None]
    return weight.to(q.dtype), change.to(q.dtype), behind


@kernel
def _write(rows, sums, change, row, inside, start, column, n, d: tl.constexpr):
    """Gradients of some columns of some rows, and their sum, which is that of the bias."""
    mask = inside[:, None] & (column < d)[None, :]
    tl.store(rows + row.to(tl.int64)[:, None] * n + start + column[None, :], change, mask=mask)
    tl.store(sums + start + column, tl.sum(tl.where(mask, change, 0.0), 0), mask=column < d)


@kernel
def _backward_keys(
    own, own_bias, other, other_bias, streams, places, slopes, out, logs, of_out, of_other, of_bias,
    S, NQ, NK, OWN, OTHER, KEYS_AT, width, scale,
    d: tl.constexpr, HEAD: tl.constexpr, BLOCK: tl.constexpr, PLACED: tl.constexpr,
    SLOPED: tl.constexpr, LOGGED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    model, column, start, slope, first_key, keys, first_query, queries = _begin(
        streams, slopes, S, NQ, NK, d, HEAD, SLOPED
    )
    block, blocks = tl.program_id(2), tl.num_programs(2)
    key = block * BLOCK + tl.arange(0, BLOCK)
    k, v = _keys_values(
        other, other_bias + model * OTHER, first_key, key, keys, KEYS_AT + start, width, column, OTHER, d
    )
    of_k = tl.zeros([BLOCK, HEAD], tl.float32)
    of_v = tl.zeros([BLOCK, HEAD], tl.float32)
    for first in range(0 if PLACED else block * BLOCK, queries, BLOCK):
        query = first + tl.arange(0, BLOCK)
        inside, row = query < queries, first_query + query
        place, last = _placed(places, query, row, inside, PLACED)
        if last >= block * BLOCK:  # else none of them sees any of these keys
            q = _read(own, own_bias + model * OWN, row, inside, start, column, OWN, d)
            weight, change, behind = _changes(
                q, k, v, row, inside, place, key, start, column, out, logs, of_out, width, scale, slope,
                d, LOGGED, PRECISION,
            )  # fmt: skip
            of_v = tl.dot(tl.trans(weight), behind, of_v, input_precision=PRECISION)
            of_k = tl.dot(tl.trans(change), q, of_k, input_precision=PRECISION)
    at, there = first_key + key, key < keys
    sums = of_bias + (tl.program_id(0) * blocks + block) * OTHER
    _write(of_other, sums, of_k, at, there, KEYS_AT + start, column, OTHER, d)
    _write(of_other, sums, of_v, at, there, KEYS_AT + width + start, column, OTHER, d)


@kernel
def _backward_queries(
    own, own_bias, other, other_bias, streams, places, slopes, out, logs, of_out, of_own, of_bias,
    S, NQ, NK, OWN, OTHER, KEYS_AT, width, scale,
    d: tl.constexpr, HEAD: tl.constexpr, BLOCK: tl.constexpr, PLACED: tl.constexpr,
    SLOPED: tl.constexpr, LOGGED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    model, column, start, slope, first_key, keys, first_query, queries = _begin(
        streams, slopes, S, NQ, NK, d, HEAD, SLOPED
    )
    block, blocks = tl.program_id(2), tl.num_programs(2)
    query = block * BLOCK + tl.arange(0, BLOCK)
    inside, row = query < queries, first_query + query
    place, last = _placed(places, query, row, inside, PLACED)
    q = _read(own, own_bias + model * OWN, row, inside, start, column, OWN, d)
    of_q = tl.zeros([BLOCK, HEAD], tl.float32)
    for first in range(0, last + 1, BLOCK):
        key = first + tl.arange(0, BLOCK)
        k, v = _keys_values(
            other, other_bias + model * OTHER, first_key, key, keys, KEYS_AT + start, width, column, OTHER, d
        )
        _, change, _ = _changes(
            q, k, v, row, inside, place, key, start, column, out, logs, of_out, width, scale, slope,
            d, LOGGED, PRECISION,
        )  # fmt: skip
        of_q = tl.dot(change, k, of_q, input_precision=PRECISION)
    sums = of_bias + (tl.program_id(0) * blocks + block) * OWN
    _write(of_own, sums, of_q, row, inside, start, column, OWN, d)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        own: Tensor,
        own_bias: Tensor,
        other: Tensor | None,
        other_bias: Tensor | None,
        streams: Tensor,
        places: Tensor | None,
        slopes: Tensor | None,
        longest: tuple[int, int],
        heads: int,
        log_scaling: bool,
    ) -> Tensor:
        models, rows, columns = own.shape
        width = columns if other is not None else columns // 3
        d = width // heads
        given = own.contiguous(), own_bias.contiguous()
        if other is not None and other_bias is not None:
            given += other.contiguous(), other_bias.contiguous()
        else:
            given += given
        given += (
            streams,
            streams if places is None else places.contiguous(),
            given[1] if slopes is None else slopes,
        )
        out = own.new_empty(models, rows, width)
        logs = own.new_empty(models * rows * heads, dtype=torch.float32)
        sizes = {
            "S": len(streams), "NQ": rows, "NK": given[2].shape[1], "OWN": columns,
            "OTHER": given[2].shape[2], "KEYS_AT": width if other is None else 0, "width": width,
            "scale": d**-0.5, "d": d, "HEAD": max(16, triton.next_power_of_2(d)),
            "PLACED": places is not None, "SLOPED": slopes is not None, "LOGGED": log_scaling,
            "PRECISION": "tf32x3" if own.dtype == torch.float32 else "ieee",
            **_tile(max(longest), d, own.dtype), "num_stages": 1,
        }  # fmt: skip
        grid = models * len(streams), heads, triton.cdiv(longest[1], sizes["BLOCK"])
        _forward[grid](*given, out, logs, **sizes)
        ctx.save_for_backward(*given, out, logs)
        ctx.sizes, ctx.grid, ctx.keys, ctx.own_is_all = sizes, grid, longest[0], other is None
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        *given, out, logs = ctx.saved_tensors
        of_out, sizes = grad_outputs[0].contiguous(), ctx.sizes
        own, own_bias, other, other_bias = given[:4]
        programs, heads, query_blocks = ctx.grid
        key_blocks = triton.cdiv(ctx.keys, sizes["BLOCK"])
        of_own, parts = torch.empty_like(own), programs // len(own)
        of_own_bias = own_bias.new_empty(len(own), parts * query_blocks, sizes["OWN"])
        if ctx.own_is_all:  # as many queries as keys
            of_other, of_other_bias = of_own, of_own_bias
        else:
            of_other = torch.empty_like(other)
            of_other_bias = other_bias.new_empty(len(own), parts * key_blocks, sizes["OTHER"])
        _backward_keys[programs, heads, key_blocks](
            *given, out, logs, of_out, of_other, of_other_bias, **sizes
        )
        _backward_queries[ctx.grid](*given, out, logs, of_out, of_own, of_own_bias, **sizes)
        found = of_own, of_own_bias.sum(1, keepdim=True)
        if ctx.own_is_all:
            return *found, *(None,) * 8
        return *found, of_other, of_other_bias.sum(1, keepdim=True), *(None,) * 6


def _tile(longest: int, d: int, dtype: torch.dtype) -> dict[str, int]:
    """So many queries and keys a program works on at a time, and with so many warps. Of float32 they are
    fewer, since its products take more registers and memory.
    """
    if dtype == torch.float32:
        return {"BLOCK": 16, "num_warps": 2} if longest <= 64 else {"BLOCK": 32, "num_warps": 4}
    return {"BLOCK": 64 if longest > 32 else 32, "num_warps": 4 if d <= 64 else 8}


def attend(
    own: Rows,
    other: KeyRows | None,
    sizes: tuple[tuple[int, int, int], ...],
    places: Int[Tensor, "M N"] | None,
    slopes: Float[Tensor, " H"] | None,
    *,
    heads: int,
    log_scaling: bool,
) -> Float[Tensor, "M N width"]:
    """Means of the values. A row of ``own`` holds query, key and value of a token; or, if there are ``other``
    rows with keys and values, the query at one of the ``places``.

    ``sizes`` tells, of each group of like streams, how many there are, how many queries each has and how many
    keys: ``own`` and ``other`` have the rows of all of them, stream by stream.
    """
    # Evaluation has sizes without end, and is never replayed.
    streams = _streams if torch.is_grad_enabled() else _streams.__wrapped__
    return _Attend.apply(  # pyright: ignore[reportReturnType]
        *own,
        *((None, None) if other is None else other),
        streams(sizes, own[0].device),
        None if places is None else places.int(),
        slopes,
        (max(keys for _, _, keys in sizes), max(queries for _, queries, _ in sizes)),
        heads,
        log_scaling,
    )


@cache
def _streams(sizes: tuple[tuple[int, int, int], ...], device: torch.device) -> Int[Tensor, "S 4"]:
    """Of each stream, its first key, how many there are, its first query, and how many there are.

    They are kept for good: steps that are replayed read them where they were first made.
    """
    found, first_key, first_query = [], 0, 0
    for streams, queries, keys in sizes:
        for _ in range(streams):
            found.append((first_key, keys, first_query, queries))
            first_key, first_query = first_key + keys, first_query + queries
    return torch.tensor(found, dtype=torch.int32, device=device)
