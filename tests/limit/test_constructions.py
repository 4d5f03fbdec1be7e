"""Constructions against the exact targets of their tasks, at many lengths, within their proved errors."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import RECIPES, build

import lengthwise as lw


@settings(max_examples=80)
@given(st.floats(0.1, 40), st.integers(1, 200), st.integers(0, 10**6))
def test_simple_task_is_within_its_error_at_every_length(omega, knots, seed):
    f = lw.constructions.simple_task(omega, knots)
    task, error = lw.SimpleTask(omega=omega), lw.constructions.simple_task_error(omega, knots)
    random = torch.Generator().manual_seed(seed)
    for length in (1, 2, 3, 17, 300):
        tokens = task.sample(20, length, random)
        assert (f(tokens) - task.target(tokens)).abs().max() <= error + 1e-9
    for length in (10**6, 10**12):
        summary = task.sample_counts(200, length, random)
        assert (f.evaluate_counts(summary) - task.target_of_counts(summary)).abs().max() <= error + 1e-9


def test_the_error_of_simple_task_is_nearly_reached():
    """So the bound could fail: the worst proportion comes within a few percent of it."""
    f, error = lw.constructions.simple_task(16, 64), lw.constructions.simple_task_error(16, 64)
    length = 10**6
    zeros = torch.arange(0, length, 37, dtype=torch.float64)
    counts = torch.stack([zeros, length - 1 - zeros], -1).unsqueeze(-1)
    summary = lw.Summary(counts, torch.zeros(len(zeros), 1, dtype=torch.long), torch.tensor(length))
    worst = (f.evaluate_counts(summary) - lw.SimpleTask(omega=16).target_of_counts(summary)).abs().max()
    assert 0.9 * error < worst <= error


@pytest.mark.parametrize(("period", "residue"), [(1, 0), (2, 0), (2, 1), (3, 2), (5, 2)])
@pytest.mark.parametrize("method", ["fast", "reference"])
def test_mod_p_is_exact(period, residue, method):
    """On all strings up to length 8 and random longer ones that have a position of the class."""
    f = lw.constructions.mod_p(period, residue)
    random = torch.Generator().manual_seed(period)
    words = [torch.tensor(list(itertools.product((0, 1), repeat=length))) for length in range(1, 9)]
    words += [torch.randint(2, (10, length), generator=random) for length in (30, 99, 257)]
    for tokens in words:
        chosen = [i - 1 for i in range(1, tokens.shape[1] + 1) if i % period == residue]
        if not chosen:
            continue
        expected = tokens[:, chosen].double().mean(1, keepdim=True)
        torch.testing.assert_close(f.evaluate(tokens, method), expected, rtol=0, atol=1e-12)


def markov(length, vocabulary, order, random):
    """A string of a Markov chain with Dirichlet rows."""
    rows = -torch.rand(vocabulary**order, vocabulary, generator=random, dtype=torch.float64).log()
    steps = (rows / rows.sum(-1, keepdim=True)).cumsum(-1)[:, :-1].tolist()
    word, state = [], 0
    for chance in torch.rand(length, generator=random).tolist():
        token = sum(chance >= step for step in steps[state])
        word.append(token)
        state = (state * vocabulary + token) % vocabulary**order
    return torch.tensor(word)


def exact_k_gram(word, k, vocabulary):
    """The empirical distribution of what followed earlier occurrences of the last k tokens."""
    tokens = word.tolist()
    text, last = "".join(map(str, tokens)), "".join(map(str, tokens[-k:]))
    counts, start = [0] * vocabulary, text.find(last)
    while start != -1 and start + k < len(text):
        counts[tokens[start + k]] += 1
        start = text.find(last, start + 1)
    total = sum(counts)
    return None if total == 0 else torch.tensor(counts, dtype=torch.float64) / total


@pytest.mark.parametrize(("k", "vocabulary"), [(1, 2), (1, 3), (2, 3), (3, 2)])
@pytest.mark.parametrize("tolerance", [0.5, 0.01])
def test_k_gram_is_within_its_error(k, vocabulary, tolerance):
    f = lw.constructions.k_gram(k, vocabulary, tolerance)
    random = torch.Generator().manual_seed(k)
    checked, telling = 0, 0
    for length in (10, 30, 100, 300, 1000, 10_000):
        for _ in range(4):
            word = markov(length, vocabulary, k, random)
            exact = exact_k_gram(word, k, vocabulary)
            bound = lw.constructions.k_gram_error(word, k, vocabulary, tolerance)
            if exact is None:
                assert bound == math.inf
                continue
            distance = (f(word) - exact).abs().sum().item() / 2
            assert distance <= bound
            checked += 1
            telling += bound < 1
    assert checked > 15
    assert telling > 3


@pytest.mark.parametrize("length", [10, 100, 1000, 10**4, 10**5, 10**6])
def test_k_gram_from_ten_to_a_million_tokens(length):
    """Within its error at every length; at a million tokens that error is near the tolerance."""
    f = lw.constructions.k_gram(2, 3, 0.01)
    for seed in range(20 if length <= 1000 else 2):
        word = markov(length, 3, 2, torch.Generator().manual_seed(seed))
        exact = exact_k_gram(word, 2, 3)
        bound = lw.constructions.k_gram_error(word, 2, 3, 0.01)
        if exact is None:
            assert bound == math.inf
        else:
            assert (f(word) - exact).abs().sum().item() / 2 <= bound
        assert length < 10**6 or bound < 0.05


def test_k_gram_of_one_token_is_an_induction_head():
    """k = 1: after ... a b ... a it says b."""
    f = lw.constructions.induction_head(5, 1e-6)
    word = torch.tensor([0, 1, 2, 3, 4] * 200 + [2])
    bound = lw.constructions.k_gram_error(word, 1, 5, 1e-6)
    assert (f(word) - torch.eye(5)[3].double()).abs().sum().item() / 2 <= bound < 0.2


def test_mistakes():
    for call in (
        lambda: lw.constructions.k_gram(0, 3, 0.1),
        lambda: lw.constructions.k_gram(2, 0, 0.1),
        lambda: lw.constructions.k_gram(2, 3, 0.0),
        lambda: lw.constructions.simple_task(-1, 4),
        lambda: lw.constructions.simple_task(math.inf, 4),
        lambda: lw.constructions.simple_task(3, 0),
        lambda: lw.constructions.mod_p(0, 0),
        lambda: lw.constructions.mod_p(3, 3),
    ):
        with pytest.raises(ValueError, match="must be"):
            call()


@settings(max_examples=200)
@given(RECIPES)
def test_counts_and_strings_give_the_same_output(recipe):
    f, tokens = build(recipe, layers=1)
    summary = lw.summarize(tokens, f.vocabulary, f.period, f.locality)
    torch.testing.assert_close(f.evaluate_counts(summary), f(tokens), rtol=1e-12, atol=1e-12)
    one = lw.summarize(tokens[0], f.vocabulary, f.period, f.locality)
    torch.testing.assert_close(f.evaluate_counts(one), f(tokens[0]), rtol=1e-12, atol=1e-12)


def test_summaries_that_are_none():
    f = lw.constructions.mod_p(2, 1)
    good = lw.summarize(torch.tensor([[0, 1, 1, 0]]), 2, 2, 0)
    assert f.evaluate_counts(good).item() == 0.5
    for counts, suffix, length, message in (
        (good.counts[:, :, :1], good.suffix, 4, "counts end in shape"),
        (good.counts, torch.zeros(1, 2, dtype=torch.long), 4, "suffix holds 2 tokens, expected 1"),
        (good.counts, good.suffix, 5, "counts do not add up"),
        (-good.counts, good.suffix, 4, "whole numbers of at least 0"),
        (good.counts + 0.5, good.suffix, 4, "whole numbers of at least 0"),
        (good.counts, good.suffix + 7, 4, "suffix must hold"),
        (good.counts, good.suffix, 0, "suffix must hold"),
    ):
        with pytest.raises(ValueError, match=message):
            f.evaluate_counts(lw.Summary(counts, suffix, torch.tensor(length)))
    two = build({**RECIPE_OF_TWO_LAYERS})[0]
    with pytest.raises(ValueError, match="one layer, this one has 2"):
        two.evaluate_counts(good)


RECIPE_OF_TWO_LAYERS = {
    "precision": lw.Infinite(),
    "activation": "relu",
    "vocabulary": 2,
    "width": 2,
    "period": 1,
    "localities": [0, 0],
    "heads": 1,
    "hidden": 1,
    "outputs": 1,
    "weights": "normal",
    "length": 4,
    "one_token": False,
    "seed": 0,
}


def test_constructions_by_name():
    word = torch.tensor([0, 1, 1, 0, 1])
    for text, same in (
        ("simple", lw.constructions.simple_task(8, 64)),
        ("simple:omega=2.5", lw.constructions.simple_task(2.5, 64)),
        ("modp:residue=2,period=5", lw.constructions.mod_p(5, 2)),
        ("kgram:k=1,vocabulary=2,tolerance=0.1", lw.constructions.k_gram(1, 2, 0.1)),
        ("induction:vocabulary=2", lw.constructions.induction_head(2, 0.01)),
    ):
        assert torch.equal(lw.constructions.named(text)(word), same(word))
    for text, message in (
        ("smple", "no construction 'smple'; did you mean 'simple'"),
        ("simple:omga=3", "no parameter 'omga'; did you mean 'omega'"),
        ("simple:omega", "expected simple:NAME=NUMBER"),
        ("modp:period=2.5", "period of construction 'modp' must be a whole number, got '2.5'"),
        ("modp:period=", "must be a whole number, got ''"),
        ("simple:omega=nan", "omega must be positive and finite"),
        ("modp:period=3,residue=7", "residue must be a whole number from 0 to 2, got 7"),
    ):
        with pytest.raises(ValueError, match=message):
            lw.constructions.named(text)


def test_margins_and_infinite_precision_by_name():
    """At length 4 with residue 0 (mod 2), two positions count: the others keep e^-margin of their weight."""
    word = torch.tensor([1, 0, 1, 0])
    f = lw.constructions.named("modp:period=2,bits=inf,margin=1.5")
    assert isinstance(f.precision, lw.Infinite)
    assert f(word).item() == pytest.approx(2 * math.exp(-1.5) / (2 + 2 * math.exp(-1.5)))
    assert lw.constructions.named("modp:period=2,margin=4,bits=16").hardmax_length() == 2 ** (16 / 4)
    assert lw.constructions.named("kgram:k=1,margin=2.5").layers[1].key_query.max() == 2.5
    with pytest.raises(ValueError, match="needs a margin"):
        lw.constructions.named("modp:bits=inf")
    with pytest.raises(ValueError, match="margin must be positive"):
        lw.constructions.named("kgram:margin=0")
