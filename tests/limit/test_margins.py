"""Margins against enumeration, and what they promise against evaluation."""

import dataclasses
import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from instances import RECIPES, build
from test_evaluation_of_limits import cliff

import lengthwise as lw


def logits_met(f, length):
    """By query type and head, every logit that occurs in any string of a length, by plain loops."""
    (layer,) = f.layers
    met = {}
    for word in itertools.product(range(f.vocabulary), repeat=length):
        query = f.embedding[word[-1]] + f.positions[length % f.period]
        for head in range(layer.heads):
            found = met.setdefault((head, word[-1], length % f.period), set())
            for position, token in enumerate(word, start=1):
                key = f.embedding[token] + f.positions[position % f.period]
                distance = length - position
                extra = layer.local[head][distance] if distance <= layer.locality else 0.0
                found.add(round(float(key @ layer.key_query[head] @ query + extra), 9))
    return met


@settings(max_examples=40)
@given(RECIPES)
def test_the_margin_is_the_smallest_gap_that_strings_show(recipe):
    """Integer weights, so that gaps are exact; all strings long enough to show every type far and near."""
    small = {**recipe, "weights": "integers", "precision": lw.Finite(3), "vocabulary": 2}
    small |= {"period": 1 + recipe["period"] % 2, "localities": [min(recipe["localities"][0], 1)]}
    f, _ = build(small, layers=1)
    smallest = math.inf
    for length in range(6, 6 + f.period):
        for found in logits_met(f, length).values():
            ordered = sorted(found)
            smallest = min([smallest, *(b - a for a, b in itertools.pairwise(ordered))])
    assert f.logit_margin() == pytest.approx(smallest)


@settings(max_examples=60)
@given(RECIPES)
def test_from_the_hardmax_length_on_attention_is_uniform_over_the_largest_logits(recipe):
    """p bits against p - 1 and p / 2 bits: once all but the largest are cut, the number of bits is moot."""
    f, _ = build({**recipe, "weights": "integers", "precision": lw.Finite(2)}, layers=1)
    start = f.hardmax_length()
    assert start <= 4
    hard = dataclasses.replace(f, precision=lw.Finite(1e-6))
    random = torch.Generator().manual_seed(recipe["seed"])
    for length in {int(start), int(start) + 1, 17, 64}:
        tokens = torch.randint(f.vocabulary, (5, length), generator=random)
        if length > 1:
            for method in ("fast", "reference"):
                one, other = f.evaluate(tokens, method), hard.evaluate(tokens, method)
                torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("bits", "gap"), [(3, 1.0), (4, 1.0), (6, 2.0), (5, 0.5), (10, 3.0), (7, 1.5)])
def test_the_hardmax_length_is_sharp(bits, gap):
    """At it, the lower logit has no weight; one token before, it has some."""
    f = cliff(bits, gap)
    assert f.logit_margin() == gap
    start = f.hardmax_length()
    assert start == math.ceil(2 ** (bits / gap))
    for length, hard in ((start, True), (start - 1, False)):
        word = [*([0, 1] * length)[: length - 1], 0]
        assert (f(word).item() == 1.0) == hard


def test_extreme_hardmax_lengths():
    assert lw.constructions.simple_task(8, 16).hardmax_length() == 1
    assert lw.constructions.simple_task(8, 16).logit_margin() == math.inf
    assert lw.constructions.mod_p(5, 2).logit_margin() == 16
    assert lw.constructions.mod_p(5, 2).hardmax_length() == 2
    assert cliff(8, 0.005).hardmax_length() == 2**1600
    assert cliff(8, 1e-9).hardmax_length() == math.inf


def test_rounding_noise_is_not_a_gap():
    """Logits that are equal in exact arithmetic, computed through sums in different orders."""
    random = torch.Generator().manual_seed(0)
    width = 40
    row = torch.randn(width, generator=random, dtype=torch.float64)
    embedding = torch.stack([row, row[torch.randperm(width, generator=random)], 2 * row])
    f = lw.LimitTransformer(
        torch.cat([embedding, torch.ones(3, 1).double()], 1),
        torch.zeros(1, width + 1).double(),
        (
            lw.LimitLayer(
                torch.cat([torch.full((width + 1, width), 0.0), torch.tensor([[0.1]] * width + [[0.0]])], 1)
                .double()
                .unsqueeze(0),
                torch.zeros(1, width + 1, width + 1).double(),
                torch.zeros(1, 1).double(),
                torch.zeros(0, width + 1).double(),
                torch.zeros(0).double(),
                torch.zeros(width + 1, 0).double(),
            ),
        ),
        torch.zeros(1, width + 1).double(),
        lw.Finite(8),
    )
    expected = abs(float(row.sum())) * float(torch.tensor(0.1))
    assert f.logit_margin() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("local", "margin", "regime"),
    [
        ([0.0], 1.0, "token"),
        ([0.3, 0.5], 0.5, "token"),
        ([1.0], 1.0, "balanced"),
        ([1.0, 0.25], 0.75, "balanced"),
        ([2.0, 0.0], 1.0, "position"),
        ([2.0, 1.5], 0.5, "position"),
        ([3.0, 3.0], 2.0, "position"),
        ([-4.0], 5.0, "token"),
    ],
)
def test_positional_margins_and_regimes(local, margin, regime):
    f = cliff(8, 1.0)
    layer = dataclasses.replace(f.layers[0], local=torch.tensor([local], dtype=torch.float64))
    g = dataclasses.replace(f, layers=(f.layers[0], layer), precision=lw.Infinite())
    assert g.positional_margin() == min(margin, 1.0)
    assert dataclasses.replace(g, layers=(layer,)).positional_margin() == margin
    assert g.regimes() == (("token",), (regime,))


def test_where_margins_are_not_defined():
    f = cliff(8, 1.0)
    with pytest.raises(ValueError, match="finite precision"):
        dataclasses.replace(f, precision=lw.Infinite()).logit_margin()
    with pytest.raises(ValueError, match="one layer, this model has 2"):
        dataclasses.replace(f, layers=f.layers * 2).hardmax_length()
