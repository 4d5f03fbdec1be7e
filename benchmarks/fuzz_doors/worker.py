"""One input through a door, judged; and a process that does so for as many as it is told."""

import os
import random
import shutil
import traceback
import warnings
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from fuzz_doors import DOORS, guard
from fuzz_doors.door import Door, Violation

LONGEST_MESSAGE = 2000

Outcome = Literal["accepted", "refused", "violation"]


@dataclass(frozen=True)
class Judged:
    """What became of one input."""

    door: str
    number: int
    outcome: Outcome
    seconds: float
    what: str = ""


def drawn(door: Door, seed: int, number: int) -> Any:
    """The input of this number: the same in every process."""
    return door.draw(random.Random(f"{seed}/{door.name}/{number}"))


def judge(door: Door, given: Any, number: int, place: Path) -> Judged:
    """Bring one input in; the folder ``place`` is emptied before."""
    folder = place / "here" / "folder"
    shutil.rmtree(place, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(folder)
    begun = perf_counter()
    outcome, what = _entered(door, given, folder)
    return Judged(door.name, number, outcome, perf_counter() - begun, what)


def _entered(door: Door, given: Any, folder: Path) -> tuple[Outcome, str]:
    try:
        with warnings.catch_warnings(), guard.watching(folder, door.seconds):
            warnings.simplefilter("error")
            door.enter(given, folder)
    except (ValueError, OSError) as refused:
        message = str(refused)
        if not message.strip() or len(message) > LONGEST_MESSAGE:
            return "violation", f"a message of {len(message)} characters: {message[:200]!r}"
        if any(not letter.isprintable() for letter in message):
            return "violation", f"a message that is not one printable line: {message[:500]!r}"
        return "refused", message
    except Violation as broken:
        return "violation", f"accepted, but {' '.join(map(str, broken.args))}"
    except (guard.Forbidden, guard.Hang) as broken:
        return "violation", f"{type(broken).__name__}: {broken}\n{_where(broken)}"
    except BaseException as other:
        if isinstance(other, KeyboardInterrupt):
            raise
        return "violation", f"{type(other).__name__}: {other}\n{_where(other)}"
    return "accepted", ""


def _where(error: BaseException) -> str:
    return "".join(traceback.format_tb(error.__traceback__)[-6:])


def work(connection: Connection, place: Path, seed: int) -> None:
    """Judge the inputs that are asked for, as (door, number), until there is None."""
    guard.install()
    guard.limit_memory()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    while (asked := connection.recv()) is not None:
        name, numbers = asked
        for number in numbers:
            try:
                given = drawn(DOORS[name], seed, number)
            except Exception as error:
                connection.send(Judged(name, number, "violation", 0.0, f"no input drawn: {error!r}"))
            else:
                connection.send(judge(DOORS[name], given, number, place))
        connection.send(None)
    os.chdir("/")
