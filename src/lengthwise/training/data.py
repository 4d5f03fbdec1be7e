"""Fresh training data for every model of an ensemble, each from its own random stream."""

from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.sequences import Summary, summarize
from lengthwise.tasks import CountTask, Task

DRAWN_AT_ONCE = 2**20
MOST_STEPS = 256
"""Data is drawn for this many steps at a time, to spare the sampler's overhead. Both are part of what
makes a run reproducible: another value gives other draws from the same stream."""


def steps_at_once(batch: int, length: int) -> int:
    """For how many steps data is drawn together: what fits in ``DRAWN_AT_ONCE`` tokens (or summaries)."""
    return max(1, min(MOST_STEPS, DRAWN_AT_ONCE // (batch * length)))


def draw_summaries(
    task: Task, batch: int, length: int, generator: torch.Generator, *, period: int, locality: int
) -> tuple[Summary, Float[Tensor, "{batch} outputs"]]:
    """Summaries and targets of a batch of strings, without making the strings if the task can."""
    if isinstance(task, CountTask):
        summary = task.sample_counts(batch, length, generator, period=period, locality=locality)
        return summary, task.target_of_counts(summary)
    tokens = task.sample(batch, length, generator)
    return summarize(tokens, task.vocabulary, period, locality), task.target(tokens)


def count_batches(
    tasks: Sequence[Task],
    lengths: Sequence[int],
    batch: int,
    generators: Sequence[torch.Generator],
    *,
    period: int,
    locality: int,
) -> Iterator[tuple[Tensor, ...]]:
    """An endless stream of (counts, suffix, target); model m sees strings of length lengths[m].

    Tasks that must make their strings share one length, so that what is drawn at once, and with it what a
    model sees, does not depend on the other models.
    """
    counted = all(isinstance(task, CountTask) for task in tasks)
    assert counted or len(set(lengths)) == 1
    steps = steps_at_once(batch, 1 if counted else lengths[0])

    def draw(model: int) -> tuple[Tensor, Tensor, Tensor]:
        summary, target = draw_summaries(
            tasks[model],
            steps * batch,
            lengths[model],
            generators[model],
            period=period,
            locality=locality,
        )
        return summary.counts, summary.suffix, target

    return _steps(draw, len(tasks), steps)


def token_batches(
    tasks: Sequence[Task], length: int, batch: int, generators: Sequence[torch.Generator]
) -> Iterator[tuple[Tensor, ...]]:
    """An endless stream of (tokens, target), with strings of one length."""
    steps = steps_at_once(batch, length)

    def draw(model: int) -> tuple[Tensor, Tensor]:
        tokens = tasks[model].sample(steps * batch, length, generators[model])
        return tokens, tasks[model].target(tokens)

    return _steps(draw, len(tasks), steps)


def _steps(
    draw: Callable[[int], tuple[Tensor, ...]], models: int, steps: int
) -> Iterator[tuple[Tensor, ...]]:
    while True:
        drawn = [draw(model) for model in range(models)]
        stacked = [torch.stack(column).unflatten(1, (steps, -1)) for column in zip(*drawn, strict=True)]
        for step in range(steps):
            yield tuple(column[:, step] for column in stacked)
