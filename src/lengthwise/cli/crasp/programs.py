"""How programs and words are given on the command line."""

from pathlib import Path
from typing import Annotated

import tyro

from lengthwise.cli.models import file_text
from lengthwise.crasp import Program, parse

ProgramText = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PROGRAM")]
"""A flag that names a program."""


def program_of(text: str) -> Program:
    """The program in a file of this name, or the program that the text is; a backslash and n end a line."""
    path = Path(text)
    try:
        found = path.is_file()
    except (OSError, ValueError):  # too long for a name, or no name at all
        found = False
    if found:
        try:
            return parse(file_text(path))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    if "=" not in text and '"' not in text:
        raise ValueError(f'{text!r} is no file and no program such as \'accept = # "1" > # "0"\'')
    return parse(text.replace("\\n", "\n"))
