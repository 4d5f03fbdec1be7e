"""Threads that each do their own share of the work.

On a CPU models are best trained by threads that seldom wait for each other. The threads of one operation meet
at its end, a thousand times a step, and the slowest makes all of them late.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


SMALL = 2**20
"""A model whose operations are on fewer numbers than this is hardly faster with several threads, and often
slower."""


class Workers:
    """For so many models on a CPU: as many threads as PyTorch would use, each of which, like the one that
    called for them, runs its operations by itself. Where there are fewer models than that, and few
    ``numbers`` in an operation, the one thread that called does all.
    """

    def __init__(self, models: int, numbers: int = SMALL) -> None:
        self._threads = torch.get_num_threads()
        self.size = self._threads if self._threads <= models or numbers >= SMALL else 1
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> "Workers":
        torch.set_num_threads(1)
        if self.size > 1:
            self._pool = ThreadPoolExecutor(self.size)
            ready = Barrier(self.size)

            def alone(_: int) -> None:
                torch.set_num_threads(1)
                ready.wait()

            list(self._pool.map(alone, range(self.size)))
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        torch.set_num_threads(self._threads)

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results of work on every item, in their order."""
        items = list(items)
        if self._pool is None or len(items) < 2:
            return [work(item) for item in items]
        return list(self._pool.map(work, items))
