"""A sweep under fault: killed a hundred times by SIGKILL, at random moments; two at once into one folder,
killed likewise; sweeps of few long ensembles, killed more often than any of them could end without its
checkpoints; on a disk that is full. In the end rows and weights must be those of an undisturbed sweep, byte
for byte, or this stops with an error.

The disk is slow, so that many kills come while something is written.

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
from lengthwise.experiments.checkpoints import CheckpointFolder, decode

SWEEP = """
import lengthwise as lw
from lengthwise.experiments import engine, limits

evaluation = lw.Evaluation(lengths=(10, 30, 100, 300, 1000), sequences=64)
training = lw.Training(length=4, steps=150, batch=16)
baseline = lw.Run(lw.SimpleTask(), lw.LimitModel(width=8, hidden=16), training, evaluation)
runs = lw.vary(baseline, omega=[2, 4], length=range(3, 8), seed=range(20))
engine.CPU_MEMORY = 2 * limits.bytes_of(baseline)
"""
LONG = {
    "limit transformers": """
import lengthwise as lw

evaluation = lw.Evaluation(lengths=(10, 30, 100, 300, 1000), sequences=64)
model = lw.LimitModel(width=8, hidden=0, heads=2, layers=2, locality=1)
training = lw.Training(length=8, steps=3000, batch=8)
baseline = lw.Run(lw.KGramTask(k=1, vocabulary=2), model, training, evaluation)
model, training = lw.LimitModel(width=8, hidden=16), lw.Training(length=8, steps=9000, batch=8)
one = lw.Run(lw.SimpleTask(), model, training, evaluation)
runs = [*lw.vary(baseline, seed=range(3)), *lw.vary(one, length=[4, 8], seed=range(2))]
""",
    "decoders": """
import lengthwise as lw

baseline = lw.Run(
    lw.task("binary-majority"),
    lw.DecoderModel(width=8, heads=2, positions="learned"),
    lw.DecoderTraining(length=6, steps=6000, batch=8),
    lw.DecoderEvaluation(ends=(6, 12), sequences=16, every=200),
)
runs = lw.vary(baseline, learning_rate=[0.1, 0.01, 0.001], seed=range(4))
""",
}
"""Two ensembles whose models are trained to the end, and one whose models leave when they are perfect."""

CHECKPOINT_EVERY = 0.2

SLOW = 0.01
"""So many seconds the disk takes to bring one thing to its place."""


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

        def slow(opened, plain=os.fsync):
            time.sleep(SLOW)
            plain(opened)

        def resumed(kept, runs, plain=CheckpointFolder.read):
            found = plain(kept, runs)
            if found is not None:
                with open(f"{log}.resumed", "a") as steps:
                    steps.write(f"{decode(found, runs, torch.device('cpu')).about['step']}\n")
            return found

        engine.run_ensemble, os.fsync = logged, slow
        setattr(CheckpointFolder, "read", resumed)  # noqa: B010 (pyright minds an assignment)
        os._exit(cli.main([str(argument) for argument in arguments]))
    return child


def sweep(file: Path, output: Path, log: Path | None = None) -> int:
    """Start a sweep in a child."""
    often = ("--checkpoint-every", CHECKPOINT_EVERY)
    return command(log or output, "sweep", file, "--output", output, "--device", "cpu", *often)


def ended(child: int) -> int:
    """Wait for a child: its exit status, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(
    file: Path, output: Path, processes: int, kills: int, seconds: float, chance: random.Random
) -> str:
    """Sweep with some processes at once, each killed after at most so many seconds and started again, until
    there were so many kills; then let them end.
    """
    counts = {"kills": 0, "while runs were left": 0, "left half written": 0, "left on its way": 0}
    counts["left a checkpoint half written"] = 0
    runs = len(finished(file.with_suffix("")))
    seen: dict[Path, int] = {}
    running = [sweep(file, output) for _ in range(processes)]
    while counts["kills"] < kills:
        time.sleep(chance.uniform(0, seconds) / processes)
        victim = chance.randrange(processes)
        os.kill(running[victim], signal.SIGKILL)
        status = ended(running[victim])
        assert status in (0, -signal.SIGKILL), Path(f"{output}.txt").read_text()
        if status:
            counts["kills"] += 1
            counts["while runs were left"] += len(seen) < runs
        store = output / "runs"
        counts["left half written"] += any(store.glob(".writing-*"))
        counts["left on its way"] += any(store.glob(".written-*"))
        counts["left a checkpoint half written"] += any(store.glob(".checkpoints/*.tmp"))
        now = finished(output)
        assert seen.items() <= now.items(), "a finished run was lost or written again"
        seen = now
        running[victim] = sweep(file, output)
    statuses = [ended(child) for child in running]
    assert statuses == [0] * processes, Path(f"{output}.txt").read_text()
    return ", ".join(f"{count} {what}" for what, count in counts.items())


