"""Advice made from a law instead of from training, for tests of what is said and drawn."""

import pandas as pd

import lengthwise as lw
from lengthwise.experiments.advice import Advice, AtLength
from lengthwise.experiments.decay import predict
from lengthwise.experiments.results import curves, metrics_frame, table

BASELINE = 0.5


def advice_of(law, *, tolerance=0.01, pilot=(6, 7, 8, 10), more=(12, 14), confirmed=12, seeds=3):
    """Pilot and confirmation with plateaus law(length, seed), the latter 'found' to be ``confirmed``."""
    runs = [
        lw.Run(lw.SimpleTask(), lw.LimitModel(), lw.Training(length=length, seed=seed))
        for length in (*pilot, *more)
        for seed in range(seeds)
    ]
    frames = []
    for run in runs:
        limit = law(run.training.length, run.training.seed)
        last = run.training.steps
        rows = [(last, run.training.length, "training_loss", limit)]
        for test in run.test_lengths:
            value = limit * (1 - 0.9 * run.training.length / test)
            rows += [(last, test, "loss", value), (last, test, "loss_error", limit / 100)]
            rows.append((last, test, "baseline", BASELINE))
        frames.append(metrics_frame(run, rows))
    results: pd.DataFrame = table(runs, frames)
    found = curves(results)
    lengths = tuple(
        AtLength(
            length,
            "pilot" if length in pilot else "confirmation",
            tuple(curve for curve in found if curve.training_length == length),
        )
        for length in (*pilot, *more)
    )
    prediction = predict(
        list(pilot), [at.plateaus for at in lengths[: len(pilot)]], baseline=BASELINE, tolerance=tolerance
    )
    return Advice(lw.SimpleTask(), tolerance, prediction, confirmed, lengths, results, 10**9)
