"""Inputs of all kinds through every door: each is accepted and then what must hold does, or is refused.

- text: C-RASP programs and words of powers; regex: regular expressions;
- weights: files of weights; stores: folders of runs, with their specifications, tables and weights;
- tokens: arrays of tokens and the numbers beside them; knobs: tasks; shapes: models, trainings, runs;
- flags: the command line.

A refusal is a ValueError or OSError of one printable line; on the command line, one line on stderr and exit
status 2. Violations: another exception or a warning, a hang past the door's limit, memory beyond a bound, a
file written outside the folder that was given, a process started, code run from a loaded file, or an accepted
input of which something does not hold. Each is saved under --output with the command that repeats it, and the
exit status is then 1. It needs the development install: some inputs are those of the tests.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from time import monotonic

import torch
from fuzz_doors import DOORS
from fuzz_doors.worker import Judged, drawn, judge, work
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from lengthwise._messages import printable

AT_ONCE = 50
"""So many inputs are asked of a process at a time."""

GRACE = 20.0
"""A process that does not notice that an input takes too long is killed so many seconds later."""


@dataclass
class Tally:
    """What became of the inputs of one door."""

    outcomes: Counter[str] = field(default_factory=Counter)
    worst: float = 0.0
    seconds: float = 0.0

    def add(self, judged: Judged) -> None:
        """One more."""
        self.outcomes[judged.outcome] += 1
        self.worst, self.seconds = max(self.worst, judged.seconds), self.seconds + judged.seconds


@dataclass
class Process:
    """A process that judges inputs, and what it was asked last."""

    process: ForkProcess
    connection: Connection
    place: Path
    door: str = ""
    left: list[int] = field(default_factory=list)
    since: float = 0.0

    def ask(self, door: str, numbers: list[int]) -> None:
        """Give it work."""
        self.door, self.left, self.since = door, list(numbers), monotonic()
        self.connection.send((door, self.left))


def started(place: Path, seed: int) -> Process:
    """A new process, with a folder of its own."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(there, place, seed), daemon=True)
    process.start()
    there.close()
    return Process(process, here, place)


def shares(doors: list[str], inputs: int) -> dict[str, int]:
    """How many inputs each door gets, all of them together."""
    whole = sum(DOORS[name].share for name in doors)
    found = {name: int(inputs * DOORS[name].share / whole) for name in doors}
    found[doors[0]] += inputs - sum(found.values())
    return found


def run(amounts: dict[str, int], seed: int, processes: int, place: Path, console: Console) -> list[Judged]:
    """Judge all inputs; those of a process that dies or hangs are asked of the next one, but for its last."""
    chunks = [
        (name, list(range(start, min(start + AT_ONCE, amount))))
        for name, amount in amounts.items()
        for start in range(0, amount, AT_ONCE)
    ]
    # Doors in turn, so that the time that is left can be told.
    chunks.sort(key=lambda chunk: chunk[1][0] / amounts[chunk[0]])
    chunks.reverse()
    found: list[Judged] = []
    with Progress(console=console, auto_refresh=False) as bars:
        bar = bars.add_task("inputs", total=sum(amounts.values()))
        workers = [
            started(place / f"process-{number}" / "own" / "place", seed) for number in range(processes)
        ]
        busy = [worker for worker in workers if _next(worker, chunks)]
        while busy:
            for worker in _ready(busy):
                try:
                    judged = worker.connection.recv()
                except EOFError:
                    worker.process.join()
                    judged = _lost(worker, f"the process died, exit status {worker.process.exitcode}")
                if judged is not None:
                    found.append(judged)
                    _tell(judged, len(found), console)
                    worker.left.remove(judged.number)
                    worker.since = monotonic()
                    bars.update(bar, advance=1)
                if not worker.process.is_alive() and worker.process.exitcode:
                    busy.remove(worker)
                    if worker.left:
                        chunks.append((worker.door, worker.left))
                    fresh = started(worker.place, seed)
                    busy += [fresh] if _next(fresh, chunks) else []
                elif judged is None and not _next(worker, chunks):
                    busy.remove(worker)
            for worker in busy:
                if monotonic() - worker.since > DOORS[worker.door].seconds + GRACE:
                    worker.process.kill()
            bars.refresh()
    return found