def finished(output: Path) -> dict[Path, int]:
    """The tables of finished runs, and when they were written."""
    return {path: path.stat().st_mtime_ns for path in output.glob("runs/[0-9a-f]*/metrics.parquet")}


def same(output: Path, undisturbed: Path, log: Path | None = None) -> str:
    """That two sweeps are alike in every byte of tables and weights; ``AssertionError`` if not."""
    assert (output / "results.parquet").read_bytes() == (undisturbed / "results.parquet").read_bytes()
    compared = 0
    for path in sorted(undisturbed.glob("runs/*/*")):
        if path.name in ("metrics.parquet", "weights.safetensors"):
            assert (output / path.relative_to(undisturbed)).read_bytes() == path.read_bytes(), path
            compared += 1
    assert compared == 2 * len(finished(undisturbed)) > 0
    left = {path.name for path in output.rglob(".*")} - {".lock", ".claims"}
    assert not left, left
    assert ended(command(undisturbed.with_name("runs"), "runs", output)) == 0
    trained, alone = (Path(f"{name}.trained").read_text().split() for name in (log or output, undisturbed))
    assert set(trained) == set(alone)
    resumed = Path(f"{log or output}.resumed")
    steps = resumed.read_text().split() if resumed.exists() else []
    return (
        f"identical: {compared} files and results.parquet; {len(trained)} trainings of {len(alone)} "
        f"ensembles, {len(steps)} of them from checkpoints"
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


def undisturbed(output: Path, text: str) -> tuple[Path, float]:
    """Sweep without any fault: the sweep's file, and how many seconds it took."""
    file = output.with_suffix(".py")
    file.write_text(text)
    begun = time.perf_counter()
    assert ended(sweep(file, output)) == 0, Path(f"{output}.txt").read_text()
    seconds, trained = time.perf_counter() - begun, Path(f"{output}.trained").read_text().split()
    print(
        f"undisturbed: {len(finished(output))} runs, {len(trained)} ensembles in {seconds:.0f} s", flush=True
    )
    return file, seconds


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
        file, seconds = undisturbed(folder / "whole", SWEEP)
        for processes in (1, 2):
            output = folder / f"killed{processes}"
            told = killed(file, output, processes, asked.kills, 4 * seconds / asked.kills, chance)
            print(f"{processes} at once: {told}; {same(output, folder / 'whole')}", flush=True)
        for number, (what, text) in enumerate(LONG.items()):
            whole, output = folder / f"long{number}", folder / f"long{number}-killed"
            other, seconds = undisturbed(whole, text)
            told = killed(other, output, 1, asked.kills // 10, seconds / 5, chance)
            print(f"long, {what}: {told}; {same(output, whole)}", flush=True)
        try:
            print(f"full disk: {full_disk(file, folder / 'disk', folder / 'whole', chance)}")
        except subprocess.CalledProcessError as error:
            print(f"full disk: left out, {error.stderr.decode().strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
