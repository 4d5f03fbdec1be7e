"""How the plateau falls with the training length, and where it will pass a tolerance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lengthwise.sequences import LONGEST

FALLING = 0.25
"""A plateau counts as falling once it is under this share of the baseline, for good."""

FEWEST = 3
"""Lengths that a fit needs."""

REACH = 4.0
"""A prediction beyond this multiple of the longest pilot length is not made."""

SMALLEST = 1e-300
"""A loss of exactly zero is taken as this in logarithms."""

RESAMPLES = 400


@dataclass(frozen=True)
class Decay:
    """A power law, plateau = exp(intercept) * length^-exponent, and the lengths that it was fitted on."""

    exponent: float
    intercept: float
    lengths: tuple[int, ...]

    def at(self, length: float) -> float:
        """The plateau that the law gives for a training length."""
        return math.exp(self.intercept) * length**-self.exponent

    def crossing(self, tolerance: float) -> float:
        """The length at which the law reaches the tolerance; infinite if it does not fall."""
        if self.exponent <= 0:
            return math.inf
        return math.exp(min((self.intercept - math.log(tolerance)) / self.exponent, 700.0))


@dataclass(frozen=True)
class Prediction:
    """Where the plateau is expected to pass the tolerance.

    - ``length``: the predicted training length, or None if no prediction is made; ``reason`` says why;
    - ``interval``: 95% over resampled seeds, with each length of the fit left out in turn if there are more
      than a fit needs; its end is 2^53 where the plateau may not fall at all;
    - ``decay``: the law behind it; None if the pilot has too few falling lengths.
    """

    length: int | None
    interval: tuple[int, int] | None
    decay: Decay | None
    reason: str


def falling_lengths(lengths: Sequence[int], medians: Sequence[float], baseline: float) -> list[int]:
    """The lengths after the last one whose median plateau is not well under the baseline.

    Short training lengths can do well by luck (the few values that they show may alias to a good guess),
    so that everything up to the last bad length is left out.
    """
    bad = [i for i, median in enumerate(medians) if not median < FALLING * baseline]
    return list(lengths[bad[-1] + 1 :] if bad else lengths)


def fit_decay(lengths: Sequence[int], medians: Sequence[float]) -> Decay:
    """Least squares of log plateau on log length."""
    x, y = np.log(np.asarray(lengths, float)), np.log(np.maximum(medians, SMALLEST))
    slope, intercept = np.polyfit(x, y, 1)
    return Decay(float(-slope), float(intercept), tuple(lengths))


def predict(
    lengths: Sequence[int],
    plateaus: Sequence[Sequence[float]],
    *,
    baseline: float,
    tolerance: float,
    seed: int = 0,
) -> Prediction:
    """Predict from pilot runs: ``plateaus[i]`` holds one value a seed at ``lengths[i]``.

    The law is fitted to the medians over seeds at the falling lengths within a factor 2 of the longest,
    and at no fewer than 3 of them.
    """
    medians = [float(np.median(values)) for values in plateaus]
    falling = falling_lengths(lengths, medians, baseline)
    if len(falling) < FEWEST:
        return Prediction(
            None,
            None,
            None,
            f"the plateau has fallen well under the loss of a constant answer ({baseline:.2g}) at "
            f"{len(falling)} of the pilot's training lengths, and a fit needs {FEWEST}: train the pilot on "
            f"sequences longer than {max(lengths)}",
        )
    chosen = [length for length in falling if length >= falling[-1] / 2]
    chosen = falling[-max(len(chosen), FEWEST) :]
    rows = [lengths.index(length) for length in chosen]
    decay = fit_decay(chosen, [medians[row] for row in rows])
    length = decay.crossing(tolerance)
    if length > REACH * max(lengths):
        about = f"about {length:.2g}" if math.isfinite(length) else "no finite length"
        return Prediction(
            None,
            None,
            decay,
            f"a loss of {tolerance:g} is out of reach of a pilot up to length {max(lengths)}: the fitted law "
            f"would reach it at {about}, more than {REACH:g} times as long, and is not trusted there; "
            "train a longer pilot or ask for a larger tolerance",
        )
    values = [np.minimum(plateaus[row], baseline) for row in rows]
    interval = _interval(chosen, values, tolerance, seed)
    return Prediction(
        max(1, math.ceil(length)), interval, decay, f"power law of exponent {-decay.exponent:.2f}"
    )


def _interval(
    lengths: Sequence[int], plateaus: Sequence[np.ndarray], tolerance: float, seed: int
) -> tuple[int, int]:
    random = np.random.default_rng(seed)
    resampled = [np.median(random.choice(values, (RESAMPLES, len(values))), axis=1) for values in plateaus]
    x, y = np.log(np.asarray(lengths, float)), np.log(np.maximum(resampled, SMALLEST))
    crossings = []
    for left_out in range(-1, len(lengths) if len(lengths) > FEWEST else 0):
        kept = np.arange(len(lengths)) != left_out
        centred = x[kept] - x[kept].mean()
        slope = centred @ y[kept] / (centred @ centred)
        with np.errstate(divide="ignore"):
            crossing = x[kept].mean() + (np.log(tolerance) - y[kept].mean(0)) / slope
        crossings.append(np.where(slope < 0, crossing, np.inf))
    low, high = np.quantile(np.concatenate(crossings), [0.025, 0.975], method="nearest")
    return max(1, math.floor(math.exp(low))), math.ceil(math.exp(min(high, math.log(LONGEST))))
