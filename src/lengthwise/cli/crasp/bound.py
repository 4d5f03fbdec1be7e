"""Say how long words must be to tell two programs apart: exactly where that can be computed, with a bound by
formula beside it, and "none" where no such length is computable.
"""

import json as json_module
from dataclasses import asdict, dataclass
from typing import Annotated

import tyro

from lengthwise.cli.crasp.programs import ProgramText, program_of
from lengthwise.crasp.programs import closed_length, distinguishing_length


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise crasp bound``."""

    first: ProgramText
    """A file with a program, a name from lengthwise tasks, or a program as text, where \\n ends a line."""
    second: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PROGRAM")]
    """The program to tell it from, given the same way."""
    time_limit: float = 10.0
    """Seconds to try."""
    seed: int = 0
    """Taken by every command that prints a result; the search is the same each time."""
    json: bool = False
    """Print one JSON document instead of sentences."""


def run(command: Command) -> None:
    """Ask, print."""
    first, second = program_of(command.first), program_of(command.second)
    found = distinguishing_length(first, second, time_limit=command.time_limit)
    closed = closed_length(first, second)
    if command.json:
        print(json_module.dumps({**asdict(found), "by_formula": asdict(closed)}, indent=2))
        return
    print(found.words)
    print(f"By formula: {closed.words}")
