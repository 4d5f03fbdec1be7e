"""A store under fault: kills and full disks at every call that changes the disk, damage, foreign things."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save
from stores import DECODER, RUNS, decoder_result, filled, results

import lengthwise as lw
from lengthwise import _files
from lengthwise.experiments.results import table
from lengthwise.experiments.store import DamagedRun

CALLS = ("open", "mkdir", "rename", "replace", "unlink", "rmdir", "fsync", "write", "ftruncate")
"""What changes the disk, of ``os``; contents are written by ``write_file`` and by what libraries have."""


def before_calls(patch, act):
    """Have ``act`` called before every call that changes the disk, and in the midst of writing a file."""

    def watched(function):
        def wrapper(*arguments, **keywords):
            act()
            return function(*arguments, **keywords)

        return wrapper

    def in_the_midst(path, content):
        with open(path, "xb") as file:
            file.write(content[: len(content) // 2])
            file.flush()
            act()
            file.write(content[len(content) // 2 :])
            file.flush()
            os.fsync(file.fileno())

    for name in CALLS:
        patch(os, name, watched(getattr(os, name)))
    patch(sys.modules["lengthwise.experiments.store"], "write_file", in_the_midst)


KILLS = """
import os, signal, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
import torch
torch.set_num_threads(1)
import lengthwise as lw
from stores import RUNS, results
from test_store_faults import before_calls

found, runs = results(), RUNS[:2]
finished = left = 0
for call in range(1000):
    folder = Path(sys.argv[1]) / str(call)
    lw.Store(folder)
    child = os.fork()
    if not child:
        calls = iter(range(1000))
        before_calls(setattr, lambda: next(calls) == call and os.kill(os.getpid(), signal.SIGKILL))
        kept = lw.Store(folder)
        with kept.writing():
            kept.add(found)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status == 0:
        break
    assert status == signal.SIGKILL, status
    before = {path.name for path in folder.iterdir()}
    left += any(name.startswith((".writing-", ".written-")) for name in before)
    again = lw.Store(folder)
    with again.writing():
        present = [run in again for run in runs]
        assert all(present) or not any(present), call
        assert {path.name for path in folder.iterdir()} - {run.id for run in runs} <= {".lock", ".claims"}
        assert not list((folder / ".claims").glob("*")), call
        finished += all(present)
        if not all(present):
            again.add(found)
    for run, result in zip(runs, found):
        assert again.result(run).metrics.equals(result.metrics)
        assert all(again.weights(run)[name].equal(value) for name, value in result.weights.items())
