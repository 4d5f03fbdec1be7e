"""Tables and figures of decoders show what was measured: every bin, every seed."""

import io

import numpy as np
import pytest
from rich.console import Console

import lengthwise as lw
from lengthwise.experiments.results import metrics_frame, table
from lengthwise.experiments.sweeps import accuracies_by, varied
from lengthwise.reporting.decoders import accuracies_figure, accuracies_json, accuracies_table
from lengthwise.reporting.runs import run_figure, run_json, run_table

RUN = lw.Run(
    lw.task("copy-unique"),
    lw.DecoderModel(layers=2),
    lw.DecoderTraining(length=50, steps=30),
    lw.DecoderEvaluation(every=10),
)


def made_up(runs, law, steps=(10, 20, 30)):
    """The table that runs of these accuracies, by (run, step, end), would leave."""
    frames = []
    for run in runs:
        rows = []
        for step in steps:
            rows.append((step, run.training.length, "training_loss", 1 / step))
            rows += [(step, end, "accuracy", law(run, step, end)) for end in run.test_lengths]
        frames.append(metrics_frame(run, rows))
    return table(runs, frames)


def shown(what, width=100):
    console = Console(file=io.StringIO(), width=width)
    console.print(what)
    return console.file.getvalue()


def rising(run, step, end):
    return step / 30 * 50 / end


def test_one_run():
    results = made_up([RUN], rising)
    (axes,) = run_figure(RUN, results).axes
    assert len(axes.lines) == 3
    for line, end in zip(axes.lines, (50, 100, 150), strict=True):
        np.testing.assert_allclose(line.get_xdata(), [10, 20, 30])
        np.testing.assert_allclose(line.get_ydata(), [rising(RUN, step, end) for step in (10, 20, 30)])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "1 to 50",
        "51 to 100",
        "101 to 150",
    ]
    text = shown(run_table(RUN, results))
    assert "copy, unique: accuracy after 30 steps" in text
    for cells in ("1 to 50 │    1.000 │ as in training", "51 to 100 │    0.500 │ longer", "0.333 │ longer"):
        assert cells in text
    told = run_json(RUN, results)
    assert told["perfect"] is True
    assert [one["accuracy"][0] for one in told["measurements"]] == pytest.approx([1 / 3, 2 / 3, 1])
    local = RUN.but(task=lw.task("tomita-4"))
    assert "C-RASP[periodic,local]" in " ".join(shown(run_table(local, made_up([local], rising))).split())
    partly = RUN.but(length=70)
    assert "partly longer" in shown(run_table(partly, made_up([partly], rising)))


def test_a_loss_that_is_not_finite_is_no_json():
    results = made_up([RUN], rising)
    results.loc[results["metric"] == "training_loss", "value"] = np.nan
    assert run_json(RUN, results)["training_loss"] is None


def by_seed(run, step, end):
    return {50: 1.0, 100: 0.5, 150: 0.25}[end] - (0.1 * run.training.seed if end > 50 else 0)


def test_a_sweep_over_seeds():
    runs = lw.vary(RUN, positions=["none", "learned"], seed=range(3))
    results = made_up(runs, by_seed)
    knobs = varied(results)
    measured = accuracies_by(results, knobs)
    text = shown(accuracies_table(measured, knobs), width=80)
    assert "trained up to 50" in text
    assert text.count("3/3") == 2
    assert text.count("0.300..0.500") == text.count("0.050..0.250") == 2
    assert "…" not in text
    told = accuracies_json(measured, knobs)
    assert [setting["accuracy"]["100"]["median"] for setting in told["settings"]] == pytest.approx([0.4, 0.4])
    (axes,) = accuracies_figure(results, knobs).axes
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert sum(len(line.get_xdata()) for line in points) == 2 * 3 * 3
    medians = [line.get_ydata() for line in axes.lines if len(line.get_ydata()) == 3 and line not in points]
    np.testing.assert_allclose(medians, [[1.0, 0.4, 0.15]] * 2)


def test_panels_by_the_first_knob():
    tasks = [lw.task("copy-unique"), lw.task("sort"), lw.task("addition"), lw.task("parity")]
    results = made_up(lw.vary(RUN, task=tasks, positions=["none", "rotary"], length=[30, 50]), by_seed)
    figure = accuracies_figure(results, varied(results))
    seen = [axes for axes in figure.axes if axes.get_visible()]
    titles = sorted(axes.get_title(loc="left") for axes in seen)
    assert titles == ["addition", "copy-unique", "parity", "sort"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(legend) == ["none, 30", "none, 50", "rotary, 30", "rotary, 50"]


def test_runs_with_other_bins_stand_side_by_side():
    other = RUN.but(evaluation=lw.DecoderEvaluation(ends=(20, 50)), seed=1)
    results = made_up([RUN, other], lambda run, step, end: 0.5)
    measured = accuracies_by(results, [])
    text = shown(accuracies_table(measured, []))
    assert [f"to {end}" in text for end in (20, 50, 100, 150)] == [True] * 4
    told = accuracies_json(measured, [])
    assert told["runs"][0]["accuracy"] == {"20": None, "50": 0.5, "100": 0.5, "150": 0.5}
    assert told["settings"][0]["accuracy"]["20"]["median"] == 0.5
    assert len(accuracies_figure(results, []).axes) == 1
