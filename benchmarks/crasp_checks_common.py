"""What the large checks of C-RASP share: disagreements, progress, random examples, helpers of the tests."""

import importlib
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st


class Disagreement(AssertionError):
    """Two ways to one answer gave two answers."""


def agree(same: object, *what: object) -> None:
    """Raise ``Disagreement``, with what it is about, unless they are the same."""
    if not same:
        raise Disagreement(*what)


def helper(name: str) -> ModuleType:
    """A module of the tests of C-RASP."""
    folder = str(Path(__file__).resolve().parents[1] / "tests" / "crasp")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


class Progress:
    """Counts what was compared, and says so every ten seconds."""

    def __init__(self, name: str) -> None:
        self.name, self.seen = name, Counter[str]()
        self._begun = self._told = time.monotonic()

    def add(self, what: str, number: int = 1) -> None:
        """So many more of something."""
        self.seen[what] += number
        if time.monotonic() - self._told > 10:
            self.tell("so far")

    def tell(self, how: str) -> None:
        """Print the numbers."""
        self._told = time.monotonic()
        numbers = "; ".join(f"{number:,} {what}" for what, number in self.seen.items() if number)
        print(f"{self.name}, {how}, {self._told - self._begun:.0f} s: {numbers}", flush=True)


def over(number: int, check: Callable[..., None], *drawn: st.SearchStrategy[Any]) -> None:
    """Call a check on so many random examples, always the same; hypothesis makes one that fails smaller."""
    chosen = settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    seed(0)(chosen(given(*drawn)(check)))()
