"""Positions: where training puts streams, and the tables that schemes are made of."""

import itertools
import math

import pytest
import torch
from scipy import stats

from lengthwise.models.positions import bucket, drawn_positions, sinusoids, slopes, turned
from plain_decoder import bucket as plain_bucket
from plain_decoder import rotated, wave


def drawn(scheme, lengths, width, span, seed=0):
    lengths = torch.tensor(lengths)
    shape = len(lengths), 1 if scheme == "learned" else width
    chances = torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return drawn_positions(scheme, lengths, chances, width=width, span=span)


def test_starts_of_learned_positions_are_uniform_and_reach_every_position():
    span, width = 30, 12
    for length in (1, 5, 12):
        found = drawn("learned", [length] * 20_000, width, span)
        assert (found[:, 1:length] - found[:, : length - 1] == 1).all()
        assert found[:, :length].max() == span - 1
        assert found.min() == 0
        starts = torch.bincount(found[:, 0], minlength=span)
        assert (starts[span - length + 1 :] == 0).all()
        assert stats.chisquare(starts[: span - length + 1].tolist()).pvalue > 1e-3
        assert len(found[:, :length].unique()) == span
    assert found.max() < span  # the padding too is in the table
    full = drawn("learned", [30], 30, 30)
    assert full.tolist() == [list(range(30))]


def test_the_largest_chance_leaves_room():
    last = torch.full((1, 1), 1 - 2**-53, dtype=torch.float64)
    found = drawn_positions("learned", torch.tensor([7]), last, width=7, span=1000)
    assert found[0, -1] == 999
    found = drawn_positions("randomised", torch.tensor([3]), last.expand(1, 3), width=3, span=1000)
    assert found.tolist() == [[997, 998, 999]]


def test_randomised_positions_are_uniform_among_all_subsets():
    span = 6
    for length in (1, 2, 4, 6):
        found = drawn("randomised", [length] * 12_000, 6, span, seed=length)[:, :length]
        assert (found[:, 1:] > found[:, :-1]).all()
        subsets = dict.fromkeys(itertools.combinations(range(span), length), 0)
        for row in found.tolist():
            subsets[tuple(row)] += 1
        if len(subsets) > 1:
            assert stats.chisquare(list(subsets.values())).pvalue > 1e-3


def test_streams_of_several_lengths_are_drawn_together():
    lengths = [1, 9, 4, 9, 2]
    found = drawn("randomised", lengths, 9, 500)
    for row, length in zip(found, lengths, strict=True):
        assert (row[1:length] > row[: length - 1]).all()
        assert row.max() < 500


def test_buckets():
    distances = torch.arange(3000)
    found = bucket(distances)
    assert found.tolist() == [plain_bucket(distance) for distance in range(3000)]
    assert (found[1:] >= found[:-1]).all()
    assert sorted(set(found.tolist())) == list(range(32))
    assert bucket(torch.tensor([0, 15, 16, 31, 32, 63, 64, 127, 128])).tolist() == [
        *(0, 15, 16, 21, 21, 26, 26, 31, 31)
    ]


def test_tables():
    positions = torch.tensor([0, 1, 7, 2000])
    for width in (1, 2, 5, 16):
        expected = torch.stack([wave(int(position), width) for position in positions])
        torch.testing.assert_close(sinusoids(positions, width, torch.float64), expected)
    assert float(sinusoids(torch.arange(5000), 64, torch.float64).square().mean()) == pytest.approx(0.02**2)
    assert slopes(4, torch.device("cpu"), torch.float64).tolist() == [2**-2, 2**-4, 2**-6, 2**-8]
    assert slopes(1, torch.device("cpu"), torch.float64).tolist() == [2**-8]


def test_rotated_products_depend_on_the_distance_alone():
    random = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 1, 1, 8, generator=random, dtype=torch.float64)

    def product(i, j):
        places = [torch.tensor([[place]]) for place in (i, j)]
        return float((turned(q, places[0], 100) * turned(k, places[1], 100)).sum())

    for i, j in ((5, 2), (3, 3), (40, 1)):
        assert product(i, j) == pytest.approx(product(i + 50, j + 50), abs=1e-12)
    assert not math.isclose(product(5, 2), product(5, 3))
    torch.testing.assert_close(turned(q, torch.tensor([[9]]), 10)[0, 0, 0], rotated(q[0, 0, 0], 9))
