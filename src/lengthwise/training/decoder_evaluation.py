"""Measuring decoders: the share of the streams of each bin that are right at every scored place.

Axes: M model, B stream, T position, A place.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.models.decoder import DecoderEnsemble
from lengthwise.tasks import Examples, PredictionTask
from lengthwise.training.decoder_config import DecoderEvaluation
from lengthwise.training.decoder_data import (
    Group,
    Reading,
    answers,
    chances,
    lengths,
    read,
    reading,
)
from lengthwise.training.pieces import logits_of
from lengthwise.training.randomness import generator
from lengthwise.training.workers import Workers

NUMBERS = {"cpu": 2**20, "cuda": 2**27}
"""How many numbers the largest tensor of an evaluation may hold, if one stream has no more."""


def readings_of_bins(
    ensemble: DecoderEnsemble, task: PredictionTask, evaluation: DecoderEvaluation
) -> list[Reading]:
    """The streams of each bin, the same for all models (M = 1), by falling length."""
    device, found = ensemble.stack.values.device, []
    for low, high in evaluation.bins(task):
        data, positions = (
            generator(evaluation.seed, f"{purpose} {low}-{high}", device)
            for purpose in ("evaluation", "evaluation positions")
        )
        examples = task.sample(evaluation.sequences, low, high, data)
        streams, width = examples.tokens.shape
        placed = chances(ensemble, streams, width, positions, testing=True)
        whole = read(ensemble, examples, *placed)
        order = lengths(whole.places, whole.scored).argsort(descending=True, stable=True)
        found.append(reading(*(part[order].unsqueeze(0) for part in whole.parts())))
    return found


class Part(NamedTuple):
    """Some streams of a test, for some models of its task."""

    task: PredictionTask
    bin: int
    models: slice
    batch: Reading
    group: Group


def accuracy(
    ensemble: DecoderEnsemble,
    tasks: Sequence[PredictionTask],
    tests: Mapping[PredictionTask, Sequence[Reading]],
    workers: Workers,
) -> Float[Tensor, "M bins"]:
    """The share of streams whose every scored place is right, of each model on each test of its task (one of
    ``tasks`` for each model); in float64.
    """
    with torch.no_grad():
        weights = ensemble.weights()
    parts = [
        Part(task, number, models, batch, group)
        for task, of in _spans(tasks)
        for number, batch in enumerate(tests[task])
        for models in _models(ensemble, batch, of, workers.size)
        for group in _groups(ensemble, batch, models)
    ]

    def right(part: Part) -> Tensor:
        own = {name: weight[part.models] for name, weight in weights.items()}
        with torch.no_grad():
            return _right(ensemble, own, part).sum(-1)

    streams, device = [len(test.tokens[0]) for test in tests[tasks[0]]], ensemble.stack.values.device
    found_MB = torch.zeros(ensemble.size, len(streams), dtype=torch.long, device=device)
    for part, counted in zip(parts, workers.map(right, parts), strict=True):
        found_MB[part.models, part.bin] += counted
    return found_MB.double().cpu() / torch.tensor(streams, dtype=torch.float64)


def _spans(tasks: Sequence[PredictionTask]) -> list[tuple[PredictionTask, slice]]:
    """The tasks of some models, each with those that have it one after the other."""
    found, first = [], 0
    for task, same in groupby(tasks):
        last = first + len(list(same))
        found.append((task, slice(first, last)))
        first = last
    return found


def _right(ensemble: DecoderEnsemble, weights: dict[str, Tensor], part: Part) -> Tensor:
    """Which of the streams are right, by model; the weights are those of its models alone."""
    size, group = part.models.stop - part.models.start, part.group
    batch = reading(*(own.expand(size, *own.shape[1:]) for own in part.batch.parts()))
    logits = logits_of(ensemble, weights, batch, slice(size), [group])
    streams, places = group.streams, slice(group.places)
    answer = (own[:, streams, places] for own in (batch.places, batch.scored, batch.target))
    examples = Examples(batch.tokens[:, streams, : group.tokens], *answer)
    return part.task.right(logits.unflatten(1, examples.places.shape[1:]), examples)


def _numbers(ensemble: DecoderEnsemble, batch: Reading, tokens: int, places: int) -> int:
    """The size of the largest tensor that a stream of one model leads to."""
    model = ensemble.model
    classes = batch.target.shape[-1] if batch.target.dim() == 4 else ensemble.vocabulary
    if ensemble.counted:
        return places * max(4 * model.width, classes, model.heads * ensemble.vocabulary)
    across = places if model.layers == 1 or model.positions != "relative" else tokens
    return max(tokens * 4 * model.width, places * classes, model.heads * across * tokens)


def _models(ensemble: DecoderEnsemble, batch: Reading, of: slice, threads: int) -> list[slice]:
    """Models of these that are measured together: those of a thread, and no more than can read a stream at
    once.
    """
    most = NUMBERS[batch.tokens.device.type] // _numbers(
        ensemble, batch, batch.tokens.shape[-1], batch.places.shape[-1]
    )
    together = max(1, min(most, -(-ensemble.size // threads)))
    return [slice(first, min(first + together, of.stop)) for first in range(of.start, of.stop, together)]


def _groups(ensemble: DecoderEnsemble, batch: Reading, models: slice) -> Iterator[Group]:
    """Streams that are read at once."""
    most = NUMBERS[batch.tokens.device.type] // (models.stop - models.start)
    tokens_B = lengths(batch.places[0], batch.scored[0]).tolist()
    places_B = answers(batch.scored[0]).tolist()
    start = 0
    while start < len(tokens_B):
        tokens, places, stop = tokens_B[start], 0, start
        while stop < len(tokens_B):
            needed = max(places, places_B[stop])
            if stop > start and (stop + 1 - start) * _numbers(ensemble, batch, tokens, needed) > most:
                break
            places, stop = needed, stop + 1
        yield Group(start, stop, tokens, places)
        start = stop
