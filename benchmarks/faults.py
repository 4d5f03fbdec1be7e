"""A sweep under fault: killed a hundred times by SIGKILL, at random moments; two at once into one folder,
killed likewise; on a disk that is full. In the end rows and weights must be those of an undisturbed sweep,
byte for byte, or this stops with an error.

    python benchmarks/faults.py [--kills 100] [--seed 0]

The disk is a small tmpfs, which only root may mount: without that right its trial is left out.
"""

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

import lengthwise.cli as cli
import lengthwise.cli.runs
import lengthwise.cli.sweep  # noqa: F401 (before the children are forked)
from lengthwise.experiments import engine, sharing

SWEEP = """
import lengthwise as lw
from lengthwise.experiments import engine, limits

evaluation = lw.Evaluation(lengths=(10, 30, 100, 300, 1000), sequences=64)
training = lw.Training(length=4, steps=150, batch=16)
baseline = lw.Run(lw.SimpleTask(), lw.LimitModel(width=8, hidden=16), training, evaluation)
runs = lw.vary(baseline, omega=[2, 4], length=range(3, 8), seed=range(20))
engine.CPU_MEMORY = 2 * limits.bytes_of(baseline)
"""
RUNS, ENSEMBLES = 200, 100


def command(log: Path, *arguments: object) -> int:
    """Start a command in a child, which writes what it says, and which ensembles it trains, to files whose
    names begin with ``log``; its process number.
    """
    child = os.fork()
    if not child:
        said = os.open(f"{log}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        plain = engine.run_ensemble

        def logged(runs, *others):
            with open(f"{log}.trained", "a") as trained:
                trained.write(f"{sharing.claim_of(runs)}\n")
            return plain(runs, *others)

        engine.run_ensemble = logged
        os._exit(cli.main([str(argument) for argument in arguments]))
    return child


def sweep(file: Path, output: Path, log: Path | None = None) -> int:
    """Start a sweep in a child."""
    return command(log or output, "sweep", file, "--output", output, "--device", "cpu")


def ended(child: int) -> int:
    """Wait for a child: its exit status, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(
    file: Path, output: Path, processes: int, kills: int, seconds: float, chance: random.Random
) -> dict:
    """Sweep with some processes at once, each killed after at most so many seconds and started again, until
    there were so many kills; then let them end.
    """
    counts = {"kills": 0, "while runs were left": 0, "left half written": 0, "left on its way": 0}
    seen: dict[Path, int] = {}
    running = [sweep(file, output) for _ in range(processes)]
    while counts["kills"] < kills:
        time.sleep(chance.uniform(0, seconds) / processes)
        victim = chance.randrange(processes)
        os.kill(running[victim], signal.SIGKILL)
        if ended(running[victim]) == -signal.SIGKILL:
            counts["kills"] += 1
            counts["while runs were left"] += len(seen) < RUNS
        store = output / "runs"
        counts["left half written"] += any(store.glob(".writing-*"))
        counts["left on its way"] += any(store.glob(".written-*"))
        now = {path: path.stat().st_mtime_ns for path in store.glob("*/metrics.parquet")}
        assert seen.items() <= now.items(), "a finished run was lost or written again"
        seen = now
        running[victim] = sweep(file, output)
    statuses = [ended(child) for child in running]
    assert statuses == [0] * processes, Path(f"{output}.txt").read_text()
    return counts


def same(output: Path, undisturbed: Path, log: Path | None = None) -> str:
    """That two sweeps are alike in every byte of tables and weights; ``AssertionError`` if not."""
    assert (output / "results.parquet").read_bytes() == (undisturbed / "results.parquet").read_bytes()
    compared = 0
    for path in sorted(undisturbed.glob("runs/*/*")):
        if path.name in ("metrics.parquet", "weights.safetensors"):
            assert (output / path.relative_to(undisturbed)).read_bytes() == path.read_bytes(), path
            compared += 1
    assert compared == 2 * RUNS
    left = {path.name for path in output.rglob(".*")} - {".lock", ".claims"}
    assert not left, left
    assert ended(command(undisturbed.with_name("runs"), "runs", output)) == 0
    trained = Path(f"{log or output}.trained").read_text().split()
    assert len(set(trained)) == ENSEMBLES
    return (
        f"identical: {compared} files and results.parquet; {len(trained)} trainings of {ENSEMBLES} ensembles"
    )


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A file system of so many kilobytes at a folder."""
    folder.mkdir()
    size = f"size={kilobytes}k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def full_disk(file: Path, folder: Path, undisturbed: Path, chance: random.Random) -> str:
    """Sweep on a disk that is too small, and again with more and more room until it ends well."""
    log, told, room = folder.with_name("full"), [], 40
    with small_disk(folder, room) as disk:
        output = disk / "out"
        while (status := ended(sweep(file, output, log))) != 0:
            said = Path(f"{log}.txt").read_text().strip().splitlines()[-1]
            assert status == 2, said
            assert said.startswith("lengthwise: cannot"), said
            assert "No space left" in said, said
            told.append(said)
            if (output / "runs").is_dir():
                assert ended(command(undisturbed.with_name("runs"), "runs", output)) == 0
            room += chance.randrange(100, 700)
            remount = ["mount", "-o", f"remount,size={room}k", disk]
            subprocess.run(remount, check=True, capture_output=True)
        said = same(output, undisturbed, log)
    return f"{len(told)} times full (the last time: {told[-1]}), then {said}"


def main() -> int:
    """Run the trials and print what came of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "sweep.py"
        file.write_text(SWEEP)
        begun = time.perf_counter()
        assert ended(sweep(file, folder / "whole")) == 0, (folder / "whole.txt").read_text()
        seconds = time.perf_counter() - begun
        print(f"undisturbed: {RUNS} runs, {ENSEMBLES} ensembles in {seconds:.0f} s", flush=True)
        for processes in (1, 2):
            output = folder / f"killed{processes}"
            counts = killed(file, output, processes, asked.kills, 4 * seconds / asked.kills, chance)
            told = ", ".join(f"{count} {what}" for what, count in counts.items())
            print(f"{processes} at once: {told}; {same(output, folder / 'whole')}", flush=True)
        try:
            print(f"full disk: {full_disk(file, folder / 'disk', folder / 'whole', chance)}")
        except subprocess.CalledProcessError as error:
            print(f"full disk: left out, {error.stderr.decode().strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
