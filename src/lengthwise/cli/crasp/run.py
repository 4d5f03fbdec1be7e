"""Say whether a program accepts a word. Words may have powers, such as (ab)^(10^12) a^3: their length does
not matter.
"""

import json as json_module
from dataclasses import dataclass
from typing import Annotated

import tyro

from lengthwise.cli.crasp.programs import ProgramText, program_of
from lengthwise.crasp import parse_power
from lengthwise.crasp.power import read_power


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise crasp run``."""

    program: ProgramText
    """A file with a program, a name from lengthwise tasks, or a program as text, where \\n ends a line."""
    word: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WORD")]
    """The word: letters side by side, powers as in (ab)^1000 a^(10^12); "" is the empty word."""
    seed: int = 0
    """Taken by every command that prints a result; running a program draws nothing."""
    json: bool = False
    """Print one JSON document instead of a sentence."""


def run(command: Command) -> None:
    """Run the program, print the answer."""
    program = program_of(command.program)
    word = parse_power(command.word, program.alphabet)
    stream = read_power(program, word)
    about = {"word": command.word, "length": word.length}
    if program.accept is None:
        answer = sorted(stream.predictions())
        if command.json:
            print(json_module.dumps({**about, "predicted": answer}, indent=2))
        else:
            print(f"predicted after {word.length} letters: {' '.join(answer) or 'nothing'}")
        return
    accepted = stream.accepted()
    if command.json:
        print(json_module.dumps({**about, "accepted": accepted, "mode": program.mode}, indent=2))
    else:
        print(f"{'accepted' if accepted else 'not accepted'} ({word.length} letters, {program.mode})")
