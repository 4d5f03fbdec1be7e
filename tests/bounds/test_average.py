"""Averages against all strings with their exact probabilities, Theorem G, and the counterexamples."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import build
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import beta

import lengthwise as lw
from lengthwise.bounds.average import average_bound, average_error, average_length, average_order
from lengthwise.limit.sensitivity import sensitivity

HALVES = st.fixed_dictionaries(
    {
        "precision": st.sampled_from([lw.Infinite(), lw.Finite(1), lw.Finite(3)]),
        "activation": st.just("relu"),
        "width": st.integers(1, 3),
        "period": st.integers(1, 3),
        "localities": st.lists(st.integers(0, 2), min_size=1, max_size=1),
        "heads": st.integers(0, 2),
        "hidden": st.sampled_from([0, 3]),
        "weights": st.sampled_from(["normal", "integers", "huge"]),
        "seed": st.integers(0, 10**6),
    }
)
LONGEST = {1: 6, 2: 9, 3: 6}
ALPHA = st.lists(st.sampled_from([0.01, 0.3, 1.0, 2.5, 40.0]), min_size=3, max_size=3)


def model(half, vocabulary, outputs=1):
    return build({**half, "vocabulary": vocabulary, "outputs": outputs, "length": 1, "one_token": False})[0]


def presence(vocabulary, token, bits=16):
    """1 if the token occurs, else 0: hard attention to it, with value 1 on it."""
    embedding = torch.zeros(vocabulary, 3, dtype=torch.float64)
    embedding[token, 0], embedding[:, 1] = 1.0, 1.0
    key_query, value, readout = (torch.zeros(shape).double() for shape in ((1, 3, 3), (1, 3, 3), (1, 3)))
    key_query[0, 0, 1], value[0, 2, 0], readout[0, 2] = bits, 1.0, 1.0
    none = [torch.zeros(shape, dtype=torch.float64) for shape in ((1, 1), (0, 3), (0,), (3, 0))]
    layer = lw.LimitLayer(key_query, value, *none)
    return lw.LimitTransformer(
        embedding, torch.zeros(1, 3, dtype=torch.float64), (layer,), readout, lw.Finite(bits)
    )


def probability(word, alpha):
    """Of one string, token by token (Polya's urn)."""
    seen, product = list(alpha), 1.0
    for token in word:
        product *= seen[token] / sum(seen)
        seen[token] += 1
    return product


@settings(max_examples=120)
@given(HALVES, HALVES, st.integers(1, 3), ALPHA, st.data())
def test_equals_the_sum_over_all_strings(one, other, vocabulary, alpha, data):
    f, g = model(one, vocabulary), model(other, vocabulary)
    length = data.draw(st.integers(1, LONGEST[vocabulary]))
    strings = torch.tensor(list(itertools.product(range(vocabulary), repeat=length)))
    distance = (f.evaluate(strings, "reference") - g.evaluate(strings, "reference")).norm(dim=-1)
    alpha = alpha[:vocabulary]
    weights = [probability(word, alpha) for word in strings.tolist()]
    assert math.fsum(weights) == pytest.approx(1)
    expected = math.fsum(w * d for w, d in zip(weights, distance.tolist(), strict=True))
    found = average_error(f, g, length, alpha)
    assert found.exact
    assert found.value == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert found.interval == (found.value, found.value)


@settings(max_examples=25)
@given(HALVES, HALVES, st.integers(1, 3), ALPHA, st.integers(1, 40), st.integers(0, 10**6))
def test_the_bounded_interval_covers_the_exact_value(one, other, vocabulary, alpha, length, seed):
    """It fails at most 1 time in 20, and in practice far less often."""
    half = {"period": 1, "localities": [1]}
    f, g = model({**one, **half}, vocabulary), model({**other, **half}, vocabulary)
    exact = average_error(f, g, length, alpha[:vocabulary])
    drawn = average_error(f, g, length, alpha[:vocabulary], samples=3000, seed=seed)
    assert (drawn.exact, drawn.method, drawn.samples) == (False, "bounded", 3000)
    assert drawn.interval[0] - 1e-9 <= exact.value <= drawn.interval[1] + 1e-9
    assert drawn.interval[0] <= drawn.value <= drawn.interval[1]


def test_the_normal_interval_where_no_bound_is_known():
    """Steps have no Lipschitz constant; over 40 seeds a 95% interval covers about 38 times."""
    half = {"precision": lw.Finite(3), "activation": "heaviside", "width": 3, "period": 2, "localities": [0]}
    half |= {"heads": 2, "hidden": 3, "weights": "normal"}
    f, g = (model({**half, "seed": seed}, 2) for seed in (1, 2))
    exact = average_error(f, g, 30, 0.7).value
    drawn = [average_error(f, g, 30, 0.7, samples=2000, seed=seed) for seed in range(40)]
    assert {one.method for one in drawn} == {"normal"}
    assert sum(one.interval[0] <= exact <= one.interval[1] for one in drawn) >= 33


def test_sampling_at_great_length():
    """The mean of a proportion is alpha_1/a0 at every length."""
    f, zero = lw.constructions.mod_p(1, 0), lw.constructions.constant(2)
    found = average_error(f, zero, 2**53, (0.05, 0.15), samples=20_000)
    assert found.interval[0] < 0.75 < found.interval[1]
    assert found.interval[1] - found.interval[0] < 0.04


@pytest.mark.parametrize("alpha", [(1.0, 1.0, 0.5), (2.0, 0.3, 0.01), (0.1, 0.1, 0.1)])
def test_a_rare_token(alpha):
    """f = 0, g = 1 if token 2 occurs: 1 - Gamma(a0 - a + n) Gamma(a0)/(Gamma(a0 - a) Gamma(a0 + n))."""
    g, zero, a0 = presence(3, 2), lw.constructions.constant(3), sum(alpha)
    rest = a0 - alpha[2]
    values = []
    for n in (1, 2, 17, 400):
        expected = 1 - math.exp(gammaln(rest + n) + gammaln(a0) - gammaln(rest) - gammaln(a0 + n))
        values.append(average_error(zero, g, n, alpha).value)
        assert values[-1] == pytest.approx(expected, rel=1e-8)
    assert values == sorted(values)
    assert values[-1] < 0.99  # still far from its limit, 1: with small concentrations it comes late


def hard(half):
    """Whole logits in one bit: attention is hard from length 2 on."""
    return {**half, "precision": lw.Finite(1), "weights": "integers"}


@settings(max_examples=60)
@given(HALVES, HALVES, ALPHA, st.integers(2, 40), st.integers(0, 25))
def test_theorem_g_on_random_pairs(one, other, alpha, n, further):
    f, g = model(hard(one), 2), model(hard(other), 2)
    period = math.lcm(f.period, g.period)
    if period > 3:
        return
    n2 = n + period * further
    bound = average_bound(f, g, n, n2, alpha[:2])
    first = max(f.hardmax_length(), g.hardmax_length(), max(f.locality, g.locality) + 1 + period)
    assert (bound == math.inf) == (n < first)
    change = abs(average_error(f, g, n, alpha[:2]).value - average_error(f, g, n2, alpha[:2]).value)
    assert change <= bound + 1e-12


@pytest.mark.parametrize("alpha", [(3.0, 3.0), (0.5, 1.0), (1.0, 0.4)])
def test_theorem_g_where_it_says_something(alpha):
    """At these lengths the bound is below the trivial one, and falls."""
    f, g = presence(2, 1), lw.constructions.constant(2)
    trivial = sensitivity(f) + sensitivity(g)
    before = trivial
    for n in (10**4, 10**5, 10**6):
        bound = average_bound(f, g, n, 2 * n, alpha)
        values = [average_error(f, g, length, alpha).value for length in (n, 2 * n)]
        assert abs(values[0] - values[1]) <= bound < before
        before = bound


def terms(alpha, n, vocabulary, period, locality):
    """Psi(c) + D miss(c) by adaptive quadrature, written apart from the library."""
    c, a0 = (n - locality - 1) // period, sum(alpha)

    def error(p):
        return min(1.0, math.sqrt(2 * vocabulary * period / (c * p)) + 1 / c + (locality + 1) / (c * p))

    psi = missing = 0.0
    for one in alpha:
        law = beta(one, a0 - one)
        cuts = [0.0, *(10.0**-k for k in range(9, 0, -1)), 0.5, 1.0]
        # By parts: E e(p) = e(1) + the integral of P(p <= t) over falling e.
        psi += error(1.0)
        for low, high in itertools.pairwise(cuts[1:]):
            width = 1e-7
            slope = quad(
                lambda t, law=law, width=width: (
                    law.cdf(math.exp(t)) * (error(math.exp(t)) - error(math.exp(t + width))) / width
                ),
                math.log(low),
                math.log(high) - width,
                limit=200,
                epsabs=1e-9,
            )[0]
            psi += slope
        missing += math.exp(gammaln(a0 - one + c) + gammaln(a0) - gammaln(a0 - one) - gammaln(a0 + c))
    return min(1.0, psi) + period * missing


@pytest.mark.parametrize("alpha", [(3.0, 3.0), (0.5, 1.0), (1.0, 0.05)])
def test_the_integrals_are_rounded_up_and_close(alpha):
    f, g = lw.constructions.mod_p(3, 1), lw.constructions.mod_p(3, 2)
    for n in (3001, 90_001):
        found = average_bound(f, g, n, n, alpha) / (2 * (sensitivity(f) + sensitivity(g)))
        expected = terms(alpha, n, 2, 3, 0)
        assert expected * (1 - 1e-4) <= found <= expected * (1 + 2e-3)


def test_the_average_length_is_where_the_bound_meets_the_tolerance():
    f, g = lw.constructions.mod_p(3, 1), lw.constructions.mod_p(3, 2)
    lengths = []
    for tolerance in (1.0, 0.3, 0.1):
        n = average_length(f, g, tolerance, 1.5)
        lengths.append(n)
        assert average_bound(f, g, n, n + 3 * 10**6, 1.5) <= tolerance
        assert average_bound(f, g, n - 1, n - 1, 1.5) > tolerance
    ratio = math.log(lengths[2] / lengths[0]) / math.log(10)
    assert ratio == pytest.approx(2, abs=0.05)  # max(2, 1/alpha0)
    assert average_length(f, g, 0.1, 0.02) == math.inf
    assert average_length(f, f, 100.0, 1.0) == 4  # trivially: the first length of which the theorem speaks


def test_the_order_of_the_paper():
    assert average_order(0.1, 2.0) == pytest.approx(1000)
    assert average_order(0.5, (1.0, 0.5)) == pytest.approx(64)
    assert average_order(0.1, 0.001) == math.inf


def test_mistakes():
    f, g, deep = (
        lw.constructions.mod_p(3, 1),
        lw.constructions.mod_p(3, 2),
        lw.constructions.k_gram(1, 2, 0.1),
    )
    for call, message in (
        (lambda: average_error(f, g, 5, 0.0), "concentration must be positive"),
        (lambda: average_error(f, g, 5, (1.0, 1.0, 1.0)), "one number or 2, one a token, got 3"),
        (lambda: average_error(f, deep, 5, 1.0), "g must have one layer"),
        (lambda: average_error(f, g, 0, 1.0), "length must be between"),
        (
            lambda: average_error(f, g, 5, 1.0, samples=1),
            "samples must be a whole number of at least 2, got 1",
        ),
        (lambda: average_error(f, g, 5, 1.0, samples=10, seed=-1), "seed must be"),
        (lambda: average_bound(f, g, 50, 51, 1.0), "equal modulo the period 3"),
        (lambda: average_bound(deep, g, 50, 50, 1.0), "f must have one layer in finite precision"),
        (lambda: average_length(f, g, 0.0, 1.0), "tolerance must be positive"),
        (lambda: average_order(-1.0, 1.0), "tolerance must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
