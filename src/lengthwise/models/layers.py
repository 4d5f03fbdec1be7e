"""The parts that layers are made of, for M models at once.

Axes: M model, N row, S row of a table, d and n columns.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import embedding, layer_norm
from torch.nn.functional import gelu as torch_gelu

from lengthwise.models import native

SLOPE = 2 * math.sqrt(2 / math.pi)
CUBIC = 0.044715 * SLOPE
"""Of GELU's tanh form, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x sigmoid(SLOPE x + CUBIC x^3)."""


Norm = tuple[Float[Tensor, "M d"], Float[Tensor, "M d"]]
"""LayerNorm's own weights and biases, where they are not folded into the matrix behind it."""


class Products(NamedTuple):
    """Rows, and a matrix and a bias by which they go on."""

    x: Float[Tensor, "M N d"]
    matrix: Float[Tensor, "M d n"]
    bias: Float[Tensor, "M 1 n"]


def looked_up(table: Float[Tensor, "M S d"], rows: Int[Tensor, "M N"]) -> Float[Tensor, "M N d"]:
    """The rows of each model's own table."""
    if fuses(table):
        from lengthwise.models import fused

        return fused.looked_up(table, rows)
    models, size, width = table.shape
    first_M1 = size * torch.arange(models, device=rows.device).unsqueeze(1)
    return embedding(rows + first_M1, table.reshape(-1, width))


def folded(
    weight: Float[Tensor, "M d"],
    shift: Float[Tensor, "M d"],
    matrix: Float[Tensor, "M d n"],
    bias: Float[Tensor, "M n"] | None,
) -> tuple[Float[Tensor, "M d n"], Float[Tensor, "M 1 n"]]:
    """Matrix and bias that do to a normalised x what these do to x * weight + shift: LayerNorm's own weights
    cost nothing on the rows that pass through.
    """
    moved = shift.unsqueeze(1) @ matrix
    return weight.unsqueeze(-1) * matrix, moved if bias is None else moved + bias.unsqueeze(1)


def linear(
    x: Float[Tensor, "M N d"], matrix: Float[Tensor, "M d n"], bias: Float[Tensor, "M 1 n"]
) -> Float[Tensor, "M N n"]:
    """X W + b."""
    if native.suits(x):
        return native.linear(x, matrix, bias)
    if x.is_cuda:
        product = x @ matrix  # one with something added would first copy that to all rows
        return product + bias.to(product.dtype)
    return torch.baddbmm(bias, x, matrix)


def picked(x: Float[Tensor, "M N d"], rows: Int[Tensor, "M A"]) -> Float[Tensor, "M A d"]:
    """Some rows of each model; the gradient of those that are picked more than once must be zero, or its sum
    depends on an order that a GPU leaves open.
    """
    models, size, width = x.shape
    if fuses(x):
        from lengthwise.models import fused

        return fused.picked(x, rows)
    first_M1 = size * torch.arange(models, device=rows.device).unsqueeze(1)
    return x.reshape(-1, width).index_select(0, (rows + first_M1).flatten()).view(models, -1, width)


def normed(stream: Float[Tensor, "M N d"], norm: Norm | None = None) -> Float[Tensor, "M N d"]:
    """Normalised rows, rounded where products are."""
    if fuses(stream):
        from lengthwise.models import fused

        return fused.normed(stream, norm, _rounded(stream))
    assert norm is None
    if native.suits(stream):
        return native.normed(stream)
    return layer_norm(stream, stream.shape[-1:])


def joined_normed(
    stream: Float[Tensor, "M N d"],
    x: Float[Tensor, "M N n"],
    matrix: Float[Tensor, "M n d"],
    bias: Float[Tensor, "M d"],
    norm: Norm | None = None,
    *,
    exact: bool = False,
) -> tuple[Float[Tensor, "M N d"], Float[Tensor, "M N d"]]:
    """A branch x W + b added to the residual stream, and the stream's normalised rows. Where products are
    rounded, the stream is not, nor are the rows if they are to be ``exact``.
    """
    if fuses(stream):
        from lengthwise.models import fused

        rounded = stream.dtype if exact else _rounded(stream)
        return fused.joined_normed(stream, x @ matrix, bias, norm, rounded)
    assert norm is None
    branch = linear(x, matrix, bias.unsqueeze(1))
    if native.suits(stream):
        return native.joined_normed(stream, branch)
    stream = stream + branch
    return stream, layer_norm(stream, stream.shape[-1:])


def _rounded(stream: Tensor) -> torch.dtype:
    """What products are rounded to."""
    return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else stream.dtype


def fuses(stream: Tensor) -> bool:
    """Whether kernels of our own work on a residual stream like this, and on what belongs to it."""
    return stream.is_cuda and stream.dtype == torch.float32 and _has_triton()


def fuses_attention(x: Float[Tensor, "M N d"], head: int) -> bool:
    """Whether attention of heads of this width is made by one from products of such rows."""
    if not (x.is_cuda and _has_triton()):
        return False
    from lengthwise.models import fused_attention

    return head <= fused_attention.WIDEST.get(x.dtype, 0)


@cache
def _has_triton() -> bool:
    """Whether kernels run here, which also takes a compiler of C and a folder to write to."""
    try:
        from lengthwise.models import fused

        fused.normed(torch.ones(1, 1, 16, device="cuda"), None, torch.float32)
    except Exception:  # whatever is missing: PyTorch's own operations do the same
        return False
    return True


class _Gelu(torch.autograd.Function):
    """In the form with the sigmoid, which a CPU computes in less than half the time of the other."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        slope = torch.full((), SLOPE, dtype=x.dtype)
        s = torch.addcmul(slope, x, x, value=CUBIC).mul_(x).sigmoid_()
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        x, s = ctx.saved_tensors
        slope = torch.full((), SLOPE, dtype=x.dtype)
        change = torch.ops.aten.sigmoid_backward(x, s)  # x s (1 - s)
        change.mul_(torch.addcmul(slope, x, x, value=3 * CUBIC))
        return change.add_(s).mul_(grad_outputs[0])


def gelu_linear(
    x: Float[Tensor, "M N d"], matrix: Float[Tensor, "M d n"], bias: Float[Tensor, "M 1 n"]
) -> Float[Tensor, "M N n"]:
    """GELU of X W + b."""
    if fuses(bias):
        from lengthwise.models import fused

        return fused.bias_gelu(x @ matrix, bias)
    return gelu(linear(x, matrix, bias))


def gelu(x: Float[Tensor, "M N n"]) -> Float[Tensor, "M N n"]:
    """GELU in its tanh form, which is GPT-2's."""
    if x.is_cuda:
        return torch_gelu(x, approximate="tanh")
    if native.suits(x):
        return native.gelu(x)
    return _Gelu.apply(x)  # pyright: ignore[reportReturnType]
