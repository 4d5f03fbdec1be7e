"""The figure of an advice, in a form that a paper could print."""

import math

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lengthwise.experiments import Advice
from lengthwise.reporting.canvas import ANSWER, FIT, GREY, STYLE, new_figure
from lengthwise.reporting.curves import loss_curves, name_tolerance, powers_of_ten, tolerance_line
from lengthwise.reporting.tasks import subject
from lengthwise.reporting.words import interval_words


def advice_figure(advice: Advice) -> Figure:
    """Left, loss against test length, one curve a training length; right, plateau against training length."""
    with matplotlib.rc_context(STYLE):
        figure = new_figure(9.6, 4.2)
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1.0])
        _loss_curves(left, advice)
        _plateaus(right, advice)
        figure.suptitle(f"{subject(advice.task)}, loss tolerance {advice.tolerance:g}", fontsize=11)
    return figure


def _loss_curves(axes: Axes, advice: Advice) -> None:
    by_length = {at.training_length: at.curves for at in advice.lengths}
    loss_curves(axes, by_length, answer=advice.confirmed_length, heights=[advice.tolerance])
    tolerance_line(axes, advice.tolerance)


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
    tolerance_line(axes, advice.tolerance)
    name_tolerance(axes, advice.tolerance)
    if advice.interval and advice.predicted_length:
        low, high = advice.interval
        axes.axvspan(low, min(high, 1.5 * lengths[-1]), color=FIT, alpha=0.10, linewidth=0)
        label = f"predicted {advice.predicted_length} ({interval_words(advice)})"
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
    top *= (top / bottom) ** 0.3  # room for the legend
    axes.set_ylim(bottom, top)
    lost = [
        at.training_length
        for at in advice.lengths
        for curve in at.curves
        if not math.isfinite(curve.plateau.value)
    ]
    if lost:
        axes.plot(lost, [top] * len(lost), "x", color=GREY, clip_on=False, label="diverged")
    powers_of_ten(axes)
    ticks = [step * 2**octave for octave in range(20) for step in (1, 1.25, 1.5)]
    ticks = [tick for tick in ticks if lengths[0] <= tick <= lengths[-1] and tick == int(tick)]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.legend(loc="upper right", frameon=True, framealpha=0.9, edgecolor="none")
