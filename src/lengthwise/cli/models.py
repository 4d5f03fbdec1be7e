"""How models and inputs are named on the command line."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import tyro
from torch import Tensor

from lengthwise._messages import printable
from lengthwise.limit import LimitTransformer
from lengthwise.limit.constructions import CONSTRUCTIONS, named
from lengthwise.sequences import check_length, check_seed, check_tokens

LONGEST_FILE = 2**28
"""A file of text has at most so many characters."""

LONGEST_PICTURE = 512
"""Attention is drawn for inputs up to this length."""


@dataclass(frozen=True, kw_only=True)
class TwoModels:
    """The flags of commands that compare two models."""

    f: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="F")]
    """A file that ``save`` wrote, the folder of a run, a construction such as simple:omega=8,knots=64, or a
    compiled C-RASP program such as crasp:binary-majority,form=relu,longest=100."""
    g: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="G")] = None
    """The model to compare with, named the same way (None: any model with the constants of F)."""


def model_of(text: str) -> LimitTransformer:
    """The model in a file, the trained model of a run (its folder in a store), a construction by name, or a
    compiled program.
    """
    path = Path(text)
    if "\0" in text:
        raise ValueError("a name has no NUL character")
    if (path / "spec.json").is_file():
        from lengthwise.experiments import Store

        return Store(path.parent).transformer(path.name)
    if path.exists():
        return LimitTransformer.load(path)
    if text.partition(":")[0] in CONSTRUCTIONS:
        return named(text)
    if text.startswith(COMPILED):
        from lengthwise.cli.crasp.programs import compiled

        return compiled(text.removeprefix(COMPILED))
    known = ", ".join(CONSTRUCTIONS)
    raise ValueError(
        f"{text!r} is no file, no run's folder, no construction ({known}, as in modp:period=5), no program "
        f"({COMPILED}NAME)"
    )


COMPILED = "crasp:"
"""What the names of compiled programs begin with."""


def input_of(model: str, text: str | None, vocabulary: int, seed: int, length: int) -> Tensor:
    """The tokens that a text spells for a model of this name: a compiled program reads words (random letters,
    if there is no text); for others see ``tokens_of``.
    """
    if not model.startswith(COMPILED):
        return tokens_of(text, vocabulary, seed, length)
    from lengthwise.cli.crasp.programs import word_tokens

    check_length(length)
    check_seed(seed)
    return word_tokens(model.removeprefix(COMPILED), text, torch.Generator().manual_seed(seed), length)


def tokens_of(text: str | None, vocabulary: int, seed: int, length: int) -> Tensor:
    """The tokens that a text spells, as digits (which may stand in powers, as in (01)^20 1) or as numbers
    with commas; or as many as asked for, drawn at random.
    """
    if text is None:
        check_length(length)
        check_seed(seed)
        return torch.randint(vocabulary, (length,), generator=torch.Generator().manual_seed(seed))
    if "^" in text:
        return _power(text, vocabulary)
    parts = (
        re.split(r"[,\s]+", text.strip(", \n\t")) if re.search(r"[,\s]", text.strip()) else list(text.strip())
    )
    try:
        tokens = torch.tensor([int(part) for part in parts], dtype=torch.long)
    except (ValueError, RuntimeError, OverflowError):
        raise ValueError(f"an input is digits (01101) or numbers with commas, got {text[:40]!r}") from None
    if tokens.numel() == 0:
        raise ValueError("the input is empty: a string has at least one token")
    check_tokens(tokens, vocabulary)
    return tokens


LONGEST_POWER = 10**7
"""A power is written out up to this length."""


def _power(text: str, vocabulary: int) -> Tensor:
    from lengthwise.crasp.power import parse_power

    if vocabulary > 10:
        raise ValueError(
            "powers such as (01)^20 are of digits: for a vocabulary beyond 10, give numbers with commas"
        )
    try:
        word = parse_power(text, [str(token) for token in range(vocabulary)])
    except RecursionError:
        raise ValueError("the input has too many parentheses") from None
    if not 1 <= word.length <= LONGEST_POWER:
        raise ValueError(f"an input with powers must have from 1 to {LONGEST_POWER:,} tokens")
    return torch.tensor([token for block, times in word.blocks for token in block * times], dtype=torch.long)


def file_text(path: Path) -> str:
    """The text of a file of tokens, or one line that says why it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LONGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ValueError(f"cannot read {printable(path)}: {reason}") from error
    if len(text) > LONGEST_FILE:
        raise ValueError(f"cannot read {printable(path)}: it has more than {LONGEST_FILE:,} characters")
    return text
