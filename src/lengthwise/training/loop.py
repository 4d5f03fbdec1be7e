"""The ensemble loop: M models, each on its own data at its own rate, one optimiser step for all."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.models import LimitEnsemble, LimitModel
from lengthwise.sequences import Summary
from lengthwise.tasks import Task
from lengthwise.training.adam import StackAdam
from lengthwise.training.checkpoint import Checkpoints, State, check_tensors, resumed, shape, whole_number
from lengthwise.training.config import Training
from lengthwise.training.data import Batches, count_batches, token_batches
from lengthwise.training.randomness import check_states, generator
from lengthwise.training.step import Step, step_of

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
    checkpoints: Checkpoints | None = None,
) -> TrainingCurve:
    """Train every model in place on summaries; the models may differ in training length.

    One layer needs no more than the summaries, so this is the path to take whenever there is one layer.
    With ``checkpoints``, training goes on from the state that they hold and leaves others there.
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

    return _train(ensemble, forward, batches, tasks[0], trainings, progress, checkpoints)


def train_on_tokens(
    ensemble: LimitEnsemble,
    tasks: Sequence[Task],
    trainings: Sequence[Training],
    progress: Progress | None = None,
    checkpoints: Checkpoints | None = None,
) -> TrainingCurve:
    """Train every model in place on the strings themselves, all of one length."""
    if any(training.shortest is not None for training in trainings):
        raise ValueError("models of two layers are trained on strings of one length: shortest must be None")
    length, batch = trainings[0].length, trainings[0].batch
    assert all(training.length == length for training in trainings)
    batches = token_batches(tasks, length, batch, _data_generators(ensemble, trainings))
    return _train(ensemble, ensemble.forward_tokens, batches, tasks[0], trainings, progress, checkpoints)


def _data_generators(ensemble: LimitEnsemble, trainings: Sequence[Training]) -> list[torch.Generator]:
    return [generator(training.seed, "data", ensemble.stack.values.device) for training in trainings]


def _train(
    ensemble: LimitEnsemble,
    forward: Callable[..., Tensor],
    batches: Batches,
    task: Task,
    trainings: Sequence[Training],
    progress: Progress | None,
    checkpoints: Checkpoints | None,
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
    start, curve = resumed(
        checkpoints, lambda state: _restored(state, adam, step, batches, records), otherwise=(0, [])
    )
    if progress and start:
        progress(start * ensemble.size)
    for done in range(start, steps):
        step(next(batches), cosine(done, steps))
        if done + 1 in records:
            since = records[len(curve) - 1] if curve else 0
            curve.append(step.take_total() / (done + 1 - since))
        if progress:
            progress(ensemble.size)
        if checkpoints and checkpoints.due():
            checkpoints.save(_state(done + 1, adam, step, batches, curve))
    return TrainingCurve(tuple(records), torch.stack(curve, -1))


def _state(done: int, adam: StackAdam, step: Step, batches: Batches, curve: Sequence[Tensor]) -> State:
    """All that ``_restored`` needs, after so many steps."""
    before, taken = batches.state()
    tensors = {**adam.state(), "generators": before, "total": step.total}
    tensors |= {f"curve.{index}": losses for index, losses in enumerate(curve)}
    return State(tensors, {"step": done, "taken": taken})


def _restored(
    state: State, adam: StackAdam, step: Step, batches: Batches, records: Sequence[int]
) -> tuple[int, list[Tensor]]:
    """Put everything where it was: the number of steps done, and the training curve so far. ``ValueError``,
    and nothing is changed, if the state is not of this training.
    """
    done = whole_number(state, "step", 1, records[-1])
    taken = whole_number(state, "taken", 0, batches.steps_at_once - 1)
    known = [f"curve.{index}" for index in range(sum(record <= done for record in records))]
    total = shape(step.total)
    expected = adam.shapes() | {"generators": shape(batches.state()[0]), "total": total}
    check_tensors(state, expected | dict.fromkeys(known, total))
    check_states(state.tensors["generators"], step.total.device)
    if done % batches.steps_at_once != taken:
        raise ValueError(f"after {done} steps, {taken} are taken of what was drawn last")
    adam.load(state.tensors)
    step.load_total(state.tensors["total"])
    batches.load(state.tensors["generators"], taken)
    return done, [state.tensors[name] for name in known]
