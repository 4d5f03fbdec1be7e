"""Several processes that sweep into one folder: they share the work, outlive each other, and agree."""

import errno
import fcntl
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pandas as pd
import pytest
import torch
from stores import DECODER, RUNS, SWEEP, decoder_result, files_of, results

import lengthwise as lw
from lengthwise import _files, _locks
from lengthwise.experiments import engine, sharing
from lengthwise.experiments.engine import run_ensemble
from lengthwise.experiments.limits import bytes_of
from lengthwise.experiments.sharing import Claims, claim_of


def test_a_claim_is_of_one_process_and_ends_with_it(tmp_path):
    ours, theirs = Claims(tmp_path / "claims"), Claims(tmp_path / "claims")
    assert ours.take("a", RUNS[:2])
    assert not theirs.take("a")
    assert theirs.take("b")
    assert theirs.held()["a"]["runs"] == [run.id for run in RUNS[:2]]
    assert theirs.held()["a"]["process"] == os.getpid()
    theirs.clear()
    ours.drop("a")
    assert theirs.take("a")
    theirs.drop_all()
    assert not list((tmp_path / "claims").iterdir())
    code = f"""
import os, signal
from pathlib import Path
from lengthwise.experiments.sharing import Claims
assert Claims(Path({str(tmp_path / "claims")!r})).take("a")
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (tmp_path / "claims" / "a").is_file()
    assert not ours.held()
    assert ours.take("a")
    ours.drop("a")
    assert not list((tmp_path / "claims").iterdir())


def test_a_lock_whose_file_is_removed_while_one_waits_is_taken_anew(tmp_path):
    """Or two processes would hold locks of the same name: one of the file that is gone, one of a new file."""
    path = tmp_path / "lock"
    for _ in range(50):
        first, got = _locks.taken(path), []
        waiting = threading.Thread(target=lambda: got.append(_locks.taken(path, wait=True)))  # noqa: B023
        waiting.start()
        _locks.removed(path, first)
        waiting.join()
        assert os.path.samestat(os.fstat(got[0]), os.stat(path))
        assert _locks.taken(path) is None
        _locks.released(got[0])


def test_the_name_of_a_claim_follows_from_the_runs_alone():
    assert claim_of(RUNS[:3]) == claim_of(RUNS[2::-1]) != claim_of(RUNS[:2])


def test_without_locks_there_is_one_clear_error(tmp_path, monkeypatch):
    def missing(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", missing)
    with pytest.raises(OSError, match=rf"the file system of {tmp_path} has no locks \(flock\)"):
        lw.train(RUNS[:1], output=tmp_path, device="cpu")
    with _files.replacing(tmp_path / "a") as temporary:  # who writes alone needs none
        temporary.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"


def test_what_a_live_writer_writes_is_left_alone(tmp_path):
    kept = lw.Store(tmp_path)
    with kept.writing():
        assert kept.claims.take("abc")
        (tmp_path / ".writing-abc").mkdir()
        (tmp_path / ".writing-abd").mkdir()
        lw.Store(tmp_path).check()
        assert [path.name for path in kept.leftovers()] == [".writing-abc"]
    lw.Store(tmp_path).check()
    assert not kept.leftovers()


def test_a_writer_that_ends_while_its_claim_is_asked_for_leaves_nothing_to_do(tmp_path, monkeypatch):
    """Between the look at what it writes and the claim, it brings its runs to their places."""
    kept, left = lw.Store(tmp_path), tmp_path / ".written-abc"
    (left / RUNS[0].id).mkdir(parents=True)
    take = kept.claims.take

    def ends(name):
        kept.place(left)
        left.rmdir()
        return take(name)

    monkeypatch.setattr(kept.claims, "take", ends)
    kept.check()
    assert (tmp_path / RUNS[0].id).is_dir()
    assert not list((tmp_path / ".claims").iterdir())


def test_what_is_in_the_way_of_a_store_is_named(tmp_path):
    for name, why in ((".claims", "File exists"), (".lock", "Is a directory")):
        folder = tmp_path / name[1:]
        folder.mkdir()
        (folder / name).touch() if why == "File exists" else (folder / name).mkdir()
        told = rf"cannot write to the folder {folder}: {folder / name} is in the way \({why}\)"
        with pytest.raises(OSError, match=told):
            lw.train(RUNS[:1], output=folder, device="cpu")


def test_who_repairs_is_alone(tmp_path):
    first, second = lw.Store(tmp_path), lw.Store(tmp_path)
    written = "is being written to by another process: wait until it ends"
    with first.writing(), second.writing(), pytest.raises(OSError, match=written), second.alone():
        pass
    with first.alone():
        with pytest.raises(OSError, match="is being repaired by another process: wait"), second.writing():
            pass
        with pytest.raises(OSError, match=written), second.alone():
            pass


def test_a_run_that_is_there_is_left_as_it_is(tmp_path):
    """Lists of runs that overlap: the second ensemble has one run in common with the first."""
    first, second = lw.Store(tmp_path), lw.Store(tmp_path)
    overlapping = run_ensemble(RUNS[1:3], torch.device("cpu"))
    with first.writing(), second.writing():
        first.add(results())
        before = (tmp_path / RUNS[1].id).stat().st_ino
        second.add(overlapping)
    assert (tmp_path / RUNS[1].id).stat().st_ino == before
    assert sorted(run.id for run in first.runs()) == sorted(run.id for run in RUNS[:3])
    assert not first.leftovers()


def test_the_next_ensemble_that_nobody_holds_is_taken_and_what_others_hold_is_awaited(
    tmp_path, monkeypatch, caplog
):
    """Another process holds the second of three ensembles, finishes it, and holds the third until it dies."""
    monkeypatch.setattr(engine, "CPU_MEMORY", 2 * bytes_of(RUNS[0]))
    monkeypatch.setattr(sharing, "LOOK_EVERY", 0.01)
    groups = [RUNS[0:2], RUNS[2:4], RUNS[4:6]]
    undisturbed, trained, waits, done = lw.train(RUNS, device="cpu"), [], [], []
    other = lw.Store(tmp_path)

    def counting(runs, *others):
        trained.append([run.id for run in runs])
        return run_ensemble(runs, *others)

    def other_lives(_):
        waits.append(list(trained))
        if len(waits) == 3:
            other.add(run_ensemble(groups[1], torch.device("cpu")))
        if len(waits) == 6:
            other.claims.drop_all()

    monkeypatch.setattr(engine, "run_ensemble", counting)
    monkeypatch.setattr(sharing.time, "sleep", other_lives)
    with other.writing(), caplog.at_level(logging.WARNING):
        for group in groups[1:]:
            assert other.claims.take(claim_of(group), group)
        frame = lw.train(RUNS, output=tmp_path, device="cpu", progress=done.append)
    ids = [[run.id for run in group] for group in groups]
    assert trained == [ids[0], ids[2]]
    assert waits == [[ids[0]]] * 6
    assert [record.getMessage() for record in caplog.records] == [
        f"waiting for 4 runs that other processes train into {tmp_path}"
    ]
    assert sum(done) == sum(run.training.steps for run in RUNS)
    pd.testing.assert_frame_equal(frame, undisturbed, check_exact=True)


def test_a_failed_sweep_holds_nothing(tmp_path, monkeypatch):
    """Even while somebody keeps the error, and with it all that was going on."""

    def failing(*_):
        raise OSError("no")

    with monkeypatch.context() as patch:
        patch.setattr(engine, "run_ensemble", failing)
        with pytest.raises(OSError, match="no") as kept:
            lw.train(RUNS, output=tmp_path, device="cpu")
    with lw.Store(tmp_path).alone():
        assert not Claims(tmp_path / ".claims").held()
    assert kept.value is not None


SWEEPER = """
import os, sys
import torch
torch.set_num_threads(1)
import lengthwise.cli as cli
import lengthwise.cli.sweep
from lengthwise.experiments import engine, sharing
sharing.LOOK_EVERY = 0.02
plain = engine.run_ensemble

