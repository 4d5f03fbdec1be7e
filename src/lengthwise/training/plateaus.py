"""Where a curve of loss against test length ends: its plateau, or the fact that it has none yet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lengthwise._checks import number, several
from lengthwise._messages import shown

Trend = Literal["level", "rising", "falling", "diverged"]

DECADES = 2.0
"""The end of a curve is the last this many factors of ten of test length, but no more than half of those that
were measured."""

LEVEL = 0.1
"""A curve is level if it changes by at most this share of its value over its end."""

ARRIVED = 0.25
"""A curve has arrived at a known limit if its last loss differs from it by at most this share, or by three
standard errors: losses of rare strings make single means noisier than their standard errors say."""


@dataclass(frozen=True)
class Plateau:
    """The end of a curve.

    - ``value``: mean loss over the last two decades of test length (or half of those measured, if fewer);
    - ``interval``: 95%, from the standard error of the loss, widened by half the change over those decades;
    - ``trend``: "level" only if that change is at most 10% of the value or within two standard errors;
      otherwise "rising" or "falling", and the value is not a limit; "diverged" if a loss is not finite;
    - ``start``: the shortest test length from which the whole curve stays within the interval.

    Where the limit of the curve is known, the value is the limit and the interval its own; the trend is
    "level" if the last loss has arrived there, and says on which side it is still otherwise.
    """

    value: float
    interval: tuple[float, float]
    trend: Trend
    start: int


def plateau(
    lengths: Sequence[int],
    losses: Sequence[float],
    errors: Sequence[float],
    limit: tuple[float, float] | None = None,
) -> Plateau:
    """The plateau of a curve given at increasing test lengths, with standard errors, and with its limit and
    the standard error of that, where it is known.

    The errors of different lengths are taken to be fully dependent (the lab uses the same token
    distributions at every length), so averaging over lengths does not shrink them.
    """
    length, loss, error = (
        np.array([number(value, name) for value in several(values, name)])
        for name, values in (("lengths", lengths), ("losses", losses), ("errors", errors))
    )
    if not 0 < len(length) == len(loss) == len(error):
        told = f"{len(length)}, {len(loss)} and {len(error)}"
        raise ValueError(f"a curve has as many losses and errors as lengths, at least one, got {told}")
    if not (np.isfinite(length).all() and (np.diff(length) > 0).all() and length[0] >= 0):
        raise ValueError(f"the lengths of a curve must be finite and increase, got {shown(lengths)}")
    error = np.where(np.isfinite(error), error, math.inf)
    if not np.isfinite(loss).all() or (limit is not None and not math.isfinite(limit[0])):
        return Plateau(math.inf, (math.inf, math.inf), "diverged", int(length[-1]))
    if limit is not None:
        return _known(length, loss, error, *limit)
    decades = min(DECADES, math.log10(max(length[-1], 1.0) / max(length[0], 1.0)) / 2)
    end = length >= length[-1] / 10**decades * (1 - 1e-9)
    if end.sum() < 3:
        raise ValueError(
            "a plateau needs at least 3 test lengths at its end, the last two factors of ten or half of "
            f"those measured; got {[int(value) for value in length[end]]}"
        )
    position = np.log10(length[end])
    slope = np.polyfit(position - position.mean(), loss[end], 1)[0]
    change = slope * (position[-1] - position[0])
    value, noise = float(loss[end].mean()), float(error[end].max())
    half = 1.96 * noise + abs(change) / 2
    low, high = max(0.0, value - half), value + half
    trend: Trend = "level"
    if abs(change) > max(LEVEL * abs(value), 2 * noise):
        trend = "rising" if change > 0 else "falling"
    return Plateau(value, (low, high), trend, _start(length, loss, low, high))


def _known(length: np.ndarray, loss: np.ndarray, error: np.ndarray, limit: float, spread: float) -> Plateau:
    """The plateau of a curve whose limit is known, up to its standard error."""
    apart = float(loss[-1]) - limit
    trend: Trend = "level"
    if abs(apart) > max(ARRIVED * limit, 3 * math.hypot(spread, error[-1])):
        trend = "rising" if apart < 0 else "falling"
    low, high = max(0.0, limit - 1.96 * spread), limit + 1.96 * spread
    near = max(ARRIVED * limit, 1.96 * spread)
    return Plateau(limit, (low, high), trend, _start(length, loss, limit - near, limit + near))


def _start(length: np.ndarray, loss: np.ndarray, low: float, high: float) -> int:
    """The shortest length from which all losses are in an interval; the last one if there is none."""
    outside = np.flatnonzero((loss < low) | (loss > high))
    first = 0 if outside.size == 0 else min(int(outside[-1]) + 1, len(loss) - 1)
    return int(length[first])
