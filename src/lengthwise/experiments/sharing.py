"""Several processes that train into one store: each ensemble by one of them, and by another one if that dies.

A process claims an ensemble before it trains it. A claim is a lock, so it ends with its process however that
ends, and what was left half done is then free for the others.
"""

import contextlib
import hashlib
import itertools
import json
import logging
import os
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lengthwise._locks import is_held, removed, taken
from lengthwise.experiments.run import Run
from lengthwise.training import Progress

if TYPE_CHECKING:
    from lengthwise.experiments.store import Store

LOOK_EVERY = 0.5
"""Seconds between two looks at what others still hold."""

Ensemble = Sequence[Run]


class Claims:
    """The claims in a folder, and among them those of this object's process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._own: dict[str, int] = {}

    def take(self, name: str, runs: Ensemble = (), *, wait: bool = False) -> bool:
        """Claim a name, and say for which runs; False if somebody else has it, unless one waits."""
        self.folder.mkdir(exist_ok=True)
        lock = taken(self.folder / name, wait=wait)
        if lock is None:
            return False
        self._own[name] = lock
        about = {"host": socket.gethostname(), "process": os.getpid(), "runs": [run.id for run in runs]}
        try:
            os.ftruncate(lock, 0)
            os.write(lock, json.dumps(about).encode())
        except OSError:
            self.drop(name)
            raise
        return True

    def drop(self, name: str) -> None:
        """Give up a claim, if this process has it."""
        if name in self._own:
            removed(self.folder / name, self._own.pop(name))

    def drop_all(self) -> None:
        """Give up every claim that this process has."""
        for name in list(self._own):
            with contextlib.suppress(OSError):  # a file that stays is no claim
                self.drop(name)

    def clear(self) -> None:
        """Remove the files of claims that ended with their process."""
        for name in self._names():
            if name not in self._own and not is_held(self.folder / name):
                lock = taken(self.folder / name)
                if lock is not None:
                    removed(self.folder / name, lock)

    def held(self) -> dict[str, dict[str, Any]]:
        """What live processes have claimed, by name, as far as they have said who they are."""
        found = {}
        for name in self._names():
            if name in self._own or is_held(self.folder / name):
                found[name] = {}
                with contextlib.suppress(OSError, ValueError):
                    about = json.loads((self.folder / name).read_text())
                    found[name] = about if isinstance(about, dict) else {}
        return found

    def _names(self) -> list[str]:
        try:
            return sorted(path.name for path in self.folder.iterdir() if path.is_file())
        except (FileNotFoundError, NotADirectoryError):
            return []


def claim_of(ensemble: Ensemble) -> str:
    """The name under which an ensemble is claimed: it follows from its runs alone."""
    return hashlib.sha256("\n".join(sorted(run.id for run in ensemble)).encode()).hexdigest()[:16]


@contextlib.contextmanager
def unfinished(
    store: "Store", ensembles: Sequence[Ensemble], progress: Progress | None
) -> Iterator[Iterable[Iterable[Ensemble]]]:
    """Rounds of ensembles that this process is to train, until all are in the store. An ensemble is claimed
    when it is taken from its round, and free again once its results are added. When others hold all that is
    left, the next round waits for what they leave.
    """
    left = []
    for ensemble in ensembles:
        if not _done(store, ensemble):
            left.append(ensemble)
        elif progress:
            progress(_steps(ensemble))
    if not left:
        yield ()  # nothing to write, so it does not matter whether one may
        return
    with store.writing():
        yield _rounds(store, left, progress)


def _rounds(
    store: "Store", left: Sequence[Ensemble], progress: Progress | None
) -> Iterator[Iterable[Ensemble]]:
    told = False
    while left:
        held: list[Ensemble] = []
        free = _free(store, left, held, progress)
        first = next(free, None)
        if first is not None:
            yield itertools.chain([first], free)
        elif held:
            if not told:
                log.warning(
                    "waiting for %d runs that other processes train into %s",
                    sum(map(len, held)),
                    store.folder,
                )
                told = True
            time.sleep(LOOK_EVERY)
            store.recover()
        left = held


log = logging.getLogger(__name__)


def _free(
    store: "Store", left: Sequence[Ensemble], held: list[Ensemble], progress: Progress | None
) -> Iterator[Ensemble]:
    for ensemble in left:
        if not _done(store, ensemble):
            with store.explained():
                mine = store.claims.take(claim_of(ensemble), ensemble)
            if not mine:
                held.append(ensemble)
                continue
            if not _done(store, ensemble):  # who had the claim before may have finished in between
                yield ensemble
                continue
            store.claims.drop(claim_of(ensemble))
        if progress:
            progress(_steps(ensemble))


def _done(store: "Store", ensemble: Ensemble) -> bool:
    return all(run in store for run in ensemble)


def _steps(ensemble: Ensemble) -> int:
    return sum(run.training.steps for run in ensemble)
