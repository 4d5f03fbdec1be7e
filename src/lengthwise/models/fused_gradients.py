"""What an optimiser does with the gradients of many models, on a GPU: a few passes over them, however many
parameters there are.

A model's parameters lie in blocks, one a name, between those of other models. A table cuts what one model has
into chunks, the same for all of them.

Axes: M model, C chunk.
"""

# pyright: reportMissingImports=false, reportArgumentType=false, reportIndexIssue=false

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from lengthwise.models.fused import kernel

CHUNK, ADAM_CHUNK = 4096, 1024
"""So many numbers one program works on; Adam has more of each to hold."""


@kernel
def _chunk(table, CHUNK: tl.constexpr):
    """Where the numbers of this program are, and which of them there are."""
    row = table + 4 * tl.program_id(1)
    first = tl.load(row) + tl.program_id(0) * tl.load(row + 1) + tl.load(row + 2)
    number = tl.arange(0, CHUNK)
    return first + number, number < tl.load(row + 3)


@kernel
def _squares(gradients, table, sums, CHUNK: tl.constexpr):
    at, mask = _chunk(table, CHUNK)
    x = tl.load(gradients + at, mask=mask, other=0.0)
    tl.store(sums + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), tl.sum(x * x))


@kernel
def _shorten(gradients, table, squares, longest, CHUNK: tl.constexpr):
    norm = tl.sqrt(tl.load(squares + tl.program_id(0)))
    if norm > longest:
        at, mask = _chunk(table, CHUNK)
        x = tl.load(gradients + at, mask=mask, other=0.0)
        tl.store(gradients + at, x * (longest / norm), mask=mask)


@kernel
def _adam(
    values, gradients, first, second, rates, decays, schedule, count, N,
    keep_1, rest_1, log_1, keep_2, rest_2, log_2, epsilon, DECAYS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * CHUNK + tl.arange(0, CHUNK)
    mask = at < N
    share, step = tl.load(schedule), tl.load(count).to(tl.float64)
    g = tl.load(gradients + at, mask=mask, other=0.0)
    m = keep_1 * tl.load(first + at, mask=mask, other=0.0) + rest_1 * g
    v = keep_2 * tl.load(second + at, mask=mask, other=0.0) + rest_2 * g * g
    mean = m / (1 - tl.exp(step * log_1)).to(tl.float32)
    size = tl.sqrt(v) / tl.sqrt(1 - tl.exp(step * log_2)).to(tl.float32) + epsilon
    value = tl.load(values + at, mask=mask, other=0.0)
    if DECAYS:
        value -= value * (tl.load(decays + at, mask=mask, other=0.0) * share)
    value -= share * (mean / size) * tl.load(rates + at, mask=mask, other=0.0)
    tl.store(values + at, value, mask=mask)
    tl.store(first + at, m, mask=mask)
    tl.store(second + at, v, mask=mask)
    tl.store(gradients + at, tl.zeros([CHUNK], tl.float32), mask=mask)


def chunks(sizes: Sequence[int], models: int, device: torch.device) -> Int[Tensor, "C 4"]:
    """Of each chunk: where its block begins, how far models are apart there, where the chunk begins in what a
    model has of the block, and how long it is. A model has as many numbers of each block as ``sizes`` says.
    """
    found, start = [], 0
    for size in sizes:
        found += [(start, size, first, min(CHUNK, size - first)) for first in range(0, size, CHUNK)]
        start += models * size
    return torch.tensor(found, dtype=torch.int64, device=device)


def shorten(gradients: Float[Tensor, " N"], table: Int[Tensor, "C 4"], models: int, longest: float) -> None:
    """Scale every model's gradient to this norm if it is longer."""
    grid = models, len(table)
    sums_MC = gradients.new_empty(grid)
    _squares[grid](gradients, table, sums_MC, CHUNK=CHUNK)
    _shorten[grid](gradients, table, sums_MC.sum(1), longest, CHUNK=CHUNK)


def adam(
    values: Float[Tensor, " N"],
    gradients: Float[Tensor, " N"],
    known: tuple[Tensor, Tensor, Tensor],
    rates: Float[Tensor, " N"],
    decays: Float[Tensor, " N"] | None,
    schedule: Float[Tensor, ""],
    betas: tuple[float, float],
    epsilon: float,
) -> None:
    """One step of AdamW, with a rate and a decay for each number, which then clears the gradients. ``known``
    of them are the number of steps so far and the two running means.
    """
    count, first, second = known
    count.add_(1)
    kept = [factor for beta in betas for factor in (beta, 1 - beta, math.log(beta))]
    grid = (triton.cdiv(len(values), ADAM_CHUNK),)
    _adam[grid](
        values, gradients, first, second, rates, rates if decays is None else decays, schedule, count,
        len(values), *kept, epsilon, DECAYS=decays is not None, CHUNK=ADAM_CHUNK,
    )  # fmt: skip
