"""What lies between the matrix products of a decoder, on a GPU: one kernel for each of three things.

- A branch joins the residual stream, whose rows are then normalised:
  s = x + p + b, y = w (s - mean s) / std s + c.
- GELU of a product and its bias, in the tanh form.
- Rows looked up in a table, and their gradient, a sum for each row of the table.

PyTorch's own operations take eight, three and twenty kernels for these, which together cost more than the
products do. All sums over rows are taken in an order that is always the same.

Kernels are Triton's, which comes with PyTorch for CUDA.

Axes: M model, N row, S row of a table, d and n columns, K share of a model's rows that one program works
through.
"""

# pyright: reportMissingImports=false, reportArgumentType=false, reportIndexIssue=false

import inspect
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from lengthwise.models import layers

EPSILON = tl.constexpr(1e-5)
"""Added to variances, as LayerNorm does."""

SLOPE, CUBIC = tl.constexpr(layers.SLOPE), tl.constexpr(layers.CUBIC)
"""GELU(x) = x sigmoid(SLOPE x + CUBIC x^3)."""

PROGRAMS = 1056
"""About so many programs work at a time: eight for each multiprocessor of a large GPU."""

TILE, SMALL_TILE = 4096, 1024
"""So many numbers a program holds at a time, the fewer where it also adds up several gradients."""

SLOTS = 16
"""So many rows of a table a program looks for."""


COUNTS = ("N", "K", "S", "NQ", "NK")
"""Numbers of rows and shares: whatever they are, a kernel is compiled once."""


def kernel(function: Callable[..., None]) -> Any:
    """A kernel of this text; what checks annotations in tests would hide the text from Triton."""
    return triton.jit(inspect.unwrap(function), do_not_specialize=COUNTS)


@kernel
def _norm_forward(
    stream, branch, bias, weight, shift, summed, normed, mean, scale, N, K,
    d: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, JOINS: tl.constexpr, SCALES: tl.constexpr,
):  # fmt: skip
    model, share = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, COLUMNS)
    inside = column < d
    added = tl.zeros([COLUMNS], tl.float32)
    if JOINS:
        added += tl.load(bias + model * d + column, mask=inside, other=0.0).to(tl.float32)
    w = tl.full([COLUMNS], 1.0, tl.float32)
    c = tl.zeros([COLUMNS], tl.float32)
    if SCALES:
        w = tl.load(weight + model * d + column, mask=inside, other=0.0).to(tl.float32)
        c = tl.load(shift + model * d + column, mask=inside, other=0.0).to(tl.float32)
    for start in range(share * ROWS, N, K * ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < N)[:, None] & inside[None, :]
        at = model.to(tl.int64) * N + row
        place = at[:, None] * d + column[None, :]
        x = tl.load(stream + place, mask=mask, other=0.0).to(tl.float32)
        if JOINS:
            x += tl.load(branch + place, mask=mask, other=0.0).to(tl.float32) + added[None, :]
            tl.store(summed + place, x, mask=mask)
        centre = tl.sum(x, 1) / d
        away = tl.where(mask, x - centre[:, None], 0.0)
        inverse = 1 / tl.sqrt(tl.sum(away * away, 1) / d + EPSILON)
        y = away * inverse[:, None] * w[None, :] + c[None, :]
        tl.store(normed + place, y, mask=mask)
        tl.store(mean + at, centre, mask=row < N)
        tl.store(scale + at, inverse, mask=row < N)


