"""Say how long the training sequences must be for a task: a pilot, a prediction with its interval, training
around it to see whether it comes true, and beside that what theory says of the trained model itself.
Every finished run is kept: the same command goes on where it was stopped.
"""

import json as json_module
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from lengthwise._files import replacing
from lengthwise.cli import typed
from lengthwise.cli.knobs import task_in, with_knobs
from lengthwise.cli.printing import print_files
from lengthwise.cli.progress import progress_bars
from lengthwise.experiments import Advice, advise
from lengthwise.experiments.folder import note
from lengthwise.experiments.recipes import recipe
from lengthwise.experiments.theory import BesideTheory, beside_theory
from lengthwise.reporting.advice import advice_figure
from lengthwise.reporting.canvas import save_figure
from lengthwise.reporting.words import advice_sentence, advice_table, theory_table
from lengthwise.tasks import CountTask, Task
from lengthwise.training import length_grid


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise advise``, beside the task and its knobs."""

    tolerance: float = 0.01
    """The loss that must not be passed at any length."""
    seeds: int = 5
    """Models trained at each length."""
    steps: int | None = None
    """Training steps of each model (None: 5000, or 2000 on in-context k-gram)."""
    longest_test: int | None = None
    """The longest test length (None: 10^9, or 10^4 where strings must be made)."""
    pilot_longest: int | None = None
    """The longest training length of the pilot (None: up to 256, or 100 where strings must be made)."""
    output: Path | None = None
    """Folder for the runs, the table of results and the figure (None: runs/advise-TASK)."""
    device: Literal["cpu", "cuda"] | None = None
    """Where to train (None: on a GPU if there is one)."""
    seed: int = 0
    """The first seed; the others follow it."""
    json: bool = False
    """Print one JSON document instead of a table and a sentence."""


def flags(arguments: Sequence[str]) -> type[Any]:
    """The command with the knobs of the task that was typed."""
    return with_knobs(Command, arguments)


def run(command: Any) -> None:
    """Advise on the task that was typed."""
    report(task_in(command), command)


def report(task: Task, command: Command) -> None:
    """Advise, then write and print what was found."""
    default = recipe(task)
    evaluation = default.evaluation
    training = default.training if command.steps is None else replace(default.training, steps=command.steps)
    if command.longest_test is not None:
        each = 2 if isinstance(task, CountTask) else 4
        evaluation = replace(evaluation, lengths=length_grid(command.longest_test, each))
    output = command.output or Path(f"runs/advise-{task.name}")
    with progress_bars() as stage:
        advice = advise(
            task,
            default.model,
            command.tolerance,
            seeds=command.seeds,
            seed=command.seed,
            training=training,
            evaluation=evaluation,
            pilot_longest=command.pilot_longest,
            output=output / "runs",
            device=command.device,
            stage=stage,
        )
    theory = beside_theory(advice)
    figure, results = output / "figure.png", output / "results.parquet"
    with replacing(results) as temporary:
        advice.results.to_parquet(temporary, index=False)
    save_figure(advice_figure(advice), figure)
    note(output, typed(), advice)
    files = {"figure": str(figure), "results": str(results), "runs": str(output / "runs")}
    if command.json:
        about = {**advice.to_json(), "theory": theory.to_json() if theory else None, "files": files}
        print(json_module.dumps(about, indent=2))
    else:
        _print(advice, theory, files)


def _print(advice: Advice, theory: BesideTheory | None, files: dict[str, str]) -> None:
    console = Console()
    console.print(advice_table(advice))
    if theory:
        console.print()
        console.print(theory_table(theory))
    console.print()
    console.print(advice_sentence(advice), style="bold", highlight=False)
    console.print()
    print_files(console, files)
