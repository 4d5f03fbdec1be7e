"""The reference of the command line, written from the commands themselves while the site is built.

``{commands}`` stands for all commands with all their flags, as ``--help`` tells them.
"""

import argparse
import importlib
import re
from types import ModuleType
from typing import Any

import tyro
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

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
    if not hasattr(module, "flags"):
        return _table(actions(module, [], words))
    common = actions(module, ["--help"], words)
    text = _table(common)
    told: dict[str, list[str]] = {}
    for task in _TASKED[name]:
        own = [one for one in actions(module, [task], words) if _row(one) not in map(_row, common)]
        told.setdefault("\n".join(_table(own)), []).append(task)
    for table, tasks in told.items():
        text += [f"With {_series(tasks)}:", "", table, ""] if table else []
    return text


def actions(module: ModuleType, arguments: list[str], words: str) -> list[argparse.Action]:
    """The flags and arguments of a command, for these first arguments of it."""
    kind = module.flags(arguments) if hasattr(module, "flags") else module.Command
    parser = tyro.extras.get_parser(kind, prog=words, config=(tyro.conf.FlagCreatePairsOff,))
    return [one for one in parser._actions if "--help" not in one.option_strings]


def _table(flags: list[argparse.Action]) -> list[str]:
    """Arguments first, then flags."""
    rows = map(_row, sorted(flags, key=lambda flag: bool(flag.option_strings)))
    return ["| flag | meaning |", "|---|---|", *rows, ""] if flags else []


def _row(flag: argparse.Action) -> str:
    told, default = _DEFAULT.fullmatch(" ".join(str(flag.help).split())).groups()  # pyright: ignore
    name = ", ".join(flag.option_strings) or str(flag.metavar or flag.dest).strip("[]")
    value = f" {_plain(flag.metavar)}" if flag.option_strings and flag.metavar else ""
    known = default not in (None, "None", "False", "required", "")
    ends = f" Default: `{_plain(default)}`." if known else " Required." if default == "required" else ""
    return f"| `{name}{value}` | {_cell(told)}{ends} |"


_DEFAULT = re.compile(r"(.*?)(?: \((?:default: )?((?<=default: ).*|required)\))?")
"""What tyro says of a flag, and in the end of its default."""


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


class Commands(SphinxDirective):
    """``{commands}``."""

    def run(self) -> list[nodes.Node]:
        """The sections of all commands."""
        for path in importlib.import_module("lengthwise.cli").__path__:
            self.env.note_dependency(path)
        return self.parse_text_to_nodes(reference(), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive known."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
