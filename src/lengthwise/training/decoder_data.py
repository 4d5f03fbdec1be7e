"""What decoders read: fresh batches for every model from its own random streams, and tests that all share.

Axes: M model, K step, B stream, T position, A place, N any number of streams.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int, UInt8
from torch import Tensor
from torch.nn.functional import pad

from lengthwise.models.decoder import DecoderEnsemble
from lengthwise.models.positions import drawn_positions
from lengthwise.models.token_counts import token_counts
from lengthwise.tasks import Examples, PredictionTask
from lengthwise.tasks._prediction import joined
from lengthwise.training.randomness import check_states, generator, set_states, states_of
from lengthwise.training.workers import Workers

DRAWN_AT_ONCE = {"cpu": 2**16, "cuda": 2**18}
MOST_STEPS = 256
"""A model's data is drawn for as many steps at a time as have so many tokens. Both are part of what makes a
run reproducible: another value gives other draws from the same streams."""

GROUPS, LARGE = 4, 2**24
"""On a GPU, the streams of a batch are padded in so many groups, or in fewer, so that a layer of each has
this many numbers."""


class Reading(NamedTuple):
    """Examples, and what else a decoder is told of them: the positions of the tokens or, instead of the
    tokens, their counts at each place (all that ``TokenCounts`` holds).
    """

    tokens: Tensor
    places: Tensor
    scored: Tensor
    target: Tensor
    more: tuple[Tensor, ...] = ()

    def parts(self) -> tuple[Tensor, ...]:
        """All tensors; ``reading`` takes them back."""
        return (*self[:4], *self.more)


class Group(NamedTuple):
    """Some streams, from the first to before the last, and how many of their tokens and places matter."""

    first: int
    last: int
    tokens: int
    places: int

    @property
    def streams(self) -> slice:
        """The same as a slice."""
        return slice(self.first, self.last)


def reading(*parts: Tensor) -> Reading:
    """The tensors of ``Reading.parts`` put together again."""
    tokens, places, scored, target, *more = parts
    return Reading(tokens, places, scored, target, tuple(more))


def lengths(places: Int[Tensor, "*N A"], scored: Bool[Tensor, "*N A"]) -> Int[Tensor, "*N"]:
    """How many tokens of a stream matter: those up to the last scored place."""
    return places.where(scored, 0).amax(-1) + 1


def answers(scored: Bool[Tensor, "*N A"]) -> Int[Tensor, "*N"]:
    """How many places of a stream matter: those up to the last scored one."""
    return (scored * torch.arange(1, scored.shape[-1] + 1, device=scored.device)).amax(-1)


def chances(
    ensemble: DecoderEnsemble, streams: int, length: int, random: torch.Generator, *, testing: bool = False
) -> tuple[Tensor, ...]:
    """The random numbers that decide the positions of streams of up to this many tokens, where any do: in
    testing, learned positions count from 0.
    """
    scheme = ensemble.model.positions
    if scheme not in ("learned", "randomised") or (scheme == "learned" and testing):
        return ()
    shape = streams, 1 if scheme == "learned" else length
    return (torch.rand(shape, dtype=torch.float64, generator=random, device=random.device),)


def read(ensemble: DecoderEnsemble, examples: Examples, *chances: Tensor) -> Reading:
    """Examples with what else the models must be told of them; there is no axis of models. Sets have a column
    for every class that a model of the ensemble has.
    """
    tokens, places, scored, target = examples.tokens, examples.places, examples.scored, examples.target
    if target.dim() > places.dim():
        target = pad(target, (0, ensemble.classes - target.shape[-1]))
    more: tuple[Tensor, ...] = ()
    if ensemble.counted:
        more = token_counts(tokens, places, ensemble.vocabulary, ensemble.stack.values.dtype)
        tokens = tokens[:, :0]  # the counts are all that is needed
    elif chances:
        used = lengths(places, scored)
        drawn = drawn_positions(
            ensemble.model.positions, used, *chances, width=tokens.shape[1], span=ensemble.span
        )
        more = (drawn,)
    return Reading(tokens, places, scored, target, more)


class FreshData:
    """Batches without end, each model's from its own two random streams: one of examples, one of positions.

    There is one of ``tasks`` for each model, all of one form. What is random is drawn model by model, for
    ``steps_at_once`` steps; the examples are then made of it for all models at once on a GPU, and for the
    models of each thread in turn on a CPU.
    """

    def __init__(
        self,
        ensemble: DecoderEnsemble,
        tasks: Sequence[PredictionTask],
        *,
        length: int,
        batch: int,
        seeds: Sequence[int],
    ) -> None:
        self._ensemble, self._tasks, self._length, self._batch = ensemble, list(tasks), length, batch
        device = ensemble.stack.values.device
        purposes = ("data", "positions")
        self._random = [[generator(seed, purpose, device) for purpose in purposes] for seed in seeds]
        self._width = tasks[0].stream_length(length)
        self.steps_at_once = max(1, min(MOST_STEPS, DRAWN_AT_ONCE[device.type] // (batch * self._width)))
        self._drawn: list[Tensor] = []
        self._before = self._states()
        self._taken = 0
        numbers = 0 if ensemble.counted else ensemble.size * batch * self._width * 4 * ensemble.model.width
        self._groups = min(GROUPS, batch, numbers // LARGE) if ensemble.stack.values.is_cuda else 1
        self._sizes: list[list[list[int]]] = []
        self._usual: tuple[Group, ...] = ()

    def groups(self) -> tuple[Group, ...] | None:
        """On a GPU, how the batch that was taken last can be read with less padding than as a whole: in
        shapes that are always the same, and fit nearly all batches. None otherwise.
        """
        if self._groups < 2:
            return None
        sizes = self._sizes[self._taken - 1]
        fits = [
            tokens <= group.tokens and places <= group.places
            for (tokens, places), group in zip(sizes, self._usual, strict=True)
        ]
        return self._usual if all(fits) else None

    def take(self, workers: Workers) -> Reading:
        """The next batch of every model; its streams are ordered by falling length."""
        if self._taken == self.steps_at_once:
            self._drawn, self._taken = [], 0
        if not self._drawn:
            self._before = self._states()
            self._drawn = self._draw(workers)
            if self._groups > 1 and self._taken == 0:  # what is drawn again was measured
                self._measure()
        self._taken += 1
        return reading(*(part[:, self._taken - 1] for part in self._drawn))

    def keep(self, models: Sequence[int]) -> None:
        """Go on with some of the models alone."""
        self._random = [self._random[model] for model in models]
        self._tasks = [self._tasks[model] for model in models]
        self._drawn = [part[list(models)] for part in self._drawn]
        self._before = self._before[list(models)]

    def state(self) -> tuple[UInt8[Tensor, "M streams bytes"], dict[str, Any]]:
        """Where the random streams were before what is not used up was drawn, and plain data: how many steps
        it gave, and how its batches are grouped.
        """
        used_up = self._taken == self.steps_at_once
        before, taken = (self._states(), 0) if used_up else (self._before, self._taken)
        return before, {"taken": taken, "sizes": self._sizes, "usual": [list(own) for own in self._usual]}

    def check(self, before: UInt8[Tensor, "M streams bytes"], about: Mapping[str, Any]) -> None:
        """Raise ``ValueError`` unless this is such a state."""
        check_states(before.flatten(0, 1), self._ensemble.stack.values.device)
        measured = self._groups > 1
        shapes = {
            "sizes": [self.steps_at_once, self._groups, 2] if measured else [0],
            "usual": [self._groups, 4] if measured else [0],
        }
        for name, expected in shapes.items():
            if not _numbers(about.get(name), expected):
                raise ValueError(f"batches are grouped in other ways: {name}")

    def load(self, before: UInt8[Tensor, "M streams bytes"], about: Mapping[str, Any]) -> None:
        """Go on from there; what was drawn is drawn again when it is needed."""
        for own, states in zip(self._random, before, strict=True):
            set_states(own, states)
        self._drawn, self._before, self._taken = [], before, about["taken"]
        self._sizes, self._usual = about["sizes"], tuple(Group(*group) for group in about["usual"])

    def _states(self) -> UInt8[Tensor, "M streams bytes"]:
        return torch.stack([states_of(own) for own in self._random])

    def _draw(self, workers: Workers) -> list[Tensor]:
        """Batches for many steps."""
        on_gpu = self._ensemble.stack.values.is_cuda
        models = range(len(self._tasks))
        made = workers.map(self._made, [models] if on_gpu else [[model] for model in models])
        return [part.unflatten(0, (-1, self.steps_at_once, self._batch)) for part in joined(made)]

    def _measure(self) -> None:
        """The sizes of the groups of each step; what the first steps need is the usual size."""
        tokens, places, scored = self._drawn[:3]
        bounds = [self._batch * group // self._groups for group in range(self._groups + 1)]
        sizes_MKB2 = torch.stack([lengths(places, scored), answers(scored)], -1)
        parts = [sizes_MKB2[:, :, first:last].amax((0, 2)) for first, last in pairwise(bounds)]
        sizes_KG2 = torch.stack(parts, 1)
        self._sizes = sizes_KG2.tolist()
        if not self._usual:
            rounded_G2 = (sizes_KG2.amax(0) + 7) // 8 * 8
            most = [tokens.shape[-1], places.shape[-1]]
            self._usual = tuple(
                Group(first, last, *map(min, most, sizes))
                for (first, last), sizes in zip(pairwise(bounds), rounded_G2.tolist(), strict=True)
            )

    def _made(self, models: Sequence[int]) -> tuple[Tensor, ...]:
        """The parts of readings of some models, one after the other."""
        streams = self.steps_at_once * self._batch
        random = [self._random[model] for model in models]
        tasks = [self._tasks[model] for model in models]
        noises = [
            task.noise(streams, task.shortest, self._length, data)
            for task, (data, _) in zip(tasks, random, strict=True)
        ]
        examples = tasks[0].examples_together(tasks, noises, self._length)
        placed = [chances(self._ensemble, streams, self._width, positions) for _, positions in random]
        found = read(self._ensemble, examples, *joined(placed))
        if self._ensemble.counted and (found.tokens.is_cuda or bool(found.scored.all())):
            return found.parts()
        lengths_KB = lengths(found.places, found.scored).unflatten(0, (-1, self._batch))
        order_KB = lengths_KB.argsort(dim=1, descending=True, stable=True)
        first_K1 = self._batch * torch.arange(len(order_KB), device=order_KB.device).unsqueeze(1)
        rows = (first_K1 + order_KB).flatten()
        return tuple(part[rows] for part in found.parts())


def _numbers(value: object, shape: Sequence[int]) -> bool:
    """Whether these are lists of lists of whole numbers, of these lengths."""
    if not shape:
        return isinstance(value, int)
    return isinstance(value, list) and len(value) == shape[0] and all(_numbers(x, shape[1:]) for x in value)
