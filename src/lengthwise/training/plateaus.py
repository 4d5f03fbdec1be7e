"""Where a curve of loss against test length ends: its plateau, or the fact that it has none yet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Trend = Literal["level", "rising", "falling", "diverged"]

DECADES = 2.0
"""The end of a curve is the last this many factors of ten of test length, but no more than half of those that
were measured."""

LEVEL = 0.1
"""A curve is level if it changes by at most this share of its value over its end."""


@dataclass(frozen=True)
class Plateau:
    """The end of a curve.

    - ``value``: mean loss over the last two decades of test length (or half of those measured, if fewer);
    - ``interval``: 95%, from the standard error of the loss, widened by half the change over those decades;
    - ``trend``: "level" only if that change is at most 10% of the value or within two standard errors;
      otherwise "rising" or "falling", and the value is not a limit; "diverged" if a loss is not finite;
    - ``start``: the shortest test length from which the whole curve stays within the interval.
    """

    value: float
    interval: tuple[float, float]
    trend: Trend
    start: int


def plateau(lengths: Sequence[int], losses: Sequence[float], errors: Sequence[float]) -> Plateau:
    """The plateau of a curve given at increasing test lengths, with standard errors.

    The errors of different lengths are taken to be fully dependent (the lab uses the same token
    distributions at every length), so averaging over lengths does not shrink them.
    """
    length, loss, error = (np.asarray(values, dtype=float) for values in (lengths, losses, errors))
    decades = min(DECADES, math.log10(length[-1] / length[0]) / 2)
    end = length >= length[-1] / 10**decades * (1 - 1e-9)
    if end.sum() < 3:
        raise ValueError(
            "a plateau needs at least 3 test lengths at its end, the last two factors of ten or half of "
            f"those measured; got {[int(value) for value in length[end]]}"
        )
    if not np.isfinite(loss).all():
        return Plateau(math.inf, (math.inf, math.inf), "diverged", int(length[-1]))
    position = np.log10(length[end])
    slope = np.polyfit(position - position.mean(), loss[end], 1)[0]
    change = slope * (position[-1] - position[0])
    value, noise = float(loss[end].mean()), float(error[end].max())
    half = 1.96 * noise + abs(change) / 2
    low, high = max(0.0, value - half), value + half
    trend: Trend = "level"
    if abs(change) > max(LEVEL * abs(value), 2 * noise):
        trend = "rising" if change > 0 else "falling"
    outside = np.flatnonzero((loss < low) | (loss > high))
    first = 0 if outside.size == 0 else min(int(outside[-1]) + 1, len(loss) - 1)
    return Plateau(value, (low, high), trend, int(length[first]))