for line in sys.stdin:  # a sweep in a child for each, so that the imports are done once
    output = line.strip()

    def logged(runs, *others):
        with open(output + ".log", "a") as log:
            log.write(sharing.claim_of(runs) + "\\n")
        return plain(runs, *others)

    child = os.fork()
    if not child:
        engine.run_ensemble = logged
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1), os.dup2(null, 2)
        os._exit(cli.main(["sweep", sys.argv[1], "--output", output, "--device", "cpu"]))
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""

ENSEMBLES = 10


class Sweeper:
    """A process that starts a sweep in a child whenever it is told to."""

    def __init__(self, folder):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        arguments = [sys.executable, folder / "sweeper.py", folder / "sweep.py"]
        pipe = subprocess.PIPE
        self.parent = subprocess.Popen(arguments, stdin=pipe, stdout=pipe, text=True, env=environment)

    def start(self, output):
        """Start a sweep into a folder."""
        self.parent.stdin.write(f"{output}\n")
        self.parent.stdin.flush()
        self.child = int(self.parent.stdout.readline())

    def wait(self):
        """How the sweep ended."""
        return int(self.parent.stdout.readline())


@pytest.fixture(scope="module")
def sweepers(tmp_path_factory):
    """Two of them, and the folder of an undisturbed sweep."""
    folder = tmp_path_factory.mktemp("sweepers")
    (folder / "sweep.py").write_text(SWEEP.replace("SEEDS", "2"))
    (folder / "sweeper.py").write_text(SWEEPER)
    first, second = Sweeper(folder), Sweeper(folder)
    first.start(folder / "one")
    assert first.wait() == 0
    yield first, second, folder / "one"
    for sweeper in (first, second):
        sweeper.parent.communicate()


