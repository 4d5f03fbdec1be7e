"""Train all the runs that a Python file lists, and measure them far beyond their training lengths. Every
finished run is kept: the same command goes on where it was stopped.

The file ends with a list named runs, for instance a baseline and changes:

    import lengthwise as lw
    baseline = lw.Run(lw.SimpleTask(), lw.LimitModel(), lw.Training(length=16))
    runs = lw.vary(baseline, omega=[4, 8, 16], length=[8, 16, 32], seed=range(5))

or decoders, whose accuracy is told by bins of lengths:

    baseline = lw.Run(lw.task("copy-unique"), lw.DecoderModel(layers=2), lw.DecoderTraining())
    runs = lw.vary(baseline, positions=["none", "learned", "rotary"], seed=range(5))
"""

import json as json_module
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from lengthwise._files import replacing
from lengthwise.cli import typed
from lengthwise.cli.printing import print_files
from lengthwise.cli.progress import progress_bars
from lengthwise.experiments import train
from lengthwise.experiments.checkpoints import EVERY
from lengthwise.experiments.folder import note
from lengthwise.experiments.sweeps import accuracies_by, plateaus_by, runs_in, varied
from lengthwise.reporting.canvas import save_figure
from lengthwise.reporting.curves import sweep_figure
from lengthwise.reporting.decoders import accuracies_figure, accuracies_json, accuracies_table
from lengthwise.reporting.sweeps import sweep_json, sweep_table
from lengthwise.training import plateau


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise sweep``."""

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE.py")]
    """A Python file that lists its runs under the name runs. It is run, so it must be one that you trust."""
    output: Path | None = None
    """Folder for the runs, the table of results and the figure (None: runs/NAME of the file)."""
    device: Literal["cpu", "cuda"] | None = None
    """Where to train (None: on a GPU if there is one)."""
    engine: Literal["local", "ray"] = "local"
    """Train on this machine, or on a Ray cluster (pip install 'lengthwise[ray]')."""
    address: str | None = None
    """The Ray cluster: HOST:PORT, or auto for one that runs here (None: that of RAY_ADDRESS, or one that is
    started for this sweep)."""
    checkpoint_every: float = EVERY
    """Seconds after which runs that are being trained are kept, so that they go on from there."""
    seed: int = 0
    """Taken by every command that prints a result; the seeds of a sweep stand in its runs."""
    json: bool = False
    """Print one JSON document instead of a table."""


def run(command: Command) -> None:
    """Train what is not there yet, then write and print what was found."""
    runs = runs_in(command.file)
    limits = runs[0].family == "limit"
    for one in runs if limits else ():  # a mistake in the test lengths is told before anything is trained
        plateau(one.test_lengths, [0.0] * len(one.test_lengths), [0.0] * len(one.test_lengths))
    output = command.output or Path("runs") / command.file.stem
    with redirect_stdout(sys.stderr), progress_bars() as stage:  # Ray tells of lost nodes on stdout
        bar = cache(lambda: stage(f"{len(runs)} runs", sum(one.training.steps for one in runs)))
        results = train(
            runs,
            output=output / "runs",
            device=command.device,
            progress=lambda done: bar()(done),
            engine=command.engine,
            address=command.address,
            checkpoint_every=command.checkpoint_every,
        )
    path, figure = output / "results.parquet", output / "figure.png"
    with replacing(path) as temporary:
        results.to_parquet(temporary, index=False)
    note(output, typed())
    knobs = varied(results)
    measured = plateaus_by(results, knobs) if limits else accuracies_by(results, knobs)
    drawn = sweep_figure if limits else accuracies_figure
    save_figure(drawn(results, knobs, title=command.file.stem), figure)
    files = {"figure": str(figure), "results": str(path), "runs": str(output / "runs")}
    if command.json:
        told = sweep_json(measured, knobs) if limits else accuracies_json(measured, knobs)
        print(json_module.dumps({**told, "files": files}, indent=2))
        return
    console = Console()
    console.print(sweep_table(measured, knobs) if limits else accuracies_table(measured, knobs))
    print_files(console, files)
