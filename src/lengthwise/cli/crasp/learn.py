"""Learn a program: from another program, which is asked about words; from a regular expression, whose program
is made smaller with a proof of each step; or from a file of examples. Says how much is known of the result.
"""

import json as json_module
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from lengthwise._files import make_folder, replacing
from lengthwise.cli.crasp.programs import program_of
from lengthwise.cli.models import file_text
from lengthwise.cli.printing import print_files
from lengthwise.crasp import DFA, Learned, Program, compile_regex, learn, text_of
from lengthwise.crasp.learning import Progress, Shape
from lengthwise.reporting.learning import learned_data, learned_words
from lengthwise.sequences import check_seed


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise crasp learn``."""

    program: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="PROGRAM")] = None
    """What to learn: a file with a program, a name from lengthwise tasks, or a program as text, where \\n
    ends a line."""
    regex: str | None = None
    """Or a regular expression: | union, juxtaposition, * + ? and parentheses, one character a letter."""
    examples: Path | None = None
    """Or a file of examples, one a line: a word, a tab, and 1 if the word is in the language or 0 if it is
    not. Each character of a word is a letter; the empty word is nothing before the tab."""
    alphabet: str | None = None
    """The letters, if there are more than those of the expression or of the examples."""
    seconds: float = 30.0
    """How long to try."""
    slots: int = Shape.slots
    """How many formulas a program that is searched for may have."""
    distances: tuple[int, ...] = ()
    """How far back it may look, as in 1 2; none: it does not know of positions."""
    moduli: tuple[int, ...] = ()
    """Modulo which numbers it may know its position, as in 2 3. For a regular expression, any distance and
    any modulus lets programs use those that they need."""
    output: Path = Path("runs/learned")
    """Folder for the program that is found, program.crasp."""
    seed: int = 0
    """For the sample, the search and the words that are tried."""
    json: bool = False
    """Print one JSON document instead of sentences."""


def run(command: Command) -> None:
    """Learn, save, print."""
    check_seed(command.seed)
    shape = Shape(slots=command.slots, distances=command.distances, moduli=command.moduli)
    target = _target(command)
    make_folder(command.output)  # before the work, so that a wrong folder costs nothing
    alphabet = None if command.alphabet is None or command.regex is not None else list(command.alphabet)
    with _live() as progress:
        found = learn(
            target, alphabet, seconds=command.seconds, seed=command.seed, shape=shape, progress=progress
        )
    files = _saved(found, command.output / "program.crasp")
    if command.json:
        print(json_module.dumps({**learned_data(found), "files": files}, indent=2))
        return
    print(learned_words(found))
    print_files(Console(), files)


def _target(command: Command) -> Program | DFA | dict[str, bool]:
    given = [one for one in (command.program, command.regex, command.examples) if one is not None]
    if len(given) != 1:
        raise ValueError("give what to learn once: a PROGRAM, or --regex, or --examples")
    if command.program is not None:
        return program_of(command.program)
    if command.regex is not None:
        return compile_regex(command.regex, list(command.alphabet) if command.alphabet is not None else None)
    assert command.examples is not None
    return examples_of(command.examples, command.alphabet)


def examples_of(path: Path, alphabet: str | None) -> dict[str, bool]:
    """The words in a file of examples with their labels; if an alphabet is given, they are over it."""
    labels: dict[str, bool] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(file_text(path).split("\n"), start=1):
        if not line:
            continue
        word, tab, label = line.partition("\t")
        if not tab or label not in ("0", "1"):
            raise ValueError(f"{path}, line {number}: expected a word, a tab, and 1 or 0, got {line[:40]!r}")
        if labels.setdefault(word, label == "1") != (label == "1"):
            raise ValueError(
                f"{path}, line {number}: the word {word[:40]!r} has another label on line {lines[word]}"
            )
        lines.setdefault(word, number)
        for letter in word:
            if alphabet is not None and letter not in alphabet:
                known = " ".join(alphabet)
                raise ValueError(f"{path}, line {number}: letter {letter!r} is not in the alphabet {known}")
    if not any(labels):
        raise ValueError(f"{path}: there is no example but the empty word: give some words with letters")
    return labels


@contextmanager
def _live() -> Iterator[Callable[[Progress], None] | None]:
    """A line on stderr that tells how things stand, if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with console.status("asking for examples") as status:
        yield lambda now: status.update(_stand(now))


def _stand(now: Progress) -> str:
    how = f"found, size {now.size}" if now.found else f"error {now.error:.4f}"
    return (
        f"{how}; {now.counterexamples} counterexamples, {now.moves:,} changes tried, "
        f"{max(0.0, now.left):.0f} s left"
    )


def _saved(found: Learned, path: Path) -> dict[str, str]:
    """The file with the program, if one was found."""
    if not found.found or found.program is None:
        return {}
    with replacing(path) as temporary:
        temporary.write_text(text_of(found.program))
    return {"program": str(path)}
