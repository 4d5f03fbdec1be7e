"""Read a program, and tell what it is: depth, size, period, locality, fragment; and its normal form."""

import json as json_module
from dataclasses import dataclass

from rich.console import Console

from lengthwise.cli.crasp.programs import ProgramText, program_of
from lengthwise.crasp import text_of
from lengthwise.reporting.crasp import program_measures, program_table


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise crasp check``."""

    program: ProgramText
    """A file with a program, a name from lengthwise tasks, or a program as text, where \\n ends a line."""
    seed: int = 0
    """Taken by every command that prints a result; reading draws nothing."""
    json: bool = False
    """Print one JSON document instead of a table."""


def run(command: Command) -> None:
    """Read, print."""
    program = program_of(command.program)
    text = text_of(program)
    if command.json:
        print(json_module.dumps({**program_measures(program), "text": text}, indent=2))
        return
    console = Console()
    console.print(program_table(program))
    console.print(text.rstrip(), highlight=False, soft_wrap=True, markup=False)
