"""How a batch is worked through with little padding: on a CPU in shares for its threads and in pieces that
fit its caches, on a GPU in a few large groups.

A share is some pieces of some of the models. A piece is some groups of their streams; a group is a few
streams of like length, padded to the longest of them.

Axes: M model, B stream, A place, N place of any group of a piece, C class.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.models.decoder import DecoderEnsemble
from lengthwise.models.decoder_forward import Streams, Weights, forward_counts, forward_streams
from lengthwise.models.token_counts import TokenCounts
from lengthwise.tasks import Examples
from lengthwise.training.decoder_data import Group, Reading, answers, lengths

PIECE = 2**20
"""About how many numbers the largest tensor of a piece has: those between the two maps of an MLP."""

FEWEST = 2**16
"""A group or a share has about so many of these or more: below, it is all overhead."""

SHARE = 2**20
"""Models are worked through together while their batches have about so many of these in all, or fewer."""


class Share(NamedTuple):
    """Some models, and the groups of each piece that is worked through for them."""

    models: slice
    pieces: Sequence[Sequence[Group]]


def numbers_of(ensemble: DecoderEnsemble, streams: int, tokens: int, places: int) -> int:
    """How many numbers lie between the two maps of an MLP, for so many streams of every model."""
    rows = streams * (places if ensemble.counted else tokens)
    return ensemble.size * rows * 4 * ensemble.model.width


def whole(batch: Reading) -> Share:
    """All of a batch, as one group: shapes that are the same at every step."""
    models, streams, tokens = batch.tokens.shape
    return Share(slice(models), [[Group(0, streams, tokens, batch.places.shape[-1])]])


def grouped(batch: Reading, groups: Sequence[Group]) -> Share:
    """All of a batch at once, in these groups."""
    return Share(slice(len(batch.tokens)), [groups])


def shares(batch: Reading, ensemble: DecoderEnsemble, threads: int) -> list[Share]:
    """A batch cut up; its streams must be ordered by falling length."""
    models, streams, tokens = batch.tokens.shape
    hidden, counted = 4 * ensemble.model.width, ensemble.counted
    numbers = numbers_of(ensemble, streams, tokens, batch.places.shape[-1])
    used = min(threads, numbers // FEWEST)
    if used == 0 or (counted and used == 1 and numbers <= PIECE):
        return [whole(batch)]
    rounds = -(-numbers // (SHARE * used))
    together = max(1, models // (rounds * used))
    each = -(-used // -(-models // together))  # so many shares for the same models, where these are few
    tokens_MB, places_MB = lengths(batch.places, batch.scored), answers(batch.scored)
    found = []
    for first in range(0, models, together):
        some = slice(first, min(first + together, models))
        sizes = zip(tokens_MB[some].amax(0).tolist(), places_MB[some].amax(0).tolist(), strict=True)
        pieces = _pieces(list(sizes), (some.stop - first) * hidden, counted, each)
        found += [Share(some, pieces[share::each]) for share in range(min(each, len(pieces)))]
    return found


def _pieces(sizes: Sequence[tuple[int, int]], each: int, counted: bool, shares: int) -> list[list[Group]]:
    """The groups of each piece, of streams with so many tokens and places; a row has ``each`` numbers. There
    are as many pieces, or more, as there are shares, and these get about the same.
    """
    groups: list[tuple[int, Group]] = []
    start = 0
    while start < len(sizes):
        tokens, places, stop, numbers = sizes[start][0], 0, start, 0
        while stop < len(sizes) and numbers < FEWEST:
            places, stop = max(places, sizes[stop][1]), stop + 1
            numbers = (stop - start) * each * (places if counted else tokens)
        groups.append((numbers, Group(start, stop, tokens, places)))
        start = stop
    total, done = sum(numbers for numbers, _ in groups), 0.0
    count = -(-total // (PIECE * shares)) * shares
    pieces: list[list[Group]] = [[] for _ in range(count)]
    for numbers, group in groups:
        pieces[int((done + numbers / 2) * count / total)].append(group)
        done += numbers
    return [piece for piece in pieces if piece]


def logits_of(
    ensemble: DecoderEnsemble, weights: Weights, batch: Reading, models: slice, groups: Sequence[Group]
) -> Float[Tensor, "M N C"]:
    """Logits at the places of a piece: those of one group after the other."""
    if ensemble.counted:
        counts = (_places(part, models, groups) for part in batch.more)
        return forward_counts(ensemble.shape, weights, TokenCounts(*counts))
    streams = [
        Streams(
            batch.tokens[models, group.streams, : group.tokens],
            batch.places[models, group.streams, : group.places],
            *(part[models, group.streams, : group.tokens] for part in batch.more),
        )
        for group in groups
    ]
    return forward_streams(ensemble.shape, weights, streams)


def examples_of(batch: Reading, models: slice, groups: Sequence[Group]) -> Examples:
    """The examples of a piece, with every place taken for a stream of its own, in the order of the logits."""
    parts = (batch.places, batch.scored, batch.target)
    places, scored, target = (_places(part, models, groups) for part in parts)
    return Examples(places, places, scored, target)


def _places(part: Tensor, models: slice, groups: Sequence[Group]) -> Tensor:
    """From (M, B, A, ...) to (M, N, 1, ...)."""
    found = [part[models, group.streams, : group.places].flatten(1, 2) for group in groups]
    return (found[0] if len(found) == 1 else torch.cat(found, 1)).unsqueeze(2)
