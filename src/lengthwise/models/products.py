"""Products of rows with a matrix, and their gradients.

On a CPU, PyTorch gives products of single-precision matrices to MKL, which uses the wide instructions of its
own maker's processors alone. oneDNN, which PyTorch has too, uses them wherever they are (on an AMD EPYC,
twice as fast), but only ``torch.compile`` calls it, by an operation that is used here where it exists.

Axes: M model, N row, d and n columns.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

ROWS = 256
"""Rows come in multiples of this: oneDNN prepares itself for every new shape, as long as a product takes."""


def plus_product(
    added: Float[Tensor, "M #N n"], x: Float[Tensor, "M N d"], matrix: Float[Tensor, "M d n"]
) -> Float[Tensor, "M N n"]:
    """Added + x W, where what is added is a row for all or one for each."""
    if _suits(x, matrix):
        return _Product.apply(added, x, matrix)  # pyright: ignore[reportReturnType]
    if x.is_cuda:
        product = x @ matrix  # one with something added would first copy that to all rows
        return product + added.to(product.dtype)
    return torch.baddbmm(added, x, matrix)


def spare_rows(table: Float[Tensor, "M S d"], rows: int) -> int:
    """How many rows to add to so many, of models that have such a table, for fast products."""
    return -rows % ROWS if _takes(table) and rows >= ROWS else 0


def _suits(x: Tensor, matrix: Tensor) -> bool:
    return x.shape[1] % ROWS == 0 and _takes(x) and _takes(matrix)


def _takes(factor: Tensor) -> bool:
    """One model at a time, as threads of a CPU work through larger ones."""
    return _ONE_DNN and len(factor) == 1 and factor.dtype == torch.float32 and not factor.is_cuda


def _one_dnn() -> bool:
    """Whether oneDNN is there and computes what is asked of it."""
    try:
        x, matrix = torch.rand(2, 3), torch.rand(3, 4)
        return torch.allclose(_times(x, matrix, torch.ones(4)), x @ matrix + 1)
    except (AttributeError, RuntimeError, TypeError, NotImplementedError):
        return False


def _times(x: Tensor, matrix: Tensor, row: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, matrix.mT, row, "none", [], "")


class _Product(torch.autograd.Function):
    """Of one model, by oneDNN."""

    @staticmethod
    def forward(ctx: Any, added: Tensor, x: Tensor, matrix: Tensor) -> Tensor:
        x, matrix = x.contiguous(), matrix.contiguous()  # it is very slow on columns of a larger matrix
        ctx.save_for_backward(x, matrix)
        ctx.one_row = added.shape[1] == 1
        if ctx.one_row:
            return _times(x[0], matrix[0], added[0, 0]).unsqueeze(0)
        return _times(x[0], matrix[0]).unsqueeze(0).add_(added)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        gradient, (x, matrix) = grad_outputs[0].contiguous(), ctx.saved_tensors
        of_x = _times(gradient[0], matrix[0].mT).unsqueeze(0)
        # The factor with more columns to the left was slower by a quarter.
        if x.shape[-1] <= gradient.shape[-1]:
            of_matrix = _times(x[0].mT, gradient[0])
        else:
            of_matrix = _times(gradient[0].mT, x[0]).mT
        return gradient.sum(1, keepdim=True) if ctx.one_row else gradient, of_x, of_matrix.unsqueeze(0)


_ONE_DNN = _one_dnn()
