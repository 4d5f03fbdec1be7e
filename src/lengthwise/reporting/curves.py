"""Loss against test length, and plateau against training length: the two pictures that recur.

Every seed is shown: as a band from the lowest to the highest around the median, or as a point. A run that
diverged has no loss to draw; it stands as a cross at the upper edge.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from lengthwise.experiments.results import Curve, curves
from lengthwise.experiments.sweeps import plateaus_by
from lengthwise.reporting.canvas import ANSWER, GREY, STYLE, new_figure
from lengthwise.reporting.tasks import knob as knob_words

Color = tuple[float, ...] | str


def shades(values: Sequence[float], colormap: str = "viridis_r") -> dict[float, Color]:
    """A colour for each of some increasing positive values, by their logarithm."""
    colors: Colormap = matplotlib.colormaps[colormap]
    low, high = math.log(values[0]), math.log(values[-1])
    span = max(high - low, 1e-9)
    return {value: colors(0.12 + 0.88 * (math.log(value) - low) / span) for value in values}


def loss_curves(
    axes: Axes,
    by_length: Mapping[int, Sequence[Curve]],
    *,
    answer: int | None = None,
    heights: Sequence[float] = (),
) -> None:
    """One curve a training length, the ``answer`` standing out; the axes reach at least the ``heights``.
    Limits that are known stand as diamonds at the right edge.
    """
    colors, ends, peaks = shades(list(by_length)), [], []
    longest = max(seeds[0].test_lengths[-1] for seeds in by_length.values())
    for training_length, seeds in by_length.items():
        strong = training_length == answer
        color = ANSWER if strong else colors[training_length]
        lengths, lowest, middle, highest = spread(seeds)
        axes.fill_between(lengths, lowest, highest, color=color, alpha=0.18, linewidth=0)
        axes.plot(lengths, middle, color=color, linewidth=2.2 if strong else 1.3, zorder=3 if strong else 2)
        level = median(curve.settled for curve in seeds)
        if math.isfinite(level):
            start = median(curve.plateau.start for curve in seeds)
            axes.plot([start, lengths[-1]], [level] * 2, ":", color=color, linewidth=1.0, zorder=1)
            axes.plot(start, level, "|", color=color, markersize=8, markeredgewidth=1.4, zorder=4)
            if all(curve.limit is not None for curve in seeds):
                axes.plot(longest, level, "D", color=color, markersize=5, clip_on=False, zorder=5)
        if 0 < middle[-1] < math.inf:
            ends.append((training_length, float(middle[-1]), color))
        peaks.append(peak(middle))
    axes.set(xscale="log", xlabel="test length", ylabel="test loss")
    axes.set_title("loss beyond the training length (bar: plateau begins)", loc="left")
    axes.set_xlim(min(by_length) * 0.8, longest)
    if limits := loss_limits([*heights, *(end for _, end, _ in ends)], peaks):
        axes.set_ylim(limits)
        axes.set_yscale("log")
        powers_of_ten(axes)
        _end_labels(axes, ends, longest)


def spread(seeds: Sequence[Curve]) -> tuple[list[int], np.ndarray, np.ndarray, np.ndarray]:
    """The test lengths that curves share, and their lowest, median and highest loss there; what is not finite
    counts as infinite.
    """
    lengths = sorted(set.intersection(*(set(curve.test_lengths) for curve in seeds)))
    by_seed = [dict(zip(curve.test_lengths, curve.losses, strict=True)) for curve in seeds]
    losses = np.array([[losses[length] for length in lengths] for losses in by_seed])
    losses[~np.isfinite(losses)] = np.inf
    return lengths, losses.min(0), np.median(losses, 0), losses.max(0)


def peak(losses: np.ndarray) -> float:
    """The largest finite loss of a curve; 0 if there is none."""
    return max((float(loss) for loss in losses if math.isfinite(loss)), default=0.0)


def loss_limits(heights: Sequence[float], peaks: Sequence[float]) -> tuple[float, float] | None:
    """The losses between which curves are shown that end at these heights: up to their peaks, but not down to
    where they begin, as within the training length the loss may be smaller by many orders, which would
    flatten all the rest. None if none of them is a positive number.
    """
    heights = [height for height in heights if 0 < height < math.inf]
    if not heights:
        return None
    return 10 ** (math.floor(math.log10(min(heights))) - 1), max(
        3 * max(heights), *(1.3 * one for one in peaks)
    )


def tolerance_line(axes: Axes, tolerance: float) -> None:
    """A dashed line at the tolerance."""
    axes.axhline(tolerance, color=GREY, linestyle="--", linewidth=0.9)


def name_tolerance(axes: Axes, tolerance: float) -> None:
    """Its name, at the left end, which is free where plateaus stand against training lengths."""
    axes.annotate(
        "tolerance",
        xy=(0.005, tolerance),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=8,
        color=GREY,
        zorder=6,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8},
    )


def plateau_lines(axes: Axes, table: pd.DataFrame, knob: str | None, measure: str = "plateau") -> None:
    """Of a table of plateaus, one line a value of the knob (a column) through the medians over seeds."""
    groups = [(None, table)] if knob is None else list(table.groupby(knob))
    positive = table[measure][np.isfinite(table[measure]) & (table[measure] > 0)]
    top = 3 * float(positive.max()) if len(positive) else 1.0
    for index, (value, rows) in enumerate(groups):
        color = matplotlib.colormaps["plasma"](0.05 + 0.8 * index / max(len(groups) - 1, 1))
        finite = rows[np.isfinite(rows[measure])]
        lost = rows[~np.isfinite(rows[measure])]
        axes.plot(finite["training_length"], finite[measure], "o", color=color, markersize=3, alpha=0.45)
        if len(lost):
            axes.plot(lost["training_length"], [top] * len(lost), "x", color=color, clip_on=False)
        middle = rows.groupby("training_length")[measure].median()
        label = None if knob is None else knob_words(value)
        axes.plot(middle.index, middle, color=color, label=label)
    if len(positive):
        axes.set_ylim(float(positive.min()) / 3, top)
    axes.set(xscale="log", yscale="log", xlabel="training length", ylabel="plateau of the test loss")
    lengths = sorted(table["training_length"].unique())
    powers_of_ten(axes)
    axes.set_xticks(lengths, [str(length) for length in lengths])
    if knob is not None:
        axes.legend(title=knob.rpartition(".")[2], loc="best", frameon=True, framealpha=0.9)


def sweep_figure(
    results: pd.DataFrame,
    knobs: Sequence[str],
    shown: object = None,
    title: str = "",
    tolerance: float | None = None,
) -> Figure:
    """Left, loss against test length, one curve a training length, at one setting of the knobs (the middle
    one unless ``shown`` says which); right, plateau against training length, one line a setting. A dashed
    line is the ``tolerance``.
    """
    knob, table = None, plateaus_by(results, list(knobs))
    if knobs:
        knob = knobs[0] if len(knobs) == 1 else ", ".join(name.rpartition(".")[2] for name in knobs)
        if len(knobs) > 1:
            table[knob] = _settings(table, knobs)
            results = results.assign(**{knob: _settings(results, knobs)})
    with matplotlib.rc_context(STYLE):
        figure = new_figure(9.6, 4.2)
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1.0])
        chosen = results
        if knob is not None:
            values = sorted(results[knob].unique())
            shown = values[len(values) // 2] if shown is None else shown
            chosen = results[results[knob] == shown]
        heights = [] if tolerance is None else [tolerance]
        loss_curves(left, curves_by_length(chosen), heights=heights)
        if knob is not None:
            name = knob.rpartition(".")[2]
            left.set_title(f"{name} = {knob_words(shown)} (bar: plateau begins)", loc="left")
        plateau_lines(right, table, knob)
        right.set_title("plateau: a point a seed, line the median", loc="left")
        if tolerance is not None:
            low, high = right.get_ylim()
            right.set_ylim(min(low, tolerance / 2), max(high, 2 * tolerance))
            for axes in (left, right):
                tolerance_line(axes, tolerance)
            name_tolerance(right, tolerance)
        figure.suptitle(title, fontsize=11)
    return figure


def _settings(table: pd.DataFrame, knobs: Sequence[str]) -> pd.Series:
    """The values of several knobs as one text a row."""
    return table[list(knobs)].map(knob_words).agg(", ".join, axis=1)


def curves_by_length(results: pd.DataFrame) -> dict[int, list[Curve]]:
    """The curves of a table of results, by training length."""
    found: dict[int, list[Curve]] = {}
    for curve in sorted(curves(results), key=lambda curve: (curve.training_length, curve.seed)):
        found.setdefault(curve.training_length, []).append(curve)
    return found


def powers_of_ten(axes: Axes) -> None:
    """Ticks at powers of ten alone."""
    axes.xaxis.set_major_locator(LogLocator(numticks=20))
    axes.yaxis.set_major_locator(LogLocator(numticks=20))
    axes.minorticks_off()


def _end_labels(axes: Axes, ends: list[tuple[int, float, object]], at: int) -> None:
    """Training lengths beside the ends of their curves, pushed apart where they would overlap."""
    low, high = np.log10(axes.get_ylim())
    gap = 0.047 * (high - low)
    ends = sorted(ends, key=lambda end: end[1])
    places = [np.log10(end[1]) for end in ends]
    for _ in range(200):
        for i in range(len(places) - 1):
            overlap = gap - (places[i + 1] - places[i])
            if overlap > 0:
                places[i] -= overlap / 2
                places[i + 1] += overlap / 2
        places = [min(place, high - gap / 2 - (len(places) - 1 - i) * gap) for i, place in enumerate(places)]
    for (length, value, color), place in zip(ends, places, strict=True):
        axes.annotate(
            f"{length}",
            xy=(at, value),
            xytext=(at * 2.6, 10**place),
            textcoords="data",
            color=color,  # pyright: ignore[reportArgumentType]
            va="center",
            fontsize=8,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0},
        )
    axes.annotate(
        "trained at",
        xy=(1.0, 1.02),
        xycoords="axes fraction",
        ha="left",
        va="bottom",
        fontsize=8,
        color=GREY,
    )