@kernel
def _norm_backward(
    summed, mean, scale, weight, of_summed, of_normed, of_stream, of_branch, sums, N, K,
    d: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, JOINS: tl.constexpr, SCALES: tl.constexpr,
):  # fmt: skip
    """With y normalised, dy its gradient: ds = dx + scale (dy - mean dy - y mean(y dy)). By share, the sums
    of what goes to the bias, to w and to c.
    """
    model, share = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, COLUMNS)
    inside = column < d
    of_bias = tl.zeros([ROWS, COLUMNS], tl.float32)  # summed along rows once, in the end
    of_weight = tl.zeros([ROWS, COLUMNS], tl.float32)
    of_shift = tl.zeros([ROWS, COLUMNS], tl.float32)
    w = tl.full([COLUMNS], 1.0, tl.float32)
    if SCALES:
        w = tl.load(weight + model * d + column, mask=inside, other=0.0).to(tl.float32)
    for start in range(share * ROWS, N, K * ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < N)[:, None] & inside[None, :]
        at = model.to(tl.int64) * N + row
        place = at[:, None] * d + column[None, :]
        inverse = tl.load(scale + at, mask=row < N, other=0.0)
        centre = tl.load(mean + at, mask=row < N, other=0.0)
        x = tl.load(summed + place, mask=mask, other=0.0).to(tl.float32)
        y = tl.where(mask, (x - centre[:, None]) * inverse[:, None], 0.0)
        dy = tl.load(of_normed + place, mask=mask, other=0.0).to(tl.float32)
        if SCALES:
            of_weight += dy * y
            of_shift += dy
            dy *= w[None, :]
        along = tl.sum(dy * y, 1) / d
        change = (dy - (tl.sum(dy, 1) / d)[:, None] - y * along[:, None]) * inverse[:, None]
        if JOINS:
            change += tl.load(of_summed + place, mask=mask, other=0.0).to(tl.float32)
            tl.store(of_branch + place, change, mask=mask)
            of_bias += tl.where(mask, change, 0.0)
        tl.store(of_stream + place, change, mask=mask)
    to = sums + (model * K + share) * d + column
    each = tl.num_programs(0) * K * d
    if JOINS:
        tl.store(to, tl.sum(of_bias, 0), mask=inside)
    if SCALES:
        tl.store(to + each, tl.sum(of_weight, 0), mask=inside)
        tl.store(to + 2 * each, tl.sum(of_shift, 0), mask=inside)


@kernel
def _gelu_forward(
    product, bias, out, N, K, n: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    model, share = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, COLUMNS)
    inside = column < n
    added = tl.load(bias + model * n + column, mask=inside, other=0.0).to(tl.float32)
    for start in range(share * ROWS, N, K * ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < N)[:, None] & inside[None, :]
        place = (model.to(tl.int64) * N + row)[:, None] * n + column[None, :]
        x = tl.load(product + place, mask=mask, other=0.0).to(tl.float32) + added[None, :]
        tl.store(out + place, x * tl.sigmoid(x * (SLOPE + CUBIC * x * x)), mask=mask)


