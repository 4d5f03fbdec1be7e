"""The reference of the command line, written from the commands: every flag, as ``--help`` tells it.

Pages have it by ``{commands}`` (``extensions/commands.py``).
"""

import contextlib
import importlib
import io
import os
import re
from types import ModuleType
from typing import Any

from lengthwise import cli
from lengthwise.tasks import PREDICTION_TASKS, TASKS

_TASKED = {"advise": dict(TASKS), "train": {**TASKS, **PREDICTION_TASKS}}
"""Commands whose flags depend on a task."""


def reference() -> str:
    """All commands, as Markdown."""
    return "\n".join(_group("lengthwise.cli", "lengthwise", cli.COMMANDS))


def _group(package: str, words: str, commands: dict[str, str]) -> list[str]:
    text = []
    for name, about in commands.items():
        module = importlib.import_module(f"{package}.{name}")
        text += [f"## `{words} {name}`", "", _paragraphs(module.__doc__ or about), ""]
        if hasattr(module, "COMMANDS"):
            text += _group(module.__name__, f"{words} {name}", module.COMMANDS)
        else:
            text += _command(module, name, f"{words} {name}")
    return text


def _command(module: ModuleType, name: str, words: str) -> list[str]:
    common = flags(words)
    text = _table(common)
    told: dict[str, list[str]] = {}
    for task in _TASKED[name] if hasattr(module, "flags") else ():
        own = [one for one in flags(f"{words} {task}") if one not in common]
        told.setdefault("\n".join(_table(own)), []).append(task)
    for table, tasks in told.items():
        text += [f"With {_series(tasks)}:", "", table, ""] if table else []
    return text


def flags(words: str) -> list[tuple[str, str]]:
    """The arguments and flags of a command, and what ``--help`` tells of each."""
    entries: list[list[str]] = []
    for line in _help(words).splitlines():
        inside = line.strip("│").rstrip() if line.startswith("│") else ""
        if inside and not inside[1].isspace():
            entries.append(re.split(r"\s{2,}", inside.strip(), maxsplit=1))
        elif inside.strip():
            entries[-1].append(inside.strip())
    found = [(entry[0], " ".join(entry[1:])) for entry in entries]
    return [(flag, told) for flag, told in found if not flag.startswith("-h, ")]


def _help(words: str) -> str:
    """What a command prints with ``--help``, in lines long enough for everything."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # boxes are drawn where the encoding has them
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "500"
    try:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            cli.main([*words.split()[1:], "--help"])
    finally:
        del os.environ["COLUMNS"]
        if columns is not None:
            os.environ["COLUMNS"] = columns
    out.seek(0)
    return out.read()


def _table(told: list[tuple[str, str]]) -> list[str]:
    """Arguments first, then flags."""
    rows = [_row(*one) for one in sorted(told, key=lambda one: one[0].startswith("-"))]
    return ["| flag | meaning |", "|---|---|", *rows, ""] if told else []


def _row(flag: str, told: str) -> str:
    match = _DEFAULT.fullmatch(told)
    assert match
    known = match[2] not in (None, "None", "False", "required", "")
    ends = f" Default: `{_plain(match[2])}`." if known else " Required." if match[2] == "required" else ""
    said = match[1].replace("None: ", "if not given: ")
    about = said if said.endswith(".") else f"{said}."
    return f"| `{_plain(flag)}` | {_cell(about)}{ends} |"


_DEFAULT = re.compile(r"(.*?)(?: \((?:default: )?((?<=default: ).*|required)\))?")
"""What is said of a flag, and in the end of its default."""


def _plain(value: object) -> str:
    """What a flag takes, without the None that stands for leaving it out."""
    return str(value).replace("{None}|", "").replace("{None,", "{").replace("|", "\\|")


def _cell(text: Any) -> str:
    """What stands in a cell of a table: no markup but for code, on one line."""
    plain = " ".join(str(text or "").replace("%%", "%").replace("``", "").split())
    return "".join(f"\\{one}" if one in "\\`*_{}[]<>#|$" else one for one in plain)


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(_cell(part) for part in (text or "").strip().split("\n\n"))


def _series(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
