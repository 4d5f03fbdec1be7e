"""Predictions from pilots whose laws are known, and the search that confirms them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.experiments import advice as advice_module
from lengthwise.experiments.advice import FINE, GRID, grid_between
from lengthwise.experiments.decay import falling_lengths, fit_decay, predict
from lengthwise.experiments.results import Result, metrics_frame
from lengthwise.training import start_ensemble


@given(st.floats(0.5, 6), st.floats(-5, 10), st.floats(1e-8, 1e-1))
def test_a_power_law_is_found_and_crosses_where_it_does(exponent, intercept, tolerance):
    lengths = [7, 8, 10, 12]
    decay = fit_decay(lengths, [math.exp(intercept) * n**-exponent for n in lengths])
    assert decay.exponent == pytest.approx(exponent, rel=1e-6)
    crossing = decay.crossing(tolerance)
    assert decay.at(crossing) == pytest.approx(tolerance, rel=1e-6)


@given(st.floats(1, 5), st.floats(1.05, 3.5), st.integers(3, 7), st.integers(0, 1000))
def test_prediction_within_reach(exponent, ratio, seeds, seed):
    """On a noisy power law the interval holds the true crossing, and the prediction is near it."""
    random = np.random.default_rng(seed)
    lengths = [8, 9, 10, 12, 14, 16]
    true = ratio * 16
    tolerance = 0.1 * (8 / true) ** exponent
    plateaus = [
        list(0.1 * (8 / n) ** exponent * np.exp(0.02 * random.standard_normal(seeds))) for n in lengths
    ]
    found = predict(lengths, plateaus, baseline=0.5, tolerance=tolerance)
    assert found.length is not None
    assert found.interval is not None
    assert found.interval[0] <= found.length <= found.interval[1] + 1
    assert true / 1.25 <= found.length <= true * 1.25 + 1


def test_prediction_out_of_reach_is_not_made():
    lengths = [8, 10, 12, 14]
    plateaus = [[0.1 * (8 / n) ** 2] * 3 for n in lengths]
    found = predict(lengths, plateaus, baseline=0.5, tolerance=1e-5)
    assert found.length is None
    assert found.interval is None
    assert found.decay is not None
    assert "out of reach of a pilot up to length 14" in found.reason
    flat = predict(lengths, [[0.1] * 3] * 4, baseline=0.5, tolerance=0.01)
    assert flat.length is None
    assert "out of reach" in flat.reason


def test_a_pilot_that_does_not_fall_says_so():
    found = predict([4, 5, 6, 7], [[0.5], [0.6], [0.5], [0.1]], baseline=0.5, tolerance=0.01)
    assert (found.length, found.decay) == (None, None)
    assert "a fit needs 3" in found.reason
    assert "longer than 7" in found.reason


def test_luck_at_short_lengths_is_left_out():
    lengths, medians = [4, 5, 6, 7, 8, 9], [0.5, 0.03, 0.15, 0.05, 0.03, 0.02]
    assert falling_lengths(lengths, medians, 0.5) == [7, 8, 9]
    assert falling_lengths(lengths, [math.inf, 0.03, math.inf, 0.05, 0.03, 0.02], 0.5) == [7, 8, 9]
    assert falling_lengths(lengths, [0.01] * 6, 0.5) == lengths
    assert falling_lengths(lengths, [0.5] * 6, 0.5) == []


@given(st.integers(1, 500), st.integers(0, 500))
def test_grids_are_no_coarser_than_they_say(low, more):
    grid = grid_between(low, low + more)
    assert grid[0] == low
    assert grid[-1] == low + more
    for one, other in itertools.pairwise(grid):
        assert one < other <= max(one + 1, GRID * one)


BASELINE = 0.5


def pretend_lab(monkeypatch, plateau_of, rising=lambda length, seed: False, fitted=0.0):
    """Instead of training, results with the plateaus of a law; returns the lengths 'trained' so far."""
    trained = []

    def train_all(runs, *, output=None, device=None, progress=None):
        results = []
        for run in runs:
            length, seed = run.training.length, run.training.seed
            trained.append(length)
            limit = plateau_of(length, seed)
            rows = []
            for test in run.test_lengths:
                drift = math.log10(test) if rising(length, seed) else 1.0
                value = fitted if test == length else limit * drift * (1 - 0.5 / test)
                rows += [
                    (1, test, "loss", value),
                    (1, test, "loss_error", limit / 100),
                    (1, test, "baseline", BASELINE),
                ]
            weights = start_ensemble(run.model, run.task, [seed]).stack.weights(0)
            results.append(Result(run, metrics_frame(run, rows), weights))
        if progress:
            progress(sum(run.training.steps for run in runs))
        return results

    monkeypatch.setattr(advice_module, "train_all", train_all)
    return trained


@settings(max_examples=40)
@given(st.floats(1.5, 5), st.floats(3, 30), st.floats(0.002, 0.05))
def test_the_confirmed_length_is_the_shortest_that_suffices(exponent, scale, tolerance):
    """A law that is flat at the baseline up to ``scale`` and then falls: the true answer is known."""

    def law(length, seed):
        noise = 1 + 0.01 * math.sin(12.9 * length + 7.1 * seed)
        return min(BASELINE, BASELINE * (scale / length) ** exponent) * noise

    true = scale * (BASELINE / tolerance) ** (1 / exponent)
    assume(true < 100)
    with pytest.MonkeyPatch.context() as patch:
        trained = pretend_lab(patch, law)
        found = lw.advise(lw.SimpleTask(), tolerance=tolerance, seeds=3)
    if found.predicted_length is None:
        assert true > 3 * max(trained)
        return
    assert found.confirmed_length is not None
    assert found.confirmed_length >= true / 1.03
    assert found.confirmed_length <= max(math.ceil(true * 1.03) + 1, math.ceil(true * 1.03 * FINE))
    assert found.confirmed
    pilot = [at.training_length for at in found.lengths if at.stage == "pilot"]
    assert found.prediction.decay is not None
    assert set(found.prediction.decay.lengths) <= set(pilot)
    measured = [at.training_length for at in found.lengths]
    below = max((n for n in measured if n < found.confirmed_length), default=None)
    if below is not None:
        assert found.confirmed_length <= max(below + 1, FINE * below)
    for one, other in itertools.pairwise(n for n in measured if n >= found.confirmed_length / GRID):
        assert other <= max(one + 1, GRID * one)


def test_a_rising_curve_does_not_count_as_a_plateau(monkeypatch):
    """Even if its value at the end is within the tolerance."""
    pretend_lab(monkeypatch, lambda n, s: 0.4 * (4 / n) ** 3, rising=lambda n, s: n > 20)
    found = lw.advise(lw.SimpleTask(), tolerance=1e-3, seeds=3)
    assert found.predicted_length is not None
    assert found.confirmed_length is None
    assert not found.confirmed
    rising = [at for at in found.lengths if at.training_length > 20]
    assert rising
    assert all(at.plateau == math.inf and at.level == 0 for at in rising)


def test_a_floor_above_the_tolerance_is_reported_not_hidden(monkeypatch):
    pretend_lab(monkeypatch, lambda n, s: max(0.02, 0.4 * (4 / n) ** 3))
    found = lw.advise(lw.SimpleTask(), tolerance=0.01, seeds=3)
    assert found.predicted_length is not None
    assert found.confirmed_length is None
    assert max(at.training_length for at in found.lengths) >= 4 * found.predicted_length


def test_the_shortest_measured_length_counts_even_if_a_longer_one_fails(monkeypatch):
    """13 is within the tolerance by luck and 15 is not: 13 is the answer, and 15 is named."""
    pretend_lab(monkeypatch, lambda n, s: 0.00995 if n == 13 else 0.01 * (15.5 / n) ** 2)
    found = lw.advise(lw.SimpleTask(), tolerance=0.01, seeds=1)
    measured = {at.training_length: at.plateau for at in found.lengths}
    assert {12, 13, 15} <= set(measured)
    assert found.confirmed_length == 13 == min(n for n, value in measured.items() if value <= 0.01)
    assert found.exceptions == (15,)


def test_models_that_do_not_fit_are_not_blamed_on_the_length(monkeypatch):
    pretend_lab(monkeypatch, lambda n, s: 0.4, fitted=0.3)
    found = lw.advise(lw.SimpleTask(), seeds=1)
    assert found.predicted_length is None
    assert "do not even fit sequences of their training length 8" in found.prediction.reason


def test_seeds_and_settings_reach_the_runs(monkeypatch):
    seen = []

    def train(runs, **_):
        seen.extend(runs)
        raise ValueError("enough")

    monkeypatch.setattr(advice_module, "train_all", train)
    with pytest.raises(ValueError, match="enough"):
        lw.advise(lw.SimpleTask(), seeds=2, seed=10, training=lw.Training(length=99, steps=7, batch=3))
    assert {run.training.seed for run in seen} == {10, 11}
    assert {run.training.steps for run in seen} == {7}
    assert 99 not in {run.training.length for run in seen}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tolerance": 0.0}, "tolerance must be"),
        ({"tolerance": math.nan}, "tolerance must be"),
        ({"seeds": 0}, "seeds must be"),
        ({"pilot_longest": 3}, "pilot's longest training length"),
        ({"pilot_longest": 10**9}, "pilot's longest training length"),
        ({"evaluation": lw.Evaluation(lengths=(10, 100))}, "pilot's longest training length"),
    ],
)
def test_mistakes(wrong, message):
    with pytest.raises(ValueError, match=message):
        lw.advise(lw.SimpleTask(), **wrong)


def test_advice_from_real_training(tmp_path):
    """A small, real case from end to end: the answer holds when measured independently of the search."""
    settings = {
        "training": lw.Training(length=1, steps=600, batch=64, learning_rate=3e-3),
        "evaluation": lw.Evaluation(sequences=1024),
    }
    task, model = lw.SimpleTask(omega=4), lw.LimitModel(width=32, hidden=64)
    found = lw.advise(task, model, 0.05, seeds=3, output=tmp_path, **settings)
    assert found.confirmed_length is not None
    runs = [
        lw.Run(
            task,
            model,
            lw.Training(length=found.confirmed_length, steps=600, batch=64, learning_rate=3e-3, seed=s),
        )
        for s in range(3)
    ]
    assert lw.plateaus(lw.train(runs))["plateau"].median() <= 0.06
    data = found.to_json()
    assert {"task", "tolerance", "predicted_length", "interval", "confirmed_length", "confirmed"} <= set(data)
    again = lw.advise(task, model, 0.05, seeds=3, output=tmp_path, **settings)
    assert again.to_json() == data
