"""``lengthwise runs``: what is told of a store, what is set aside, and sweeps on a full disk."""

import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from stores import DECODER, RUNS, SWEEP, decoder_result, filled, results
from test_main import fails

import lengthwise as lw
from lengthwise.cli import main
from lengthwise.experiments import audit, run


def told(capsys, *arguments, status=0):
    """The document that the command prints."""
    assert main(["runs", *map(str, arguments), "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_runs_are_listed_with_where_they_end(capsys, tmp_path):
    kept = filled(tmp_path / "out" / "runs")
    for folder in (kept.folder, tmp_path / "out"):
        found = told(capsys, folder)
        assert found["folder"] == str(kept.folder)
        assert {row["run"] for row in found["runs"]} == {run.id for run in (*RUNS[:2], DECODER)}
    by_id = {row["run"]: row for row in found["runs"]}
    plateau = lw.plateaus(kept.table(RUNS[:1]))["plateau"].iloc[0]
    row = by_id[RUNS[0].id]
    assert row["outcome"]["plateau"] == plateau
    assert (row["family"], row["task"]["name"], row["training_length"], row["seed"]) == (
        "limit",
        "simple",
        2,
        0,
    )
    assert row["made_by"]["lengthwise"] == lw.__version__
    right = lw.accuracies(kept.table([DECODER]))
    assert by_id[DECODER.id]["outcome"]["accuracy_10"] == right["accuracy_10"].iloc[0]
    assert (found["wrong"], found["leftovers"], found["quarantined"], found["repair"]) == ([], [], [], None)

    assert main(["runs", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    for run_ in (*RUNS[:2], DECODER):
        (line,) = [line for line in text.splitlines() if run_.id in line]
        assert f" {run_.training.length} " in line
    assert f"{plateau:.2g} (" in text
    assert f"3 runs in {kept.folder}, all whole" in text


def test_what_is_wrong_is_told_set_aside_and_trained_again(capsys, tmp_path):
    """One line each, exit status 1; repaired, 0; nothing is deleted; and the sweep ends as if undisturbed."""
    kept = filled(tmp_path)
    whole = kept.table([*RUNS[:2], DECODER])
    damaged, rows = tmp_path / RUNS[0].id, tmp_path / RUNS[0].id / "metrics.parquet"
    rows.write_bytes(rows.read_bytes()[:100])
    (tmp_path / DECODER.id / "notes.txt").write_text("mine")
    (tmp_path / "reasons.json").write_text("also mine")
    (tmp_path / "old").mkdir()
    (tmp_path / ("0" * 16)).symlink_to("nowhere")
    shutil.copytree(tmp_path / RUNS[1].id, tmp_path / ("f" * 16))
    (tmp_path / ".writing-abc" / RUNS[2].id).mkdir(parents=True)
    (tmp_path / ".DS_Store").write_text("not ours, not wrong")
    before = {
        path: path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file() and ".claims" not in path.parts
    }
    wrong = {damaged.name, f"{DECODER.id}/notes.txt", "reasons.json", "old", "0" * 16, "f" * 16}

    found = told(capsys, tmp_path, status=1)
    assert {row["path"] for row in found["wrong"]} == wrong
    assert found["leftovers"] == [".writing-abc"]
    assert {row["run"] for row in found["runs"]} == {RUNS[1].id, DECODER.id}
    assert main(["runs", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    for path in wrong:
        assert sum(line.startswith(f"wrong: {path}: ") for line in lines) == 1
    assert {path: path.read_bytes() for path in before} == before

    with kept.writing():
        message = fails(capsys, "runs", str(tmp_path), "--repair")
        assert f"{tmp_path} is being written to by another process: wait until it ends" in message
    (tmp_path / ".writing-abc" / RUNS[2].id).mkdir(parents=True)  # a writer clears what a killed one left
    message = fails(capsys, "runs", str(tmp_path / "old"))
    assert "is no store of runs" in message

    found = told(capsys, tmp_path, "--repair")
    assert found["wrong"] == []
    aside = Path(found["repair"]["quarantine"])
    assert aside.parent == tmp_path / ".quarantine"
    assert {row["path"] for row in found["repair"]["moved"]} == {*wrong, ".writing-abc"}
    reasons = {row["path"]: row["reason"] for row in json.loads((aside / "reasons.json").read_text())}
    assert set(reasons) == wrong
    assert "metrics.parquet" in reasons[damaged.name]
    kept_now = sorted(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for content in before.values():
        assert content in kept_now
    assert os.readlink(aside / ("0" * 16)) == "nowhere"

    assert told(capsys, tmp_path)["wrong"] == []
    assert told(capsys, tmp_path, "--repair")["repair"] == {"quarantine": None, "moved": [], "finished": []}
    again = lw.train([*RUNS[:2], DECODER], output=tmp_path, device="cpu")
    pd.testing.assert_frame_equal(again, whole, check_exact=True)


def test_what_a_killed_writer_had_written_is_finished(capsys, tmp_path):
    """Even where something damaged is in its place."""
    other = filled(tmp_path / "other")
    kept = lw.Store(tmp_path / "store")
    with kept.writing():
        kept.add(decoder_result())
    written = kept.folder / ".written-abc"
    for name in (RUNS[0].id, RUNS[1].id):
        shutil.copytree(other.folder / name, written / name)
    (kept.folder / RUNS[1].id).mkdir()
    found = told(capsys, kept.folder, "--repair")
    assert found["repair"]["finished"] == sorted(run.id for run in RUNS[:2])
    assert {row["run"] for row in found["runs"]} == {run.id for run in (*RUNS[:2], DECODER)}
    assert [row["path"] for row in found["repair"]["moved"]] == [RUNS[1].id]
    assert not kept.leftovers()
    for result in results():
        assert kept.metrics(result.run).equals(result.metrics)


def test_what_a_killed_writer_had_written_and_was_spoilt_since_is_set_aside_at_once(capsys, tmp_path):
    kept = filled(tmp_path)
    left = tmp_path / ".written-abc"
    left.mkdir()
    for run_ in RUNS[:2]:
        shutil.move(tmp_path / run_.id, left / run_.id)
    (left / RUNS[0].id / "spec.json").write_text("")
    repaired = told(capsys, tmp_path, "--repair")
    assert repaired["repair"]["finished"] == [RUNS[1].id]
    assert [row["path"] for row in repaired["repair"]["moved"]] == [RUNS[0].id]
    assert repaired["quarantined"]
    assert told(capsys, tmp_path)["wrong"] == []
    assert {run_.id for run_ in kept.runs()} == {RUNS[1].id, DECODER.id}


def test_two_repairs_within_a_second_do_not_mix(tmp_path):
    kept = filled(tmp_path)
    places = []
    for _ in range(3):
        (tmp_path / "notes.txt").write_text(str(len(places)))
        places.append(audit.repair(kept)[0].quarantine)
    assert len(set(places)) == 3
    assert [(place / "notes.txt").read_text() for place in places] == ["0", "1", "2"]


def test_a_full_disk_while_repairing_moves_nothing_unexplained(tmp_path, monkeypatch):
    kept = filled(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(audit, "write_file", full)
        with pytest.raises(OSError, match=f"cannot write to the folder {tmp_path}: No space left"):
            audit.repair(kept)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_runs_of_another_version_are_unused_but_not_wrong(capsys, tmp_path, monkeypatch):
    kept = filled(tmp_path)
    monkeypatch.setitem(run.SPECIFICATION, "limit", run.SPECIFICATION["limit"] + 1)
    found = told(capsys, tmp_path, "--repair")
    assert [row["run"] for row in found["runs"]] == [DECODER.id]
    assert {row["path"] for row in found["other_versions"]} == {path.name for path in kept.run_folders()} - {
        DECODER.id
    }
    assert found["repair"]["moved"] == []
    with pytest.warns(UserWarning, match="2 of 3 runs"):
        assert kept.runs() == [DECODER]


def test_who_trains_is_told_and_checkpoints_belong(capsys, tmp_path):
    kept = filled(tmp_path)
    (tmp_path / ".checkpoints").mkdir()
    (tmp_path / ".checkpoints" / "abc.safetensors").write_text("")
    (tmp_path / ".checkpoints" / "abd.set-aside-1").write_text("")
    with kept.writing():
        kept.claims.take("abc", RUNS[2:4])
        found = told(capsys, tmp_path)
        (claim,) = found["in_progress"]["claimed"]
        assert (claim["process"], claim["runs"]) == (os.getpid(), [run.id for run in RUNS[2:4]])
        assert found["in_progress"]["checkpoints"] == ["abc.safetensors"]
        assert found["quarantined"] == [".checkpoints/abd.set-aside-1"]
        assert main(["runs", str(tmp_path)]) == 0
        printed = capsys.readouterr().out
        assert f"in progress: 2 runs by process {os.getpid()} on " in printed
        assert f"set aside earlier, in {tmp_path / '.checkpoints'}: 1 thing" in "".join(printed.splitlines())
    assert told(capsys, tmp_path)["in_progress"]["claimed"] == []


def test_mistakes_are_one_line_and_make_nothing(capsys, tmp_path):
    assert "there is no folder" in fails(capsys, "runs", str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-me.txt").write_text("dear")
    assert "is no store of runs" in fails(capsys, "runs", str(tmp_path / "letters"), "--repair")
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["to-me.txt"]


@contextlib.contextmanager
def disk(folder, kilobytes):
    """A file system of this size; the test is skipped where one may not mount any."""
    folder.mkdir()
    size = f"size={kilobytes}k"
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a small file system is not permitted here")
    try:
        yield lambda *options: subprocess.run(
            ["mount", "-o", ",".join(("remount", *options)), folder], check=True
        )
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_sweep_on_a_full_disk_stops_with_one_line_and_goes_on_when_there_is_room(
    capsys, tmp_path, one_thread
):
    """At whichever file the room ends: a run, the table, the figure. Then a disk that cannot be written."""
    file, folder = tmp_path / "sweep.py", tmp_path / "disk"
    file.write_text(SWEEP.replace("SEEDS", "1"))
    arguments = ["sweep", str(file), "--device", "cpu", "--output"]
    assert main([*arguments, str(tmp_path / "whole")]) == 0
    whole, stopped = (tmp_path / "whole" / "results.parquet").read_bytes(), []
    capsys.readouterr()
    with disk(folder, 20) as remounted:
        output = folder / "out"
        for room in (60, 200, 215, 1000):
            remounted(f"size={room}k")
            if main([*arguments, str(output)]) == 0:
                break
            stopped.append(capsys.readouterr().err.strip().splitlines()[-1])
            assert "No space left on device" in stopped[-1]
            assert stopped[-1].startswith(
                f"lengthwise: cannot write {'' if 'runs' not in stopped[-1] else 'to '}"
            )
            assert told(capsys, output)["wrong"] == []
        assert (output / "results.parquet").read_bytes() == whole
        assert {"about.json", "figure.png", "results.parquet", "runs"} == {
            path.name for path in output.iterdir()
        }
        assert len(stopped) >= 2
        remounted("ro")
        capsys.readouterr()
        assert len(told(capsys, output)["runs"]) == 10
        assert main([*arguments, str(output)]) == 2  # nothing to train, but a table to write
        message = capsys.readouterr().err.splitlines()[-1]
        assert message == f"lengthwise: cannot write {output / 'results.parquet'}: Read-only file system"
        assert "Read-only file system" in fails(capsys, "runs", str(output), "--repair")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_what_cannot_be_printed_is_one_line_and_status_2(tmp_path):
    """Of the result, and of the line itself."""
    filled(tmp_path)
    for full, other in (("stdout", "stderr"), ("stderr", "stdout")):
        arguments = ["runs", str(tmp_path)] if full == "stdout" else ["nosuch"]
        code = "from lengthwise.cli import entry; entry()"
        with open("/dev/full", "w") as device:
            streams = {full: device, other: subprocess.PIPE}
            done = subprocess.run([sys.executable, "-c", code, *arguments], text=True, **streams)
        assert done.returncode == 2
        said = "lengthwise: cannot write what is to be printed: No space left on device\n"
        assert getattr(done, other) == (said if full == "stdout" else "")
