"""Sweep files, what varies in them, and a sweep that is killed again and again."""

import os
import subprocess
import sys

import pandas as pd
import pytest

import lengthwise as lw
from lengthwise.experiments.sweeps import plateaus_by, runs_in, varied

SWEEP = """
import lengthwise as lw
from lengthwise.experiments import engine, limits

evaluation = lw.Evaluation(lengths=(10, 30, 100, 300, 1000), sequences=64)
training = lw.Training(length=4, steps=60, batch=8)
baseline = lw.Run(lw.SimpleTask(), lw.LimitModel(width=4, hidden=8), training, evaluation)
runs = lw.vary(baseline, omega=[2, 4], length=range(3, 8), seed=range(8))
engine.CPU_MEMORY = 2 * limits.bytes_of(baseline)
"""

HARNESS = """
import os, random, signal, sys, time
import lengthwise.cli as cli
import lengthwise.cli.sweep

def child(folder):
    pid = os.fork()
    if not pid:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1), os.dup2(null, 2)
        status = cli.main(["sweep", sys.argv[1], "--output", folder, "--device", "cpu"])
        os._exit(status)
    return pid

pid = child(sys.argv[2])
assert os.waitpid(pid, 0)[1] == 0
chance, kills, seen = random.Random(0), 0, {}
while True:
    pid = child(sys.argv[3])
    if kills < 20:
        time.sleep(chance.uniform(0, 0.25))
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    runs = os.path.join(sys.argv[3], "runs")
    names = [name for name in os.listdir(runs) if name[0] != "."] if os.path.isdir(runs) else []
    now = {name: os.stat(os.path.join(runs, name, "metrics.parquet")).st_mtime_ns for name in names}
    assert seen.items() <= now.items(), "a finished run was lost or written again"
    seen = now
    if status == 0:
        break
    kills += 1
    print("kill", kills, "with", len(seen), "runs finished")
print("kills", kills)
"""


def test_a_sweep_killed_twenty_times_ends_like_an_undisturbed_one(tmp_path):
    """Bit for bit, and a finished run's files are never written again."""
    sweep, harness = tmp_path / "sweep.py", tmp_path / "harness.py"
    sweep.write_text(SWEEP)
    harness.write_text(HARNESS)
    arguments = [sys.executable, harness, sweep, tmp_path / "whole", tmp_path / "killed"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kills 20" in done.stdout, done.stdout
    whole, killed = (tmp_path / name / "results.parquet" for name in ("whole", "killed"))
    assert killed.read_bytes() == whole.read_bytes()
    assert len(pd.read_parquet(killed)["run"].unique()) == 80
    weights = sorted((tmp_path / "whole/runs").glob("*/weights.safetensors"))
    assert len(weights) == 80
    for path in weights:
        assert (tmp_path / "killed" / path.relative_to(tmp_path / "whole")).read_bytes() == path.read_bytes()


def test_runs_are_read_from_a_file_once_each(tmp_path):
    (tmp_path / "sweep.py").write_text(SWEEP.replace("seed=range(8)", "seed=[0, 0, 1]"))
    runs = runs_in(tmp_path / "sweep.py")
    assert len(runs) == 2 * 5 * 2
    assert all(isinstance(run, lw.Run) for run in runs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import lengthwise\nruns = [", r"line 2: .*never closed"),
        ("x = 1\n\nruns = nothing", r"line 3: NameError: name 'nothing' is not defined"),
        ("x = 1", "has no list named runs"),
        ("runs = [1, 2]", "runs must be a list of lengthwise.Run"),
        ("runs = []", "the list runs is empty"),
        ("import lengthwise as lw\nlw.SimpleTask(omega=-1)", r"line 2: ValueError: omega must be positive"),
        ("import sys\nsys.exit(3)", "line 2: SystemExit: 3"),
    ],
)
def test_mistakes_in_a_file_are_told_with_their_line(tmp_path, text, message):
    path = tmp_path / "sweep.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        runs_in(path)
    with pytest.raises(ValueError, match="there is no file"):
        runs_in(tmp_path / "none.py")


def test_what_varies():
    evaluation = lw.Evaluation(lengths=(10, 30, 100, 300, 1000), sequences=16)
    training = lw.Training(length=6, steps=1, batch=2)
    baseline = lw.Run(lw.ModPTask(period=2), lw.LimitModel(width=4, hidden=0, period=2), training, evaluation)
    results = lw.train(lw.vary(baseline, period=[2, 3], width=[4, 5], length=[6, 8], seed=[0, 1]))
    assert varied(results) == ["task.period", "model.width"]  # the model's period says nothing new
    table = plateaus_by(results, varied(results))
    assert len(table) == 16
    assert set(map(tuple, table[["task.period", "model.width"]].to_numpy())) == {
        (2, 4),
        (2, 5),
        (3, 4),
        (3, 5),
    }
    assert varied(lw.train(lw.vary(baseline, seed=[0, 1]))) == []
