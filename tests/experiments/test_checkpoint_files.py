"""Checkpoints on disk: what is killed goes on from them, and none is trusted that should not be."""

import errno
import os
import stat
import warnings

import pandas as pd
import pytest
import torch
from safetensors.torch import save

import lengthwise as lw
from lengthwise.experiments import checkpoints
from lengthwise.experiments.checkpoints import (
    CheckpointFolder,
    CheckpointWarning,
    EnsembleCheckpoints,
    decode,
    encode,
)
from lengthwise.training.checkpoint import State

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")
LIMIT = lw.Run(
    lw.SimpleTask(),
    lw.LimitModel(width=4, hidden=8),
    lw.Training(length=4, steps=60, batch=8),
    lw.Evaluation(lengths=(10, 30, 100, 300, 1000), sequences=16),
)
DECODER = lw.Run(
    lw.task("binary-majority"),
    lw.DecoderModel(width=8, heads=2, layers=1, positions="learned"),
    lw.DecoderTraining(length=6, steps=60, batch=4),
    lw.DecoderEvaluation(ends=(6, 12), sequences=8, every=20),
)
RUNS = lw.vary(LIMIT, seed=range(2))
STATE = State({"weights": torch.arange(12.0).view(3, 4), "none": torch.zeros(2, 0)}, {"step": 7, "left": [1]})


class Killed(BaseException):
    """Stands for SIGKILL: nothing may catch it."""


def killed_after(steps):
    """Progress that ends the process, so to speak, once more model-steps than this are done."""
    done = 0

    def progress(more):
        nonlocal done
        done += more
        if done > steps:
            raise Killed

    return progress


@pytest.fixture
def after_every_step(monkeypatch):
    monkeypatch.setattr(checkpoints, "SHARE", 1e9)


@pytest.mark.parametrize("run", [LIMIT, DECODER], ids=["limit", "decoder"])
def test_a_killed_sweep_goes_on_from_its_last_step(tmp_path, after_every_step, monkeypatch, run):
    runs = lw.vary(run, seed=range(2))
    whole = lw.train(runs)
    for steps in (30, 70):
        with pytest.raises(Killed):
            lw.train(runs, output=tmp_path, checkpoint_every=0, progress=killed_after(steps))
    (path,) = tmp_path.glob(".checkpoints/*")
    at = decode(path.read_bytes(), runs, CPU).about["step"]
    assert at == 35
    told = []
    found = lw.train(runs, output=tmp_path, progress=told.append)
    pd.testing.assert_frame_equal(found, whole, check_exact=True)
    assert told[0] == 2 * at
    assert not (tmp_path / ".checkpoints").exists()


def test_short_runs_leave_no_checkpoint(tmp_path, monkeypatch):
    def never(*_):
        raise AssertionError("a checkpoint is written")

    monkeypatch.setattr(CheckpointFolder, "write", never)
    lw.train(RUNS, output=tmp_path)


def test_a_state_comes_back_as_it_was():
    found = decode(encode(STATE, RUNS, CPU), RUNS, CPU)
    assert found.about == STATE.about
    assert set(found.tensors) == set(STATE.tensors)
    assert all(torch.equal(found.tensors[name], tensor) for name, tensor in STATE.tensors.items())


def test_every_damaged_byte_and_every_cut_is_seen():
    data = encode(STATE, RUNS, CPU)
    for place in range(len(data)):
        broken = bytearray(data)
        broken[place] ^= 1
        with pytest.raises(ValueError, match=r"."):
            decode(bytes(broken), RUNS, CPU)
        with pytest.raises(ValueError, match=r"."):
            decode(data[:place], RUNS, CPU)


def foreign(monkeypatch):
    """Files that are no checkpoints of these runs, and why."""
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "FORMAT", "lengthwise checkpoint 0")
        data = encode(STATE, RUNS, CPU)
    yield data, "checkpoint 0"
    with monkeypatch.context() as patch:
        patch.setattr(torch, "__version__", "1.0")
        data = encode(STATE, RUNS, CPU)
    yield data, "torch '1.0'"
    yield encode(STATE, RUNS[::-1], CPU), "other runs"
    yield encode(STATE, RUNS[:1], CPU), "other runs"
    yield encode(STATE, RUNS, torch.device("cuda")), "device 'cuda'"
    yield encode(STATE, RUNS, CPU), "taken is None"
    yield save(dict(STATE.tensors)), "__metadata__"
    yield b"\x80\x04pickle", "."
    yield b"", "."


def test_what_cannot_be_used_is_set_aside_and_its_runs_start_anew(tmp_path, monkeypatch):
    whole = lw.train(RUNS)
    for number, (data, why) in enumerate(foreign(monkeypatch), start=1):
        path = CheckpointFolder(tmp_path).path(RUNS)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        for run in RUNS:
            if (tmp_path / run.id).exists():
                os.rename(tmp_path / run.id, tmp_path / f".done-{number}-{run.id}")
        with pytest.warns(CheckpointWarning, match=rf"cannot be used.*start anew: .*({why})"):
            found = lw.train(RUNS, output=tmp_path)
        pd.testing.assert_frame_equal(found, whole, check_exact=True)
        assert path.with_suffix(f".set-aside-{number}").read_bytes() == data
        assert not path.exists()


def test_a_full_disk_ends_no_run_and_is_said_once(tmp_path, monkeypatch, after_every_step):
    kept = CheckpointFolder(tmp_path)
    kept.write(RUNS, b"the one before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints.os, "fsync", full)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        mine = EnsembleCheckpoints(RUNS, CPU, kept)
        for _ in range(3):
            mine.save(STATE)
    assert [str(own.message) for own in said] == [
        f"no checkpoint can be written to {tmp_path}/.checkpoints: No space left on device; "
        "training goes on without"
    ]
    assert [path.read_bytes() for path in tmp_path.glob(".checkpoints/*")] == [b"the one before"]


def test_a_file_system_that_cannot_sync_a_folder_takes_checkpoints(tmp_path, monkeypatch):
    plain = os.fsync

    def fsync(opened):
        if stat.S_ISDIR(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        plain(opened)

    monkeypatch.setattr(os, "fsync", fsync)
    kept = CheckpointFolder(tmp_path)
    kept.write(RUNS, b"state")  # a warning would be an error
    assert kept.read(RUNS) == b"state"


def test_a_file_where_checkpoints_should_be_is_no_checkpoint(tmp_path):
    """Nothing is told of it until one is to be written."""
    (tmp_path / ".checkpoints").write_text("a file of somebody's")
    kept = CheckpointFolder(tmp_path)
    assert kept.read(RUNS) is None
    lw.train(RUNS, output=tmp_path)
    with pytest.warns(
        checkpoints.CheckpointWarning, match="no checkpoint can be written to .*goes on without"
    ):
        kept.write(RUNS, b"state")
    assert (tmp_path / ".checkpoints").read_text() == "a file of somebody's"


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf"), True])
def test_intervals(wrong, tmp_path):
    with pytest.raises(ValueError, match="checkpoint_every must be"):
        lw.train(RUNS, output=tmp_path, checkpoint_every=wrong)
