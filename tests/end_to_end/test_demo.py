"""The demo as a user runs it, in a small size: its files, its JSON, and a kill in the middle."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

SMALL = ["--omega", "4", "--tolerance", "0.05", "--seeds", "2", "--steps", "250"]


def command(*arguments):
    return [sys.executable, "-c", "from lengthwise.cli import entry; entry()", "demo", *SMALL, *arguments]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(command("--output", str(folder), "--json"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_files_and_keys(undisturbed):
    folder, answer = undisturbed
    keys = {"task", "tolerance", "predicted_length", "interval", "confirmed_length", "confirmed"}
    assert keys <= set(answer)
    assert answer["task"]["omega"] == 4
    low, high = answer["interval"]
    assert low <= answer["predicted_length"] <= high
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    table = pd.read_parquet(folder / "results.parquet")
    columns = {"run", "step", "test_length", "metric", "value", "training.length", "training.seed", "stage"}
    assert columns <= set(table)
    assert table["test_length"].max() == 10**9
    trained = {entry["training_length"] for entry in answer["lengths"]}
    assert set(table["training.length"]) == trained
    within = [e["training_length"] for e in answer["lengths"] if e["within"] and e["stage"] == "confirmation"]
    assert answer["confirmed_length"] in within or answer["confirmed_length"] in trained


def test_words_when_run_again(undisturbed):
    """Nothing is left to train, so the answer comes at once, from the store."""
    folder, answer = undisturbed
    before = {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/*")}
    done = subprocess.run(command("--output", str(folder)), capture_output=True, text=True)
    assert done.returncode == 0
    sentence = " ".join(done.stdout.split())
    assert f"training sequences of length {answer['confirmed_length']}" in sentence
    assert str(folder / "figure.png") in done.stdout.replace("\n", "")
    assert {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/*")} == before


def test_killed_and_run_again_it_gives_the_same_answer(undisturbed, tmp_path):
    folder, answer = undisturbed
    chance = random.Random(1)
    for _ in range(2):
        process = subprocess.Popen(
            command("--output", str(tmp_path)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and not (tmp_path / "runs").exists():
            time.sleep(0.01)
        time.sleep(chance.uniform(0.5, 3))
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run(command("--output", str(tmp_path), "--json"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)
    assert {**again, "files": 0} == {**answer, "files": 0}
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "results.parquet"),
        pd.read_parquet(folder / "results.parquet"),
        check_exact=True,
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(tmp_path):
    tmp_path.chmod(0o555)
    done = subprocess.run(command("--output", str(tmp_path / "demo")), capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "Permission denied" in done.stderr
