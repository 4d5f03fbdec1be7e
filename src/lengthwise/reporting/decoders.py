"""Accuracy of decoders: in the course of one run, and of many runs by bins of lengths."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.markup import escape
from rich.table import Table

from lengthwise.experiments import Run
from lengthwise.experiments.sweeps import accuracies_by
from lengthwise.reporting.canvas import GREY, STYLE, new_figure
from lengthwise.reporting.library import plain_table
from lengthwise.reporting.tasks import knob as knob_words

PREFIX = "accuracy_"
"""What the columns of accuracies begin with; the end of the bin follows."""

MOST_PANELS = 12
"""With more values of the first knob than these, all settings share one panel."""


@dataclass(frozen=True)
class Measurement:
    """A decoder after some steps: its mean training loss since the measurement before and, for each bin, the
    shortest length, the longest and the accuracy.
    """

    step: int
    training_loss: float
    accuracy: tuple[tuple[int, int, float], ...]


def measurements(run: Run, results: pd.DataFrame) -> list[Measurement]:
    """Every measurement of a run, in order."""
    task, _, _, evaluation = run.decoder
    own = results[results["run"] == run.id]
    found = []
    for step, rows in own.groupby("step", sort=True):
        values = rows[rows["metric"] == "accuracy"].set_index("test_length")["value"]
        (loss,) = rows[rows["metric"] == "training_loss"]["value"]
        bins = tuple((low, high, float(values[high])) for low, high in evaluation.bins(task))
        found.append(Measurement(int(step), float(loss), bins))  # pyright: ignore[reportArgumentType]
    return found


def bin_words(low: int, high: int) -> str:
    """A bin of lengths."""
    return f"{low} to {high}" if low < high else f"{low}"


def accuracy_curves(axes: Axes, run: Run, results: pd.DataFrame) -> None:
    """Accuracy against steps, one line a bin."""
    every = measurements(run, results)
    colors = matplotlib.colormaps["viridis"]
    count = len(every[0].accuracy)
    for index in range(count):
        low, high, _ = every[0].accuracy[index]
        axes.plot(
            [one.step for one in every],
            [one.accuracy[index][2] for one in every],
            "o-",
            markersize=3.5,
            color=colors(0.85 * index / max(1, count - 1)),
            label=bin_words(low, high),
            zorder=3 - 0.1 * index,
        )
    axes.set(xlabel="training steps", ylabel="share of sequences that are right", ylim=(-0.03, 1.03))
    axes.set_xlim(0, 1.05 * every[-1].step)
    axes.set_title(f"accuracy by input length (trained up to {run.training.length})", loc="left")
    axes.legend(title="input length", loc="best")


def accuracies_table(measured: pd.DataFrame, knobs: Sequence[str]) -> Table:
    """Of a table of accuracies, one row a setting of the knobs and training length, over all seeds."""
    lengths, ends = sorted(measured["training_length"].unique()), bin_ends(measured)
    title = "accuracy by input length"
    if len(lengths) == 1:
        title += f", trained up to {lengths[0]}"
    table = plain_table(title)
    shown = [*knobs, *(["training_length"] if len(lengths) > 1 else [])]
    for heading in (*map(knob_heading, shown), "perfect"):
        table.add_column(heading, justify="right")
    for end in ends:
        table.add_column(f"to {end}", justify="right", no_wrap=True)
    for key, rows in measured.groupby([*knobs, "training_length"], sort=True, dropna=False):
        perfect = f"{int(rows['perfect'].sum())}/{len(rows)}"
        cells = [_spread(rows[f"{PREFIX}{end}"]) for end in ends]
        table.add_row(*(escape(knob_words(value)) for value in key[: len(shown)]), perfect, *cells)
    table.caption = (
        "share of sequences that are right: median over seeds, lowest..highest; perfect: seeds that have all "
        "of the first bin right"
    )
    table.caption_justify = "left"
    return table


def _spread(values: pd.Series) -> str:
    known = values.dropna()
    if known.empty:
        return "-"
    if len(known) == 1:
        return f"{known.iloc[0]:.3f}"
    return f"{known.median():.3f}\n{known.min():.3f}..{known.max():.3f}"


def knob_heading(knob: str) -> str:
    """What a person calls a column of the specification."""
    called = {"task.name": "task", "training_length": "trained to"}
    return called.get(knob) or knob.rpartition(".")[2].replace("_", " ")


def accuracies_json(measured: pd.DataFrame, knobs: Sequence[str]) -> dict[str, Any]:
    """The same as plain data: every run with its accuracies, and every setting over its runs."""
    ends = bin_ends(measured)
    runs = []
    for row in measured.to_dict("records"):
        own = {str(name): _plain(row[name]) for name in [*knobs, "task", "positions", "training_length"]}
        own |= {name: _plain(row[name]) for name in ("seed", "learning_rate", "steps", "perfect", "run")}
        own["accuracy"] = {str(end): _plain(row[f"{PREFIX}{end}"]) for end in ends}
        runs.append(own)
    settings = []
    for key, rows in measured.groupby([*knobs, "training_length"], sort=True, dropna=False):
        setting = dict(zip([*knobs, "training_length"], map(_plain, key), strict=True))
        accuracy = {}
        for end in ends:
            values = rows[f"{PREFIX}{end}"].dropna()
            found = (values.median(), values.min(), values.max())
            accuracy[str(end)] = dict(zip(("median", "lowest", "highest"), map(_plain, found), strict=True))
        perfect = int(rows["perfect"].sum())
        settings.append({**setting, "runs": len(rows), "perfect": perfect, "accuracy": accuracy})
    return {"knobs": list(knobs), "settings": settings, "runs": runs}


def bin_ends(measured: pd.DataFrame) -> list[int]:
    """The ends of the bins of a table of accuracies."""
    return [int(name.removeprefix(PREFIX)) for name in measured.columns if name.startswith(PREFIX)]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def accuracies_figure(results: pd.DataFrame, knobs: Sequence[str], title: str = "") -> Figure:
    """Accuracy by bin: a point for every run, a line through the medians of each setting. With several knobs
    there is a panel for each value of the first.
    """
    table = accuracies_by(results, list(knobs))
    knobs = [*knobs, *(["training_length"] if table["training_length"].nunique() > 1 else [])]
    panels: list[tuple[str, pd.DataFrame]] = [("", table)]
    others = knobs
    if len(knobs) > 1 and table[knobs[0]].nunique() <= MOST_PANELS:
        others = knobs[1:]
        name = "" if knobs[0] == "task.name" else f"{knob_heading(knobs[0])} = "
        panels = [
            (f"{name}{knob_words(value)}", rows) for value, rows in table.groupby(knobs[0], dropna=False)
        ]
    columns = min(3, len(panels))
    rows_of_panels = -(-len(panels) // columns)
    settings = list(dict.fromkeys(_settings(table, others)))
    colors = matplotlib.colormaps["viridis"]
    shade = {name: colors(0.9 * place / max(1, len(settings) - 1)) for place, name in enumerate(settings)}
    with matplotlib.rc_context(STYLE):
        figure = new_figure(3.2 * columns + (3.2 if columns == 1 else 1.0), 3.2 * rows_of_panels + 0.6)
        grid = figure.subplots(rows_of_panels, columns, squeeze=False, sharex=True, sharey=True)
        for axes, (heading, rows) in zip(grid.flat, panels, strict=False):
            _bins(axes, rows, others, shade)
            axes.set_title(heading, loc="left")
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for axes in grid[:, 0]:
            axes.set_ylabel("share of sequences that are right")
        for axes in grid[-1]:
            axes.set_xlabel("longest input of the bin")
        if others:
            handles = [
                Line2D([], [], color=color, marker="o", markersize=3.5, label=name)
                for name, color in shade.items()
            ]
            heading = ", ".join(map(knob_heading, others))
            figure.legend(handles=handles, title=heading, loc="outside right upper")
        figure.suptitle(title, fontsize=11)
    return figure


def _settings(table: pd.DataFrame, knobs: Sequence[str]) -> list[str]:
    """The values of some knobs as one text a row."""
    return [", ".join(map(knob_words, values)) for values in table[list(knobs)].to_numpy().tolist()]


def _bins(axes: Axes, table: pd.DataFrame, knobs: Sequence[str], shade: dict[str, Any]) -> None:
    ends = bin_ends(table)
    table = table.assign(setting=_settings(table, knobs))
    present = [name for name in shade if (table["setting"] == name).any()]
    for place, name in enumerate(present):
        rows = table[table["setting"] == name]
        aside = 0.3 * (
            (place + 0.5) / len(present) - 0.5
        )  # so that points of settings do not hide each other
        for index, end in enumerate(ends):
            values = rows[f"{PREFIX}{end}"].dropna()
            axes.plot(
                [index + aside] * len(values), values, "o", color=shade[name], markersize=3.5, alpha=0.5
            )
        middle = rows[[f"{PREFIX}{end}" for end in ends]].median().to_numpy()
        axes.plot(np.arange(len(ends)) + aside, middle, color=shade[name])
    trained = table["training_length"].max()
    within = [index for index, end in enumerate(ends) if end <= trained]
    if within and len(within) < len(ends):
        axes.axvline(within[-1] + 0.5, color=GREY, linestyle=":", linewidth=0.9)
    axes.set_xticks(range(len(ends)), [str(end) for end in ends])
    axes.set_ylim(-0.03, 1.03)
