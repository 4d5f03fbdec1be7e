"""Theorem B, fuzzed: attention within eta, length within its bound, whatever the counts and the sets."""

import math
import random
from fractions import Fraction
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import RECIPES, build

import lengthwise as lw
from lengthwise.bounds.one_layer import certified_length, far_sets
from lengthwise.limit.reference import attention
from lengthwise.sequences import Summary, summarize
from lengthwise.simulation.attended import attended
from lengthwise.simulation.counts import shortened, theorem_b_length
from lengthwise.simulation.one_layer import hardmax_length
from lengthwise.simulation.pair import Pair


def total_variation(one, other, kinds, near):
    """By the definition, of two attentions: uniform over far positions of some types and near atoms."""
    p_total, q_total = (near + sum(counts[kind] for kind in kinds) for counts in (one, other))
    far = sum(abs(Fraction(one[kind], p_total) - Fraction(other[kind], q_total)) for kind in kinds)
    return (far + near * abs(Fraction(1, p_total) - Fraction(1, q_total))) / 2


def draw_counts(rng, vocabulary, period, far, style):
    """Far counts with the column sums of ``far`` positions, over up to twelve orders of magnitude."""
    counts = [0] * (vocabulary * period)
    lucky = rng.randrange(period)
    for residue in range(period):
        size = far // period + (1 <= residue <= far % period)
        column = list(range(residue, vocabulary * period, period))
        rng.shuffle(column)
        if style == "starved" and residue != lucky:
            column = column[:1]
        for kind in column[:-1]:
            share = (
                int(10 ** rng.uniform(-1, math.log10(size + 1))) if style != "even" else size // len(column)
            )
            counts[kind] = min(share, size)
            size -= counts[kind]
        counts[column[-1]] += size
    return counts


def draw_sets(rng, counts, number, style):
    present = [kind for kind, count in enumerate(counts) if count]
    rng.shuffle(present)
    if style == "nested":
        ends = sorted(rng.randint(1, len(present)) for _ in range(number))
        return [frozenset(present[:end]) for end in ends]
    if style == "disjoint":
        cuts = sorted(rng.randint(0, len(present)) for _ in range(number - 1))
        cuts = [0, *cuts, len(present)]
        return [frozenset(present[a:b]) for a, b in pairwise(cuts) if a < b]
    return [frozenset(rng.sample(present, rng.randint(1, len(present)))) for _ in range(number)]


@settings(max_examples=3000)
@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from(["spread", "even", "starved"]),
    st.sampled_from(["nested", "disjoint", "any"]),
    st.sampled_from([Fraction(1, 2), Fraction(1, 3), Fraction(1, 10), Fraction(1, 97)]),
    st.sampled_from([1, 2, 40, 10**4]),
    st.integers(0, 10**9),
)
def test_attention_within_eta_and_length_within_its_bound(
    vocabulary, period, locality, number, counts_style, sets_style, eta, hardmax, seed
):
    rng = random.Random(seed)
    bound = theorem_b_length(vocabulary, period, locality, number, eta, hardmax)
    # Just longer than the bound, or up to 10^12 times as long.
    length = bound + rng.choice([1, 2, 7, int(10 ** rng.uniform(0, 12))])
    far = length - locality - 1
    counts = draw_counts(rng, vocabulary, period, far, counts_style)
    near = [rng.randint(0, locality + 1) for _ in range(number)]
    sets = draw_sets(rng, counts, number, sets_style) if number else []
    pairs = [(kinds, k) for kinds, k in zip(sets, near, strict=False) if len(kinds) + k >= 2]
    distinct = list({kinds for kinds, _ in pairs})
    found = shortened(counts, distinct, period=period, locality=locality, eta=eta, hardmax_length=hardmax)
    columns = [range(residue, len(counts), period) for residue in range(period)]
    lost = {sum(counts[kind] - found[kind] for kind in column) for column in columns}
    assert len(lost) == 1
    assert [count > 0 for count in found] == [count > 0 for count in counts]
    for kinds, k in pairs:
        assert total_variation(counts, found, kinds, k) <= eta
    short = locality + 1 + sum(found)
    assert short <= length
    assert hardmax <= short <= theorem_b_length(vocabulary, period, locality, len(distinct), eta, hardmax)


def integer_pair(one, two):
    """Two models with whole-number logits: many ties, and hard attention from a short length on."""
    changes = {"weights": "integers", "precision": lw.Finite(3), "activation": "relu"}
    f, _ = build({**one, **changes, "outputs": 1, "period": min(one["period"], 3)}, layers=1)
    g, _ = build(
        {**two, **changes, "outputs": 1, "period": min(two["period"], 3), "vocabulary": one["vocabulary"]},
        layers=1,
    )
    return f, g


def draw_summary(pair, length, style, seed):
    rng = random.Random(seed)
    far = length - pair.locality - 1
    counts = torch.tensor(
        draw_counts(rng, pair.vocabulary, pair.period, far, style), dtype=torch.float64
    ).reshape(pair.vocabulary, pair.period)
    suffix = torch.tensor([rng.randrange(pair.vocabulary) for _ in range(pair.locality + 1)])
    return Summary(counts, suffix, torch.tensor(length))


