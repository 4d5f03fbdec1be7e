"""Write what runs have shown as one page: the answer in a sentence, what was asked, curves with every seed,
theory beside experiment, prediction against outcome, how it was made. The page is one file, opens without a
network, and holds all rows as CSV; the same can be written as Markdown for a repository.

RUNS is the output folder of demo, advise, sweep, train or reproduce, or a store of runs.
"""

import json as json_module
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from lengthwise._files import make_folder, replacing
from lengthwise.cli import typed
from lengthwise.cli.progress import progress_bars
from lengthwise.experiments.folder import read_folder
from lengthwise.reporting.report import build, check, html_page, write_markdown


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise report``."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUNS")]
    """The output folder of a command, or a store of runs."""
    format: Literal["html", "markdown", "both"] = "html"
    """One HTML page, a page of Markdown with its figures and tables beside it, or both."""
    output: Path | None = None
    """Folder for report.html, report.md and what belongs to it (None: RUNS)."""
    title: str | None = None
    """The title (None: one that tells the task)."""
    tolerance: float | None = None
    """The loss that must not be passed (None: that of the advice, or 0.01)."""
    theory: int = 6
    """Set theory beside so many settings, at most; it takes seconds each. 0: none."""
    seed: int = 0
    """Taken by every command that prints a result; a report draws nothing."""
    json: bool = False
    """Print one JSON document instead of a sentence."""


def run(command: Command) -> None:
    """Read, build, write, print."""
    check(command.tolerance, command.theory)
    output = command.output or command.folder
    if command.output and command.folder.is_dir():
        make_folder(output)  # before anything that takes long
    with progress_bars("done") as stage:
        report = build(
            read_folder(command.folder, stage),
            tolerance=command.tolerance,
            title=command.title,
            theory=command.theory,
            stage=stage,
            command=typed(),
        )
    files: dict[str, object] = {}
    if command.format != "markdown":
        page = output / "report.html"
        with replacing(page) as temporary:
            temporary.write_text(html_page(report), encoding="utf-8")
        files["html"] = str(page)
    if command.format != "html":
        page, *beside = write_markdown(report, output)
        files |= {"markdown": str(page), "beside": [str(path) for path in beside]}
    if command.json:
        about = {"title": report.title, "answer": report.answer, **report.found, "files": files}
        print(json_module.dumps(about, indent=2))
        return
    console = Console(highlight=False)
    console.print(report.answer, style="bold", markup=False)
    console.print()
    for kind in ("html", "markdown"):
        if kind in files:
            console.print(f"{kind:>8}: {files[kind]}", soft_wrap=True, markup=False)
