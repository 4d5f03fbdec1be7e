"""How programs and words are given on the command line."""

import re
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from lengthwise.cli.models import file_text
from lengthwise.crasp import PowerWord, Program, compile, encode, library, parse, parse_power
from lengthwise.limit import LimitTransformer
from lengthwise.reporting.library import standing

LONGEST_WORD = 10**7
"""A compiled program reads words of at most so many letters."""

ProgramText = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PROGRAM")]
"""A flag that names a program."""


def program_of(text: str) -> Program:
    """The program in a file of this name; else the program that the library has under this name; else the
    program that the text is, where a backslash and n end a line.
    """
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
    if re.fullmatch(r"[\w-]+", text):
        return _of_library(text)
    if "=" not in text and '"' not in text:
        raise ValueError(f'{text!r} is no file and no program such as \'accept = # "1" > # "0"\'')
    return parse(text.replace("\\n", "\n"))


def compiled(text: str) -> LimitTransformer:
    """The model of a program: PROGRAM,form=relu,longest=100, of which all but PROGRAM may be left out."""
    program, settings = _settings(text)
    return compile(program, settings["form"], longest=int(settings["longest"]))


def word_tokens(text: str, word: str | None, random: torch.Generator, length: int) -> torch.Tensor:
    """What the model of a program reads for a word, which may have powers; without one, for so many random
    letters.
    """
    program, _ = _settings(text)
    if word is None:
        letters = torch.randint(len(program.alphabet), (length,), generator=random).tolist()
        return torch.tensor(encode(program, letters))
    power = parse_power(word, program.alphabet)
    if power.length > LONGEST_WORD:
        raise ValueError(f"a model reads words of at most {LONGEST_WORD:,} letters, got {power.length}")
    return torch.tensor(encode(program, _spelled(power)))


def _settings(text: str) -> tuple[Program, dict[str, Any]]:
    name, *given = text.split(",")
    settings: dict[str, Any] = {"form": "heaviside", "longest": "1000"}
    for part in given:
        key, equals, value = part.partition("=")
        if not equals or key not in settings:
            raise ValueError(f"expected crasp:PROGRAM,form=relu,longest=100, got {part!r} in {text!r}")
        settings[key] = value
    if settings["form"] not in ("heaviside", "relu"):
        raise ValueError(f"form must be heaviside or relu, got {settings['form']!r}")
    if not settings["longest"].isdecimal():
        raise ValueError(f"longest must be a whole number, got {settings['longest']!r}")
    return program_of(name), settings


def short_word(text: str, program: Program, longest: int) -> list[int]:
    """The letters of a word of at most so many, as their numbers. Where all letters are single characters, a
    character is a letter; else the longest letter that fits is read, and spaces may stand between letters.
    """
    word = None
    if any(len(letter) > 1 for letter in program.alphabet):
        word = parse_power(text, program.alphabet)
    length = len(text) if word is None else word.length
    if not 1 <= length <= longest:
        raise ValueError(f"a word to trace has 1 to {longest} letters, got {length}")
    if word is None:
        return program.symbols(text)
    return _spelled(word)


def _spelled(word: PowerWord) -> list[int]:
    return [symbol for symbols, repetitions in word.blocks for symbol in symbols * repetitions]


def _of_library(name: str) -> Program:
    try:
        entry = library.named(name)
    except ValueError as error:
        raise ValueError(
            f"{name!r} is no file and no program, and {error} (lengthwise tasks lists its names)"
        ) from error
    if entry.program is None:
        raise ValueError(f"there is no program for {name!r}: {standing(entry)}")
    return entry.program
