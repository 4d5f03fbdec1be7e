"""Say whether two programs accept the same words, or on which word they differ. Exact where the programs
count letters alone or every comparison has one sign; elsewhere a search and a proof are tried for some time.
"""

import json as json_module
from dataclasses import dataclass
from typing import Annotated

import tyro

from lengthwise.cli.crasp.programs import ProgramText, program_of
from lengthwise.crasp.programs import equivalent, included
from lengthwise.reporting.crasp import plain, verdict_words


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise crasp equivalent``."""

    first: ProgramText
    """A file with a program, a name from lengthwise tasks, or a program as text, where \\n ends a line."""
    second: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PROGRAM")]
    """The program to compare with, given the same way."""
    inclusion: bool = False
    """Ask instead whether the second accepts every word that the first does."""
    time_limit: float = 10.0
    """Seconds to try."""
    seed: int = 0
    """Taken by every command that prints a result; the search is the same each time."""
    json: bool = False
    """Print one JSON document instead of a sentence."""


def run(command: Command) -> None:
    """Ask, print."""
    first, second = program_of(command.first), program_of(command.second)
    ask = included if command.inclusion else equivalent
    verdict = ask(first, second, time_limit=command.time_limit)
    if command.json:
        print(json_module.dumps(plain(verdict), indent=2))
    else:
        print(verdict_words(verdict, "included" if command.inclusion else "equivalent"))
