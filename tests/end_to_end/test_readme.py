"""What the README tells people to type is understood."""

import importlib
import re
import shlex
from pathlib import Path

import lengthwise as lw
from lengthwise import cli
from lengthwise.experiments import engine
from lengthwise.experiments.sweeps import runs_in

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


COMMAND_LINE = r"^\$ lengthwise (.*?)(?:\s{2,}#.*)?$"


def test_every_command_line_parses():
    pages = [README, *(page.read_text() for page in (ROOT / "docs").glob("*.md"))]
    lines = [line for page in pages for line in re.findall(COMMAND_LINE, page, re.MULTILINE)]
    assert len(lines) >= 5
    for line in lines:
        name, *flags = shlex.split(line)
        module = importlib.import_module(f"lengthwise.cli.{name}")
        if hasattr(module, "COMMANDS"):
            name, *flags = flags
            module = importlib.import_module(f"{module.__name__}.{name}")
        assert isinstance(cli._parse(module, name, flags), module.Command)


def test_every_folder_named_exists():
    folders = re.findall(r"(\w+)/", README.split("## Where things are")[1].split("```")[1])
    for folder in folders:
        assert any((base / folder).is_dir() for base in (ROOT, ROOT / "src", ROOT / "src/lengthwise")), folder


def test_the_python_example_runs(tmp_path, monkeypatch):
    """Line by line as printed, with the training of every run cut short."""
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    whole = lw.Training.__init__

    def short(self, **settings):
        whole(self, **{"steps": 3, "batch": 4} | settings)

    monkeypatch.setattr(lw.Training, "__init__", short)
    names: dict = {}
    exec(code, names)
    assert {"training.length", "metric", "value"} <= set(names["results"])
    assert set(names["results"]["training.length"]) == {8, 16, 32}
    assert names["advice"].task == lw.SimpleTask(omega=8)


def test_the_example_of_limit_transformers_runs(tmp_path, monkeypatch):
    """What its comments say is what its lines give."""
    page = (ROOT / "docs/limit-transformers.md").read_text()
    first, second = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(first, names)
    f = names["f"]
    assert f([0, 1, 1, 0, 1, 0, 0]).tolist() == [0.5]
    assert (f.period, f.locality, f.logit_margin(), f.hardmax_length()) == (5, 0, 16.0, 2)
    exec(second, names)
    limit = names["f"].at_infinity(names["pairs"])[0, 0]
    assert [round(share, 2) for share in limit.tolist()] == [0.83, 0.17]


def test_the_example_of_theorems_runs():
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/theorems.md").read_text(), re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert (names["bound"].length, names["bound"].certified) == (723, True)
    assert names["z"].length < 1000


def test_the_sweeps_shown_are_sweeps():
    """The example file, and the same in the page on experiments."""
    runs = runs_in(ROOT / "examples/sweep.py")
    assert len(runs) == 3 * 3 * 3
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/experiments.md").read_text(), re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert [run.but(steps=1000) for run in names["runs"]] == runs


def test_the_example_of_suites_trains_decoders(tmp_path, monkeypatch, one_thread):
    """Without positions, majority is learned at all lengths; asked for again, nothing is trained."""
    page = (ROOT / "docs/suites.md").read_text()
    (code,) = [code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "lw.train(" in code]
    monkeypatch.chdir(tmp_path)
    names: dict = {"lw": lw}
    exec(code, names)
    table = lw.accuracies(names["results"])
    assert list(table["seed"]) == [0, 1, 2]
    assert table["perfect"].all()
    assert table["accuracy_150"].min() > 0.95
    monkeypatch.setattr(engine, "run_ensemble", None)
    exec(code, names)
    assert lw.accuracies(names["results"]).equals(table)


def test_the_example_of_crasp_runs():
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/crasp.md").read_text(), re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert (names["parity"].answer, names["evens"].answer, names["evens"].witness.period) == (False, True, 2)
    assert [names["clever"](word) for word in ("aab", "aaab", "aabaa")] == [True, False, True]
    pair = names["odd"], names["even"]
    assert [word.count("a") for word in pair] == [41, 42]
    assert names["clever"](pair[0]) == names["clever"](pair[1])
    assert (names["dyck"]("aabb"), names["dyck"]("abba"), names["same"].depth) == (True, False, 2)
    assert names["same"].root() is names["dyck"].root()
    assert names["f"](lw.crasp.encode(names["dyck"], "aabb")).tolist() == [1.0]
    assert (names["verdict"].answer, names["verdict"].witness("abab")) == (True, True)
