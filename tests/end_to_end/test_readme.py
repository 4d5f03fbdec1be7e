"""What the README tells people to type is understood."""

import importlib
import re
import shlex
from pathlib import Path

import lengthwise as lw
from lengthwise import cli

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_every_command_line_parses():
    lines = re.findall(r"^\$ lengthwise (.*?)(?:\s+#.*)?$", README, re.MULTILINE)
    assert len(lines) >= 3
    for line in lines:
        name, *flags = shlex.split(line)
        module = importlib.import_module(f"lengthwise.cli.{name}")
        assert isinstance(cli._parse(module, name, flags), module.Command)


def test_every_folder_named_exists():
    folders = re.findall(r"(\w+)/", README.split("## Where things are")[1].split("```")[1])
    root = Path(__file__).parents[2]
    for folder in folders:
        assert any((base / folder).is_dir() for base in (root, root / "src", root / "src/lengthwise")), folder


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
