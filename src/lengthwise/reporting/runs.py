"""One run as a table, as a figure and as plain data."""

import math
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.figure import Figure
from rich.markup import escape
from rich.table import Table

from lengthwise.experiments import Run
from lengthwise.experiments.results import Curve, curves
from lengthwise.reporting.canvas import GREY, STYLE, new_figure
from lengthwise.reporting.curves import loss_curves
from lengthwise.reporting.decoders import accuracy_curves, bin_words, measurements
from lengthwise.reporting.tasks import subject
from lengthwise.reporting.words import power_of_ten


def run_table(run: Run, results: pd.DataFrame) -> Table:
    """The accuracy of a decoder by bin, or the loss of a limit transformer by test length."""
    return _loss_table(run, results) if run.family == "limit" else _accuracy_table(run, results)


def _accuracy_table(run: Run, results: pd.DataFrame) -> Table:
    last = measurements(run, results)[-1]
    title = f"{subject(run.task)}: accuracy after {last.step} steps"
    table = Table(title=escape(title), title_justify="left")
    for heading in ("input length", "accuracy", ""):
        table.add_column(heading, justify="right" if heading else "left")
    for low, high, right in last.accuracy:
        table.add_row(bin_words(low, high), f"{right:.3f}", _seen(low, high, run.training.length))
    table.caption = escape(f"training loss {last.training_loss:.2g}; theory: {run.task.theory.statement}")
    table.caption_justify = "left"
    return table


def _seen(low: int, high: int, trained: int) -> str:
    """How a bin of lengths relates to those in training."""
    if high <= trained:
        return "as in training"
    return "longer" if low > trained else "partly longer"


def _loss_table(run: Run, results: pd.DataFrame) -> Table:
    (curve,) = curves(results)
    table = Table(
        title=f"{subject(run.task)}, trained at length {curve.training_length}", title_justify="left"
    )
    for heading in ("test length", "loss", "standard error"):
        table.add_column(heading, justify="right")
    for length, loss, error in zip(curve.test_lengths, curve.losses, curve.errors, strict=True):
        table.add_row(power_of_ten(length), f"{loss:.2g}", f"{error:.1g}")
    table.caption = f"{plateau_words(curve)}; loss of the best constant answer: {curve.baseline:.2g}"
    table.caption_justify = "left"
    return table


def plateau_words(curve: Curve) -> str:
    """Where a curve ends, in words."""
    end = curve.plateau
    if end.trend == "diverged":
        return "the loss diverged"
    low, high = end.interval
    known = "the limit" if curve.limit is not None else end.trend
    return f"plateau: {end.value:.2g}, interval {low:.2g} to {high:.2g}, {known}"


def run_figure(run: Run, results: pd.DataFrame) -> Figure:
    """Accuracy by bin against steps, or loss against test length."""
    with matplotlib.rc_context(STYLE):
        figure = new_figure(6.4, 4.0)
        axes = figure.subplots()
        if run.family == "limit":
            (curve,) = curves(results)
            length = run.training.length
            loss_curves(axes, {length: [curve]}, answer=length, heights=[curve.baseline])
            if curve.baseline > 0:
                axes.axhline(curve.baseline, color=GREY, linestyle="--", linewidth=0.9)
                axes.annotate(
                    "best constant answer",
                    xy=(0.995, curve.baseline),
                    xycoords=("axes fraction", "data"),
                    xytext=(0, 3),
                    textcoords="offset points",
                    ha="right",
                    fontsize=8,
                    color=GREY,
                )
        else:
            accuracy_curves(axes, run, results)
        figure.suptitle(subject(run.task), fontsize=11)
    return figure


def run_json(run: Run, results: pd.DataFrame) -> dict[str, Any]:
    """The specification, and what was measured; None stands for a number that is not finite."""
    told = _loss_data(results) if run.family == "limit" else _accuracy_data(run, results)
    return {"run": run.id, **run.specification(), **told}


def _accuracy_data(run: Run, results: pd.DataFrame) -> dict[str, Any]:
    every = measurements(run, results)
    last = every[-1]
    return {
        "steps": last.step,
        "training_loss": _finite(last.training_loss),
        "perfect": last.accuracy[0][2] == 1,
        "accuracy": [
            {"shortest": low, "longest": high, "accuracy": right} for low, high, right in last.accuracy
        ],
        "measurements": [
            {
                "step": one.step,
                "training_loss": _finite(one.training_loss),
                "accuracy": [right for *_, right in one.accuracy],
            }
            for one in every
        ],
    }


def _loss_data(results: pd.DataFrame) -> dict[str, Any]:
    (curve,) = curves(results)
    training = results[results["metric"] == "training_loss"]
    end = curve.plateau
    return {
        "steps": int(training["step"].iloc[-1]),
        "training_loss": _finite(float(training["value"].iloc[-1])),
        "plateau": _finite(end.value),
        "interval": [_finite(value) for value in end.interval],
        "trend": end.trend,
        "exact": curve.limit is not None,
        "baseline": _finite(curve.baseline),
        "losses": [
            {"length": length, "loss": _finite(loss), "error": _finite(error)}
            for length, loss, error in zip(curve.test_lengths, curve.losses, curve.errors, strict=True)
        ],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
