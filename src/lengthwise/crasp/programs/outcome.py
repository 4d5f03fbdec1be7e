"""What the engines share: a clock, words as blocks with repetitions, and what an engine found."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lengthwise.crasp.batch import LARGEST
from lengthwise.crasp.nodes import Count, Ge
from lengthwise.crasp.power import PowerWord, evaluate_power
from lengthwise.crasp.program import Program

Blocks = tuple[tuple[tuple[str, ...], int], ...]
"""A word as letters with how often they are repeated, one after the other."""

MOST_SPELLED = 200
"""A witness of at most so many letters is written out; a longer one stays in blocks."""


class Clock:
    """How much of a time limit, in seconds, is left."""

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise ValueError(f"time_limit must be positive, got {seconds}")
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until the limit; not positive when it is over."""
        return self._end - time.monotonic()

    def over(self) -> bool:
        """Whether the limit has passed."""
        return self.left() <= 0

    def share(self, part: float) -> "Clock":
        """A clock for a part of what is left."""
        return Clock(max(part * self.left(), 1e-3))


@dataclass(frozen=True)
class Outcome:
    """What an engine found out: is there a word at whose end the formula of a program holds?

    The word has at least one letter under "last"; under "eos" it may be empty.

    - ``blocks``: such a word, or None;
    - ``shortest``: it is known that no word is shorter;
    - ``none``: it is known that there is no such word;
    - ``details``: what was tried.
    """

    blocks: Blocks | None = None
    shortest: bool = False
    none: bool = False
    details: dict[str, Any] = field(default_factory=dict)


def joined(blocks: Iterable[tuple[Sequence[str], int]]) -> Blocks:
    """Blocks without empty ones, and with equal neighbours made one."""
    kept: list[tuple[tuple[str, ...], int]] = []
    for letters, times in blocks:
        if kept and kept[-1][0] == tuple(letters):
            kept[-1] = kept[-1][0], kept[-1][1] + times
        elif times and letters:
            kept.append((tuple(letters), times))
    return tuple(kept)


def length(blocks: Blocks) -> int:
    """The number of letters."""
    return sum(len(letters) * times for letters, times in blocks)


def spelled(blocks: Blocks) -> tuple[str, ...]:
    """All letters, one after the other."""
    return tuple(letter for letters, times in blocks for letter in letters * times)


def accepted(program: Program, blocks: Blocks) -> bool:
    """Whether a program accepts a word in blocks."""
    return evaluate_power(program, PowerWord(tuple((tuple(program.symbols(v)), n) for v, n in blocks)))


def shown(blocks: Blocks) -> str | list[str] | list[tuple[str | list[str], int]]:
    """A short word as a string (a list, where letters have several characters), a long one as a list of
    letters with repetitions.
    """
    if length(blocks) <= MOST_SPELLED:
        return _written(spelled(blocks))
    return [(_written(letters), times) for letters, times in blocks]


def _written(letters: Sequence[str]) -> str | list[str]:
    return "".join(letters) if all(len(letter) == 1 for letter in letters) else list(letters)


def totals(program: Program) -> list[Count]:
    """The counts over all positions."""
    return [one for one in program.counts if one.distances is None]


def is_positional(program: Program) -> bool:
    """Whether the program knows positions modulo a number, or looks back by a distance."""
    return program.period > 1 or program.locality > 0


def fits(program: Program, width: int) -> bool:
    """Whether 64 bits hold all sums of the program on words of this length."""
    comparisons = [node for node in program.nodes if isinstance(node, Ge)]
    return all(
        width * sum(abs(alpha) for _, alpha in node.terms) + abs(node.constant) < LARGEST
        for node in comparisons
    )