@kernel
def _gelu_backward(
    product, bias, of_out, of_product, of_bias, N, K,
    n: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """With s = sigmoid(..): s + x s (1 - s) (SLOPE + 3 CUBIC x^2), and its sums by share."""
    model, share = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, COLUMNS)
    inside = column < n
    added = tl.load(bias + model * n + column, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros([COLUMNS], tl.float32)
    for start in range(share * ROWS, N, K * ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < N)[:, None] & inside[None, :]
        place = (model.to(tl.int64) * N + row)[:, None] * n + column[None, :]
        x = tl.load(product + place, mask=mask, other=0.0).to(tl.float32) + added[None, :]
        s = tl.sigmoid(x * (SLOPE + CUBIC * x * x))
        change = tl.load(of_out + place, mask=mask, other=0.0).to(tl.float32)
        change *= s + x * s * (1 - s) * (SLOPE + 3 * CUBIC * x * x)
        tl.store(of_product + place, change, mask=mask)
        total += tl.sum(change, 0)
    tl.store(of_bias + (model * K + share) * n + column, total, mask=inside)


@kernel
def _table_forward(
    table, rows, out, N, K, S, d: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    model, share = tl.program_id(0).to(tl.int64), tl.program_id(1)
    column = tl.arange(0, COLUMNS)
    for start in range(share * ROWS, N, K * ROWS):
        row = start + tl.arange(0, ROWS)
        at = model * N + row
        looked = model * S + tl.load(rows + at, mask=row < N, other=0)
        mask = (row < N)[:, None] & (column < d)[None, :]
        x = tl.load(table + looked[:, None] * d + column[None, :], mask=mask)
        tl.store(out + at[:, None] * d + column[None, :], x, mask=mask)


@kernel
def _table_backward(
    rows, of_out, of_table, N, K, S,
    d: tl.constexpr, ROWS: tl.constexpr, SLOTS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Indicators of the rows of the table, times the gradients of what was looked up: sums by share."""
    model, block, share = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    across = tl.cdiv(d, COLUMNS)
    slot = block // across * SLOTS + tl.arange(0, SLOTS)
    column = block % across * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < d
    total = tl.zeros([SLOTS, COLUMNS], tl.float32)
    for start in range(share * ROWS, N, K * ROWS):
        row = start + tl.arange(0, ROWS)
        at = model.to(tl.int64) * N + row
        looked = tl.load(rows + at, mask=row < N, other=-1)
        here = (slot[:, None] == looked[None, :]).to(tl.float32)
        mask = (row < N)[:, None] & inside[None, :]
        gradient = tl.load(of_out + at[:, None] * d + column[None, :], mask=mask, other=0.0).to(tl.float32)
        total = tl.dot(here, gradient, total, input_precision="ieee")
    place = ((model * K + share) * S + slot)[:, None] * d + column[None, :]
    tl.store(of_table + place, total, mask=(slot < S)[:, None] & inside[None, :])


class _JoinedNormed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        stream: Tensor,
        branch: Tensor | None,
        bias: Tensor | None,
        weight: Tensor | None,
        shift: Tensor | None,
        rounded: torch.dtype,
    ) -> tuple[Tensor, Tensor] | Tensor:
        stream = stream.contiguous()
        models, rows, width = stream.shape
        normed = torch.empty_like(stream, dtype=rounded)
        mean, scale = stream.new_empty(2, models * rows).unbind()
        joins, scales = branch is not None, weight is not None
        summed = torch.empty_like(stream) if joins else stream
        given = [stream if part is None else part.contiguous() for part in (branch, bias, weight, shift)]
        grid, sizes = _laid_out(models, rows, width)
        kinds = {"JOINS": joins, "SCALES": scales}
        _norm_forward[grid](stream, *given, summed, normed, mean, scale, rows, grid[1], **sizes, **kinds)
        ctx.save_for_backward(summed, mean, scale, given[2])
        ctx.kinds, ctx.rounded = kinds, stream.dtype if branch is None else branch.dtype
        return (summed, normed) if joins else normed

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        summed, mean, scale, weight = ctx.saved_tensors
        of_summed, of_normed = grad_outputs[0].contiguous(), grad_outputs[-1].contiguous()
        models, rows, width = summed.shape
        joins, scales = ctx.kinds.values()
        of_stream = torch.empty_like(summed)
        grid, sizes = _laid_out(models, rows, width, tile=SMALL_TILE)
        of_branch = torch.empty_like(summed, dtype=ctx.rounded) if joins else of_stream
        sums = summed.new_empty(3, models, grid[1], width)
        _norm_backward[grid](
            summed, mean, scale, weight, of_summed, of_normed, of_stream, of_branch, sums, rows, grid[1],
            **sizes, **ctx.kinds,
        )  # fmt: skip
        of_bias, of_weight, of_shift = sums.sum(2).unbind() if joins or scales else (None,) * 3
        joined = (of_branch, of_bias) if joins else (None, None)
        scaled = (of_weight, of_shift) if scales else (None, None)
        return of_stream, *joined, *scaled, None


class _BiasGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, product: Tensor, bias: Tensor) -> Tensor:
        product, bias = product.contiguous(), bias.contiguous()
        out = torch.empty_like(product)
        grid, sizes = _laid_out(*product.shape, name="n")
        _gelu_forward[grid](product, bias, out, product.shape[1], grid[1], **sizes)
        ctx.save_for_backward(product, bias)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        product, bias = ctx.saved_tensors
        of_product = torch.empty_like(product)
        grid, sizes = _laid_out(*product.shape, name="n")
        of_bias = bias.new_empty(len(product), grid[1], product.shape[-1])
        _gelu_backward[grid](
            product, bias, grad_outputs[0].contiguous(), of_product, of_bias,
            product.shape[1], grid[1], **sizes,
        )  # fmt: skip
        return of_product, of_bias.sum(1).view_as(bias)


class _LookedUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.size = table.shape[1]
        return _rows_of(table, rows)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        rows, of_out = ctx.saved_tensors[0].contiguous(), grad_outputs[0].contiguous()
        models, count, width = of_out.shape
        columns, at_once = min(64, max(16, triton.next_power_of_2(width))), 64
        blocks = triton.cdiv(ctx.size, SLOTS) * triton.cdiv(width, columns)
        shares = max(1, min(triton.cdiv(count, at_once), PROGRAMS // (models * blocks)))
        of_table = of_out.new_empty(models, shares, ctx.size, width)
        sizes = {"d": width, "ROWS": at_once, "SLOTS": SLOTS, "COLUMNS": columns}
        _table_backward[models, blocks, shares](rows, of_out, of_table, count, shares, ctx.size, **sizes)
        return of_table.sum(1), None


class _Picked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.shape = x.shape
        return _rows_of(x, rows)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        models, size, width = ctx.shape
        (rows,) = ctx.saved_tensors
        first_M1 = size * torch.arange(models, device=rows.device).unsqueeze(1)
        of_x = grad_outputs[0].new_zeros(models * size, width)
        of_x.index_add_(0, (rows + first_M1).flatten(), grad_outputs[0].reshape(-1, width))
        return of_x.view(ctx.shape), None


def _rows_of(table: Tensor, rows: Tensor) -> Tensor:
    """The rows of each model's own table."""
    table, rows = table.contiguous(), rows.contiguous()
    models, count = rows.shape
    out = table.new_empty(models, count, table.shape[-1])
    grid, sizes = _laid_out(*out.shape)
    _table_forward[grid](table, rows, out, count, grid[1], table.shape[1], **sizes)
    return out


def _laid_out(
    models: int, rows: int, width: int, name: str = "d", tile: int = TILE
) -> tuple[tuple[int, int], dict[str, int]]:
    """How many programs there are for each model, and the sizes of what one holds."""
    columns = triton.next_power_of_2(width)
    at_once = max(1, tile // columns)
    shares = max(1, min(-(-rows // at_once), PROGRAMS // models))
    return (models, shares), {name: width, "ROWS": at_once, "COLUMNS": columns}


def joined_normed(
    stream: Float[Tensor, "M N d"],
    branch: Float[Tensor, "M N d"],
    bias: Float[Tensor, "M d"],
    norm: layers.Norm | None,
    rounded: torch.dtype,
) -> tuple[Float[Tensor, "M N d"], Float[Tensor, "M N d"]]:
    """The stream with what joins it, and its normalised rows, rounded."""
    return _JoinedNormed.apply(stream, branch, bias, *(norm or (None, None)), rounded)  # pyright: ignore[reportReturnType]


def normed(
    stream: Float[Tensor, "M N d"], norm: layers.Norm | None, rounded: torch.dtype
) -> Float[Tensor, "M N d"]:
    """Normalised rows, rounded."""
    return _JoinedNormed.apply(stream, None, None, *(norm or (None, None)), rounded)  # pyright: ignore[reportReturnType]


def bias_gelu(product: Float[Tensor, "M N n"], bias: Float[Tensor, "M 1 n"]) -> Float[Tensor, "M N n"]:
    """GELU of a product and its bias."""
    return _BiasGelu.apply(product, bias)  # pyright: ignore[reportReturnType]


def looked_up(table: Float[Tensor, "M S d"], rows: Int[Tensor, "M N"]) -> Float[Tensor, "M N d"]:
    """The rows of each model's own table."""
    return _LookedUp.apply(table, rows)  # pyright: ignore[reportReturnType]


def picked(x: Float[Tensor, "M N d"], rows: Int[Tensor, "M A"]) -> Float[Tensor, "M A d"]:
    """Some rows of each model, as ``layers.picked`` has it."""
    return _Picked.apply(x, rows)  # pyright: ignore[reportReturnType]
