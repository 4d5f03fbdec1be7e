"""What a door is: a place where input of others comes in, how inputs are drawn for it, and what must hold."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Violation(Exception):
    """An input was accepted, and then what must hold of it did not."""


def require(holds: object, *what: object) -> None:
    """Raise ``Violation``, with what it is about, unless something holds."""
    if not holds:
        raise Violation(*what)


@dataclass(frozen=True, kw_only=True)
class Door:
    """A place where input comes in.

    - ``share``: of how many inputs in a hundred it gets, if all doors are tried;
    - ``seconds``: how long one input may take;
    - ``draw``: an input, from a source of randomness and nothing else;
    - ``enter``: brings it in, with a folder that it may write to. It returns if the input was accepted and
      all that must hold of it did; ``ValueError`` and ``OSError`` refuse it; anything else is a violation;
    - ``prepare``: what is done once before the first input, for instance to load modules.
    """

    name: str
    about: str
    share: float
    seconds: float
    draw: Callable[[random.Random], Any]
    enter: Callable[[Any, Path], None]
    prepare: Callable[[], None] = lambda: None
