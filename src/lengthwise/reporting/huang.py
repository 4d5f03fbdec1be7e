"""The suites of Huang et al. in the form of the paper: accuracy in three bins of lengths, by task and scheme,
with every seed, what was published and what theory predicts.
"""

from collections.abc import Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.table import Table

from lengthwise.experiments.huang import ENOUGH, Cell, Suite
from lengthwise.experiments.results import accuracies
from lengthwise.experiments.verdicts import agreement
from lengthwise.reporting.canvas import GREY, STYLE, new_figure
from lengthwise.reporting.library import plain_table

COLORS = {
    "learned": "#1f5fa8",
    "none": "#c1272d",
    "rotary": "#2a8c4a",
    "alibi": "#8453a8",
    "sinusoidal": "#b8860b",
    "relative": "#117a8b",
    "randomised": "#7f7f7f",
}
ANSWERS = {True: "yes", False: "no"}
COLUMNS = 4


def suite_figure(suite: Suite, chosen: Sequence[Cell], results: pd.DataFrame, table: pd.DataFrame) -> Figure:
    """A panel a task: accuracy by bin, a line a scheme through the medians, every seed as a point, published
    accuracies as crosses; and which schemes were not run.
    """
    names = list(dict.fromkeys(cell.task.name for cell in chosen))
    rows = -(-len(names) // COLUMNS)
    measured = accuracies(results).set_index("run") if len(results) else pd.DataFrame()
    with matplotlib.rc_context(STYLE):
        figure = new_figure(2.9 * min(COLUMNS, len(names)), 2.35 * rows + 0.6)
        panels = np.atleast_1d(figure.subplots(rows, min(COLUMNS, len(names)), sharey=True)).ravel()
        for axes, name in zip(panels, names, strict=False):
            own = [cell for cell in chosen if cell.task.name == name]
            _panel(axes, own, measured, table[table["task"] == name])
        for axes in panels[len(names) :]:
            axes.set_axis_off()
        for axes in panels[:: min(COLUMNS, len(names))]:
            axes.set_ylabel("right sequences")
        schemes = list(dict.fromkeys(cell.positions for cell in chosen))
        handles = [Line2D([], [], color=COLORS[scheme], marker="o", label=scheme) for scheme in schemes]
        if any(cell.published for cell in chosen):
            handles.append(Line2D([], [], color=GREY, marker="x", linestyle="", label="published"))
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
        figure.suptitle(f"{suite} suite: accuracy by input length", x=0.01, ha="left", fontsize=11)
    return figure


def _panel(axes: Axes, cells: Sequence[Cell], measured: pd.DataFrame, table: pd.DataFrame) -> None:
    ticks = [f"bin {number}" for number in (1, 2, 3)]
    for place, cell in enumerate(cells):
        color, shift = COLORS[cell.positions], 0.09 * (place - (len(cells) - 1) / 2)
        if cell.published is not None:
            shares = [share / 100 for share in cell.published.accuracy]
            axes.plot(np.arange(3) + shift, shares, "x", color=color, alpha=0.55, markersize=5, zorder=1)
        if not cell.runs:
            continue
        evaluation = cell.runs[0].decoder.evaluation
        ticks = [f"{low}-{high}" for low, high in evaluation.bins(cell.task)]
        values = measured.loc[[run.id for run in cell.runs], [f"accuracy_{end}" for end in evaluation.ends]]
        at = np.arange(values.shape[1]) + shift
        for one in values.to_numpy(float):
            axes.plot(at, one, "o", color=color, markersize=3, alpha=0.45, zorder=2)
        axes.plot(at, values.median().to_numpy(float), color=color, zorder=3)
    axes.set_xticks(range(3), ticks)
    axes.set(ylim=(-0.04, 1.04), xlim=(-0.4, 2.4))
    told = [
        f"{row['positions']}: {ANSWERS.get(row['predicted'], '-')}"
        for row in table.to_dict("records")
        if row["positions"] in ("learned", "none")
    ]
    lines = ["predicted: " + ", ".join(told)]
    if missing := [cell.positions for cell in cells if not cell.runs]:
        lines.append("not run: " + ", ".join(missing))
    axes.set_title(cells[0].task.title + "\n" * len(lines), loc="left")
    axes.text(0.0, 1.03, "\n".join(lines), transform=axes.transAxes, fontsize=7.5, color=GREY)


def suite_table(table: pd.DataFrame) -> Table:
    """A row a cell: prediction, outcome, accuracy over all seeds."""
    shown = plain_table("Prediction and outcome; accuracy in percent by bin, over all seeds")
    for name in ("task", "positions", "theory", "found", "mean", "perfect"):
        shown.add_column(name, no_wrap=True)
    for row in table.to_dict("records"):
        start = row["task"], row["positions"], _answer(row["predicted"])
        if row["not_run"]:
            shown.add_row(*start, "not run")
            continue
        disagrees = not pd.isna(row["agrees"]) and not row["agrees"]
        found = _answer(row["generalises"]) + (" (!)" if disagrees else "")
        shares = "/".join(f"{100 * row[f'mean_{number}']:.0f}" for number in (1, 2, 3))
        shown.add_row(*start, found, shares, f"{row['perfect']:.0f} of {row['seeds']:.0f}")
    return shown


def agreement_words(table: pd.DataFrame) -> str:
    """In a sentence."""
    agree, decided = agreement(table)
    if not decided:
        return "Nothing is predicted of what was run."
    if decided == 1:
        outcome = "agree" if agree else "do not agree"
        return f"Prediction and outcome {outcome} in the one cell of which theory predicts something."
    return (
        f"Prediction and outcome agree in {agree} of the {decided} cells of which theory predicts something "
        f"({agree / decided:.0%})."
    )


def suite_page(suite: Suite, table: pd.DataFrame, made: str) -> str:
    """The whole page in Markdown; ``made`` says how it was."""
    lines = [
        f"# The {suite} suite",
        "",
        made,
        "",
        f"A cell generalises if the median seed is right on {ENOUGH:.0%} of the last bin or more. "
        f"{agreement_words(table)}",
        "",
        f"![accuracy by task, scheme and bin]({suite}.png)",
        "",
        "## Prediction and outcome",
        "",
        "| task | positions | predicted | why | generalises | agrees |",
        "|---|---|---|---|---|---|",
    ]
    for row in table.to_dict("records"):
        outcome = "not run" if row["not_run"] else _answer(row["generalises"])
        agrees = "" if pd.isna(row["agrees"]) else ("yes" if row["agrees"] else "**no**")
        lines.append(
            f"| {row['task']} | {row['positions']} | {_answer(row['predicted'])} | {_cell(row['why'])} | "
            f"{outcome} | {agrees} |"
        )
    lines += [
        "",
        "## Accuracy",
        "",
        "In percent, by bin. *All seeds*: mean (lowest to highest). *Five perfect*: mean over the first five "
        "seeds that were right on all of the first bin, where there are five. *Published*: means over five "
        "such seeds.",
        "",
        "| task | positions | shape, rate | steps | perfect | all seeds | five perfect | published |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in table.to_dict("records"):
        published = _shares(row, "published")
        cell = f"| {row['task']} | {row['positions']} |"
        if row["not_run"]:
            lines.append(f"{cell} not run: {_cell(row['not_run'])} | | | | | {published} |")
            continue
        spread = " / ".join(_spread(row, n) for n in (1, 2, 3))
        five = _shares(row, "five") or f"only {row['perfect']:.0f}"
        spare = f", {row['spare_positions']:.0f} spare positions" if row["spare_positions"] else ""
        note = f" ({row['note']})" if row["note"] else ""
        lines.append(
            f"{cell} {row['shape']}, {row['learning_rate']:g}{spare}{note} | "
            f"{row['steps']:,.0f} | {row['perfect']:.0f} of {row['seeds']:.0f} | {spread} | {five} | "
            f"{published} |"
        )
    return "\n".join(lines) + "\n"


def _answer(value: object) -> str:
    return "-" if pd.isna(value) else ANSWERS[bool(value)]  # pyright: ignore[reportArgumentType, reportCallIssue]


def _shares(row: dict, name: str) -> str:
    """In percent, by bin; nothing where there are none."""
    shares = [row.get(f"{name}_{number}", float("nan")) for number in (1, 2, 3)]
    return "" if np.isnan(shares).any() else " / ".join(f"{100 * share:.1f}" for share in shares)


def _spread(row: dict, number: int) -> str:
    mean, low, high = (100 * row[f"{name}_{number}"] for name in ("mean", "low", "high"))
    return f"{mean:.1f}" if low == high else f"{mean:.1f} ({low:.1f} to {high:.1f})"


def _cell(text: str) -> str:
    """Text that fits into a cell of a table."""
    return text.replace("|", "\\|")
