"""The subsampling lemmas as inequalities, and the error of a balanced subsample against the closed form."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.limit.complexity import SecondHead, TwoLayerConstants, balanced_dimension, closed_form
from lengthwise.simulation.lemmas import (
    balanced_bound,
    balanced_error,
    balanced_terms,
    markov_bound,
    stratified_bound,
)
from lengthwise.simulation.runs import Blocks, balanced_blocks, markov_positions, stratified_blocks

KINDS = ("runs", "drift", "blocks", "periodic", "one token", "late change")
TAU, VOCABULARY = 2, 3


def string(kind, length, seed=0):
    """Strings whose statistics are hard to sample, over three tokens."""
    random = np.random.default_rng(seed)
    if kind == "runs":  # heavy-tailed
        sizes = np.ceil(random.pareto(0.9, length) + 1).clip(max=length).astype(int)
        return np.repeat(random.integers(0, VOCABULARY, length), sizes)[:length]
    if kind == "drift":
        return ((random.random(length) + np.linspace(0, 2, length)) % VOCABULARY).astype(int)
    if kind == "blocks":  # independent long ones, each with its own frequencies
        share = np.repeat(random.dirichlet([0.3] * VOCABULARY, length // 500 + 1), 500, 0)[:length]
        return (share.cumsum(1) < random.random((length, 1))).sum(1).clip(max=VOCABULARY - 1)
    if kind == "periodic":
        return np.arange(length) // 7 % VOCABULARY
    if kind == "one token":
        return np.ones(length, dtype=int)
    return (np.arange(length) > 0.9 * length).astype(int)


class Test:
    """P(window, residue, histogram) with values in R^3: bounded by G = 1, with diameter at most 2, and with
    Lipschitz constant L in total variation.
    """

    __test__ = False

    def __init__(self, period, steep=0.5, seed=0):
        random = np.random.default_rng(seed)
        self.period, self.steep = period, steep
        self.table = random.choice([-1.0, 1.0], (3, period, VOCABULARY ** (TAU + 1)))

    @property
    def lipschitz(self):
        return math.sqrt(2) * self.steep

    def __call__(self, tokens):
        """(T, 3): a sign of window and residue, a wave of the histogram and their product, over sqrt 3."""
        position = np.arange(1, len(tokens) + 1)
        window = sum(np.roll(tokens, t) * VOCABULARY**t for t in range(TAU + 1))
        kinds = tokens * self.period + position % self.period
        first = np.cumsum(kinds < self.period, 0) / position  # share of token 0: moves by at most TV
        wave = np.sin(self.steep * math.sqrt(3) * first)
        sign = self.table[:, position % self.period, window]
        return np.stack([sign[0], wave, sign[1] * wave], 1) / math.sqrt(3)


def mean(test, tokens):
    return test(tokens).mean(0)


@settings(max_examples=60)
@given(
    st.sampled_from(KINDS),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([0.0, 0.5, 20.0]),
    st.sampled_from([3, 6, 30, 150]),
    st.sampled_from([1, 5, 40, 150]),
    st.booleans(),
    st.integers(0, 100),
)
def test_the_balanced_subsample_keeps_its_promise(kind, period, steep, run, runs, scalar, seed):
    """Lemma Bal, for one fixed string at a time, with P a number or a vector."""
    run = period * -(-run // period)
    tokens = string(kind, 7000 + seed, seed)
    blocks, test = Blocks.of(len(tokens), run, TAU), Test(period, steep, seed)
    runs = min(runs, blocks.count - 1)
    columns = [2] if scalar else [0, 1, 2]
    values = test(tokens)[:, columns]
    histograms = blocks.histograms(torch.from_numpy(tokens), VOCABULARY, period)
    chosen = balanced_blocks(histograms, blocks.means(values), period, runs)
    z = tokens[blocks.positions(chosen)]
    error = np.linalg.norm(test(z)[:, columns].mean(0) - values.mean(0))
    size = math.sqrt(len(columns) / 3)
    bound = balanced_bound(
        spread=2 * size,
        size=size,
        lipschitz=steep if scalar else test.lipschitz,
        locality=TAU,
        dimension=period * (VOCABULARY - 1) + 1 + values.shape[1],
        runs=runs,
        run_length=run,
        end=blocks.end,
    )
    assert len(z) == runs * run + blocks.end
    assert error <= bound * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("period", [1, 3])
def test_strata_keep_their_promise_on_average(kind, period):
    """Lemma S: the mean of 60 draws and four standard errors stay below it."""
    tokens, test = string(kind, 20_000), Test(period)
    random = np.random.default_rng(1)
    for run, runs in ((6, 60), (30, 150)):
        blocks = Blocks.of(len(tokens), run, TAU)
        errors = [
            np.linalg.norm(
                mean(test, tokens[blocks.positions(stratified_blocks(blocks.count, runs, random))])
                - mean(test, tokens)
            )
            for _ in range(60)
        ]
        bound = stratified_bound(
            spread=2.0,
            lipschitz=test.lipschitz,
            locality=TAU,
            vocabulary=VOCABULARY,
            runs=runs,
            run_length=run,
            end=blocks.end,
        )
        assert np.mean(errors) + 4 * np.std(errors) / math.sqrt(60) <= bound


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("period", [1, 3])
def test_the_chain_keeps_its_promise_on_average(kind, period):
    """Lemma M: the same, with units of a period and the end run."""
    tokens, test = string(kind, 20_000), Test(period)
    random = np.random.default_rng(2)
    for run, kept in ((6, 400), (15, 3000)):
        errors = [
            np.linalg.norm(
                mean(test, tokens[markov_positions(len(tokens), period, TAU, kept, run, random)])
                - mean(test, tokens)
            )
            for _ in range(60)
        ]
        bound = markov_bound(
            spread=2.0,
            size=1.0,
            lipschitz=test.lipschitz,
            locality=TAU,
            vocabulary=VOCABULARY,
            kept=kept,
            run_length=run,
            end=2 * TAU + 1 + (len(tokens) - 2 * TAU - 1) % period,
        )
        assert np.mean(errors) + 4 * np.std(errors) / math.sqrt(60) <= bound


def test_the_order_of_the_lemmas():
    """n^(-1/3) for the random methods, n^(-1/2) up to a logarithm for the balanced one."""
    common = {"spread": 2.0, "lipschitz": 1.0, "locality": 2}
    for method, rate in (("markov", 1 / 3), ("stratified", 1 / 3), ("balanced", 1 / 2)):
        bounds = []
        for n in (10**12, 10**15):
            run = round(n ** (1 / 2 if method == "balanced" else 1 / 3))
            if method == "markov":
                bound = markov_bound(**common, size=1.0, vocabulary=3, kept=n, run_length=run)
            elif method == "stratified":
                bound = stratified_bound(**common, vocabulary=3, runs=n // run, run_length=run)
            else:
                bound = balanced_bound(**common, size=1.0, dimension=4, runs=n // run, run_length=run)
            bounds.append(bound)
        slope = math.log(bounds[0] / bounds[1]) / math.log(1000)
        assert rate - 0.06 <= slope <= rate + 0.01


POSITIVE = st.floats(0.0, 5.0)
HEADS = st.fixed_dictionaries(
    {
        "logits": POSITIVE,
        "values": POSITIVE,
        "oscillation": st.sampled_from([0.0, 0.1, 1.0, 4.0, 30.0]),
        "moves": POSITIVE,
        "rank": st.integers(0, 3),
        "margin": st.sampled_from([0.1, 0.5, 0.9, 1.0]),
        "positional": st.booleans(),
    }
)
CONSTANTS = st.fixed_dictionaries(
    {
        "vocabulary": st.integers(1, 4),
        "period": st.integers(1, 3),
        "locality": st.sampled_from([0, 1, 2, 7]),
        "mlp": POSITIVE,
        "norm": POSITIVE,
        "diameter": POSITIVE,
        "convergence": POSITIVE,
        "histogram": POSITIVE,
        "margin_first": st.sampled_from([0.1, 0.5, 0.9, 1.0]),
        "out": POSITIVE,
        "heads": st.lists(HEADS, max_size=3),
    }
)


def constants(numbers):
    return TwoLayerConstants(**numbers | {"heads": tuple(SecondHead(**head) for head in numbers["heads"])})


@settings(max_examples=300)
@given(CONSTANTS, st.integers(1, 10**6), st.integers(1, 10**4))
def test_the_full_form_never_exceeds_the_closed_form(numbers, runs, run):
    c = constants(numbers)
    d, tau = balanced_dimension(c), c.locality
    run = max(run, tau, 1)
    n = runs * run + 2 * tau + run
    log_n = 1 + math.log(n) if c.margin_first == 1 else 1 / (1 - c.margin_first)
    a, b, e = closed_form(c, d, tau, 1 + max(0.0, math.log(runs / (d + 1))), log_n)
    closed = a / run + b / runs + e * (runs * run + 2 * tau + 1) ** -c.margin
    full = balanced_error(c, dimension=d, locality=tau, runs=runs, run_length=run)
    assert full <= closed * (1 + 1e-12)


@settings(max_examples=200)
@given(CONSTANTS, st.integers(1, 10**4), st.integers(1, 10**3), st.integers(2, 10), st.integers(2, 10))
def test_errors_fall_with_more_runs_and_with_longer_ones(numbers, runs, run, more, longer):
    c = constants(numbers)
    d, tau = balanced_dimension(c), c.locality
    run = max(run, tau + 1)

    def error(runs, run):
        return balanced_error(c, dimension=d, locality=tau, runs=runs, run_length=run)

    assert error(runs * more, run) <= error(runs, run) * (1 + 1e-12)
    assert error(runs + 1, run) <= error(runs, run) * (1 + 1e-12)
    assert error(runs, run * longer) <= error(runs, run) * (1 + 1e-12)


def balanced_by_hand(period, convergence, histogram, loose, positional):
    """A transcription of the theorem with numbers of its own: m = 40 runs of 12, tau = 2, S = 3."""
    kappa, v, omega, dv, rank, gamma = loose
    kappa2, v2, omega2, dv2, gamma2 = positional
    y1, diam1, out, gamma1 = 1.7, 1.3, 0.6, 0.5
    m, ell, tau = 40, 12, 2
    d = period * 2 + 1 + 1 + rank
    n_ = m * ell + 2 * tau + 1

    def delta(t):
        return min(diam1, convergence / t**gamma1)

    dbar = min(diam1, (tau * diam1 + convergence * 2 * n_**0.5) / n_)
    theta = (d + (2 * tau + ell) / ell) / m

    def lb(gam, g, lipschitz):
        n = m * ell + 2 * tau + ell
        e = 2 * tau + ell
        logs = (d + 1) * (1 + math.log(m / (d + 1))) + 1
        return 2 * gam * e / n + gam * tau / ell + lipschitz * logs / m + g * d / m

    near = delta(n_ - tau)
    e1 = v * (1 + kappa * y1 * diam1) * (math.exp(omega) * dbar + near) + kappa * dv * diam1 * delta(n_)
    e2 = v2 * (1 + kappa2 * y1 * diam1) * near + kappa2 * dv2 * diam1 * delta(n_)
    total = 2 * delta(n_) + histogram * theta
    total += 2 * dv * min(1, 3 * math.exp(omega) * n_**-gamma) + 2 * e1
    total += (kappa * diam1 * dv + v + kappa * y1 * dv) * histogram * theta
    total += 2 * dv2 * min(1, 3 * math.exp(omega2) * n_**-gamma2) + 2 * e2
    total += (kappa2 * diam1 * dv2 + v2 + kappa2 * y1 * dv2) * histogram * theta
    first = lb(2 * dv, dv, (v + kappa * y1 * dv) * histogram)
    total += math.exp(omega) * (first + dv * lb(1, 1, kappa * y1 * histogram))
    c = TwoLayerConstants(
        vocabulary=3,
        period=period,
        locality=tau,
        mlp=1.0,
        norm=y1,
        diameter=diam1,
        convergence=convergence,
        histogram=histogram,
        margin_first=gamma1,
        out=out,
        heads=(
            SecondHead(kappa, v, omega, dv, rank, gamma, False),
            SecondHead(kappa2, v2, omega2, dv2, 2, gamma2, True),
        ),
    )
    return out * total, balanced_error(c, dimension=d, locality=tau, runs=m, run_length=ell)


def test_the_full_form_by_hand():
    for period, convergence, histogram in ((1, 3.0, 0.7), (3, 0.2, 2.3)):
        expected, found = balanced_by_hand(
            period, convergence, histogram, (0.4, 1.9, 0.8, 0.55, 2, 0.7), (1.1, 0.35, 1.4, 0.25, 0.9)
        )
        assert found == pytest.approx(expected, rel=1e-12)


def test_nothing_times_infinity_is_nothing():
    """Logits that no double can exponentiate do no harm to a head whose values never move."""
    head = SecondHead(0.0, 0.0, 1e4, 0.0, 0, 1.0, False)
    c = TwoLayerConstants(2, 1, 0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, (head,))
    terms = balanced_terms(c, dimension=2, locality=0, runs=10, run_length=1)
    assert sum(terms.values()) == pytest.approx(2 / 11)
    moving = dataclasses.replace(c, heads=(dataclasses.replace(head, moves=1.0),))
    assert balanced_error(moving, dimension=2, locality=0, runs=10, run_length=1) == math.inf
