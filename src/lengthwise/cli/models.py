"""How models and inputs are named on the command line."""

from pathlib import Path

import torch
from torch import Tensor

from lengthwise.limit import LimitTransformer
from lengthwise.limit.constructions import CONSTRUCTIONS, named
from lengthwise.sequences import check_length, check_tokens

LONGEST_PICTURE = 512
"""Attention is drawn for inputs up to this length."""


def model_of(text: str) -> LimitTransformer:
    """The model in a file, or the construction of that name."""
    if Path(text).exists():
        return LimitTransformer.load(text)
    if text.partition(":")[0] in CONSTRUCTIONS:
        return named(text)
    known = ", ".join(CONSTRUCTIONS)
    raise ValueError(f"{text!r} is neither a file nor a construction ({known}, as in modp:period=5)")


def tokens_of(text: str | None, vocabulary: int, seed: int, length: int) -> Tensor:
    """The tokens that a text spells, or as many as asked for, drawn at random."""
    if text is None:
        check_length(length)
        if seed < 0:
            raise ValueError(f"seed must be a whole number of at least 0, got {seed}")
        return torch.randint(vocabulary, (length,), generator=torch.Generator().manual_seed(seed))
    parts = text.split(",") if "," in text else list(text.strip())
    try:
        tokens = torch.tensor([int(part) for part in parts])
    except (ValueError, RuntimeError, OverflowError):
        raise ValueError(f"an input is digits (01101) or numbers with commas, got {text[:40]!r}") from None
    if tokens.numel() == 0:
        raise ValueError("the input is empty: a string has at least one token")
    check_tokens(tokens, vocabulary)
    return tokens
