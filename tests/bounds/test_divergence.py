"""Exact divergence against all strings, the lower-bound family, and the bracket of the supremum."""

import itertools
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import build

import lengthwise as lw
from lengthwise.bounds.divergence import divergence, limit_divergence, profile
from lengthwise.bounds.tightness import tightness
from lengthwise.limit.sensitivity import sensitivity

HALVES = st.fixed_dictionaries(
    {
        "precision": st.sampled_from([lw.Infinite(), lw.Finite(1), lw.Finite(3), lw.Finite(20)]),
        "activation": st.sampled_from(["relu", "heaviside"]),
        "width": st.integers(1, 3),
        "period": st.integers(1, 3),
        "localities": st.lists(st.integers(0, 2), min_size=1, max_size=1),
        "heads": st.integers(0, 3),
        "hidden": st.sampled_from([0, 1, 5]),
        "weights": st.sampled_from(["normal", "integers", "zeros", "huge", "tiny"]),
        "seed": st.integers(0, 10**6),
    }
)
LONGEST = {1: 10, 2: 10, 3: 10, 4: 6}
SHARED = st.fixed_dictionaries({"vocabulary": st.integers(1, 4), "outputs": st.integers(1, 2)})


def model(half, shared):
    return build({**half, **shared, "length": 1, "one_token": False})[0]


def all_strings(vocabulary, length):
    return torch.tensor(list(itertools.product(range(vocabulary), repeat=length)))


@settings(max_examples=150)
@given(HALVES, HALVES, SHARED, st.data())
def test_equals_the_maximum_over_all_strings(one, other, shared, data):
    """By the dense definition, at short lengths, whatever the periods, localities and precisions."""
    f, g = model(one, shared), model(other, shared)
    length = data.draw(st.integers(1, LONGEST[f.vocabulary]))
    found = divergence(f, g, length)
    strings = all_strings(f.vocabulary, length)
    expected = (f.evaluate(strings, "reference") - g.evaluate(strings, "reference")).norm(dim=-1).max()
    assert found == pytest.approx(expected.item(), rel=1e-9, abs=1e-9)
    assert found.tokens.shape == (length,) == (found.length,)
    attained = (f.evaluate(found.tokens, "reference") - g.evaluate(found.tokens, "reference")).norm()
    assert attained.item() == pytest.approx(found, rel=1e-9, abs=1e-9)
    period, locality = math.lcm(f.period, g.period), max(f.locality, g.locality)
    seen = lw.summarize(strings, f.vocabulary, period, locality)
    different = torch.unique(torch.cat([seen.counts.flatten(1), seen.suffix], 1), dim=0)
    assert found.configurations == len(different)


@pytest.mark.parametrize("vocabulary", [2, 3])
@pytest.mark.parametrize("length", range(1, 11))
def test_equals_brute_force_at_every_length_up_to_ten(vocabulary, length):
    strings = all_strings(vocabulary, length)
    for seed, (precision, period, locality) in enumerate(
        [(lw.Finite(2), 1, 0), (lw.Finite(3), 2, 1), (lw.Infinite(), 3, 2)]
    ):
        half = {"precision": precision, "activation": "relu", "width": 3, "heads": 2, "hidden": 3}
        half |= {"period": period, "localities": [locality], "weights": "integers"}
        shared = {"vocabulary": vocabulary, "outputs": 1}
        f, g = (model({**half, "seed": 2 * seed + which}, shared) for which in (0, 1))
        expected = (f.evaluate(strings, "reference") - g.evaluate(strings, "reference")).norm(dim=-1).max()
        assert divergence(f, g, length) == pytest.approx(expected.item(), rel=1e-9, abs=1e-9)


