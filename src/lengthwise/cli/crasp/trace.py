"""Show what a program counts and decides at every position of a word: as a table, and as a picture."""

import json as json_module
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from lengthwise.cli.crasp.programs import ProgramText, program_of, short_word
from lengthwise.cli.printing import print_files
from lengthwise.crasp import trace
from lengthwise.reporting.canvas import save_figure
from lengthwise.reporting.crasp import trace_figure, trace_table

LONGEST = 200
"""Words up to this length are traced."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise crasp trace``."""

    program: ProgramText
    """A file with a program, a name from lengthwise tasks, or a program as text, where \\n ends a line."""
    word: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WORD")]
    """The word, letters side by side; spaces may part letters such as <bos> or 12."""
    output: Path = Path("runs/trace")
    """Folder for the picture."""
    seed: int = 0
    """Taken by every command that prints a result; a trace draws nothing at random."""
    json: bool = False
    """Print one JSON document instead of a table."""


def run(command: Command) -> None:
    """Trace, draw, print."""
    program = program_of(command.program)
    found = trace(program, short_word(command.word, program, LONGEST))
    figure = command.output / "trace.png"
    save_figure(trace_figure(found), figure)
    if command.json:
        print(json_module.dumps({**asdict(found), "files": {"figure": str(figure)}}, indent=2))
        return
    console = Console()
    console.print(trace_table(found))
    print_files(console, {"figure": figure})
