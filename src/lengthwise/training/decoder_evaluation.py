"""Measuring decoders: the share of the streams of each bin that are right at every scored place.

Axes: M model, B stream, T position, A place.
"""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.models.decoder import DecoderEnsemble
from lengthwise.tasks import Examples, PredictionTask
from lengthwise.training.decoder_config import DecoderEvaluation
from lengthwise.training.decoder_data import Group, Reading, answers, chances, lengths, read, reading
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


def accuracy(
    ensemble: DecoderEnsemble, task: PredictionTask, tests: Sequence[Reading], workers: Workers
) -> Float[Tensor, "M bins"]:
    """The share of streams whose every scored place is right, of each model on each test; in float64."""
    with torch.no_grad():
        weights = ensemble.weights()
    columns = []
    for test in tests:
        everyone = reading(*(part.expand(ensemble.size, *part.shape[1:]) for part in test.parts()))

        def right(part: tuple[slice, Group], batch: Reading = everyone) -> Tensor:
            models, group = part
            own = {name: weight[models] for name, weight in weights.items()}
            with torch.no_grad():
                return _right(ensemble, task, own, batch, models, group).sum(-1)

        parts = [
            (models, group)
            for models in _models(ensemble, everyone, workers.size)
            for group in _groups(ensemble, everyone, models)
        ]
        found_M = torch.zeros(ensemble.size, dtype=torch.long, device=test.tokens.device)
        for (models, _), counted in zip(parts, workers.map(right, parts), strict=True):
            found_M[models] += counted
        columns.append(found_M.double().cpu() / test.tokens.shape[1])
    return torch.stack(columns, -1)


def _right(
    ensemble: DecoderEnsemble,
    task: PredictionTask,
    weights: dict[str, Tensor],
    batch: Reading,
    models: slice,
    group: Group,
) -> Tensor:
    """Which of a group's streams are right, by model."""
    streams, tokens, places = group.streams, group.tokens, group.places
    logits = logits_of(ensemble, weights, batch, models, [group])
    answer = (part[models, streams, :places] for part in (batch.places, batch.scored, batch.target))
    examples = Examples(batch.tokens[models, streams, :tokens], *answer)
    return task.right(logits.unflatten(1, examples.places.shape[1:]), examples)


def _numbers(ensemble: DecoderEnsemble, batch: Reading, tokens: int, places: int) -> int:
    """The size of the largest tensor that a stream of one model leads to."""
    model = ensemble.model
    classes = batch.target.shape[-1] if batch.target.dim() == 4 else ensemble.vocabulary
    if ensemble.counted:
        return places * max(4 * model.width, classes, model.heads * ensemble.vocabulary)
    across = places if model.layers == 1 or model.positions != "relative" else tokens
    return max(tokens * 4 * model.width, places * classes, model.heads * across * tokens)


def _models(ensemble: DecoderEnsemble, batch: Reading, threads: int) -> list[slice]:
    """Models that are measured together: those of a thread, and no more than can read a stream at once."""
    most = NUMBERS[batch.tokens.device.type] // _numbers(
        ensemble, batch, batch.tokens.shape[-1], batch.places.shape[-1]
    )
    together = max(1, min(most, -(-ensemble.size // threads)))
    firsts = range(0, ensemble.size, together)
    return [slice(first, min(first + together, ensemble.size)) for first in firsts]


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
