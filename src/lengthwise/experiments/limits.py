"""Runs of limit transformers: which may share an ensemble, and what they leave."""

from collections.abc import Hashable, Sequence

import torch

from lengthwise.experiments.results import NO_LENGTH, Measured, Result, Row, metrics_frame
from lengthwise.experiments.run import Run
from lengthwise.models.mup import Role
from lengthwise.tasks import CountTask
from lengthwise.training import (
    Progress,
    loss_at_infinity,
    loss_at_length,
    start_ensemble,
    train_on_counts,
    train_on_tokens,
)
from lengthwise.training.checkpoint import Checkpoints
from lengthwise.training.data import steps_at_once


def shape_of(run: Run) -> Hashable:
    """What runs that share an ensemble have in common."""
    task, model, training, evaluation = run.limit
    length = None if isinstance(task, CountTask) and model.layers == 1 else training.length
    kind = type(task), task.vocabulary, task.outputs
    return kind, model, evaluation, training.steps, training.batch, length


def most_together(alike: Sequence[Run], device: torch.device, memory: int) -> int:
    """How many of some runs of one shape an ensemble may have: as many as fill the memory."""
    return max(1, memory // max(map(bytes_of, alike)))


def bytes_of(run: Run) -> int:
    """About what one model adds to the working set of its ensemble, in float32."""
    task, model, training, _ = run.limit
    parameters = sum(torch.Size(role.shape).numel() for role in roles_of(run).values())
    kinds = task.vocabulary * model.period
    activations = training.batch * (3 * model.hidden + 6 * kinds * (model.heads + 1) * model.window)
    made = 1 if isinstance(task, CountTask) and model.layers == 1 else training.length
    if model.layers > 1:
        activations = 8 * training.batch * made * (kinds * (model.heads + 1) + model.hidden)
    drawn = steps_at_once(training.batch, made) * training.batch
    drawn *= kinds + model.window + task.outputs + made - 1
    return 4 * (6 * parameters + activations) + 8 * drawn


def roles_of(run: Run) -> dict[str, Role]:
    """The parameters of the model."""
    task, model, _, _ = run.limit
    return model.roles(task.vocabulary, task.outputs)


def run_together(
    runs: Sequence[Run],
    device: torch.device,
    progress: Progress | None,
    measured: Measured | None,
    checkpoints: Checkpoints | None = None,
) -> list[Result]:
    """Train and measure runs of one shape."""
    parts = [run.limit for run in runs]
    _, model, _, evaluation = parts[0]
    tasks, trainings = [own.task for own in parts], [own.training for own in parts]
    ensemble = start_ensemble(model, tasks[0], [training.seed for training in trainings], device)
    train = train_on_counts if model.layers == 1 else train_on_tokens
    curve = train(ensemble, tasks, trainings, progress, checkpoints)
    rows: list[list[Row]] = [[] for _ in runs]

    def add(index: int, *new: Row) -> None:
        rows[index] += new
        if measured:
            measured(runs[index], new)

    for index, (training, losses) in enumerate(zip(trainings, curve.loss, strict=True)):
        points = zip(curve.steps, losses.tolist(), strict=True)
        add(index, *((step, training.length, "training_loss", value) for step, value in points))
    for length in sorted({length for run in runs for length in run.test_lengths}):
        found = loss_at_length(ensemble, tasks, length, evaluation)
        for index, run in enumerate(runs):
            if length in run.test_lengths:
                steps = run.training.steps
                add(
                    index,
                    (steps, length, "loss", float(found.loss[index])),
                    (steps, length, "loss_error", float(found.error[index])),
                    (steps, length, "baseline", float(found.baseline[index])),
                )
    limit = loss_at_infinity(ensemble, tasks, evaluation)
    if limit is not None:
        for index, training in enumerate(trainings):
            add(
                index,
                (training.steps, NO_LENGTH, "limit", float(limit.loss[index])),
                (training.steps, NO_LENGTH, "limit_error", float(limit.error[index])),
            )
    return [
        Result(run, metrics_frame(run, rows[index]), ensemble.stack.weights(index))
        for index, run in enumerate(runs)
    ]
