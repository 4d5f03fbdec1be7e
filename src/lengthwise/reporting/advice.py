"""The figure of an advice, in a form that a paper could print."""

import math
from statistics import median
from typing import Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from lengthwise.experiments import Advice
from lengthwise.reporting.canvas import ANSWER, FIT, GREY, STYLE, new_figure
from lengthwise.reporting.tasks import subject


def advice_figure(advice: Advice) -> Figure:
    """Left, loss against test length, one curve a training length; right, plateau against training length."""
    with matplotlib.rc_context(STYLE):
        figure = new_figure(9.6, 4.2)
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1.0])
        _loss_curves(left, advice)
        _plateaus(right, advice)
        figure.suptitle(f"{subject(advice.task)}, loss tolerance {advice.tolerance:g}", fontsize=11)
    return figure


def _colors(lengths: list[int]) -> dict[int, tuple[float, ...]]:
    colormap: Colormap = matplotlib.colormaps["viridis_r"]
    low, high = np.log(lengths[0]), np.log(lengths[-1])
    span = max(high - low, 1e-9)
    return {length: colormap(0.12 + 0.88 * (np.log(length) - low) / span) for length in lengths}


def _loss_curves(axes: Axes, advice: Advice) -> None:
    colors = _colors([at.training_length for at in advice.lengths])
    ends = []
    for at in advice.lengths:
        answer = at.training_length == advice.confirmed_length
        color = ANSWER if answer else colors[at.training_length]
        lengths = at.curves[0].test_lengths
        losses = np.array([curve.losses for curve in at.curves])
        middle = np.median(losses, 0)
        axes.fill_between(lengths, losses.min(0), losses.max(0), color=color, alpha=0.18, linewidth=0)
        axes.plot(lengths, middle, color=color, linewidth=2.2 if answer else 1.3, zorder=3 if answer else 2)
        if math.isfinite(at.plateau):
            start = median(curve.plateau.start for curve in at.curves)
            axes.plot([start, lengths[-1]], [at.plateau] * 2, ":", color=color, linewidth=1.0, zorder=1)
            axes.plot(start, at.plateau, "|", color=color, markersize=8, markeredgewidth=1.4, zorder=4)
        if 0 < middle[-1] < math.inf:
            ends.append((at.training_length, float(middle[-1]), color))
    _tolerance_line(axes, advice.tolerance, "right")
    axes.set(xscale="log", yscale="log", xlabel="test length", ylabel="test loss")
    axes.set_title("loss beyond the training length (bar: plateau begins)", loc="left")
    axes.set_xlim(advice.lengths[0].training_length * 0.8, advice.longest_test)
    # Within the training length the loss is smaller by many orders, which would flatten all the rest.
    heights = [advice.tolerance, *(end for _, end, _ in ends)]
    axes.set_ylim(10 ** (math.floor(math.log10(min(heights))) - 1), 3 * max(heights))
    _powers_of_ten(axes)
    _end_labels(axes, ends, advice.longest_test)


def _tolerance_line(axes: Axes, tolerance: float, side: Literal["left", "right"]) -> None:
    axes.axhline(tolerance, color=GREY, linestyle="--", linewidth=0.9)
    axes.annotate(
        "tolerance",
        xy=(0.005 if side == "left" else 0.995, tolerance),
        xycoords=("axes fraction", "data"),
        ha=side,
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=8,
        color=GREY,
        zorder=6,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8},
    )


def _powers_of_ten(axes: Axes) -> None:
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


def _plateaus(axes: Axes, advice: Advice) -> None:
    for stage, marker, face in (("pilot", "o", "white"), ("confirmation", "s", GREY)):
        points = [
            (at.training_length, curve.plateau.value)
            for at in advice.lengths
            for curve in at.curves
            if at.stage == stage and math.isfinite(curve.plateau.value)
        ]
        if points:
            axes.plot(
                *zip(*points, strict=True),
                marker,
                color=GREY,
                markerfacecolor=face,
                markersize=4,
                markeredgewidth=0.8,
                alpha=0.75,
                label=f"{stage}, one point a seed",
            )
    lengths = [at.training_length for at in advice.lengths]
    medians = [at.plateau for at in advice.lengths]
    axes.plot(lengths, medians, color=GREY, linewidth=0.8, label="median of seeds")
    decay = advice.prediction.decay
    if decay:
        end = max(lengths[-1], advice.predicted_length or 0)
        seen = np.geomspace(decay.lengths[0], decay.lengths[-1], 50)
        beyond = np.geomspace(decay.lengths[-1], end, 50)
        label = rf"fit to the pilot, $\propto N^{{{-decay.exponent:.1f}}}$"
        axes.plot(seen, [decay.at(length) for length in seen], color=FIT, linewidth=2.0, label=label)
        axes.plot(beyond, [decay.at(length) for length in beyond], "--", color=FIT, linewidth=1.6)
    _tolerance_line(axes, advice.tolerance, "left")
    if advice.interval and advice.predicted_length:
        low, high = advice.interval
        axes.axvspan(low, high, color=FIT, alpha=0.10, linewidth=0)
        label = f"predicted {advice.predicted_length} ({low} to {high})"
        axes.plot(
            advice.predicted_length, advice.tolerance, "D", color=FIT, markersize=6, label=label, zorder=5
        )
    if advice.answer:
        length = advice.answer.training_length
        axes.axvline(length, color=ANSWER, linewidth=1.4, zorder=0)
        label = f"shortest that sufficed: {length}"
        axes.plot(length, advice.answer.plateau, "*", color=ANSWER, markersize=12, label=label, zorder=6)
    axes.set(xscale="log", yscale="log", xlabel="training length", ylabel="plateau of the test loss")
    axes.set_title("plateau and answer", loc="left")
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top * (top / bottom) ** 0.3)  # room for the legend
    _powers_of_ten(axes)
    ticks = [step * 2**octave for octave in range(20) for step in (1, 1.25, 1.5)]
    ticks = [tick for tick in ticks if lengths[0] <= tick <= lengths[-1] and tick == int(tick)]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.legend(loc="upper right", frameon=True, framealpha=0.9, edgecolor="none")
