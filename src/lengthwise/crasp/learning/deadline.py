"""Time limits that are kept."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


class OutOfTime(Exception):
    """The time limit has passed."""


class Deadline:
    """When learning must end."""

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise ValueError(f"seconds must be positive, got {seconds}")
        self._begun = time.monotonic()
        self._seconds = seconds

    def passed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._begun

    def left(self) -> float:
        """Seconds until the end; not positive when the time is over."""
        return self._seconds - self.passed()

    def part(self, share: float) -> "Deadline":
        """An earlier one, when this share of the time that is left is over."""
        return Deadline(max(1e-9, share * self.left()))

    def check(self) -> None:
        """Raise ``OutOfTime`` if the time is over."""
        if self.left() <= 0:
            raise OutOfTime

    def of(self, work: Callable[[], Result]) -> Result:
        """What work that cannot be interrupted comes to, or ``OutOfTime``: it is then left to itself, in a
        thread that ends with it or with Python.
        """
        found: list[Result] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                found.append(work())
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(min(max(0.0, self.left()), threading.TIMEOUT_MAX))
        if failed:
            raise failed[0]
        if not found:
            raise OutOfTime
        return found[0]
