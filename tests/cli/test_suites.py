"""``lengthwise reproduce algorithmic|formal``, in sizes that take seconds."""

import json

import pandas as pd
import pytest
from test_main import fails

from lengthwise.cli import main
from lengthwise.experiments import Store, engine, huang

QUICK = "reproduce algorithmic --tasks binary-majority --positions none --seeds 2"


def document(capsys, words):
    assert main(words.split()) == 0
    return json.loads(capsys.readouterr().out)


def test_a_cell_is_trained_once_told_and_told_again_from_its_table(tmp_path, capsys, monkeypatch):
    told = document(capsys, f"{QUICK} --json --output {tmp_path}/first")
    (cell,) = told["cells"]
    assert (cell["task"], cell["positions"], cell["seeds"]) == ("binary-majority", "none", 2)
    assert cell["predicted"] is cell["generalises"] is cell["agrees"] is True
    assert (told["agree"], told["decided"]) == (1, 1)
    results = pd.read_parquet(told["files"]["results"])
    last = results[(results["metric"] == "accuracy") & (results["test_length"] == 60)]
    last = last.sort_values("step").groupby("run")["value"].last()
    assert cell["mean_3"] == pytest.approx(last.mean())
    assert cell["low_3"] == pytest.approx(last.min())
    for name in ("figure", "results", "cells", "page"):
        assert (tmp_path / "first").samefile(told["files"][name].rpartition("/")[0])
    page = (tmp_path / "first" / "algorithmic.md").read_text()
    assert "agree in the one cell" in page

    def never(*_, **__):
        raise AssertionError("everything is there already")

    monkeypatch.setattr(engine, "run_ensemble", never)
    again = document(capsys, f"{QUICK} --json --output {tmp_path}/first")
    assert again["cells"] == told["cells"]
    read = document(
        capsys, f"{QUICK} --json --output {tmp_path}/second --tables {tmp_path}/first/results.parquet"
    )
    assert read["cells"] == told["cells"]
    folder = document(capsys, f"{QUICK} --json --output {tmp_path}/second --tables {tmp_path}/first/runs")
    assert folder["cells"] == told["cells"]
    other = pd.read_parquet(tmp_path / "first" / "results.parquet")
    other.loc[other["metric"] == "accuracy", "value"] = 0.25  # as another machine might find
    other.to_parquet(tmp_path / "other.parquet")
    for tables, expected in (
        ("first/runs other.parquet", cell["mean_1"]),
        ("other.parquet first/runs", 0.25),
    ):
        paths = " ".join(f"{tmp_path}/{table}" for table in tables.split())
        several = document(capsys, f"{QUICK} --json --output {tmp_path}/second --tables {paths}")
        assert several["cells"][0]["mean_1"] == expected
    both = "reproduce algorithmic --tasks binary-majority --seeds 2"
    part = document(
        capsys, f"{both} --json --output {tmp_path}/third --tables {tmp_path}/first/results.parquet"
    )
    assert [bool(cell["not_run"]) for cell in part["cells"]] == [True, False]
    assert main(f"{both} --output {tmp_path}/third --tables {tmp_path}/first/results.parquet".split()) == 0
    assert "not run" in capsys.readouterr().out


def test_an_architecture_is_selected_first(tmp_path, capsys):
    """With seeds of its own. The simplest is perfect on two bins: nothing else of the grid is trained."""
    told = document(capsys, f"{QUICK} --search 2 --json --output {tmp_path}")
    (cell,) = told["cells"]
    assert (cell["shape"], cell["seeds"], cell["not_run"], cell["note"]) == ("1/1/16", 2, "", "")
    seeds = [run.training.seed for run in Store(tmp_path / "runs").runs()]
    own, other = huang.FIRST_SEED, huang.FIRST_SEED + 2
    assert sorted(seeds) == [own, own + 1, other, other, other + 1, other + 1]
    from_table = f"{QUICK} --search 2 --json --output {tmp_path}/again --tables {tmp_path}/results.parquet"
    assert document(capsys, from_table)["cells"] == told["cells"]
    (missing,) = document(capsys, from_table.replace("--tasks binary-majority", "--tasks majority"))["cells"]
    assert missing["not_run"] == huang.NOT_THERE


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("reproduce algorithmic --tasks majorty", "has no task 'majorty'; did you mean 'majority'?"),
        ("reproduce formal --tasks parity", "the formal suite has no task 'parity'"),
        ("reproduce figure1 --tasks parity", "--tasks is for the suites"),
        ("reproduce figure2 --search 1", "--search is for the suites"),
        ("reproduce figure2 --until end", "--until is for the suites"),
        ("reproduce figure2 --spare-positions 3", "--spare-positions is for the suites"),
        ("reproduce formal --search -1", "search must be"),
        ("reproduce formal --steps 0", "steps must be"),
        ("reproduce formal --spare-positions -3", "spare_positions must be"),
        ("reproduce formal --largest 2/2/64", "--largest is for a search: give it with --search 1"),
        (
            "reproduce formal --search 1 --largest 2x2",
            "given as layers/heads/width, such as 2/2/64, got '2x2'",
        ),
        ("reproduce formal --search 1 --largest 1/1/8", "no shape of the grid is within 1/1/8"),
        ("reproduce figure2 --largest 1/1/16", "--largest is for the suites"),
        ("reproduce algorithmic --seeds 0", "seeds must be at least 1, got 0"),
        ("reproduce algorithmic --positions rotated", "invalid choice 'rotated'"),
        ("reproduce algorithmic --tables nowhere.parquet", "nowhere.parquet cannot be read as a table"),
        ("reproduce algorithm", "invalid choice 'algorithm'"),
    ],
)
def test_mistakes(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in fails(capsys, *words.split())
    assert not list(tmp_path.rglob("*.md"))


def test_a_table_of_something_else(capsys, tmp_path):
    path = tmp_path / "other.parquet"
    pd.DataFrame({"run": ["a"], "value": [1.0]}).to_parquet(path)
    words = f"{QUICK} --output {tmp_path} --tables {path}".split()
    assert "lacks the columns metric, step" in fails(capsys, *words)
