"""What decoders are made of, on a CPU: a library of C, if it was built with the package.

What is in it stands in ``native.c``: products of rows with a matrix, attention of streams that lie one behind
another, GELU, and a branch that joins the residual stream, whose rows are then normalised. PyTorch's own
operations do the same, more slowly. The library works in the thread that calls it, on single precision.

Axes: M model, N row, H head, d width of all heads, n columns.
"""

import ctypes
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int32
from torch import Tensor

FOLDER = Path(__file__).parent

NUMBERS = "models groups heads width query_rows key_rows query_stride key_stride out_stride"
ARRAYS = "sizes places slopes"


class _Attention(ctypes.Structure):
    """The structure of this name in ``native.c``."""

    _fields_ = (
        *((name, ctypes.c_long) for name in NUMBERS.split()),
        *((name, ctypes.c_void_p) for name in ARRAYS.split()),
        ("scale", ctypes.c_float),
        ("scaled", ctypes.c_int32),
    )


def suits(x: Tensor) -> bool:
    """Whether the library is there and works on this: single precision, in a thread of its own."""
    return (
        not x.is_cuda and x.dtype == torch.float32 and torch.get_num_threads() == 1 and _library() is not None
    )


@cache
def _library() -> ctypes.CDLL | None:
    """What was built for this processor or, failing that, for any, if it loads."""
    return load(torch.backends.cpu.get_cpu_capability().lower()) or load("default")


def load(kind: str) -> ctypes.CDLL | None:
    """The library for a kind of processor, if it was built, and from the text of C that stands here."""
    try:
        library = ctypes.CDLL(str(FOLDER / f"_native_{kind}.so"))
        made_from = (ctypes.c_char * 64).in_dll(library, "source").value.decode()
        if made_from != hashlib.sha256((FOLDER / "native.c").read_bytes()).hexdigest():
            return None
    except (OSError, ValueError):
        return None
    for name in ("gelu", "gelu_back", "joined", "joined_back"):
        getattr(library, name).restype = None
    return library


def _call(name: str, *arguments: object) -> None:
    """Call a function of the library with tensors, None for one that is missing, and whole numbers."""
    library = _library()
    assert library is not None
    given = []
    for one in arguments:
        if one is None or isinstance(one, Tensor):
            given.append(ctypes.c_void_p(None if one is None else one.data_ptr()))
        else:
            given.append(ctypes.c_long(one) if isinstance(one, int) else one)
    if getattr(library, name)(*given):
        raise MemoryError(f"there is no memory for what {name} needs")


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, bias: Tensor) -> Tensor:
        x, matrix, bias = x.contiguous(), matrix.contiguous(), bias.contiguous()
        models, rows, terms = x.shape
        columns = matrix.shape[-1]
        out = x.new_empty(models, rows, columns)
        _call("product", x, matrix, bias, out, models, rows, terms, columns, 0)
        ctx.save_for_backward(x, matrix)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x, matrix), of_out = ctx.saved_tensors, grad_outputs[0].contiguous()
        models, rows, terms = x.shape
        columns = matrix.shape[-1]
        of_x, of_matrix, of_bias = (
            torch.empty_like(x),
            torch.empty_like(matrix),
            x.new_empty(models, 1, columns),
        )
        _call("product", of_out, matrix, None, of_x, models, rows, columns, terms, 1)
        _call("outer", x, of_out, of_matrix, of_bias, models, rows, terms, columns)
        return of_x, of_matrix, of_bias


class _Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x = x.contiguous()
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        _call("gelu", x, out, x.numel())
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x,), of_out = ctx.saved_tensors, grad_outputs[0].contiguous()
        of_x = torch.empty_like(x)
        _call("gelu_back", x, of_out, of_x, x.numel())
        return of_x


class _JoinedNormed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, stream: Tensor, branch: Tensor | None) -> tuple[Tensor, Tensor] | Tensor:
        stream, branch = stream.contiguous(), None if branch is None else branch.contiguous()
        summed = stream if branch is None else torch.empty_like(stream)
        normed, scale = torch.empty_like(stream), stream.new_empty(stream.shape[:-1])
        _call("joined", stream, branch, summed, normed, scale, scale.numel(), stream.shape[-1])
        ctx.save_for_backward(normed, scale)
        ctx.joins = branch is not None
        return (summed, normed) if ctx.joins else normed

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, Tensor | None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        normed, scale = ctx.saved_tensors
        of_summed = grad_outputs[0].contiguous() if ctx.joins else None
        of_normed, of_stream = grad_outputs[-1].contiguous(), torch.empty_like(normed)
        sizes = scale.numel(), normed.shape[-1]
        _call("joined_back", normed, scale, of_summed, of_normed, of_stream, *sizes)
        return of_stream, of_stream if ctx.joins else None