def test_in_pieces(monkeypatch):
    """With a working set far too small, everything comes in many pieces, and nothing is lost."""
    shared = {"vocabulary": 3, "outputs": 2}
    half = {"precision": lw.Finite(3), "activation": "relu", "width": 3, "period": 2, "localities": [1]}
    half |= {"heads": 2, "hidden": 3, "weights": "normal"}
    f, g = (model({**half, "seed": seed}, shared) for seed in (1, 2))
    whole, done = divergence(f, g, 20), []
    monkeypatch.setattr("lengthwise.simulation.configurations.WORKING_SET", 1)
    pieces = divergence(f, g, 20, progress=done.append)
    assert pieces == pytest.approx(whole, rel=1e-12)
    assert len(done) > 50
    assert done == sorted(done)
    assert done[-1] == pieces.configurations == whole.configurations
    assert whole.configurations == 9 * math.comb(11, 2) ** 2


def test_many_types():
    """More atoms than bits in a number, and a suffix that is the whole string."""
    shared = {"vocabulary": 40, "outputs": 1}
    half = {"precision": lw.Finite(3), "activation": "relu", "width": 3, "period": 2, "localities": [0]}
    half |= {"heads": 2, "hidden": 3, "weights": "normal"}
    f, g = (model({**half, "seed": seed}, shared) for seed in (1, 2))
    for length in (1, 2, 3):
        strings = torch.cartesian_prod(*[torch.arange(40)] * length).reshape(-1, length)
        expected = (f(strings) - g(strings)).abs().max().item()
        assert divergence(f, g, length) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("length", [1, 2, 7, 200, 3001])
def test_interpolations_of_two_waves(length):
    """SimpleTask: both models see only (c_0 - c_1)/T, so the supremum is one over T + 1 proportions."""
    f, g = lw.constructions.simple_task(8, 32), lw.constructions.simple_task(7.5, 21)
    u = (length - 2 * np.arange(length + 1)) / length
    sizes = []
    for omega, knots in ((8, 32), (7.5, 21)):
        knot = np.linspace(-1, 1, knots + 1)
        sizes.append(np.interp(u, knot, np.sin(omega * knot)))
    assert divergence(f, g, length) == pytest.approx(np.abs(sizes[0] - sizes[1]).max(), abs=1e-11)


def first_nonzero(k, slope, up_to):
    f, zero = lw.constructions.lower_bound_family(k, slope), lw.constructions.constant(k + 1)
    sizes = [float(one) for one in profile(f, zero, up_to)]
    return next(length for length, size in enumerate(sizes, start=1) if size > 1e-9)


@pytest.mark.parametrize(("slope", "first"), [(1.5, 10), (2.0, 17), (3.0, 37), (4.0, 65)])
def test_the_lower_bound_family_of_two(slope, first):
    """Zero on all inputs up to length (2 L)^2, and not beyond."""
    assert first == (2 * slope) ** 2 + 1
    assert first_nonzero(2, slope, first) == first


@pytest.mark.parametrize("slope", [0.5, 1.0, 2.5, 7.0, 31.0])
def test_the_lower_bound_family_of_one(slope):
    """f = relu(1 - L n_0/T) if token 0 occurs: positive from the first length above L on."""
    assert first_nonzero(1, slope, 40) == math.floor(slope) + 1


def test_the_lower_bound_family_of_three_and_four():
    assert first_nonzero(3, 1.0, 28) == 28
    assert first_nonzero(4, 0.5, 17) == 17
    f, zero = lw.constructions.lower_bound_family(3, 4 / 3), lw.constructions.constant(4)
    assert divergence(f, zero, 64) <= 1e-12
    assert divergence(f, zero, 65) > 1e-3


def test_between_whole_numbers_the_lower_bound_still_holds():
    """(k L)^k is a bound for every slope; only for whole k L it is the exact length."""
    for slope in (1.1, 1.7, 2.3, 2.9):
        assert first_nonzero(2, slope, 60) > (2 * slope) ** 2


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_lower_bound_family_comes_close_to_one(k):
    """On nested counts M^j, f = 1 - k L/M."""
    for slope, m in ((2.0, 100), (1.5, 1000)):
        f = lw.constructions.lower_bound_family(k, slope)
        sums = [m**j for j in range(k + 1)]
        counts = torch.tensor(np.diff([0, *sums])).unsqueeze(-1)
        counts[k] -= 1  # the last position
        summary = lw.Summary(counts, torch.tensor([k]), torch.tensor(sums[-1]))
        assert f.evaluate_counts(summary).item() == pytest.approx(1 - k * slope / m, abs=1e-12)