@settings(max_examples=400)
@given(
    RECIPES,
    RECIPES,
    st.sampled_from(["spread", "even", "starved"]),
    st.sampled_from([0.01, 0.3, 5.0]),
    st.sampled_from([60, 10**4, 10**9, 10**15]),
    st.integers(0, 10**6),
)
def test_measured_errors_are_within_the_guarantee(one, two, style, tolerance, length, seed):
    f, g = integer_pair(one, two)
    pair = Pair.of(f, g)
    summary = draw_summary(pair, length + seed % 7, style, seed)
    found = lw.simulate(f, g, summary, tolerance)
    scale = 1 + max(float(model.evaluate_counts(summary).abs().max()) for model in pair.models)
    assert found.error_f <= found.guaranteed_f + 1e-9 * scale
    assert found.error_g <= found.guaranteed_g + 1e-9 * scale
    assert found.guaranteed_f <= tolerance
    assert found.guaranteed_g <= tolerance
    assert found.length <= int(summary.length)
    limit = certified_length(
        pair.vocabulary,
        pair.period,
        pair.locality,
        far_sets(pair),
        found.details["eta"],
        hardmax_length(pair),
    )
    assert found.length <= limit
    if found.tokens is not None:
        again = summarize(found.tokens, pair.vocabulary, pair.period, pair.locality)
        assert torch.equal(again.counts.double(), found.summary.counts)
        assert torch.equal(again.suffix, found.summary.suffix)


@settings(max_examples=200)
@given(RECIPES, RECIPES, st.integers(20, 60), st.integers(0, 10**6))
def test_what_is_attended_is_what_the_reference_attends_to(one, two, length, seed):
    """In the hard regime: the far types and near positions with weight, and only these."""
    f, g = integer_pair(one, two)
    pair = Pair.of(f, g)
    tokens = torch.randint(pair.vocabulary, (length,), generator=torch.Generator().manual_seed(seed))
    summary = summarize(tokens, pair.vocabulary, pair.period, pair.locality)
    heads = iter(attended(pair, summary))
    counts = summary.counts.flatten().tolist()
    position = torch.arange(1, length + 1)
    for model in pair.models:
        y = (model.embedding[tokens] + model.positions[position % model.period]).unsqueeze(0)
        everything = attention(model.layers[0], y, lw.Finite(1e-9))[0, :, -1]  # every gap is cut off
        values = model.types() @ model.layers[0].value.mT
        for weights in everything[(values != values[:, :1]).any((1, 2))]:
            head = next(heads)
            far, near = weights.tensor_split([max(0, length - pair.locality - 1)])
            kinds = tokens * pair.period + position % pair.period
            with_weight = {kind for kind, weight in zip(kinds.tolist(), far.tolist(), strict=False) if weight}
            assert with_weight == {kind for kind in head.far if counts[kind]}
            assert int((near > 0).sum()) == head.near
    assert next(heads, None) is None


def test_a_million_million_tokens():
    """From counts alone, in an instant."""
    f, g = lw.constructions.mod_p(2, 1), lw.constructions.mod_p(2, 0)
    counts = torch.tensor([[1, 5e11 - 1], [5e11 - 1, 1]], dtype=torch.float64)
    summary = Summary(counts, torch.tensor([0]), torch.tensor(10**12 + 1))
    found = lw.simulate(f, g, summary, 0.01)
    assert found.length < 10**5
    assert max(found.error_f, found.error_g) <= 0.01


@pytest.mark.parametrize("method", ["counts", "shortest"])
def test_edges(method):
    f, g = lw.constructions.simple_task(8, 64), lw.constructions.simple_task(3, 16)
    word = torch.tensor([0, 1, 1])
    short = lw.simulate(f, g, word, 1e-9, method)  # nothing shorter serves: x itself
    assert torch.equal(short.tokens, word)
    assert (short.error_f, short.error_g, short.length) == (0.0, 0.0, 3)
    long = torch.tensor([0, 0, 1] * 50)
    exact = lw.simulate(f, g, long, 0.0, method)
    assert max(exact.error_f, exact.error_g) == 0.0
    if method == "counts":  # only x is promised to have error 0
        assert torch.equal(exact.tokens, long)
    else:  # up to rounding, [0, 0, 1] has it too
        assert lw.simulate(f, g, long, 1e-12, method).length == 3
    same = lw.simulate(f, f, long, 0.1, method)
    assert same.error_f == same.error_g <= 0.1
    whole = lw.simulate(f, g, long, math.inf, method)
    assert whole.length <= 20


def test_mistakes():
    f, g = lw.constructions.simple_task(8, 64), lw.constructions.mod_p(3, 1)
    three, two = lw.constructions.k_gram(1, 3, 0.1), lw.constructions.k_gram(1, 2, 0.1)
    word = [0, 1, 1, 0]
    for call, message in (
        (lambda: lw.simulate(f, g, word, -1.0), "tolerance must be a number of at least 0, got -1"),
        (lambda: lw.simulate(f, g, word, math.nan), "tolerance must be a number of at least 0"),
        (lambda: lw.simulate(f, g, word, 0.1, time_limit=0.0), "time_limit must be a positive number"),
        (lambda: lw.simulate(f, g, word, 0.1, time_limit=math.nan), "time_limit must be a positive number"),
        (lambda: lw.simulate(f, three, word, 0.1), "one vocabulary, got 2 and 3 tokens"),
        (lambda: lw.simulate(f, two, word, 0.1), "as many outputs, got 1 and 2"),
        (lambda: lw.simulate(f, g, [0, 2], 0.1), "tokens must be between 0 and 1"),
        (lambda: lw.simulate(f, g, [], 0.1), "at least one token"),
        (lambda: lw.simulate(f, g, torch.tensor([[0, 1]]), 0.1), "one string"),
        (lambda: lw.simulate(f, g, torch.tensor([0.5, 1]), 0.1), "whole numbers"),
        (
            lambda: lw.simulate(f, g, word, 0.1, "balanced"),
            "method must be one of counts, shortest for 1 layer",
        ),
        (
            lambda: lw.simulate(two, two, word, 0.1, "counts"),
            "method must be one of markov, stratified, balanced",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
