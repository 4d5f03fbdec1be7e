"""How learning stands while it goes on."""

from collections.abc import Callable
from dataclasses import dataclass

from lengthwise.crasp.learning.deadline import Deadline

EVERY = 0.1
"""At least so many seconds pass from one report to the next."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How learning stands.

    - ``found``: whether there is a program in which nothing was found wrong;
    - ``size``: of the current program; ``error``: the least error on the sample so far, as a weighted share;
    - ``rounds``: programs that fitted the sample; ``counterexamples``: words on which these were wrong;
    - ``moves``: changes tried; ``left``: seconds.
    """

    found: bool
    size: int
    error: float = 0.0
    rounds: int = 0
    counterexamples: int = 0
    moves: int
    left: float


class Reporter:
    """Tells how things stand now and then, and keeps to the time."""

    def __init__(self, deadline: Deadline, progress: Callable[[Progress], object] | None) -> None:
        self._deadline, self._progress = deadline, progress
        self._next = 0.0

    def tick(self, stand: Callable[[float], Progress]) -> None:
        """Report what ``stand`` makes of the seconds left, if it is time to; raise ``OutOfTime`` if the time
        is over.
        """
        self._deadline.check()
        if self._progress is not None and self._deadline.passed() >= self._next:
            self._progress(stand(self._deadline.left()))
            self._next = self._deadline.passed() + EVERY