print(call, finished, left)
"""


def test_sigkill_at_any_call_of_writing_loses_all_of_an_ensemble_or_nothing(tmp_path):
    script, here = tmp_path / "kills.py", Path(__file__).parent
    script.write_text(KILLS)
    done = subprocess.run([sys.executable, script, tmp_path / "stores", here], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    calls, finished, left = map(int, done.stdout.split())
    assert calls > 40
    assert 0 < finished < calls
    assert left > 20


def test_a_full_disk_at_any_call_is_one_clear_error_and_the_store_stays_valid(tmp_path, monkeypatch):
    """Nothing half written is seen, and the same folder takes the results once there is room."""
    runs, found = RUNS[:2], results()
    expected = table(runs, [result.metrics for result in found])
    for call in range(1000):
        folder = tmp_path / str(call)
        kept, calls, told = lw.Store(folder), iter(range(1000)), None

        def full(calls=calls, call=call):
            if next(calls) >= call:
                raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            before_calls(patch.setattr, full)
            try:
                with kept.writing():
                    kept.add(found)
            except OSError as error:
                told = str(error)
        present = [run in kept for run in runs]
        assert not any(present) or all(present) or list(folder.glob(".written-*"))
        for run in kept.runs():
            kept.result(run)
        if told is None:
            break
        assert told == f"cannot write to the folder {folder}: No space left on device"
        with kept.writing():
            if not all(run in kept for run in runs):
                kept.add(found)
        pd.testing.assert_frame_equal(kept.table(runs), expected, check_exact=True)
        assert {path.name for path in folder.iterdir()} == {".lock", ".claims", *(run.id for run in runs)}
    assert call > 30


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files have no names here")
def test_what_is_said_to_be_done_is_on_the_disk_in_this_order(tmp_path, monkeypatch):
    """Contents before their folder, that before the rename that finishes an ensemble, and every rename before
    one goes on: a power cut can take nothing back.
    """
    log, plain_sync, plain_rename = [], os.fsync, os.rename

    def synced(file):
        log.append(("sync", Path(os.readlink(f"/proc/self/fd/{file}")).name))
        plain_sync(file)

    def renamed(old, new):
        log.append(("rename", Path(old).name.split("-")[0], Path(new).name.split("-")[0]))
        plain_rename(old, new)

    kept, (first, second) = lw.Store(tmp_path / "store"), RUNS[:2]
    with monkeypatch.context() as patch, kept.writing():
        patch.setattr(os, "fsync", synced)
        patch.setattr(os, "rename", renamed)
        kept.add(results())
    files = ["spec.json", "metrics.parquet", "weights.safetensors", "SHA256SUMS"]
    writing = [name for kind, name, *_ in log if kind == "sync" and name.startswith(".writing-")]
    order = [*(("sync", name) for run in (first, second) for name in (*files, run.id)), ("sync", *writing)]
    order += [("rename", ".writing", ".written"), ("sync", "store")]
    order += [("rename", name, name) for name in sorted((first.id, second.id))] + [("sync", "store")]
    assert log == order


def test_a_file_that_replaces_another_is_complete_or_absent(tmp_path, monkeypatch):
    path = tmp_path / "results"
    path.write_text("old")
    for call in range(20):

        def full(calls=iter(range(call + 1)), call=call):  # noqa: B008 (a new one for each call)
            if next(calls, call) >= call:
                raise OSError(errno.ENOSPC, "No space left on device")

        told = None
        try:
            with monkeypatch.context() as patch:
                before_calls(patch.setattr, full)
                with _files.replacing(path) as temporary:
                    temporary.write_text("new")
        except OSError as error:
            told = str(error)
        if told is None:
            break
        assert told == f"cannot write {path}: No space left on device"
        assert path.read_text() in ("old", "new")
    assert path.read_text() == "new"
    assert call > 3
    with _files.replacing(path) as temporary:
        temporary.write_text("newer")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("results", "newer")]


def damage(folder, kind):
    """Spoil a run's folder in one of many ways; the words that must be said of it."""
    rows, weights = folder / "metrics.parquet", folder / "weights.safetensors"
    if kind == "truncated":
        rows.write_bytes(rows.read_bytes()[:-20])
        return "metrics.parquet cannot be read as a table"
    if kind == "row gone":
        pd.read_parquet(rows).iloc[:-1].to_parquet(rows, index=False)
        return "it lacks the"
    if kind == "row of another":
        pd.read_parquet(rows).assign(run="0" * 16).to_parquet(rows, index=False)
        return "rows of another run"
    if kind == "row twice":
        frame = pd.read_parquet(rows)
        pd.concat([frame, frame.iloc[:1]]).to_parquet(rows, index=False)
        return "it has a row twice"
    if kind == "other table":
        pd.DataFrame({"a": [1]}).to_parquet(rows, index=False)
        return "its columns are a"
    if kind == "bad json":
        (folder / "spec.json").write_text("{")
        return "spec.json cannot be read as the specification"
    if kind == "deep json":
        (folder / "spec.json").write_text("[" * 10**5)
        return "spec.json cannot be read as the specification"
    if kind == "not a number":
        told = json.loads((folder / "spec.json").read_text())
        told["made_by"]["models_in_ensemble"] = float("nan")
        (folder / "spec.json").write_text(json.dumps(told))
        return "NaN is no number"
    if kind == "other specification":
        told = json.loads((folder / "spec.json").read_text())
        told["specification"]["training"]["seed"] += 17
        (folder / "spec.json").write_text(json.dumps(told))
        return "it is that of"
    if kind == "other shape":
        weights.write_bytes(save({"embedding": torch.zeros(2, 3)}))
        return "weights.safetensors cannot be read as weights: it has embedding"
    if kind == "pickle":
        weights.write_bytes(b"\x80\x04pickle")
        return "weights.safetensors cannot be read as weights"
    if kind == "file gone":
        weights.unlink()
        return "weights.safetensors cannot be read as weights: there is no such file"
    if kind == "a pipe":
        rows.unlink()
        os.mkfifo(rows)
        return "metrics.parquet cannot be read as a table of results: there is no such file"
    raise AssertionError(kind)