def test_the_family_and_zero_by_name():
    word = torch.tensor([0, 2, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    f = lw.constructions.named("lower-bound:k=2,slope=1.0")
    assert f(word).item() == pytest.approx(1 - 1 / 2 - 2 / 12)  # one 0 among two of {0, 1} among twelve
    assert f(word[1:]).item() == 0  # no 0
    assert lw.constructions.named("zero:vocabulary=3")(word).tolist() == [0.0]
    assert lw.constructions.constant(3, 2, -1.5)(word).tolist() == [-1.5, -1.5]
    for call in (
        lambda: lw.constructions.lower_bound_family(0, 1.0),
        lambda: lw.constructions.lower_bound_family(2, 0.0),
        lambda: lw.constructions.constant(0),
        lambda: lw.constructions.constant(2, 0),
    ):
        with pytest.raises(ValueError, match="must be"):
            call()


def n_cert(vocabulary, period, locality, heads, eta, hard):
    """Theorem B, written out apart from the library."""
    k = vocabulary * period + max(period, locality + 1)
    b = max(heads / eta, 4 * (heads - 1) * period, 1)
    simulation = period * (heads * (heads * k / eta) * b ** (heads - 1) + vocabulary + 1)
    return locality + 1 + max(hard + 2 * period, simulation)


def test_the_bracket_holds_beyond_the_lengths_it_looked_at():
    f, g = lw.constructions.simple_task(8, 32), lw.constructions.simple_task(7.5, 21)
    before = math.inf
    for up_to in (12, 60, 300):
        bracket = limit_divergence(f, g, up_to)
        assert bracket.low == max(profile(f, g, up_to))
        attained = (f(bracket.tokens) - g(bracket.tokens)).abs().item()
        assert attained == pytest.approx(bracket.low, abs=1e-12)
        assert len(bracket.tokens) == bracket.length <= up_to
        assert n_cert(2, 1, 0, 1, bracket.eta, 1) <= up_to + 1e-6
        assert bracket.eta == 0.5 or n_cert(2, 1, 0, 1, 0.999 * bracket.eta, 1) > up_to
        assert bracket.high == pytest.approx(bracket.low + (sensitivity(f) + sensitivity(g)) * bracket.eta)
        for length in (up_to + 1, 2 * up_to, 10 * up_to + 1):
            assert divergence(f, g, length) <= bracket.high
        assert bracket.high < before
        before = bracket.high


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.integers(0, 1))
def test_the_bracket_of_random_hard_pairs(seed, locality):
    """Whole logits and one bit: attention is hard from length 2 on."""
    half = {"precision": lw.Finite(1), "activation": "relu", "width": 2, "period": 1}
    half |= {"localities": [locality], "heads": 1, "hidden": 3, "weights": "integers"}
    f, g = (model({**half, "seed": seed + i}, {"vocabulary": 2, "outputs": 1}) for i in (0, 1))
    bracket = limit_divergence(f, g, 150)
    assert bracket.low <= bracket.high
    for length in (151, 152, 399):
        assert divergence(f, g, length) <= bracket.high + 1e-12


def test_brackets_that_are_open():
    f, g = lw.constructions.simple_task(8, 32), lw.constructions.simple_task(7.5, 21)
    short = limit_divergence(f, g, 4)
    assert (short.high, short.eta) == (math.inf, None)
    better = limit_divergence(f, g, 4, lambda eta: 1 / eta)
    assert better.eta == pytest.approx(0.25)
    never = limit_divergence(f, g, 4, lambda eta: math.inf)
    assert never.high == math.inf
    shared = {"vocabulary": 2, "outputs": 1}
    half = {"precision": lw.Infinite(), "activation": "relu", "width": 2, "period": 1, "localities": [0]}
    half |= {"heads": 1, "hidden": 3, "weights": "normal"}
    f, g = (model({**half, "seed": seed}, shared) for seed in (1, 2))
    assert limit_divergence(f, g, 20).high == math.inf


def test_the_true_length_of_the_lower_bound_family():
    """sup f = 1, so within 0.9 of it is the first length with f >= 0.1: L/s + L s/T <= 0.9 for some s."""
    for slope in (1.5, 3.0):
        f, zero = lw.constructions.lower_bound_family(2, slope), lw.constructions.constant(3)
        found = tightness(f, zero, 0.9, 60, supremum=1.0)
        first = next(
            length
            for length in range(1, 61)
            if min(slope / s + slope * s / length for s in range(1, length + 1)) <= 0.9 + 1e-12
        )
        assert (found.true, found.exact) == (first, True)
        assert found.certified >= found.true
        assert found.certified_ratio == found.certified / first
        assert found.order_ratio == found.order / first
        assert list(found.divergences) == [float(one) for one in profile(f, zero, 60)]
    out_of_reach = tightness(f, zero, 0.9, 20, supremum=1.0)
    assert (out_of_reach.true, out_of_reach.exact) == (21, False)
    unknown = tightness(f, zero, 0.01, 60)
    assert not unknown.exact
    assert unknown.true <= 60


def test_the_true_length_where_the_bracket_closes_it():
    f, g = lw.constructions.simple_task(4, 32), lw.constructions.simple_task(3.5, 21)
    found = tightness(f, g, 0.3, 200)
    assert found.exact
    knots = np.concatenate([np.linspace(-1, 1, 33), np.linspace(-1, 1, 22)])
    sizes = [
        np.interp(knots, np.linspace(-1, 1, count + 1), np.sin(omega * np.linspace(-1, 1, count + 1)))
        for omega, count in ((4, 32), (3.5, 21))
    ]
    supremum = float(np.abs(sizes[0] - sizes[1]).max())  # of a piecewise linear function: at a knot
    assert found.supremum[0] <= supremum + 1e-12
    assert supremum <= found.supremum[1]
    assert tightness(f, g, 0.3, 200, supremum=supremum).true == found.true
    shorter = max(found.divergences[: found.true - 1], default=0.0)
    assert shorter + 0.3 < supremum <= max(found.divergences[: found.true]) + 0.3
    for call, message in (
        (lambda: tightness(f, g, -1.0, 20), "tolerance must be"),
        (lambda: tightness(f, g, 0.1, 20, supremum=0.0), "supremum must be at least"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_a_divergence_is_a_number_that_can_be_copied():
    found = divergence(lw.constructions.mod_p(2, 0), lw.constructions.mod_p(2, 1), 20)
    assert found == 1.0
    assert found + 1 == 2.0
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert torch.equal(again.tokens, found.tokens)
    one = divergence(lw.constructions.constant(1), lw.constructions.constant(1, value=3.0), 2**40)
    assert (one, one.configurations) == (3.0, 1)
    with pytest.raises(ValueError, match="too long to write out"):
        _ = one.tokens


def test_mistakes():
    one, deep = lw.constructions.mod_p(3, 1), lw.constructions.k_gram(1, 2, 0.1)
    for f, g, name in ((one, deep, "g"), (deep, one, "f")):
        with pytest.raises(ValueError, match=f"{name} must have one layer to be enumerated, it has 2"):
            divergence(f, g, 5)
    for length in (0, -3, True, 2**54):
        with pytest.raises(ValueError, match="length must be"):
            divergence(one, one, length)
    number = 2 * math.prod(n + 1 for n in (3333, 3333, 3333))
    with pytest.raises(ValueError, match=f"there are {number} configurations, .* period D = 3"):
        divergence(one, one, 10_000)
    with pytest.raises(ValueError, match=r"lengths up to 400 have [0-9]+ configurations together"):
        limit_divergence(one, lw.constructions.mod_p(4, 1), 400)
    with pytest.raises(ValueError, match="one vocabulary"):
        divergence(one, lw.constructions.constant(3), 4)
