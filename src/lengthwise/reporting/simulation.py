"""Simulations in words, as a table, and as a figure."""

import math
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from lengthwise.reporting.bounds import length_words
from lengthwise.reporting.canvas import ANSWER, FIT, GREY, STYLE, new_figure
from lengthwise.reporting.inspection import number
from lengthwise.sequences import Summary
from lengthwise.simulation import Simulation

MOST_BARS = 24
"""With more types than this, the histogram is by token alone."""

SMALLEST_DRAWN = 1e-16
"""Errors of zero are drawn here."""


def simulation_table(found: Simulation, length: int) -> Table:
    """What was found, error by error."""
    table = Table("", "f", "g")
    table.add_row("error measured", number(found.error_f), number(found.error_g))
    promised = ["-" if value is None else number(value) for value in (found.guaranteed_f, found.guaranteed_g)]
    table.add_row(f"error guaranteed ({found.guarantee})", *promised)
    table.title = f"{found.method}: {length_words(length)} tokens imitated by {length_words(found.length)}"
    return table


def simulation_figure(x: Summary, z: Summary, found: Simulation, curve: Sequence[Simulation]) -> Figure:
    """Left, error against the length of z; right, the histogram of x beside that of z."""
    with matplotlib.rc_context(STYLE):
        figure = new_figure(9.6, 4.0)
        left, right = figure.subplots(1, 2)
        _errors(left, found, curve)
        _histograms(right, x, z)
    return figure


def _errors(axes: Axes, found: Simulation, curve: Sequence[Simulation]) -> None:
    points = sorted((one for one in curve), key=lambda one: one.length)
    lengths = [one.length for one in points]
    for name, color in (("f", FIT), ("g", GREY)):
        measured = [max(getattr(one, f"error_{name}"), SMALLEST_DRAWN) for one in points]
        axes.plot(lengths, measured, "o-", color=color, markersize=3.5, label=f"{name}, measured")
        promised = [getattr(one, f"guaranteed_{name}") for one in points]
        known = [(length, value) for length, value in zip(lengths, promised, strict=True) if value]
        known = [(length, value) for length, value in known if value < math.inf]
        if known:
            axes.plot(*zip(*known, strict=True), "--", color=color, linewidth=1, label=f"{name}, guaranteed")
    worst = max(found.error_f, found.error_g, SMALLEST_DRAWN)
    axes.plot(
        found.length, worst, "*", color=ANSWER, markersize=12, zorder=5, label=f"this z ({found.method})"
    )
    axes.set(xscale="log", yscale="log", xlabel="length of z", ylabel="difference of outputs on x and z")
    axes.set_title("error against simulation length", loc="left")
    axes.legend()


def _histograms(axes: Axes, x: Summary, z: Summary) -> None:
    by_type = x.counts.numel() <= MOST_BARS
    shares, labels = [], []
    for summary in (x, z):
        counts = _with_suffix(summary)
        counts = counts if by_type else counts.sum(-1, keepdims=True)
        shares.append((counts / counts.sum()).flatten())
        period = counts.shape[1]
        labels = [
            f"{token}" if period == 1 else f"{token}, {residue}"
            for token in range(counts.shape[0])
            for residue in range(period)
        ]
    places = np.arange(len(labels))
    for offset, share, summary, color, name in (
        (-0.2, shares[0], x, GREY, "x"),
        (0.2, shares[1], z, FIT, "z"),
    ):
        label = f"{name}, {length_words(int(summary.length))} tokens"
        axes.bar(places + offset, share, width=0.4, color=color, label=label)
    axes.set_xticks(places, labels, rotation=90 if len(labels) > 12 else 0)
    axes.set(
        xlabel="token" if labels and "," not in labels[0] else "token, residue", ylabel="share of positions"
    )
    axes.set_title("histograms", loc="left")
    axes.set_ylim(0, max(share.max() for share in shares) * 1.25)
    axes.legend(loc="upper right", ncols=2)


def _with_suffix(summary: Summary) -> np.ndarray:
    """The counts of the whole string, far and near."""
    counts = summary.counts.double().cpu().numpy().copy()
    length = int(summary.length)
    for distance, token in enumerate(summary.suffix.tolist()):
        if token >= 0:
            counts[token, (length - distance) % counts.shape[1]] += 1
    return counts