KINDS = ["truncated", "row gone", "row of another", "row twice", "other table", "bad json", "deep json"]
KINDS += ["not a number", "other specification", "other shape", "pickle", "file gone", "a pipe"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("run", [RUNS[0], DECODER], ids=["limit", "decoder"])
def test_damage_is_found_named_and_never_used(tmp_path, kind, run):
    """By reading alone, as in folders from before there were checksums, and by the checksum."""
    for old in (True, False):
        kept = filled(tmp_path / str(old))
        folder = kept.folder / run.id
        if old:
            told = json.loads((folder / "spec.json").read_text())
            del told["checksums"]
            (folder / "spec.json").write_text(json.dumps(told))
            (folder / "SHA256SUMS").unlink()
            kept.result(run)
        words = damage(folder, kind)
        with pytest.raises(DamagedRun) as error:
            kept.result(run)
        if old:
            assert words in str(error.value)
        assert str(error.value).startswith(f"{folder}: ")
        assert str(error.value).endswith(f"lengthwise runs {kept.folder} --repair sets it aside")
        with pytest.raises(DamagedRun):  # before anything is trained
            lw.train([run], output=kept.folder, device="cpu", progress=lambda _: pytest.fail("it trains"))
        others = [other.run for other in (*results(), *decoder_result()) if other.run != run]
        if kind != "file gone" and "weights" not in words:
            with pytest.warns(UserWarning, match="1 of 3 runs in .* cannot be read and are left out"):
                rows = kept.table()
            assert sorted(rows["run"].unique()) == sorted(other.id for other in others)
        assert len(kept.table(others)["run"].unique()) == 2


@settings(max_examples=25)
@given(st.data())
def test_any_flipped_bit_is_found(tmp_path_factory, data):
    kept = filled(tmp_path_factory.mktemp("store"))
    folder = kept.folder / data.draw(st.sampled_from([RUNS[0].id, DECODER.id]))
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with pytest.raises(DamagedRun):
        kept.result(RUNS[0] if folder.name == RUNS[0].id else DECODER)


def test_checksums_are_those_of_sha256sum(tmp_path):
    kept = filled(tmp_path)
    for run in kept.runs():
        done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=tmp_path / run.id, capture_output=True)
        assert done.returncode == 0
        assert done.stdout.decode().count(": OK") == 3
        (tmp_path / run.id / "SHA256SUMS").unlink()
        with pytest.raises(DamagedRun, match="its checksums, SHA256SUMS, are gone"):
            kept.result(run)


def test_what_is_foreign_is_not_read_and_links_are_followed(tmp_path):
    kept = filled(tmp_path / "store")
    (kept.folder / "notes.txt").write_text("mine")
    (kept.folder / "old").mkdir()
    (kept.folder / ".DS_Store").write_text("")
    shutil.move(kept.folder / DECODER.id, tmp_path / "elsewhere")
    (kept.folder / DECODER.id).symlink_to(tmp_path / "elsewhere")
    assert sorted(run.id for run in kept.runs()) == sorted(run.id for run in (*RUNS[:2], DECODER))
    frame = lw.train([*RUNS[:2], DECODER], output=kept.folder, device="cpu")
    pd.testing.assert_frame_equal(frame, kept.table([*RUNS[:2], DECODER]), check_exact=True)
    for thing in ("a file", "a link that leads nowhere"):
        path = kept.folder / RUNS[2].id
        path.write_text(thing) if thing == "a file" else path.symlink_to("nowhere")
        with pytest.raises(DamagedRun, match="it is no folder"):
            lw.train(RUNS[:3], output=kept.folder, device="cpu")
        path.unlink()


def test_a_finished_store_is_read_without_the_right_to_write(tmp_path, monkeypatch):
    kept = filled(tmp_path)
    expected = kept.table(RUNS[:2])

    def refuse():
        raise OSError(errno.EROFS, "Read-only file system")

    plain = os.open

    def reading(path, flags, *rest, **keywords):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            refuse()
        return plain(path, flags, *rest, **keywords)

    with monkeypatch.context() as patch:
        before_calls(patch.setattr, refuse)
        patch.setattr(os, "open", reading)
        pd.testing.assert_frame_equal(lw.train(RUNS[:2], output=tmp_path, device="cpu"), expected)
        with pytest.raises(OSError, match=f"cannot write to the folder {tmp_path}: Read-only file system"):
            lw.train(RUNS[:3], output=tmp_path, device="cpu")
