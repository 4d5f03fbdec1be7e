"""The front door: versions, help, JSON, and one clear line for every mistake."""

import json
import os
import subprocess
import sys

import pytest

import lengthwise as lw
from lengthwise.cli import main


def fails(capsys, *arguments):
    """Run a command that must fail; returns its one line."""
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("lengthwise: ")
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("demo --omga 8", "no flag '--omga'; did you mean '--omega'?"),
        ("demo --omega abc", "--omega: could not convert string to float: 'abc'"),
        ("demo --omega", "'--omega'"),
        ("demo --omega -1", "omega must be positive and finite, got -1"),
        ("demo --longest-test -5", "longest test length must be between 1 and 2^53, got -5"),
        ("demo --longest-test 0", "longest test length must be"),
        ("demo --longest-test 100", "pilot's longest training length"),
        ("demo --pilot-longest -3", "pilot's longest training length"),
        ("demo --tolerance 0", "tolerance must be positive"),
        ("demo --seeds 0", "seeds must be at least 1"),
        ("demo --steps 0", "steps must be a whole number of at least 1"),
        ("demo --seed -1", "seed must be a whole number of at least 0"),
        ("demo --device tpu", "invalid choice 'tpu'"),
        ("demo surplus", "no flag 'surplus'"),
        ("demo --output /proc/none", "cannot make the folder /proc/none/runs"),
        ("dmo", "no command 'dmo'; did you mean 'demo'?"),
        ("--verson", "no flag '--verson'"),
        ("tasks --jsn", "no flag '--jsn'; did you mean '--json'?"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in fails(capsys, *arguments.split())


def test_an_output_that_is_a_file(capsys, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert "cannot make the folder" in fails(capsys, "demo", "--output", str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "mine"


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"lengthwise {lw.__version__}\n"
    for arguments in ([], ["--help"]):
        assert main(arguments) == 0
        assert "demo" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--help"])
    assert not stop.value.code
    assert "--omega" in capsys.readouterr().out


def test_tasks_as_json_and_as_a_table(capsys):
    assert main(["tasks", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    simple = next(task for task in listed if task["name"] == "simple")
    assert {"name", "knobs", "period", "locality", "in_crasp"} <= set(simple)
    assert (simple["period"], simple["locality"], simple["in_crasp"]) == (1, 0, None)
    assert lw.task(simple["name"], **simple["knobs"]) == lw.SimpleTask()
    assert main(["tasks"]) == 0
    assert "simple" in capsys.readouterr().out


def test_a_mistake_of_ours_can_be_traced(monkeypatch):
    monkeypatch.setenv("LENGTHWISE_TRACEBACK", "1")
    with pytest.raises(ValueError, match="no command"):
        main(["dmo"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "10000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")],
)
def test_threads_wait_as_told_before_pytorch_is_loaded(given, expected):
    """In a process of its own, whose command is replaced by one that tells."""
    code = """
import os, sys, lengthwise.cli as cli
def tell():
    print(os.environ.get("GOMP_SPINCOUNT"), "torch" in sys.modules)
    return 0
cli.main = tell
cli.entry()
"""
    outside = {name: os.environ[name] for name in os.environ if not name.startswith(("GOMP_", "OMP_WAIT"))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=outside | given, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [expected, "False"]