class _Attend(torch.autograd.Function):
    """Of rows that hold queries first, and keys and values behind them or in other rows."""

    @staticmethod
    def forward(
        ctx: Any,
        own: Tensor,
        other: Tensor | None,
        sizes: Tensor,
        places: Tensor | None,
        slopes: Tensor | None,
        scaled: bool,
    ) -> Tensor:
        own, other = own.contiguous(), None if other is None else other.contiguous()
        models, rows, _, heads, width = own.shape
        out, log = own.new_zeros(models, rows, heads, width), own.new_empty(heads, models, rows)
        given = _given(own, other, sizes, places, slopes, scaled)
        _call("attend", given, *_parts(own, other), out, log)
        ctx.save_for_backward(own, other, out, log, sizes, places, slopes)
        ctx.scaled = scaled
        return out.flatten(2)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        own, other, out, log, sizes, places, slopes = ctx.saved_tensors
        of_own, of_other = torch.zeros_like(own), None if other is None else torch.zeros_like(other)
        given, of_out = _given(own, other, sizes, places, slopes, ctx.scaled), grad_outputs[0].contiguous()
        _call("attend_back", given, *_parts(own, other), out, log, of_out, *_parts(of_own, of_other))
        return of_own, of_other, None, None, None, None


def _given(
    own: Tensor,
    other: Tensor | None,
    sizes: Tensor,
    places: Tensor | None,
    slopes: Tensor | None,
    scaled: bool,
) -> Any:
    """What the library must know of rows (M, N, parts, H, width of a head), while its tensors are there."""
    models, rows, _, heads, width = own.shape
    read = own if other is None else other
    strides = own.stride(1), read.stride(1), heads * width
    numbers = models, len(sizes), heads, width, rows, read.shape[1], *strides
    arrays = (None if array is None else array.data_ptr() for array in (sizes, places, slopes))
    return ctypes.byref(_Attention(*numbers, *arrays, width**-0.5, scaled))


def _parts(own: Tensor, other: Tensor | None) -> tuple[Tensor, ...]:
    """Queries, keys and values."""
    return own.unbind(2) if other is None else (*own.unbind(2), *other.unbind(2))


def linear(
    x: Float[Tensor, "M N d"], matrix: Float[Tensor, "M d n"], bias: Float[Tensor, "M 1 n"]
) -> Float[Tensor, "M N n"]:
    """X W + b."""
    return _Linear.apply(x, matrix, bias)  # pyright: ignore[reportReturnType]


def gelu(x: Float[Tensor, "M N n"]) -> Float[Tensor, "M N n"]:
    """GELU in its tanh form."""
    return _Gelu.apply(x)  # pyright: ignore[reportReturnType]


def normed(stream: Float[Tensor, "M N d"]) -> Float[Tensor, "M N d"]:
    """Normalised rows."""
    return _JoinedNormed.apply(stream, None)  # pyright: ignore[reportReturnType]


def joined_normed(
    stream: Float[Tensor, "M N d"], branch: Float[Tensor, "M N d"]
) -> tuple[Float[Tensor, "M N d"], Float[Tensor, "M N d"]]:
    """The stream with what joins it, and its normalised rows."""
    return _JoinedNormed.apply(stream, branch)  # pyright: ignore[reportReturnType]


def attend(
    own: Float[Tensor, "M N parts H width"],
    other: Float[Tensor, "M keys 2 H width"] | None,
    sizes: Int32[Tensor, "groups 3"],
    places: Int32[Tensor, "M N"] | None = None,
    slopes: Float[Tensor, " H"] | None = None,
    *,
    log_scaling: bool = False,
) -> Float[Tensor, "M N d"]:
    """Means of values, by softmax of q . k / sqrt(width) - slope (place - key), all logits multiplied by
    log(place + 1) where they are scaled, over the keys 0 .. place of a stream. ``own`` rows have queries and,
    where there are no ``other`` rows, keys and values behind them.

    - ``sizes``: of each group, how many streams there are, and how many queries and keys each has;
    - ``places``: of each query's row; without them, queries see what is not behind them.

    Rows without a query become zeros.
    """
    rows, keys = (sizes[:, :1] * sizes[:, 1:]).sum(0).tolist()
    places = None if places is None else places.contiguous()
    assert rows <= own.shape[1]
    assert keys <= (own if other is None else other).shape[1]
    return _Attend.apply(own, other, sizes, places, slopes, log_scaling)  # pyright: ignore[reportReturnType]
