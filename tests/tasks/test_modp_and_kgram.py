"""ModPTask and in-context k-gram: targets by plain Python on all short strings, and exact distributions."""

import itertools
import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_simple import chi_square, generator, log_probability

import lengthwise as lw
from lengthwise.sequences import summarize
from lengthwise.tasks.kgram import CHAINS


@pytest.mark.parametrize(("period", "residue"), [(1, 0), (2, 0), (2, 1), (3, 2), (5, 0)])
def test_modp_target_on_all_short_strings(period, residue):
    task = lw.ModPTask(period=period, residue=residue)
    assert task.shortest == next(i for i in itertools.count(1) if i % period == residue)
    for length in range(task.shortest, 9):
        words = list(itertools.product((0, 1), repeat=length))
        chosen = [[w for i, w in enumerate(word, 1) if i % period == residue] for word in words]
        expected = torch.tensor([[sum(part) / len(part)] for part in chosen], dtype=torch.float64)
        tokens = torch.tensor(words)
        torch.testing.assert_close(task.target(tokens), expected)
        for multiple, locality in ((1, 0), (2, 1), (3, 4)):
            summary = summarize(tokens, 2, period * multiple, locality)
            torch.testing.assert_close(task.target_of_counts(summary), expected)


def test_modp_strings_have_the_distribution_of_a_polya_urn():
    task = lw.ModPTask(period=2, residue=1, concentration=0.5)
    observed = Counter(map(tuple, task.sample(40_000, 4, generator()).tolist()))
    words = itertools.product((0, 1), repeat=4)
    probability = {word: math.exp(log_probability(0.5, 4, word.count(0))) for word in words}
    assert chi_square(observed, probability) > 1e-3


def test_modp_is_learnt_by_a_model_of_any_period():
    """Data for a model that cannot see the task's residues still has the right targets."""
    from lengthwise.training.data import draw_summaries

    task = lw.ModPTask(period=3, residue=1)
    for period in (1, 2, 3, 6):
        summary, target = draw_summaries(task, 2000, 7, generator(), period=period, locality=0)
        assert summary.period == period
        assert target.mean().item() == pytest.approx(0.5, abs=0.05)
        if period == 3:
            torch.testing.assert_close(target, task.target_of_counts(summary))


@pytest.mark.parametrize(("period", "locality"), [(1, 0), (3, 2)])
def test_counts_of_strings_of_different_lengths(period, locality):
    """A length each: the summary of a string of that length, and with a flat prior every number of zeros is
    equally likely.
    """
    task, length = lw.ModPTask(period=3, residue=1), torch.tensor([1, 2, 5, 9]).repeat(6000)
    summary = task.sample_counts(len(length), length, generator(), period=period, locality=locality)
    assert torch.equal(summary.length, length)
    assert torch.equal(summary.token_counts().sum(-1), length.double())
    assert torch.equal((summary.suffix >= 0).sum(-1), length.clamp_max(locality + 1))
    for size in (1, 2, 5, 9):
        zeros = Counter(summary.token_counts()[length == size][:, 0].int().tolist())
        assert chi_square(zeros, dict.fromkeys(range(size + 1), 1 / (size + 1))) > 1e-3
    if period == 3:
        targets = task.target_of_counts(summary)
        for size in (1, 2, 5, 9):
            of_size = lw.Summary(*(part[length == size] for part in (summary.counts, summary.suffix, length)))
            torch.testing.assert_close(targets[length == size], task.target_of_counts(of_size))


def plain_k_gram(word, k, vocabulary):
    followers = [word[j] for j in range(k, len(word)) if word[j - k : j] == word[-k:]]
    return [followers.count(s) / len(followers) if followers else math.nan for s in range(vocabulary)]


@pytest.mark.parametrize(
    ("k", "vocabulary", "longest"), [(1, 2, 8), (2, 2, 8), (1, 3, 6), (2, 3, 6), (3, 2, 8)]
)
def test_k_gram_target_on_all_short_strings(k, vocabulary, longest):
    task = lw.KGramTask(k=k, vocabulary=vocabulary)
    for length in range(k + 1, longest + 1):
        words = list(itertools.product(range(vocabulary), repeat=length))
        expected = torch.tensor([plain_k_gram(w, k, vocabulary) for w in words], dtype=torch.float64)
        torch.testing.assert_close(task.target(torch.tensor(words)), expected, equal_nan=True)


def test_k_gram_strings_of_its_three_distributions():
    """Length 4 over two tokens; with uniform Dirichlet rows each context is an urn of its own."""
    words = list(itertools.product((0, 1), repeat=4))

    def urn(zeros, ones):
        return math.exp(log_probability(1.0, zeros + ones, zeros))

    def markov(word):
        seen = Counter(itertools.pairwise(word))
        return 0.5 * math.prod(urn(seen[context, 0], seen[context, 1]) for context in (0, 1))

    for data, probability in (
        ("uniform", dict.fromkeys(words, 1 / 16)),
        ("dirichlet", {word: urn(word.count(0), word.count(1)) for word in words}),
        ("markov", {word: markov(word) for word in words}),
    ):
        task = lw.KGramTask(k=1, vocabulary=2, data=data)
        observed = Counter(map(tuple, task.sample(40_000, 4, generator()).tolist()))
        assert chi_square(observed, probability) > 1e-3


