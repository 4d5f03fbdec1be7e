"""The ensemble loop: M models, each on its own data at its own rate, one optimiser step for all."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.models import LimitEnsemble, LimitModel
from lengthwise.sequences import Summary
from lengthwise.tasks import Task
from lengthwise.training.adam import StackAdam
from lengthwise.training.config import Training
from lengthwise.training.data import count_batches, token_batches
from lengthwise.training.randomness import generator
from lengthwise.training.step import step_of

Progress = Callable[[int], None]
"""Called with the number of model-steps done since the last call."""

RECORDS = 20
"""How many points of the training curve are kept."""


@dataclass(frozen=True)
class TrainingCurve:
    """Training loss of each model, averaged over the steps up to each of ``steps`` since the one before."""

    steps: tuple[int, ...]
    loss: Float[Tensor, "M records"]


def cosine(step: int, steps: int) -> float:
    """The share of the learning rate at this step (from 0): 1 at the start, towards 0 at the end."""
    return 0.5 * (1 + math.cos(math.pi * step / steps))


def start_ensemble(
    model: LimitModel,
    task: Task,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> LimitEnsemble:
    """Models at their first weights, one a seed."""
    return LimitEnsemble(
        model,
        vocabulary=task.vocabulary,
        outputs=task.outputs,
        generators=[generator(seed, "weights") for seed in seeds],
        device=device,
        dtype=dtype,
    )


def train_on_counts(
    ensemble: LimitEnsemble,
    tasks: Sequence[Task],
    trainings: Sequence[Training],
    progress: Progress | None = None,
) -> TrainingCurve:
    """Train every model in place on summaries; the models may differ in training length.

    One layer needs no more than the summaries, so this is the path to take whenever there is one layer.
    """
    batches = count_batches(
        tasks,
        [training.length for training in trainings],
        trainings[0].batch,
        _data_generators(ensemble, trainings),
        period=ensemble.model.period,
        locality=ensemble.model.window - 1,
        shortest=[training.shortest for training in trainings],
    )

    def forward(counts: Tensor, suffix: Tensor, length: Tensor) -> Tensor:
        return ensemble.forward_counts(Summary(counts, suffix, length))

    return _train(ensemble, forward, batches, tasks[0], trainings, progress)


def train_on_tokens(
    ensemble: LimitEnsemble,
    tasks: Sequence[Task],
    trainings: Sequence[Training],
    progress: Progress | None = None,
) -> TrainingCurve:
    """Train every model in place on the strings themselves, all of one length."""
    if any(training.shortest is not None for training in trainings):
        raise ValueError("models of two layers are trained on strings of one length: shortest must be None")
    length, batch = trainings[0].length, trainings[0].batch
    assert all(training.length == length for training in trainings)
    batches = token_batches(tasks, length, batch, _data_generators(ensemble, trainings))
    return _train(ensemble, ensemble.forward_tokens, batches, tasks[0], trainings, progress)


def _data_generators(ensemble: LimitEnsemble, trainings: Sequence[Training]) -> list[torch.Generator]:
    return [generator(training.seed, "data", ensemble.stack.values.device) for training in trainings]


def _train(
    ensemble: LimitEnsemble,
    forward: Callable[..., Tensor],
    batches: Iterator[tuple[Tensor, ...]],
    task: Task,
    trainings: Sequence[Training],
    progress: Progress | None,
) -> TrainingCurve:
    steps = trainings[0].steps
    assert all((t.steps, t.batch) == (steps, trainings[0].batch) for t in trainings)
    adam = StackAdam(ensemble.stack, [training.learning_rate for training in trainings])

    def backward(*batch: Tensor) -> Tensor:
        *inputs, target = batch
        loss_M = task.loss(forward(*inputs), target.to(ensemble.stack.values.dtype)).mean(-1)
        loss_M.sum().backward()
        return loss_M

    step = step_of(adam, backward)
    records = sorted({math.ceil(steps * (record + 1) / RECORDS) for record in range(RECORDS)})
    curve, since = [], 0
    for done, batch in enumerate(islice(batches, steps)):
        step(batch, cosine(done, steps))
        if done + 1 in records:
            curve.append(step.take_total() / (done + 1 - since))
            since = done + 1
        if progress:
            progress(ensemble.size)
    return TrainingCurve(tuple(records), torch.stack(curve, -1))
