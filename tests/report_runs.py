"""Stores whose rows were written by hand, for tests of reports: no model behind them was trained for long."""

from functools import cache

import lengthwise as lw
from lengthwise.experiments.engine import train_all
from lengthwise.experiments.results import Result, metrics_frame

LENGTHS = (10, 30, 100, 300, 1000, 3000, 10_000)
MODEL = lw.LimitModel(width=4, hidden=8)
EVALUATION = lw.Evaluation(lengths=LENGTHS, sequences=16)
BASELINE = 0.5

DECODER_EVALUATION = lw.DecoderEvaluation(ends=(10, 20, 30), sequences=8, every=50)


@cache
def weights(model=MODEL):
    """The weights of a model of this shape, trained for a step."""
    run = lw.Run(lw.SimpleTask(), model, lw.Training(length=4, steps=1, batch=2), EVALUATION)
    return train_all([run])[0].weights


def limit_run(length, seed, task=None, **changes):
    task = task or lw.SimpleTask(omega=8)
    return lw.Run(task, MODEL, lw.Training(length=length, seed=seed), EVALUATION).but(**changes)


def limit_rows(run, end, *, rise=0.0):
    """A curve that is level at ``end`` from length 30 on, or rises there by so much each time; infinite if
    ``end`` is.
    """
    last = run.training.steps
    rows = [(last, run.training.length, "training_loss", 0.1)]
    for place, test in enumerate(run.test_lengths):
        value = end / 10 if test < 30 else end * (1 + rise * place)
        rows += [(last, test, "loss", value), (last, test, "loss_error", 0.001 * min(end, 1.0))]
        rows.append((last, test, "baseline", BASELINE))
    return rows


def decoder_run(task, positions, seed, **changes):
    training = lw.DecoderTraining(length=10, steps=100, seed=seed)
    model = lw.DecoderModel(positions=positions, width=8)
    return lw.Run(task, model, training, DECODER_EVALUATION).but(**changes)


def decoder_rows(run, *accuracies):
    """The accuracies by bin after the last step; half of them after the first 50."""
    rows = []
    for step, share in ((50, 0.5), (100, 1.0)):
        rows.append((step, run.training.length, "training_loss", 1.0 / step))
        ends = zip(run.test_lengths, accuracies, strict=True)
        rows += [(step, end, "accuracy", share * accuracy) for end, accuracy in ends]
    return rows


def write(folder, runs, made_by=None):
    """A store of runs, each with its rows."""
    results = [
        Result(run, metrics_frame(run, rows), weights() if run.family == "limit" else {})
        for run, rows in runs
    ]
    lw.Store(folder).add(results, made_by={"device": "cpu (by hand)", **(made_by or {})})
    return results


def keep(folder, advice):
    """The runs of an advice from a law (``laws.advice_of``) as a store; the models are not its own."""
    runs = [
        lw.Run(lw.SimpleTask(), lw.LimitModel(), lw.Training(length=curve.training_length, seed=curve.seed))
        for at in advice.lengths
        for curve in at.curves
    ]
    rows = advice.results[["run", "step", "test_length", "metric", "value"]]
    own = weights(lw.LimitModel())
    lw.Store(folder / "runs").add([Result(run, rows[rows["run"] == run.id], own) for run in runs])
    return folder
