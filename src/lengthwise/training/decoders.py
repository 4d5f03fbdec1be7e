"""The loop that trains decoders: M models, each on its own data at its own rate; who is perfect leaves."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.models.decoder import DecoderEnsemble, DecoderModel
from lengthwise.tasks import PredictionTask
from lengthwise.training.adam import StackAdam
from lengthwise.training.checkpoint import Checkpoints, resumed
from lengthwise.training.decoder_config import DecoderEvaluation, DecoderTraining
from lengthwise.training.decoder_data import FreshData
from lengthwise.training.decoder_evaluation import accuracy, readings_of_bins
from lengthwise.training.decoder_state import Place, Record, restored, state_of
from lengthwise.training.decoder_step import Backward
from lengthwise.training.loop import Progress
from lengthwise.training.pieces import numbers_of
from lengthwise.training.randomness import generator
from lengthwise.training.step import step_of
from lengthwise.training.workers import Workers

BETAS = (0.9, 0.999)

Measured = Callable[[int, int, Tensor, float], None]
"""Called whenever a model is measured: with its place among the trainings, the number of steps done, its
accuracy by bin, and its mean training loss since the measurement before."""


@dataclass(frozen=True)
class DecoderResult:
    """What became of one model.

    - ``steps``: after how many it was measured; it was trained for as many as the last one says;
    - ``accuracy``: the share of right sequences then, by bin;
    - ``loss``: the mean training loss since the measurement before;
    - ``weights``: after the last step.
    """

    training: DecoderTraining
    steps: tuple[int, ...]
    accuracy: Float[Tensor, "measurements bins"]
    loss: Float[Tensor, " measurements"]
    weights: dict[str, Tensor]

    @property
    def perfect(self) -> bool:
        """Whether every sequence of the first bin was right in the end."""
        return bool(self.accuracy[-1, 0] == 1)


def linear(step: int, steps: int) -> float:
    """The share of the learning rate at this step (from 0): 1 at the start, towards 0 at the end."""
    return 1 - step / steps


def start_decoders(
    model: DecoderModel,
    task: PredictionTask | Sequence[PredictionTask],
    seeds: Sequence[int],
    longest: int,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> DecoderEnsemble:
    """Decoders at their first weights, one a seed, for inputs of lengths up to ``longest``; all for one task,
    or each for its own of several of one form.
    """
    tasks = [task] * len(seeds) if isinstance(task, PredictionTask) else task
    return DecoderEnsemble(
        model,
        vocabulary=[own.vocabulary for own in tasks],
        classes=None if tasks[0].kind == "token" else [own.classes for own in tasks],
        longest=tasks[0].stream_length(longest),
        generators=[generator(seed, "weights") for seed in seeds],
        device=device,
        dtype=dtype,
    )


def train_decoders(
    model: DecoderModel,
    task: PredictionTask | Sequence[PredictionTask],
    trainings: Sequence[DecoderTraining],
    evaluation: DecoderEvaluation | None = None,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    progress: Progress | None = None,
    measured: Measured | None = None,
    checkpoints: Checkpoints | None = None,
) -> list[DecoderResult]:
    """Train and measure decoders of one shape together, one for each of ``trainings``, and tell of them all.

    The trainings may differ in seed and learning rate, and in their tasks if these are of one form: then
    ``task`` is a list, with one for each. What becomes of a model does not depend on the others, but for
    rounding: not on who they are, nor on when they leave. ``progress`` is called with the number of
    model-steps that were done, or that a model that left will not need; ``measured``, see ``Measured``.
    With ``checkpoints``, training goes on from the state that they hold and leaves others there.
    """
    evaluation = evaluation or DecoderEvaluation()
    tasks = [task] * len(trainings) if isinstance(task, PredictionTask) else list(task)
    check_trainings(model, trainings, tasks)
    first, seeds = trainings[0], [own.seed for own in trainings]
    longest = max(first.length, *evaluation.ends)
    ensemble = start_decoders(model, tasks, seeds, longest, device, dtype)
    rates = [own.learning_rate for own in trainings]
    adam = StackAdam(ensemble.stack, rates, BETAS, first.weight_decay, first.clip)
    data = FreshData(ensemble, tasks, length=first.length, batch=first.batch, seeds=seeds)
    tests = {task: readings_of_bins(ensemble, task, evaluation) for task in dict.fromkeys(tasks)}
    records = [Record(index) for index in range(len(trainings))]
    place = resumed(
        checkpoints, lambda state: restored(state, records, adam, data, first.steps, evaluation), Place()
    )
    left = [record for record in records if not record.weights]
    if place.step:
        _tell_again(records, first.steps, place.step, progress, measured)
    on_gpu, total, done, since = ensemble.stack.values.is_cuda, place.total, place.step, place.measured
    with _rounding(on_gpu and first.rounding != "none"):
        while left:
            leaving: list[int] = []
            with crew(ensemble, tasks[0], first) as workers:
                backward = Backward(ensemble, tasks[0], first.regulariser, workers, first.rounding)
                step, asked = step_of(adam, backward), [tasks[record.index] for record in left]
                if total is not None:
                    step.load_total(total)
                    total = None
                while not leaving:
                    until = min(since + evaluation.every, first.steps)
                    while done < until:
                        batch = data.take(workers)
                        step(batch.parts(), linear(done, first.steps), groups=data.groups())
                        done += 1
                        if progress:
                            progress(len(left))
                        if checkpoints and checkpoints.due():
                            place = Place(done, since, step.total)
                            checkpoints.save(state_of(place, records, adam, data))
                    rights = accuracy(ensemble, asked, tests, workers)
                    for record, right, loss in zip(left, rights, step.take_total(), strict=True):
                        record.add(done, right, loss / (done - since))
                        if measured:
                            measured(record.index, done, right, float(loss / (done - since)))
                    since = done
                    for index, right in enumerate(rights):
                        if done == first.steps or (evaluation.stop and right[0] == 1):
                            leaving.append(index)
            for index in leaving:
                left[index].weights = ensemble.stack.weights(index)
            if progress and done < first.steps:
                progress(len(leaving) * (first.steps - done))
            staying = [index for index in range(len(left)) if index not in leaving]
            left = [left[index] for index in staying]
            if left:
                adam.keep(staying)
                data.keep(staying)
    return [
        DecoderResult(own, tuple(record.steps), *record.measurements(), record.weights)
        for own, record in zip(trainings, records, strict=True)
    ]


def _tell_again(
    records: Sequence[Record], steps: int, done: int, progress: Progress | None, measured: Measured | None
) -> None:
    """Tell of what was done and measured before an interruption."""
    if progress:
        progress(sum(steps if record.weights else done for record in records))
    if measured:
        for record in records:
            for at, right, loss in zip(record.steps, record.accuracy, record.loss, strict=True):
                measured(record.index, at, right, float(loss))


def crew(ensemble: DecoderEnsemble, task: PredictionTask, training: DecoderTraining) -> Workers:
    """The threads that suit what is left of an ensemble."""
    if ensemble.stack.values.is_cuda:
        return Workers(1, 0)
    tokens, places = task.stream_length(training.length), task.answers(training.length)
    return Workers(ensemble.size, numbers_of(ensemble, training.batch, tokens, places))


def check_trainings(
    model: DecoderModel, trainings: Sequence[DecoderTraining], tasks: Sequence[PredictionTask]
) -> None:
    """Raise ``ValueError`` unless these trainings on these tasks can share an ensemble of this model."""
    if not trainings:
        raise ValueError("there is nothing to train: give at least one training")
    if len(tasks) != len(trainings):
        raise ValueError(f"there must be a task for each training, got {len(tasks)} for {len(trainings)}")
    if len({task.form for task in tasks}) > 1:
        raise ValueError("decoders that are trained together must have tasks of one form")
    alike = {replace(own, seed=0, learning_rate=1.0) for own in trainings}
    if len(alike) > 1:
        raise ValueError("decoders that are trained together may differ in seed and learning rate alone")
    if trainings[0].regulariser and model.positions != "learned":
        raise ValueError(
            f"the regulariser is of learned positions; a model with positions {model.positions!r} has none"
        )


@contextmanager
def _rounding(tf32: bool) -> Iterator[None]:
    """Let products of a GPU be rounded, or not."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