def _tell(judged: Judged, done: int, console: Console) -> None:
    """A violation at once; where no bar is drawn, how far things are."""
    if judged.outcome == "violation":
        lines = judged.what.strip().splitlines() or [""]
        console.print(f"{judged.door} {judged.number}: {printable(lines[0][:300])}", markup=False)
    if not console.is_terminal and done % 5000 == 0:
        console.print(f"{done:,} inputs")


def _ready(busy: list[Process]) -> list[Process]:
    heard = wait([worker.connection for worker in busy], timeout=0.5)
    return [worker for worker in busy if worker.connection in heard]


def _next(worker: Process, chunks: list[tuple[str, list[int]]]) -> bool:
    """Give a process the next piece of work, or tell it to end."""
    if chunks:
        worker.ask(*chunks.pop())
        return True
    worker.connection.send(None)
    return False


def _lost(worker: Process, why: str) -> Judged | None:
    if not worker.left:
        return None
    return Judged(worker.door, worker.left[0], "violation", monotonic() - worker.since, why)


def saved(judged: Judged, seed: int, output: Path) -> str:
    """Write a violation down, and the command that repeats it; the command."""
    command = f"python benchmarks/fuzz.py --doors {judged.door} --seed {seed} --only {judged.number}"
    output.mkdir(parents=True, exist_ok=True)
    try:
        shown = repr(drawn(DOORS[judged.door], seed, judged.number))
    except Exception as error:
        shown = f"none: {error!r}"
    told = f"{command}\n\n{judged.what}\n\ninput: {shown}\n"
    (output / f"{judged.door}-{seed}-{judged.number}.txt").write_text(told, errors="backslashreplace")
    return command


def table(tallies: dict[str, Tally]) -> Table:
    """One row a door."""
    drawn_table = Table("door", "what comes in")
    for title in ("inputs", "accepted", "refused with one line", "slowest (s)", "limit (s)", "violations"):
        drawn_table.add_column(title, justify="right")
    for name, tally in tallies.items():
        count = tally.outcomes
        numbers = [f"{count.total():,}", f"{count['accepted']:,}", f"{count['refused']:,}"]
        numbers += [f"{tally.worst:.2f}", f"{DOORS[name].seconds:g}", f"{count['violation']:,}"]
        drawn_table.add_row(name, DOORS[name].about, *numbers)
    return drawn_table


def main() -> int:
    """Run the doors that are asked for; 1 if anything was violated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many, over all doors")
    parser.add_argument("--seed", type=int, default=0, help="which inputs")
    parser.add_argument("--doors", nargs="+", default=list(DOORS), choices=list(DOORS), metavar="DOOR")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--only", type=int, help="repeat the input of this number, in this process")
    parser.add_argument("--output", type=Path, default=Path("runs/fuzz"), help="folder for violations")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    output, console = chosen.output.resolve(), Console(stderr=True)
    place = Path(tempfile.mkdtemp(prefix="lengthwise-fuzz-")).resolve()
    try:
        for name in chosen.doors:
            DOORS[name].prepare()
        if chosen.only is not None:
            return _repeat(chosen.doors[0], chosen.seed, chosen.only, place)
        amounts = shares(chosen.doors, chosen.inputs)
        found = run(amounts, chosen.seed, chosen.processes, place, console)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    tallies = {name: Tally() for name in chosen.doors}
    for judged in found:
        tallies[judged.door].add(judged)
    broken = [judged for judged in found if judged.outcome == "violation"]
    commands = [saved(judged, chosen.seed, output) for judged in broken]
    if chosen.json:
        rows = {name: {**tally.outcomes, "worst": tally.worst} for name, tally in tallies.items()}
        print(json.dumps({"inputs": len(found), "doors": rows, "violations": commands}, indent=2))
    else:
        Console(width=120).print(table(tallies))
        print(f"{len(found):,} inputs, seed {chosen.seed}: {len(broken):,} violations")
        print("\n".join(commands[:20]))
    return bool(broken)


def _repeat(name: str, seed: int, number: int, place: Path) -> int:
    """One input again, told in full."""
    from fuzz_doors import guard

    guard.install()
    guard.limit_memory()
    given = drawn(DOORS[name], seed, number)
    print(f"input: {given!r:.3000}")
    judged = judge(DOORS[name], given, number, place / "own" / "place")
    os.chdir("/")
    print(f"{judged.outcome} after {judged.seconds:.3f} s\n{judged.what}")
    return judged.outcome == "violation"


if __name__ == "__main__":
    sys.exit(main())
