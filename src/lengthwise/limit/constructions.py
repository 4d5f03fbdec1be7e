"""Limit transformers written down by hand, each with the error that it is proved to stay within."""

import math

import torch

from lengthwise.limit.precision import Finite
from lengthwise.limit.transformer import LimitLayer, LimitTransformer


def simple_task(omega: float, knots: int, *, bits: float = 16) -> LimitTransformer:
    """f(x) = the piecewise linear interpolation of sin(omega u), u = (c_0 - c_1)/T, between ``knots`` equal
    steps of [-1, 1].

    Attention is uniform at every length, so it averages the values +1 of token 0 and -1 of token 1; the MLP
    has a unit for the left end of each step and one for the constant. Within ``simple_task_error`` of
    SimpleTask on every string of every length.
    """
    _positive(omega, "omega")
    if knots < 1:
        raise ValueError(f"knots must be at least 1, got {knots}")
    value, mean, out = range(3)
    embedding, positions, key_query, to_mean, readout = _zeros((2, 3), (1, 3), (1, 3, 3), (1, 3, 3), (1, 3))
    embedding[0, value], embedding[1, value] = 1.0, -1.0
    to_mean[0, mean, value] = 1.0
    readout[0, out] = 1.0
    knot = torch.linspace(-1, 1, knots + 1, dtype=torch.float64)
    slope = torch.sin(omega * knot).diff() * knots / 2
    mlp_in, mlp_bias, mlp_out = _zeros((knots + 1, 3), (knots + 1,), (3, knots + 1))
    mlp_in[:knots, mean], mlp_bias[:knots] = 1.0, -knot[:-1]
    mlp_out[out, :knots] = slope.diff(prepend=slope.new_zeros(1))
    mlp_bias[knots], mlp_out[out, knots] = 1.0, math.sin(-omega)
    (no_local,) = _zeros((1, 1))
    layer = LimitLayer(key_query, to_mean, no_local, mlp_in, mlp_bias, mlp_out)
    return LimitTransformer(embedding, positions, (layer,), readout, Finite(bits))


def simple_task_error(omega: float, knots: int) -> float:
    """Sup |f - f*| <= omega^2 / (2 knots^2): linear interpolation with steps h = 2/knots errs by at most
    h^2/8 times the largest second derivative, omega^2.
    """
    return omega**2 / (2 * knots**2)


def mod_p(period: int, residue: int, *, bits: float = 16) -> LimitTransformer:
    """f(x) = the fraction of 1s among the positions t with t = residue (mod period).

    The head's logit is ``bits`` on these positions and 0 elsewhere, so that attention is hard from length
    2^(bits/bits) = 2 on: the output is exact (error 0) on every string that has such a position.
    """
    if period < 1:
        raise ValueError(f"period must be at least 1, got {period}")
    if not 0 <= residue < period:
        raise ValueError(f"residue must be between 0 and {period - 1}, got {residue}")
    one, constant, out, first = range(4)
    width = first + period
    embedding, positions, key_query, to_out, readout = _zeros(
        (2, width), (period, width), (1, width, width), (1, width, width), (1, width)
    )
    embedding[1, one] = 1.0
    embedding[:, constant] = 1.0
    positions[:, first:] = torch.eye(period, dtype=torch.float64)
    key_query[0, first + residue, constant] = bits
    to_out[0, out, one] = 1.0
    readout[0, out] = 1.0
    no_local, mlp_in, mlp_bias, mlp_out = _zeros((1, 1), (0, width), (0,), (width, 0))
    layer = LimitLayer(key_query, to_out, no_local, mlp_in, mlp_bias, mlp_out)
    return LimitTransformer(embedding, positions, (layer,), readout, Finite(bits))


def _zeros(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [torch.zeros(shape, dtype=torch.float64) for shape in shapes]


def _positive(number: float, name: str) -> None:
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be positive and finite, got {number}")
