"""Figures 1 to 4 of Izzo, Nichani and Lee, in the form of the paper, with every seed."""

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lengthwise.experiments.izzo import Study
from lengthwise.experiments.sweeps import near_median, plateaus_by
from lengthwise.limit import LimitTransformer
from lengthwise.limit.reference import attentions
from lengthwise.reporting.canvas import ANSWER, FIT, GREY, STYLE, new_figure
from lengthwise.reporting.curves import curves_by_length, loss_curves, plateau_lines, sweep_figure
from lengthwise.tasks import ModPTask
from lengthwise.training.randomness import generator

SHOWN_LENGTH = 40
"""Attention is shown on a string of so many tokens."""


def studies_figure(studies: Sequence[Study], results: Sequence[pd.DataFrame]) -> Figure:
    """Loss against test length and plateau against training length; of several studies, the loss curves of
    the first, then a panel of plateaus each, below them the same over the loss of the best constant answer.
    """
    if len(studies) == 1:
        (study,), (rows,) = studies, results
        return sweep_figure(rows, [study.knob], study.shown, study.title)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(5.0 * (len(studies) + 1), 7.6)
        grid = figure.subplots(2, len(studies) + 1)
        first, rows = studies[0], results[0]
        shown = rows[rows[first.knob] == first.shown]
        loss_curves(grid[0, 0], curves_by_length(shown))
        name = first.knob.rpartition(".")[2]
        grid[0, 0].set_title(f"{first.title}, {name} = {first.shown} (bar: plateau begins)", loc="left")
        _seed_spread(grid[1, 0], studies, results)
        for column, (study, rows) in enumerate(zip(studies, results, strict=True), 1):
            table = plateaus_by(rows, [study.knob])
            table["relative"] = table["plateau"] / table["baseline"]
            plateau_lines(grid[0, column], table, study.knob)
            grid[0, column].set_title(f"{study.title}: plateau", loc="left")
            plateau_lines(grid[1, column], table, study.knob, "relative")
            grid[1, column].set(ylabel="plateau / loss of a constant answer")
            grid[1, column].set_title(f"{study.title}: relative plateau", loc="left")
    return figure


def _seed_spread(axes: Axes, studies: Sequence[Study], results: Sequence[pd.DataFrame]) -> None:
    """How close the seeds of a setting are to each other: each run's plateau over the median of its seeds."""
    for study, rows, color in zip(studies, results, (FIT, ANSWER), strict=False):
        table = plateaus_by(rows, [study.knob])
        middle = table.groupby([study.knob, "training_length"])["plateau"].transform("median")
        ratio = np.sort((table["plateau"] / middle).to_numpy())
        share = near_median(table, [study.knob]) / len(table)
        label = f"{study.title}: {share:.0%} within 3 times"
        axes.plot(ratio, np.arange(1, len(ratio) + 1) / len(ratio), color=color, label=label)
    axes.axvline(3, color=GREY, linestyle="--", linewidth=0.9)
    axes.set(xscale="log", xlabel="plateau over the median of its setting", ylabel="share of runs")
    axes.set_title("spread of the seeds", loc="left")
    axes.legend(loc="upper left")
    axes.set(ylim=(-0.05, 1.3), yticks=np.linspace(0, 1, 6))


def attention_evidence(
    models: Sequence[tuple[int, LimitTransformer]], task: ModPTask, evidence: pd.DataFrame
) -> Figure:
    """The attention of trained models on one string, by training length; attention off the class and spread
    on it, of every seed; and the gap between logits on and off the class.
    """
    tokens = task.sample(1, SHOWN_LENGTH, generator(0, "shown"))
    with matplotlib.rc_context(STYLE):
        figure = new_figure(9.6, 7.0)
        parts: Any = figure.subfigures(2, 1, height_ratios=[1.0, 0.9])
        upper, lower = parts
        panels = upper.subplots(1, len(models), squeeze=False)[0]
        image = None
        for axes, (length, f) in zip(panels, models, strict=True):
            weights = attentions(f, tokens)[0][0, 0].numpy()
            image = axes.imshow(np.where(np.tri(SHOWN_LENGTH) > 0, weights, np.nan), cmap="magma_r", vmin=0)
            axes.set_title(f"trained at {length}", loc="left")
            ticks = [t for t in range(SHOWN_LENGTH) if (t + 1) % task.period == task.residue]
            axes.set_xticks(ticks, [str(t + 1) for t in ticks], fontsize=6)
            axes.set_yticks([])
            axes.set_xlabel("key (ticks: positions that count)")
        panels[0].set_ylabel("query")
        if image is not None:
            upper.colorbar(image, ax=panels, label="attention", shrink=0.8)
        upper.suptitle(f"attention of trained models, period {task.period}, median seed", fontsize=11)
        left, right = lower.subplots(1, 2)
        for name, color, label in (
            ("off", ANSWER, "attention off the class"),
            ("spread", FIT, "distance from uniform on the class"),
        ):
            left.plot(evidence["training_length"], evidence[name], "o", color=color, markersize=3, alpha=0.5)
            middle = evidence.groupby("training_length")[name].median()
            left.plot(middle.index, middle, color=color, label=label)
        left.axhline(0.01, color=GREY, linestyle="--", linewidth=0.9)
        left.set(xscale="log", yscale="log", xlabel="training length", ylabel="share of attention")
        left.legend()
        right.plot(evidence["training_length"], evidence["gap"], "o", color=GREY, markersize=3, alpha=0.5)
        middle = evidence.groupby("training_length")["gap"].median()
        right.plot(middle.index, middle, color=GREY, label="smallest logit on the class - largest off it")
        right.set(xscale="log", xlabel="training length", ylabel="logits")
        right.legend()
        lengths = sorted(evidence["training_length"].unique())
        for axes in (left, right):
            axes.minorticks_off()
            axes.set_xticks(lengths, [str(length) for length in lengths])
    return figure
