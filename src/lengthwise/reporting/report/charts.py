"""Charts of limit transformers as plain data: curves of the loss, and plateaus.

What is drawn may be thinned, and then the data say so; tables and downloads hold everything.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lengthwise.experiments import Advice
from lengthwise.experiments.advice import AtLength
from lengthwise.experiments.results import Curve
from lengthwise.reporting.curves import loss_limits, peak, spread
from lengthwise.reporting.report import palette
from lengthwise.reporting.words import interval_words

MOST_CURVES = 240
"""So many curves of single seeds are drawn at once, at most."""

MOST_KEPT = 1500
"""So many curves of single seeds are kept for drawing, over all settings."""

MOST_POINTS = 1500
"""So many plateaus are drawn at once, at most."""


def thinned(count: int, most: int) -> list[int]:
    """Places of some of many things, evenly spread; all of them if they are not too many."""
    if count <= most:
        return list(range(count))
    return sorted({round(place) for place in np.linspace(0, count - 1, max(1, most))})


def number(value: float) -> float | None:
    """A number with six digits, as is drawn; None where it is not finite."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def loss_chart(
    settings: Mapping[str, Sequence[AtLength]], tolerance: float, answers: Mapping[str, int | None]
) -> dict[str, Any]:
    """Loss against test length for every setting: by training length the median, the range and the seeds."""
    most = min(MOST_CURVES, max(20, MOST_KEPT // max(1, len(settings))))
    shown = []
    for label, lengths in settings.items():
        colors = palette.by_length([at.training_length for at in lengths])
        each = max(1, most // len(lengths))
        groups, ends, peaks, drawn, diverged = [], [tolerance], [], 0, []
        for at in lengths:
            test, low, middle, high = spread(at.curves)
            if 0 < middle[-1] < math.inf:
                ends.append(float(middle[-1]))
            peaks.append(peak(middle))
            chosen = [at.curves[place] for place in thinned(len(at.curves), each)]
            drawn += len(chosen)
            diverged += [curve.run for curve in at.curves if curve.plateau.trend == "diverged"]
            groups.append(
                {
                    "length": at.training_length,
                    "color": colors[at.training_length],
                    "answer": at.training_length == answers.get(label),
                    "lengths": test,
                    **{
                        name: [number(value) for value in values]
                        for name, values in (("low", low), ("median", middle), ("high", high))
                    },
                    "limit": _limit(at),
                    "seeds": [_curve(curve, test) for curve in chosen],
                }
            )
        limits = loss_limits(ends, peaks)
        total = sum(len(at.curves) for at in lengths)
        shown.append(
            {
                "label": label,
                "groups": groups,
                "heights": limits,
                "diverged": len(diverged),
                "drawn": drawn,
                "runs": total,
            }
        )
    return {"tolerance": tolerance, "settings": shown}


def _limit(at: AtLength) -> float | None:
    """The median of the limits, where all are known."""
    known = [curve.limit[0] for curve in at.curves if curve.limit is not None]
    return number(float(np.median(known))) if len(known) == len(at.curves) else None


def _curve(curve: Curve, lengths: Sequence[int]) -> dict[str, Any]:
    own = {} if list(curve.test_lengths) == list(lengths) else {"lengths": list(curve.test_lengths)}
    return {
        "seed": curve.seed,
        "run": curve.run,
        "losses": [number(loss) for loss in curve.losses],
        "errors": [number(error) for error in curve.errors],
        **own,
    }


def plateau_chart(
    settings: Mapping[str, Sequence[AtLength]],
    tolerance: float,
    advice: Advice | None,
    advised: str | None,
) -> dict[str, Any]:
    """Plateau against training length: of every setting all seeds with their intervals, and the median."""
    colors = palette.by_setting(list(settings))
    stages = {} if advice is None else {at.training_length: at.stage for at in advice.lengths}
    count = sum(len(at.curves) for lengths in settings.values() for at in lengths)
    kept = set(thinned(count, MOST_POINTS))
    series, place = [], -1
    for label, lengths in settings.items():
        points = []
        for at in lengths:
            for curve in at.curves:
                place += 1
                if place not in kept:
                    continue
                low, high = curve.plateau.interval
                point = {
                    "length": at.training_length,
                    "seed": curve.seed,
                    "run": curve.run,
                    "value": number(curve.plateau.value),
                    "low": number(low),
                    "high": number(high),
                    "trend": "the limit" if curve.limit is not None else curve.plateau.trend,
                }
                if label == advised:
                    point["stage"] = stages.get(at.training_length, "")
                points.append(point)
        series.append(
            {
                "label": label,
                "color": colors[label],
                "points": points,
                "median": [[at.training_length, number(middle(at))] for at in lengths],
            }
        )
    return {
        "tolerance": tolerance,
        "series": series,
        "advice": _advice(advice) if advice else None,
        "drawn": len(kept),
        "runs": count,
    }


def middle(at: AtLength) -> float:
    """The median of the plateaus, rising ones included."""
    return float(np.median([curve.plateau.value for curve in at.curves]))


def _advice(advice: Advice) -> dict[str, Any]:
    """The fit to the pilot, what it predicted, and the length that sufficed."""
    decay, last = advice.prediction.decay, advice.lengths[-1].training_length
    fit: dict[str, Any] | None = None
    if decay:
        end = max(last, advice.predicted_length or 0)
        parts = (
            ("seen", decay.lengths[0], decay.lengths[-1]),
            ("beyond", decay.lengths[-1], end),
        )
        lines = {
            name: [[number(x), number(decay.at(x))] for x in np.geomspace(low, max(low, high), 30).tolist()]
            for name, low, high in parts
        }
        fit = {**lines, "exponent": round(-decay.exponent, 2)}
    answer = advice.answer
    return {
        "fit": fit,
        "predicted": advice.predicted_length,
        "interval": [advice.interval[0], min(advice.interval[1], 1.5 * last)] if advice.interval else None,
        "interval_words": interval_words(advice) if advice.interval else "",
        "confirmed": answer and [answer.training_length, number(answer.plateau)],
    }