@pytest.mark.parametrize("data", ["markov", "dirichlet", "uniform"])
@pytest.mark.parametrize(
    ("k", "vocabulary", "width"), [(1, 2, 1), (1, 3, 3), (2, 2, 2), (2, 3, 3), (3, 2, 5)]
)
def test_k_gram_at_infinity_is_what_long_strings_come_to(data, k, vocabulary, width):
    """Frequencies of windows in the strings of the same generator, and the target of those that end so."""
    task, length = lw.KGramTask(k=k, vocabulary=vocabulary, data=data), 40_000
    often, target = task.at_infinity(3, width, generator())
    torch.testing.assert_close(often.sum(-1), torch.ones(3, dtype=torch.float64))
    for row, tokens in enumerate(task.sample(3, length, generator())):
        number = torch.zeros(length - width + 1, dtype=torch.long)
        for place in range(width):
            number = number * vocabulary + tokens[place : length - width + 1 + place]
        seen = torch.bincount(number, minlength=vocabulary**width) / len(number)
        # Chains mix slowly where rows are near 0 or 1; ten standard deviations of independent tokens.
        assert (seen - often[row]).abs().max() < 10 * (0.25 / length) ** 0.5
        for end in often[row].topk(2).indices.tolist():
            cut = int((number == end).nonzero()[-1]) + width
            assert (task.target(tokens[:cut]) - target[row, end]).abs().max() < 0.05


def test_k_gram_at_infinity_of_a_chain_known_by_hand(monkeypatch):
    """From 0 to 1 with probability 1/4, from 1 to 0 with 1/2: two thirds of all tokens are 0."""
    task = lw.KGramTask(k=1, vocabulary=2)
    rows = torch.tensor([[[0.75, 0.25], [0.5, 0.5]]], dtype=torch.float64)
    monkeypatch.setattr(lw.KGramTask, "noise", lambda *arguments: (None, rows))
    often, target = task.at_infinity(1, 2, generator())
    torch.testing.assert_close(often * 6, torch.tensor([[3.0, 1.0, 1.0, 1.0]], dtype=torch.float64))
    assert target.tolist() == [[[0.75, 0.25], [0.5, 0.5]] * 2]
    with pytest.raises(ValueError, match="width must be a whole number of at least 1"):
        task.at_infinity(1, task.context - 1, generator())


def test_k_gram_loss_is_the_mean_over_strings_with_a_target():
    task = lw.KGramTask(k=1, vocabulary=2)
    target = torch.tensor([[0.5, 0.5], [math.nan, math.nan], [1.0, 0.0]], dtype=torch.float64)
    output = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    loss = task.loss(output, target)
    assert loss.mean().item() == pytest.approx((0.5 + 1.0) / 2)
    loss.mean().backward()
    assert output.grad.isfinite().all()
    assert (output.grad[1] == 0).all()
    assert task.loss(output.detach(), torch.full_like(target, math.nan)).sum() == 0


@given(st.integers(0, 10**6))
def test_strings_made_together_are_those_made_alone(seed):
    task = lw.KGramTask(k=2, vocabulary=3)
    noises = [task.noise(5, 20, generator(seed + i)) for i in range(3)]
    together = task.strings(*(torch.cat(parts) for parts in zip(*noises, strict=True)))
    alone = torch.cat([task.sample(5, 20, generator(seed + i)) for i in range(3)])
    assert torch.equal(together, alone)


@given(
    k=st.integers(1, 3),
    vocabulary=st.integers(1, 4),
    length=st.integers(4, 90),
    batch=st.integers(1, 4),
    chains=st.sampled_from([0, 60, 2**15]),
    seed=st.integers(0, 10**6),
)
def test_chains_followed_in_pieces_are_the_chains(k, vocabulary, length, batch, chains, seed):
    """Against one token after the other in plain Python, however many pieces there are."""
    task = lw.KGramTask(k=k, vocabulary=vocabulary)
    uniform, chances = task.noise(batch, length, generator(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CHAINS, "cpu", chains)
        found = task.strings(uniform, chances).tolist()
    for word, numbers, thresholds in zip(found, uniform.tolist(), chances.cumsum(-1).tolist(), strict=True):
        expected = [int(number * vocabulary) for number in numbers[:k]]
        for number in numbers[k:]:
            row = 0
            for token in expected[-k:]:
                row = row * vocabulary + token
            expected.append(sum(number >= threshold for threshold in thresholds[row][:-1]))
        assert word == expected


def test_mistakes():
    for make, message in (
        (lambda: lw.ModPTask(period=0), "period must be a whole number of at least 1"),
        (lambda: lw.ModPTask(period=3, residue=3), "residue must be a whole number from 0 to 2, got 3"),
        (lambda: lw.ModPTask(concentration=-1), "concentration must be positive"),
        (lambda: lw.ModPTask(period=5, residue=0).sample(1, 4, generator()), "at least 5 tokens, got 4"),
        (lambda: lw.KGramTask(k=0), "k must be a whole number from 1 to 64"),
        (lambda: lw.KGramTask(k=2).target(torch.tensor([[0, 1]])), "at least 3 tokens, got 2"),
        (lambda: lw.task("modp", perod=3), "no knob 'perod'; did you mean 'period'"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
