"""Train transformers on SimpleTask at short lengths, measure them far beyond, and say how long the
training sequences must be. Every finished run is kept: the same command goes on where it was stopped.
"""

import json as json_module
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from lengthwise._files import replacing
from lengthwise.experiments import advise
from lengthwise.experiments.advice import Advice, Stage
from lengthwise.models import LimitModel
from lengthwise.reporting.advice import advice_figure
from lengthwise.reporting.canvas import save_figure
from lengthwise.reporting.words import advice_sentence, advice_table
from lengthwise.tasks import SimpleTask
from lengthwise.training import Evaluation, Training, length_grid


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise demo``."""

    omega: float = 8.0
    """Frequency of SimpleTask, f(x) = sin(omega (c0 - c1) / (c0 + c1))."""
    tolerance: float = 0.01
    """The loss that must not be passed at any length."""
    seeds: int = 5
    """Models trained at each length."""
    steps: int = 3000
    """Training steps of each model."""
    longest_test: int = 10**9
    """The longest test length."""
    pilot_longest: int | None = None
    """The longest training length of the pilot (None: up to 256)."""
    output: Path = Path("runs/demo")
    """Folder for the runs, the table of results and the figure."""
    device: Literal["cpu", "cuda"] | None = None
    """Where to train (None: on a GPU if there is one)."""
    seed: int = 0
    """The first seed; the others follow it."""
    json: bool = False
    """Print one JSON document instead of a table and a sentence."""


def run(command: Command) -> None:
    """Advise, then write and print what was found."""
    with _progress() as stage:
        advice = advise(
            SimpleTask(omega=command.omega),
            LimitModel(),
            command.tolerance,
            seeds=command.seeds,
            seed=command.seed,
            training=Training(length=1, steps=command.steps),
            evaluation=Evaluation(lengths=length_grid(command.longest_test)),
            pilot_longest=command.pilot_longest,
            output=command.output / "runs",
            device=command.device,
            stage=stage,
        )
    figure, results = command.output / "figure.png", command.output / "results.parquet"
    with replacing(results) as temporary:
        advice.results.to_parquet(temporary, index=False)
    save_figure(advice_figure(advice), figure)
    files = {"figure": str(figure), "results": str(results), "runs": str(command.output / "runs")}
    if command.json:
        print(json_module.dumps({**advice.to_json(), "files": files}, indent=2))
    else:
        _print(advice, files)


def _print(advice: Advice, files: dict[str, str]) -> None:
    console = Console()
    console.print(advice_table(advice))
    console.print()
    console.print(advice_sentence(advice), style="bold", highlight=False)
    console.print()
    for name, path in files.items():
        console.print(f"{name:>8}: {path}", highlight=False, soft_wrap=True)


@contextmanager
def _progress() -> Iterator[Stage]:
    """A bar for each stage, on stderr so that stdout holds the result alone."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("model-steps"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    bars = Progress(*columns, console=Console(stderr=True))

    def stage(title: str, total: int) -> Callable[[int], None]:
        bars.start()  # not before: a mistake found before any work leaves one line alone
        bar = bars.add_task(title, total=total)
        return lambda done: bars.update(bar, advance=done)

    try:
        yield stage
    finally:
        if bars.live.is_started:
            bars.stop()
