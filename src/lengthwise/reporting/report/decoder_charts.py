"""Charts of decoders: accuracy by bin of input lengths, and in the course of training."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lengthwise.experiments import Run
from lengthwise.reporting.canvas import STYLE, new_figure
from lengthwise.reporting.decoders import PREFIX, accuracies_figure, accuracy_curves, bin_ends, bin_words
from lengthwise.reporting.report import palette
from lengthwise.reporting.report.charts import MOST_CURVES, MOST_KEPT, number, thinned
from lengthwise.reporting.report.settings import SETTING, Setting

PANELS = 6
"""A figure on paper shows the learning curves of so many settings, at most."""


def by_task(settings: Sequence[Setting]) -> dict[str, list[Setting]]:
    """Settings by their tasks."""
    found: dict[str, list[Setting]] = {}
    for one in settings:
        found.setdefault(one.subject, []).append(one)
    return found


def short_label(one: Setting, beside: Sequence[Setting]) -> str:
    """What tells a setting from the others of its task."""
    schemes = [other.runs[0].decoder.model.positions for other in beside]
    if len(set(schemes)) < len(schemes):
        return one.label
    scheme = one.runs[0].decoder.model.positions
    return "no positions" if scheme == "none" else f"{scheme} positions"


def bins_chart(settings: Sequence[Setting], table: pd.DataFrame) -> dict[str, Any]:
    """Accuracy by bin, a panel a task, of all seeds and their median."""
    by_run, panels, tasks = table.set_index("run"), [], by_task(settings)
    most = max(20, min(MOST_CURVES, MOST_KEPT // len(tasks)))
    for name, own in tasks.items():
        runs = [run for one in own for run in one.runs]
        known = {high: (low, high) for run in runs for low, high in _bins(run)}
        bins = [known[high] for high in sorted(known)]
        columns, drawn = [f"{PREFIX}{high}" for _, high in bins], 0
        shade, series = _shades(own), []
        for one in own:
            values = by_run.loc[[run.id for run in one.runs], columns].astype(float)
            kept = thinned(len(one.runs), max(1, most // len(own)))
            drawn += len(kept)
            seeds = [
                {
                    "seed": one.runs[place].training.seed,
                    "run": one.runs[place].id,
                    "values": [number(value) for value in values.iloc[place]],
                }
                for place in kept
            ]
            middle = [number(value) for value in values.median().to_numpy()]
            label = short_label(one, own)
            series.append({"label": label, "color": shade[one.label], "median": middle, "seeds": seeds})
        trained = max(run.training.length for run in runs)
        panels.append(
            {
                "label": name,
                "bins": [bin_words(low, high) for low, high in bins],
                "within": sum(high <= trained for _, high in bins),
                "series": series,
                "drawn": drawn,
                "runs": len(runs),
            }
        )
    return {"panels": panels}


def _bins(run: Run) -> tuple[tuple[int, int], ...]:
    task, _, _, evaluation = run.decoder
    return evaluation.bins(task)


def _shades(own: Sequence[Setting]) -> dict[str, palette.Pair]:
    schemes = {one.label: one.runs[0].decoder.model.positions for one in own}
    if len(set(schemes.values())) < len(own):
        return palette.by_setting(list(schemes))
    return {label: palette.of_scheme(scheme) for label, scheme in schemes.items()}


def learning_chart(settings: Sequence[Setting], results: pd.DataFrame) -> dict[str, Any]:
    """Accuracy against training steps, for every setting by bin, of all seeds and their median."""
    measured = results[results["metric"] == "accuracy"]
    by_run = {
        str(run): rows.pivot_table(index="step", columns="test_length", values="value")
        for run, rows in measured.groupby("run")
    }
    most = max(4, min(MOST_CURVES // 3, MOST_KEPT // len(settings)))
    shown = []
    for one in settings:
        bins = _bins(one.runs[0])
        kept = [one.runs[place] for place in thinned(len(one.runs), most)]
        steps = sorted({int(step) for run in one.runs for step in by_run[run.id].index})
        told = []
        for (low, high), color in zip(bins, palette.by_bin(len(bins)), strict=True):
            seeds = [
                {
                    "seed": run.training.seed,
                    "run": run.id,
                    "steps": [int(step) for step in by_run[run.id].index],
                    "values": [number(value) for value in by_run[run.id][high]],
                }
                for run in kept
            ]
            middle = [number(value) for value in course(one.runs, by_run, steps, high)]
            told.append({"label": bin_words(low, high), "color": color, "median": middle, "seeds": seeds})
        shown.append(
            {"label": one.label, "bins": told, "steps": steps, "drawn": len(kept), "runs": len(one.runs)}
        )
    return {"settings": shown}


def course(
    runs: Sequence[Run], by_run: Mapping[str, pd.DataFrame], steps: Sequence[int], end: int
) -> list[float]:
    """The median accuracy at every step; who has ended counts with what it had last."""
    courses = [by_run[run.id][end].reindex(list(steps)).ffill().to_numpy(float) for run in runs]
    return np.nanmedian(np.array(courses), axis=0).tolist()


def bins_figure(settings: Sequence[Setting], results: pd.DataFrame) -> Figure:
    """The first chart for paper."""
    tasks = by_task(settings)
    if len(settings) == 1:
        return accuracies_figure(results, [], settings[0].subject)
    labels = {run.id: short_label(one, own) for own in tasks.values() for one in own for run in one.runs}
    named = {run.id: one.subject for one in settings for run in one.runs}
    results = results.assign(
        **{"shown.task": results["run"].map(named), "shown.models": results["run"].map(labels)}
    )
    return accuracies_figure(results, [*(["shown.task"] if len(tasks) > 1 else []), "shown.models"])


def learning_figure(settings: Sequence[Setting], results: pd.DataFrame, table: pd.DataFrame) -> Figure:
    """The course of the median seed of some settings, for paper."""
    chosen = [settings[place] for place in thinned(len(settings), PANELS)]
    columns = min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    last = f"{PREFIX}{bin_ends(table)[-1]}"
    with matplotlib.rc_context(STYLE):
        figure = new_figure(4.2 * columns, 3.4 * rows)
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes, one in zip(grid.flat, chosen, strict=False):
            own = table[table[SETTING] == one.label].sort_values(last)
            middle = own["run"].iloc[(len(own) - 1) // 2]
            accuracy_curves(axes, next(run for run in one.runs if run.id == middle), results)
            axes.set_title(f"{one.label}, median seed", loc="left")
        for axes in grid.flat[len(chosen) :]:
            axes.set_visible(False)
    return figure
