"""Sweeps: how they are cut into ensembles, and that nothing kills them."""

import contextlib
import itertools
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.experiments import engine, store
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


class Killed(BaseException):
    """Stands for SIGKILL: nothing may catch it."""


@contextlib.contextmanager
def killed_at(monkeypatch, call):
    """End the process, so to speak, at the given one of the store's calls that change the disk."""
    counter = itertools.count()

    def dying(function):
        def wrapper(*arguments, **keywords):
            if next(counter) == call:
                raise Killed
            return function(*arguments, **keywords)

        return wrapper

    with monkeypatch.context() as patch:
        patch.setattr(store.os, "rename", dying(os.rename))
        patch.setattr(store.os, "fsync", dying(os.fsync))
        patch.setattr(store.shutil, "rmtree", dying(shutil.rmtree))
        patch.setattr(store.pq, "write_table", dying(store.pq.write_table))
        patch.setattr(store, "save_file", dying(store.save_file))
        patch.setattr(Path, "mkdir", dying(Path.mkdir))
        patch.setattr(Path, "write_text", dying(Path.write_text))
        yield


def test_a_kill_at_any_step_of_writing_loses_all_of_an_ensemble_or_nothing(tmp_path, monkeypatch):
    runs = SWEEP[:2]
    results = run_ensemble(runs, torch.device("cpu"), None)
    finished = 0
    for call in range(1000):
        folder = tmp_path / str(call)
        kept = lw.Store(folder)
        try:
            with killed_at(monkeypatch, call), kept.writing():
                kept.add(results)
        except Killed:
            pass
        else:
            break
        again = lw.Store(folder)
        with again.writing():
            present = [run in again for run in runs]
            assert all(present) or not any(present), call
            assert not list(folder.glob(".writing-*"))
            assert not list(folder.glob(".written-*"))
            finished += all(present)
            again.add(results)
        pd.testing.assert_frame_equal(
            again.table(runs),
            lw.experiments.results.table(runs, [r.metrics for r in results]),
            check_exact=True,
        )
    assert call > 10
    assert 0 < finished < call


def test_a_failed_write_leaves_nothing_and_says_so(tmp_path, monkeypatch):
    kept = lw.Store(tmp_path)
    results = run_ensemble(SWEEP[:1], torch.device("cpu"), None)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store, "save_file", full)
        with kept.writing(), pytest.raises(OSError, match=r"cannot write to the folder .*No space left"):
            kept.add(results)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    with kept.writing():
        kept.add(results)
    assert SWEEP[0] in kept


def test_one_writer_at_a_time(tmp_path):
    first, second = lw.Store(tmp_path), lw.Store(tmp_path)
    with first.writing(), pytest.raises(OSError, match="another process is writing"), second.writing():
        pass
    with second.writing():
        pass


def test_damaged_files_are_named(tmp_path):
    lw.train(SWEEP[:1], output=tmp_path)
    folder = tmp_path / SWEEP[0].id
    kept = lw.Store(tmp_path)
    (folder / "metrics.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(ValueError, match=r"metrics\.parquet cannot be read"):
        kept.metrics(SWEEP[0])
    (folder / "weights.safetensors").write_bytes(b"\x80\x04pickle")
    with pytest.raises(ValueError, match=r"weights\.safetensors cannot be read"):
        kept.weights(SWEEP[0])
    (folder / "spec.json").write_text("{")
    with pytest.raises(ValueError, match=r"spec\.json cannot be read"):
        kept.runs()


def test_devices():
    with pytest.raises(ValueError, match="device must be cpu or cuda"):
        lw.train(SWEEP[:1], device="tpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="no GPU"):
            lw.train(SWEEP[:1], device="cuda")
