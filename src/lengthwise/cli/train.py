"""Train one model on a task, and measure it at lengths that it was not trained at: a limit transformer of the
task's recipe, or a decoder, as the task has it. The same command shows a stored result without training.
"""

import json as json_module
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from lengthwise._files import replacing
from lengthwise.cli import typed
from lengthwise.cli.knobs import named_task, task_in, with_knobs
from lengthwise.cli.printing import print_files
from lengthwise.cli.progress import run_progress
from lengthwise.experiments import Run, Store
from lengthwise.experiments.engine import choose_device, train_all
from lengthwise.experiments.folder import note
from lengthwise.experiments.recipes import decoder_run, recipe
from lengthwise.experiments.results import table
from lengthwise.models import DecoderModel
from lengthwise.models.positions import Positions
from lengthwise.reporting.canvas import save_figure
from lengthwise.reporting.runs import run_figure, run_json, run_table
from lengthwise.tasks import PREDICTION_TASKS, TASKS, CountTask, Task
from lengthwise.training import DecoderEvaluation, DecoderTraining, length_grid, plateau
from lengthwise.training.decoder_config import Rounding

KINDS = {**TASKS, **PREDICTION_TASKS}


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise train`` that every task has, beside its knobs."""

    length: int = 32
    """The length that is trained at; of a decoder, the longest input."""
    steps: int = 3000
    """Training steps."""
    batch: int = 64
    """Sequences in a step."""
    learning_rate: float = 1e-3
    """At the first step; it falls to 0."""
    output: Path | None = None
    """Folder for the run with its weights, the table of results and the figure (None: runs/train-TASK)."""
    device: Literal["cpu", "cuda"] | None = None
    """Where to train (None: on a GPU if there is one)."""
    seed: int = 0
    """Of the first weights and of the data."""
    json: bool = False
    """Print one JSON document instead of a table."""


@dataclass(frozen=True, kw_only=True)
class LimitCommand(Command):
    """The flags of a task of limit transformers."""

    longest_test: int | None = None
    """The longest test length (None: 10^9, or 10^4 where strings must be made)."""


@dataclass(frozen=True, kw_only=True)
class DecoderCommand(Command):
    """The flags of a task of decoders."""

    layers: int = 2
    """Layers of the decoder."""
    heads: int = 2
    """Attention heads of a layer, which share the width."""
    width: int = 64
    """Its width."""
    positions: Positions = "none"
    """How it is told positions."""
    position_range: int = 2048
    """How many positions there are to draw from, if they are randomised."""
    spare_positions: int = 0
    """So many more positions there are than the longest stream has tokens, if they are learned."""
    log_scaling: bool = False
    """Multiply attention logits by the logarithm of the number of tokens seen."""
    weight_decay: float = 0.01
    """Of matrices and tables."""
    regulariser: float = 0.0
    """The factor on the squared logits of learned positions that is added to the loss."""
    clip: float = 0.0
    """The norm that a gradient is shortened to if it is longer (0: never)."""
    rounding: Rounding = "none"
    """What a GPU may round, to be faster."""
    ends: tuple[int, ...] = (50, 100, 150)
    """The longest length of each bin that is tested; each begins behind the one before."""
    sequences: int = 500
    """Test sequences of a bin."""
    every: int = 250
    """Steps between two measurements."""
    no_stop: bool = False
    """Go on training when all sequences of the first bin are right."""


def flags(arguments: Sequence[str]) -> type[Any]:
    """The command with the flags of the task that was typed, and with the defaults of its recipe."""
    name = named_task(DecoderCommand, arguments, KINDS)
    if name is None:
        return with_knobs(Command, arguments, KINDS)
    command = LimitCommand if name in TASKS else DecoderCommand
    typical = _typical(KINDS[name]())
    parts = (typical.evaluation, typical.model, typical.training)
    known = {one.name: getattr(part, one.name) for part in parts for one in fields(part)}
    if command is LimitCommand:
        del known["length"]  # a recipe has none
    flags = {one.name for one in fields(command)}
    defaults = {name: value for name, value in known.items() if name in flags}
    return with_knobs(command, arguments, KINDS, defaults)


def run(command: Any) -> None:
    """Train what is not there yet, then write and print what was found."""
    task = task_in(command)
    chosen = _chosen(task, command)
    choose_device(command.device)  # before a folder is made
    output = command.output or Path(f"runs/train-{task.name}")
    store = Store(output / "runs")
    if chosen in store:
        rows = table([chosen], [store.result(chosen).metrics])
    else:
        with run_progress(chosen) as (progress, measured):
            (result,) = train_all(
                [chosen],
                output=output / "runs",
                device=command.device,
                progress=progress,
                measured=measured,
            )
        rows = table([chosen], [result.metrics])
    path, figure = output / "results.parquet", output / "figure.png"
    with replacing(path) as temporary:
        rows.to_parquet(temporary, index=False)
    note(output, typed())
    save_figure(run_figure(chosen, rows), figure)
    weights = output / "runs" / chosen.id / "weights.safetensors"
    files = {"figure": str(figure), "results": str(path), "weights": str(weights)}
    if command.json:
        print(json_module.dumps({**run_json(chosen, rows), "files": files}, indent=2))
        return
    console = Console()
    console.print(run_table(chosen, rows))
    print_files(console, files)


def _typical(task: Any) -> Run:
    return recipe(task).run(task) if isinstance(task, Task) else decoder_run(task)


def _chosen(task: Any, command: Any) -> Run:
    """The run that the flags describe; ``ValueError`` if it cannot be trained and measured."""
    if isinstance(command, LimitCommand):
        return _limit_run(task, command)
    assert isinstance(command, DecoderCommand)
    model = DecoderModel(**{one.name: getattr(command, one.name) for one in fields(DecoderModel)})
    training = DecoderTraining(**{one.name: getattr(command, one.name) for one in fields(DecoderTraining)})
    evaluation = DecoderEvaluation(
        ends=command.ends, sequences=command.sequences, every=command.every, stop=not command.no_stop
    )
    return Run(task, model, training, evaluation)


def _limit_run(task: Task, command: LimitCommand) -> Run:
    typical = recipe(task).run(task)
    evaluation = typical.limit.evaluation
    if command.longest_test is not None:
        each = 2 if isinstance(task, CountTask) else 4
        evaluation = replace(evaluation, lengths=length_grid(command.longest_test, each))
    chosen = typical.but(
        evaluation=evaluation,
        length=command.length,
        steps=command.steps,
        batch=command.batch,
        learning_rate=command.learning_rate,
        seed=command.seed,
    )
    task.check_length(command.length)
    plateau(chosen.test_lengths, [0.0] * len(chosen.test_lengths), [0.0] * len(chosen.test_lengths))
    return chosen