def test_two_processes_share_a_sweep_and_both_end_like_an_undisturbed_one(tmp_path, sweepers):
    """Bit for bit, and no ensemble is trained twice."""
    first, second, one = sweepers
    for sweeper in (first, second):
        sweeper.start(tmp_path / "both")
    assert (first.wait(), second.wait()) == (0, 0)
    trained = (tmp_path / "both.log").read_text().split()
    assert len(trained) == len(set(trained)) == ENSEMBLES
    assert sorted(trained) == sorted(one.with_name("one.log").read_text().split())
    _same(tmp_path / "both", one)


def test_two_processes_that_are_killed_at_random_lose_nothing(tmp_path, sweepers):
    """Twenty kills, of one or the other; a finished run's files are never written again, and an ensemble is
    trained again only for a process that was killed.
    """
    *both, one = sweepers
    output, chance, kills, seen = tmp_path / "both", random.Random(0), 0, {}
    for sweeper in both:
        sweeper.start(output)
    while kills < 20:
        time.sleep(chance.uniform(0, 0.08))
        victim = chance.choice(both)
        os.kill(victim.child, signal.SIGKILL)
        kills += victim.wait() == signal.SIGKILL
        now = {path: path.stat().st_mtime_ns for path in output.glob("runs/*/metrics.parquet")}
        assert seen.items() <= now.items()
        seen = now
        victim.start(output)
    assert [sweeper.wait() for sweeper in both] == [0, 0]
    assert ENSEMBLES <= len((tmp_path / "both.log").read_text().split()) <= ENSEMBLES + kills
    _same(output, one)


def _same(output, undisturbed):
    """Table, rows and weights are those of the undisturbed sweep, and nothing is left beside them."""
    assert (output / "results.parquet").read_bytes() == (undisturbed / "results.parquet").read_bytes()
    found = files_of(output / "runs")
    assert len(found) == 2 * 2 * ENSEMBLES
    assert found == files_of(undisturbed / "runs")
    assert {path.name for path in output.rglob(".*")} == {".lock", ".claims"}
    assert not list((output / "runs/.claims").iterdir())


def test_decoders_are_shared_likewise(tmp_path):
    first, second = lw.Store(tmp_path), lw.Store(tmp_path)
    with first.writing(), second.writing():
        assert first.claims.take(claim_of([DECODER]))
        assert not second.claims.take(claim_of([DECODER]))
        first.add(decoder_result())
        assert second.claims.take(claim_of([DECODER]))
    assert DECODER in second
