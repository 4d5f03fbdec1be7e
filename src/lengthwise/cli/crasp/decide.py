"""Say whether a regular language is in C-RASP: yes with a program, no with a family of pairs of words that
every program confuses from some size on.
"""

import json as json_module
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from lengthwise.crasp import decide
from lengthwise.reporting.crasp import plain, verdict_words


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise crasp decide``."""

    regex: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="REGEX")]
    """A regular expression: | union, juxtaposition, * + ? and parentheses, one character a letter."""
    alphabet: str | None = None
    """The letters, if there are more than those of the expression."""
    acceptance: Literal["last", "eos"] = "last"
    """Where a program accepts: at the last letter, or at an end mark behind it."""
    positional: bool = False
    """Ask of C-RASP[periodic,local], which may look a few positions back and know its position modulo some
    number."""
    seed: int = 0
    """Taken by every command that prints a result; deciding draws nothing."""
    json: bool = False
    """Print one JSON document instead of a sentence."""


def run(command: Command) -> None:
    """Decide, print."""
    verdict = decide(
        command.regex,
        alphabet=list(command.alphabet) if command.alphabet is not None else None,
        acceptance=command.acceptance,
        positional=command.positional,
    )
    if command.json:
        print(json_module.dumps(plain(verdict), indent=2))
        return
    print(verdict_words(verdict, "in C-RASP[periodic,local]" if command.positional else "in C-RASP"))
