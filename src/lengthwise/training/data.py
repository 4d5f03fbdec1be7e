"""Fresh training data for every model of an ensemble, each from its own random stream."""

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from lengthwise.sequences import Summary, summarize
from lengthwise.tasks import CountTask, SequentialTask, Task
from lengthwise.training.randomness import set_states, states_of

DRAWN_AT_ONCE = 2**20
MOST_STEPS = 256
"""Data is drawn for this many steps at a time, to spare the sampler's overhead. Both are part of what
makes a run reproducible: another value gives other draws from the same stream."""


def steps_at_once(batch: int, length: int) -> int:
    """For how many steps data is drawn together: what fits in ``DRAWN_AT_ONCE`` tokens (or summaries)."""
    return max(1, min(MOST_STEPS, DRAWN_AT_ONCE // (batch * length)))


def draw_summaries(
    task: Task,
    batch: int,
    length: int,
    generator: torch.Generator,
    *,
    period: int,
    locality: int,
    shortest: int | None = None,
) -> tuple[Summary, Float[Tensor, "{batch} outputs"]]:
    """Summaries and targets of a batch of strings, without making the strings if the task can; with
    ``shortest``, of lengths that are uniform from it to ``length``.
    """
    if isinstance(task, CountTask):
        finer = math.lcm(period, task.theory.period or 1)
        lengths: int | Tensor = length
        if shortest is not None:
            task.check_length(shortest)
            lengths = torch.randint(
                shortest, length + 1, (batch,), generator=generator, device=generator.device
            )
        summary = task.sample_counts(batch, lengths, generator, period=finer, locality=locality)
        return summary.folded(period), task.target_of_counts(summary)
    if shortest is not None:
        raise ValueError(f"{task.title} makes its strings: their lengths cannot vary")
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
    shortest: Sequence[int | None] | None = None,
) -> "Batches":
    """An endless stream of (counts, suffix, length, target); model m sees strings of length lengths[m], or of
    lengths that are uniform from shortest[m] to it.

    Tasks that must make their strings share one length, so that what is drawn at once, and with it what a
    model sees, does not depend on the other models.
    """
    counted = all(isinstance(task, CountTask) for task in tasks)
    assert counted or len(set(lengths)) == 1
    steps = steps_at_once(batch, 1 if counted else lengths[0])

    def draw(model: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        summary, target = draw_summaries(
            tasks[model],
            steps * batch,
            lengths[model],
            generators[model],
            period=period,
            locality=locality,
            shortest=shortest[model] if shortest else None,
        )
        return summary.counts, summary.suffix, summary.length.expand(len(target)), target

    def drawn() -> list[Tensor]:
        models = [draw(model) for model in range(len(tasks))]
        return [torch.stack(column) for column in zip(*models, strict=True)]

    return Batches(drawn, generators, steps)


def token_batches(
    tasks: Sequence[Task], length: int, batch: int, generators: Sequence[torch.Generator]
) -> "Batches":
    """An endless stream of (tokens, target), with strings of one length."""
    steps = steps_at_once(batch, length)

    def drawn() -> list[Tensor]:
        tokens = draw_strings(tasks, steps * batch, length, generators)
        return [tokens, torch.stack([task.target(rows) for task, rows in zip(tasks, tokens, strict=True)])]

    return Batches(drawn, generators, steps)


class Batches(Iterator[tuple[Tensor, ...]]):
    """What ``draw`` draws from the generators for many steps, a step at a time.

    What is drawn follows from where the generators were before: that alone is kept in a checkpoint, beside
    the number of steps taken since, and what was drawn is then drawn again.
    """

    def __init__(
        self, draw: Callable[[], Sequence[Tensor]], generators: Sequence[torch.Generator], steps: int
    ) -> None:
        self._draw, self._generators, self.steps_at_once = draw, generators, steps
        self._drawn: list[Tensor] = []
        self._before = states_of(generators)
        self._taken = 0

    def __next__(self) -> tuple[Tensor, ...]:
        if self._taken == self.steps_at_once:
            self._drawn, self._taken = [], 0
        if not self._drawn:
            self._before = states_of(self._generators)
            self._drawn = [column.unflatten(1, (self.steps_at_once, -1)) for column in self._draw()]
        self._taken += 1
        return tuple(column[:, self._taken - 1] for column in self._drawn)

    def state(self) -> tuple[UInt8[Tensor, "M bytes"], int]:
        """Where the generators were before they drew what is not used up, and how many steps it gave."""
        if self._taken == self.steps_at_once:
            return states_of(self._generators), 0
        return self._before, self._taken

    def load(self, before: UInt8[Tensor, "M bytes"], taken: int) -> None:
        """Go on from there."""
        set_states(self._generators, before)
        self._drawn, self._before, self._taken = [], before, taken


def draw_strings(
    tasks: Sequence[Task], batch: int, length: int, generators: Sequence[torch.Generator]
) -> Int[Tensor, "M {batch} {length}"]:
    """Strings for each model from its own stream; those of one sequential task are made together."""
    first = tasks[0]
    if not isinstance(first, SequentialTask) or any(task != first for task in tasks):
        drawn = [task.sample(batch, length, own) for task, own in zip(tasks, generators, strict=True)]
        return torch.stack(drawn)
    noises = [first.noise(batch, length, own) for own in generators]
    tokens = first.strings(*(torch.cat(parts) for parts in zip(*noises, strict=True)))
    return tokens.unflatten(0, (len(tasks), batch))
