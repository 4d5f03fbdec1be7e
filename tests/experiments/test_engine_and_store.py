"""Sweeps: how they are cut into ensembles, and what is kept of them."""

import shutil

import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.experiments import engine
from lengthwise.experiments.engine import plan, run_ensemble
from lengthwise.experiments.limits import bytes_of
from lengthwise.training.data import steps_at_once

EVALUATION = lw.Evaluation(lengths=(10, 30, 100, 300, 1000), sequences=64)
MODEL = lw.LimitModel(width=4, hidden=8)


def small_run(length=4, seed=0, steps=20, **knobs):
    return lw.Run(
        lw.SimpleTask(**knobs), MODEL, lw.Training(length=length, steps=steps, batch=8, seed=seed), EVALUATION
    )


SWEEP = [small_run(length, seed) for length in (2, 5) for seed in range(3)]


@pytest.fixture
def small_ensembles(monkeypatch):
    """Two runs an ensemble, so that a small sweep has several."""
    monkeypatch.setattr(engine, "CPU_MEMORY", 2 * bytes_of(SWEEP[0]))


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(0, 5), st.sampled_from([10, 20])), max_size=30, unique=True
    ),
    st.integers(1, 8),
)
def test_a_plan_is_a_partition_into_like_runs_within_memory(cases, most):
    runs = [small_run(length, seed, steps) for length, seed, steps in cases]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "CPU_MEMORY", most * bytes_of(SWEEP[0]))
        ensembles = plan(runs, torch.device("cpu"))
    assert sorted(run.id for group in ensembles for run in group) == sorted(run.id for run in runs)
    for group in ensembles:
        assert 1 <= len(group) <= most
        assert len({run.training.steps for run in group}) == 1
    for steps in (10, 20):
        sizes = [len(group) for group in ensembles if group[0].training.steps == steps]
        total = sum(run.training.steps == steps for run in runs)
        assert len(sizes) == -(-total // most)
        assert not sizes or max(sizes) - min(sizes) <= 1


def test_memory_estimate_is_of_the_right_order():
    """Six buffers of the weights' size (values, gradients, rates, direction and Adam's two), the hidden
    units of a batch, and what is drawn at once: a model needs these, and not much more.
    """
    run = lw.Run(lw.SimpleTask(), lw.LimitModel(), lw.Training(length=8))
    weights = 2 * 64 + 64 * 64 * 2 + 256 * 64 * 2 + 256 + 64
    drawn = steps_at_once(256, 1) * 256 * (2 + 1 + 1)
    needed = 4 * (6 * weights + 256 * 256) + 8 * drawn
    assert needed <= bytes_of(run) <= 1.5 * needed


def test_rows_and_weights_of_a_run():
    frame = lw.train(SWEEP[:2])
    loss = frame[frame["metric"] == "loss"]
    assert sorted(loss["test_length"].unique()) == [2, 10, 30, 100, 300, 1000]
    assert set(frame["metric"]) == {"loss", "loss_error", "baseline", "training_loss"}
    assert set(frame["run"]) == {run.id for run in SWEEP[:2]}
    assert (frame["training.length"] == 2).all()
    assert set(frame["training.seed"]) == {0, 1}
    ends = lw.plateaus(frame)
    assert list(ends["run"]) == [run.id for run in SWEEP[:2]]


def test_attention_that_sharpens_with_the_length_is_reported_as_rising():
    """In finite precision a logit gap g weighs T^g: what is learned at length 8 drifts for ever after."""
    task, trainings = (
        lw.SimpleTask(omega=4),
        [lw.Training(length=8, steps=1500, seed=seed) for seed in range(2)],
    )
    for precision, trend in ((lw.Finite(53), "rising"), (lw.Infinite(), "level")):
        runs = [lw.Run(task, lw.LimitModel(precision=precision), training) for training in trainings]
        assert list(lw.plateaus(lw.train(runs))["trend"]) == [trend] * 2


def test_the_store_gives_back_what_was_computed(tmp_path, small_ensembles):
    in_memory = lw.train(SWEEP)
    on_disk = lw.train(SWEEP, output=tmp_path)
    pd.testing.assert_frame_equal(on_disk, in_memory, check_exact=True)
    kept = lw.Store(tmp_path)
    assert {run.id for run in kept.runs()} == {run.id for run in SWEEP}
    pd.testing.assert_frame_equal(kept.table(SWEEP), in_memory, check_exact=True)
    result = run_ensemble(SWEEP[:2], torch.device("cpu"), None)[0]
    weights = kept.weights(SWEEP[0])
    assert set(weights) == set(result.weights)
    for name, value in result.weights.items():
        assert torch.equal(weights[name], value)


def test_finished_ensembles_are_not_repeated(tmp_path, small_ensembles, monkeypatch):
    counted = []

    def counting(runs, *others):
        counted.append(len(runs))
        return run_ensemble(runs, *others)

    monkeypatch.setattr(engine, "run_ensemble", counting)
    lw.train(SWEEP[:4], output=tmp_path)
    assert counted == [2, 2]
    lw.train(SWEEP, output=tmp_path)
    assert counted == [2, 2, 2]
    done = []
    lw.train(SWEEP, output=tmp_path, progress=done.append)
    assert counted == [2, 2, 2]
    assert sum(done) == sum(run.training.steps for run in SWEEP)


def test_a_resumed_sweep_is_bit_for_bit_the_undisturbed_one(tmp_path, small_ensembles):
    undisturbed = lw.train(SWEEP, output=tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "resumed")
    for run in (SWEEP[1], SWEEP[2], SWEEP[5]):
        shutil.rmtree(tmp_path / "resumed" / run.id)
    resumed = lw.train(SWEEP, output=tmp_path / "resumed")
    pd.testing.assert_frame_equal(resumed, undisturbed, check_exact=True)


def test_devices():
    with pytest.raises(ValueError, match="device must be cpu or cuda"):
        lw.train(SWEEP[:1], device="tpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="no GPU"):
            lw.train(SWEEP[:1], device="cuda")
