"""SimpleTask: its target, and the exact distribution of its strings and counts."""

import itertools
import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import betaln

import lengthwise as lw
from lengthwise.sequences import residue_sizes, summarize
from lengthwise.tasks import _dirichlet


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=50), st.floats(0.1, 30))
def test_target_is_the_wave_of_the_proportions(word, omega):
    task = lw.SimpleTask(omega=omega)
    tokens = torch.tensor([word])
    expected = math.sin(omega * (word.count(0) - word.count(1)) / len(word))
    assert task.target(tokens).item() == pytest.approx(expected, abs=1e-12)
    for period, locality in itertools.product((1, 2, 3), (0, 1, 60)):
        summary = summarize(tokens, 2, period, locality)
        assert task.target_of_counts(summary).item() == pytest.approx(expected, abs=1e-12)


def log_probability(concentration, length, zeros):
    """Of one string with that many zeros: the Polya urn's."""
    a = concentration
    return betaln(a + zeros, a + length - zeros) - betaln(a, a)


def chi_square(observed: Counter, probability: dict) -> float:
    """The p-value, cells expected fewer than 5 times pooled."""
    total = observed.total()
    assert sum(probability.values()) == pytest.approx(1, abs=1e-9)
    assert set(observed) <= set(probability)
    cells = [(observed[key], total * p) for key, p in probability.items()]
    large = [cell for cell in cells if cell[1] >= 5]
    small = [cell for cell in cells if cell[1] < 5]
    if small:
        large.append((sum(o for o, _ in small), sum(e for _, e in small)))
    return float(stats.chisquare([o for o, _ in large], [e for _, e in large]).pvalue)


@pytest.mark.parametrize("concentration", [0.3, 1.0, 2.5])
def test_strings_have_the_distribution_of_a_polya_urn(concentration):
    length, task = 5, lw.SimpleTask(concentration=concentration)
    tokens = task.sample(40_000, length, generator())
    observed = Counter(map(tuple, tokens.tolist()))
    probability = {
        word: math.exp(log_probability(concentration, length, word.count(0)))
        for word in itertools.product((0, 1), repeat=length)
    }
    assert chi_square(observed, probability) > 1e-3


@pytest.mark.parametrize("concentration", [0.3, 1.0, 2.5])
@pytest.mark.parametrize(
    ("length", "period", "locality"), [(1, 1, 0), (2, 3, 4), (6, 1, 0), (7, 2, 1), (9, 3, 1)]
)
def test_sampled_counts_have_exactly_the_distribution_of_counted_strings(
    concentration, length, period, locality
):
    """Over every possible (suffix, far counts by residue), against the closed form."""
    task = lw.SimpleTask(concentration=concentration)
    summary = task.sample_counts(40_000, length, generator(1), period=period, locality=locality)
    observed = Counter(
        (tuple(near), tuple(far))
        for near, far in zip(summary.suffix.tolist(), summary.counts[:, 0].tolist(), strict=True)
    )
    sizes = residue_sizes(torch.tensor(length - locality - 1), period).tolist()
    assert torch.equal(summary.counts.sum(1), torch.tensor(sizes).double().expand(40_000, -1))
    probability = {}
    within = min(length, locality + 1)
    for near in itertools.product((0, 1), repeat=within):
        for far in itertools.product(*(range(size + 1) for size in sizes)):
            ways = math.prod(math.comb(size, zeros) for size, zeros in zip(sizes, far, strict=True))
            zeros = near.count(0) + sum(far)
            key = (near + (-1,) * (locality + 1 - within), tuple(map(float, far)))
            probability[key] = ways * math.exp(log_probability(concentration, length, zeros))
    assert chi_square(observed, probability) > 1e-3


@pytest.mark.parametrize("length", [10**3, 10**6, 10**9])
def test_counts_of_very_long_strings(length):
    """Proportions follow the prior, and given the probabilities the counts are normal around them."""
    summary = lw.SimpleTask(concentration=2.0).sample_counts(20_000, length, generator(2))
    share = summary.token_counts()[:, 0] / length
    assert torch.equal(summary.token_counts().sum(-1), torch.full((20_000,), float(length)).double())
    if length >= 10**6:
        assert stats.kstest(share.numpy(), stats.beta(2, 2).cdf).pvalue > 1e-3
    probability = torch.rand(20_000, 3, dtype=torch.float64, generator=generator(3)) + 0.1
    probability /= probability.sum(-1, keepdim=True)
    trials = torch.full((20_000,), float(length), dtype=torch.float64)
    drawn = _dirichlet.sample_multinomial(trials, probability, generator(4))
    assert torch.equal(drawn.sum(-1), trials)
    assert torch.equal(drawn, drawn.round())
    deviation = (drawn - length * probability) / (length * probability * (1 - probability)).sqrt()
    if length >= 10**6:
        for token in range(3):
            assert stats.kstest(deviation[:, token].numpy(), "norm").pvalue > 1e-3
    correlation = (deviation[:, 0] * deviation[:, 1]).mean()
    p, q = probability[:, 0], probability[:, 1]
    expected = -(p * q / ((1 - p) * (1 - q))).sqrt().mean()
    assert correlation == pytest.approx(expected.item(), abs=0.03)


def test_a_tiny_concentration_does_not_underflow():
    probability = _dirichlet.token_probabilities(20_000, 2, 1e-3, generator(5))
    assert torch.isfinite(probability).all()
    assert torch.allclose(probability.sum(-1), torch.ones(20_000, dtype=torch.float64))
    assert ((probability > 0.999).any(-1).double().mean()) > 0.98
    assert probability[:, 0].mean() == pytest.approx(0.5, abs=0.02)


def test_the_best_piecewise_linear_wave_is_as_close_as_theory_says():
    """omega^2 / (2 M^2), the statement of the task's theory, against interpolation at M + 1 knots."""
    for omega, knots in ((4.0, 16), (8.0, 64), (16.0, 64)):
        grid = torch.linspace(-1, 1, 100_001, dtype=torch.float64)
        knot = torch.linspace(-1, 1, knots + 1, dtype=torch.float64)
        index = ((grid + 1) / 2 * knots).floor().clamp(0, knots - 1).long()
        weight = (grid - knot[index]) * knots / 2
        line = torch.lerp(torch.sin(omega * knot)[index], torch.sin(omega * knot)[index + 1], weight)
        error = (line - torch.sin(omega * grid)).abs().max().item()
        assert 0.5 * omega**2 / (2 * knots**2) < error <= omega**2 / (2 * knots**2)


@pytest.mark.parametrize("knobs", [{"omega": 0}, {"omega": -1}, {"omega": float("nan")}, {"omega": True}])
def test_bad_knobs(knobs):
    with pytest.raises(ValueError, match="omega must be"):
        lw.task("simple", **knobs)


def test_tasks_by_name():
    assert lw.task("simple", omega=3) == lw.SimpleTask(omega=3.0)
    assert hash(lw.task("simple", omega=3)) == hash(lw.SimpleTask(omega=3.0))
    with pytest.raises(ValueError, match="there is no task 'simpel'; did you mean 'simple'"):
        lw.task("simpel")
    with pytest.raises(ValueError, match="no knob 'omga'; did you mean 'omega'"):
        lw.task("simple", omga=3)
    with pytest.raises(ValueError, match="length must be"):
        lw.SimpleTask().sample(2, 0, generator())
    with pytest.raises(ValueError, match="length must be"):
        lw.SimpleTask().sample_counts(2, -3, generator())
