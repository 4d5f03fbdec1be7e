"""Runs of decoders: which may share an ensemble, and what they leave."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lengthwise.experiments.results import Measured, Result, Row, metrics_frame
from lengthwise.experiments.run import Run
from lengthwise.models.decoder import DecoderEnsemble
from lengthwise.models.mup import Role
from lengthwise.training import Progress, start_decoders, train_decoders
from lengthwise.training.checkpoint import Checkpoints
from lengthwise.training.decoder_data import DRAWN_AT_ONCE
from lengthwise.training.pieces import numbers_of
from lengthwise.training.workers import SMALL

MOST_ON_A_CPU = 16
"""Of the smallest models, so many are trained together on a CPU: more are hardly faster there, and lose more
work when they are killed."""

NUMBERS_ON_A_CPU = 2**20
"""Of others, as many as have so many numbers between the maps of their MLPs, for the same reason."""

ACTIVATIONS = 34
"""So many numbers are kept for the gradient, or made with it, for each row, layer and unit of width."""


def shape_of(run: Run) -> Hashable:
    """What runs that share an ensemble have in common: all but the seed, the learning rate and, of tasks of
    one form, the task.
    """
    task, model, training, evaluation = run.decoder
    return task.form, model, replace(training, seed=0, learning_rate=1.0), evaluation


def most_together(alike: Sequence[Run], device: torch.device, memory: int) -> int:
    """How many of some runs of one shape an ensemble may have: on a GPU as many as fill the memory, on a CPU
    as many as make it faster, and at least one for each thread unless an operation fills them all.
    """
    largest = max(alike, key=lambda run: run.decoder.task.vocabulary)
    if device.type == "cuda":
        return max(1, memory // bytes_of(largest))
    task, _, training, _ = largest.decoder
    places, tokens = task.answers(training.length), task.stream_length(training.length)
    numbers = numbers_of(_alone(largest), training.batch, tokens, places)
    fewest = torch.get_num_threads() if numbers < SMALL else 1
    return max(fewest, min(MOST_ON_A_CPU, NUMBERS_ON_A_CPU // numbers))


def bytes_of(run: Run) -> int:
    """About what one model adds to the memory of its ensemble on a GPU, in float32.

    - Six buffers of the size of its weights: values, gradients, rates, and what Adam needs;
    - what is kept of a batch at each row: each token of every layer or, where tokens are counted, each place;
    - attention weights where not all queries are alike: those of the last layer at the places, and those of
      every layer where a scheme of positions adds to the logits;
    - the logits of a batch;
    - the examples of the batches that are drawn at once, and what they are made of.
    """
    task, model, training, _ = run.decoder
    ensemble = _alone(run)
    places, tokens = task.answers(training.length), task.stream_length(training.length)
    rows = training.batch * (places if ensemble.counted else tokens)
    activations = ACTIVATIONS * rows * model.width * model.layers
    queries = places
    if model.positions in ("alibi", "relative"):
        queries += (model.layers - 1) * tokens
    attention = 4 * training.batch * model.heads * queries * (task.vocabulary if ensemble.counted else tokens)
    logits = 4 * training.batch * places * task.classes
    drawn = 8 * max(DRAWN_AT_ONCE["cuda"], training.batch * tokens)
    return 4 * (6 * ensemble.stack.values.numel() + activations + attention + logits) + 8 * drawn


def roles_of(run: Run) -> dict[str, Role]:
    """The parameters of the model."""
    task, model, training, evaluation = run.decoder
    classes = None if task.kind == "token" else task.classes
    return model.roles(task.vocabulary, classes, task.stream_length(max(training.length, *evaluation.ends)))


def run_together(
    runs: Sequence[Run],
    device: torch.device,
    progress: Progress | None,
    measured: Measured | None,
    checkpoints: Checkpoints | None = None,
) -> list[Result]:
    """Train and measure runs of one shape."""
    _, model, _, evaluation = runs[0].decoder

    def tell(index: int, step: int, accuracy: Tensor, loss: float) -> None:
        if measured:
            measured(runs[index], rows_at(runs[index], step, accuracy, loss))

    found = train_decoders(
        model,
        [run.decoder.task for run in runs],
        [run.decoder.training for run in runs],
        evaluation,
        device=device,
        progress=progress,
        measured=tell,
        checkpoints=checkpoints,
    )
    results = []
    for run, own in zip(runs, found, strict=True):
        points = zip(own.steps, own.accuracy, own.loss.tolist(), strict=True)
        rows = [row for point in points for row in rows_at(run, *point)]
        results.append(Result(run, metrics_frame(run, rows), own.weights))
    return results


def rows_at(run: Run, step: int, accuracy: Tensor, loss: float) -> list[Row]:
    """What one measurement leaves."""
    ends = run.decoder.evaluation.ends
    rights = zip(ends, accuracy.tolist(), strict=True)
    return [
        (step, run.training.length, "training_loss", loss),
        *((step, end, "accuracy", right) for end, right in rights),
    ]


def _alone(run: Run) -> DecoderEnsemble:
    """A decoder of this shape."""
    task, model, training, evaluation = run.decoder
    return start_decoders(model, task, [0], max(training.length, *evaluation.ends))
