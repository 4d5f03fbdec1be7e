"""The training length of Theorem E: the inequality, its minimality, its exponents, and the theorem itself."""

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.bounds.two_layers import LONGEST, order_two_layers, two_layer_length
from lengthwise.limit.complexity import (
    SecondHead,
    TwoLayerConstants,
    balanced_dimension,
    closed_form,
    two_layer_constants,
)
from lengthwise.simulation.lemmas import balanced_error
from lengthwise.simulation.pair import Pair
from lengthwise.simulation.runs import simulate_runs

pytestmark = pytest.mark.usefixtures("one_thread")


POSITIVE = st.floats(0.0, 3.0)
HEADS = st.fixed_dictionaries(
    {
        "logits": POSITIVE,
        "values": POSITIVE,
        "oscillation": st.sampled_from([0.0, 0.1, 1.0, 4.0, 30.0]),
        "moves": POSITIVE,
        "rank": st.integers(0, 3),
        "margin": st.sampled_from([0.2, 0.5, 0.9, 1.0]),
        "positional": st.booleans(),
    }
)
CONSTANTS = st.fixed_dictionaries(
    {
        "period": st.sampled_from([1, 2, 3, 4]),
        "locality": st.sampled_from([0, 1, 2, 7]),
        "norm": POSITIVE,
        "diameter": POSITIVE,
        "convergence": POSITIVE,
        "histogram": POSITIVE,
        "margin_first": st.sampled_from([0.2, 0.5, 0.9, 1.0]),
        "out": POSITIVE,
        "heads": st.lists(HEADS, max_size=2),
    }
)


def constants(numbers):
    heads = tuple(SecondHead(**head) for head in numbers["heads"])
    return TwoLayerConstants(**{"vocabulary": 3, "mlp": 1.0} | numbers | {"heads": heads})


def total(cf, cg, runs, run):
    d, tau = balanced_dimension(cf, cg), max(cf.locality, cg.locality)
    return sum(balanced_error(c, dimension=d, locality=tau, runs=runs, run_length=run) for c in (cf, cg))


@settings(max_examples=12)
@given(CONSTANTS, CONSTANTS, st.sampled_from([100.0, 1.0, 1e-2, 1e-6]))
def test_the_inequality_holds_and_one_run_less_is_not_enough(f, g, tolerance):
    cf, cg = constants(f), constants(g)
    found = two_layer_length(cf, cg, tolerance)
    if found.length == math.inf:
        # No pair with N near the largest is enough.
        period, most = math.lcm(cf.period, cg.period), LONGEST // 100
        for power in (1, 30, 75, 100, 149):
            assert total(cf, cg, most // 10**power // period, 10**power * period) > tolerance
        return
    tau = max(cf.locality, cg.locality)
    runs, run = found.runs, found.run_length
    assert all(isinstance(number, int) for number in (found.length, runs, run))
    assert run % math.lcm(cf.period, cg.period) == 0
    assert run >= tau + 1
    assert found.length == runs * run + 2 * tau + run <= LONGEST
    assert found.error_f + found.error_g == total(cf, cg, runs, run) <= tolerance
    assert sum(found.terms.values()) == pytest.approx(total(cf, cg, runs, run), rel=1e-9)
    if 1 < runs < 2**50:
        assert total(cf, cg, runs - 1, run) > tolerance * (1 - 1e-11)


@settings(max_examples=10)
@given(CONSTANTS, CONSTANTS, st.sampled_from([1.0, 1e-2, 1e-5]))
def test_it_is_never_longer_than_the_closed_form_says(f, g, tolerance):
    """The rule of the note: each of the three terms a third of half the tolerance."""
    cf, cg = constants(f), constants(g)
    d, tau = balanced_dimension(cf, cg), max(cf.locality, cg.locality)
    period, gamma = math.lcm(cf.period, cg.period), min(cf.margin, cg.margin)
    eps = tolerance / 2
    found = two_layer_length(cf, cg, tolerance)
    a = max(closed_form(c, d, tau)[0] for c in (cf, cg))
    run = period * math.ceil(max(tau + 1, 3 * a / eps) / period)
    runs = d + 1
    while runs < 10**25:
        n = runs * run + 2 * tau + run

        def log_n(c, n=n):
            return 1 + math.log(n) if c.margin_first == 1 else 1 / (1 - c.margin_first)

        parts = [closed_form(c, d, tau, 1 + math.log(runs / (d + 1)), log_n(c)) for c in (cf, cg)]
        blocks, ends = max(p[1] for p in parts), max(p[2] for p in parts)
        if runs >= 3 * blocks / eps and (runs * run) ** gamma >= 3 * ends / eps:
            assert found.length <= n
            return
        runs *= 4


def test_the_length_is_close_to_the_best_of_all():
    """Against every run length and every number of runs, where there are few."""
    numbers = {"norm": 0.5, "diameter": 0.6, "convergence": 0.2, "histogram": 0.1, "margin_first": 1.0}
    head = {"logits": 0.2, "values": 0.3, "oscillation": 0.1, "moves": 0.1, "rank": 1, "margin": 1.0}
    for locality, period, tolerance in ((0, 1, 0.5), (1, 2, 1.0), (3, 1, 1.5), (2, 3, 2.0)):
        c = constants(
            numbers
            | {"locality": locality, "period": period, "out": 1.0, "heads": [head | {"positional": False}]}
        )
        found = two_layer_length(c, c, tolerance)
        best = math.inf
        for run in range(period * -(-(locality + 1) // period), found.length, period):
            if 2 * run > best:
                break
            runs = 1
            while runs * run + 2 * locality + run < best and total(c, c, runs, run) > tolerance:
                runs += 1
            best = min(best, runs * run + 2 * locality + run)
        assert best <= found.length <= 1.02 * best


def weak(seed, tau, local=0.0, period=1):
    random = torch.Generator().manual_seed(seed)

    def draw(*shape, size=1.0):
        return size * torch.randn(shape, generator=random, dtype=torch.float64)

    layers = tuple(
        lw.LimitLayer(
            draw(1, 2, 2, size=0.05),
            draw(1, 2, 2, size=0.2),
            torch.full((1, tau + 1), local, dtype=torch.float64),
            draw(1, 2, size=0.2),
            draw(1, size=0.2),
            draw(2, 1, size=0.2),
        )
        for _ in range(2)
    )
    return lw.LimitTransformer(
        draw(2, 2, size=0.5), draw(period, 2, size=0.1), layers, draw(1, 2), lw.Infinite()
    )


def test_the_exponents():
    """2 with windows, 1 without, 1/gamma if that is more; up to logarithms."""
    for tau, local, exponent in ((1, 0.0, 2), (0, 0.0, 1), (0, 0.5, 2), (1, 0.75, 4)):
        pair = [two_layer_constants(weak(seed, tau, local)) for seed in (1, 2)]
        lengths = [two_layer_length(*pair, tolerance).length for tolerance in (1e-9, 1e-10)]
        assert exponent - 0.01 <= math.log10(lengths[1] / lengths[0]) <= exponent + 0.12


@pytest.mark.parametrize(("tau", "period"), [(0, 1), (0, 3), (1, 1), (2, 2)])
def test_strings_longer_than_the_bound_have_a_short_stand_in(tau, period):
    """For m and l of the bound and x longer than N there is z with |z| <= N and errors within eps."""
    pair = Pair.of(weak(3, tau, period=period), weak(4, 0))
    cf, cg = (two_layer_constants(f) for f in pair.models)
    tolerance = 3.0 if period > 1 else 1.0
    found = two_layer_length(cf, cg, tolerance)
    assert found.length < 60_000
    random = np.random.default_rng(0)
    length = found.length + 1
    for tokens in (
        random.integers(0, 2, length),
        (np.arange(3 * length) < length).astype(int),
        (random.random(2 * length) < np.linspace(0, 1, 2 * length)).astype(int),
        np.repeat(random.integers(0, 2, length // 50 + 2), 50),
    ):
        z = simulate_runs(
            pair, torch.from_numpy(tokens), 0.0, "balanced", length=found.length, run=found.run_length
        )
        assert z.length <= found.length
        assert z.details["blocks"] >= found.runs
        assert z.error_f <= z.guaranteed_f <= found.error_f * (1 + 1e-12)
        assert z.error_g <= z.guaranteed_g <= found.error_g * (1 + 1e-12)
        assert z.error_f + z.error_g <= tolerance


def test_lengths_grow_as_the_tolerance_falls():
    cf, cg = (two_layer_constants(weak(seed, 1)) for seed in (1, 2))
    lengths = [two_layer_length(cf, cg, 10.0**-k).length for k in range(-2, 9)]
    assert all(short <= 1.02 * long for short, long in pairwise(lengths))
    assert two_layer_length(cf, cg, math.inf).runs == 1
    k_gram = two_layer_constants(lw.constructions.k_gram(2, 3, 0.1))
    assert math.isfinite(two_layer_length(k_gram, k_gram, 0.1).length)


def test_infinite_lengths():
    c = two_layer_constants(weak(1, 1))
    for worse in (
        dataclasses.replace(c, out=math.inf),
        dataclasses.replace(c, convergence=math.inf, diameter=math.inf),
        dataclasses.replace(c, heads=(dataclasses.replace(c.heads[0], oscillation=1e5),)),
        dataclasses.replace(c, heads=(dataclasses.replace(c.heads[0], oscillation=600.0),)),
        dataclasses.replace(c, margin_first=1e-4),
    ):
        found = two_layer_length(worse, c, 1e-3)
        assert found.length == found.runs == found.run_length == math.inf
        assert found.terms == {}
    nothing = dataclasses.replace(c, out=0.0)
    assert two_layer_length(nothing, nothing, 1e-300).runs == 1


def test_the_order_of_the_paper():
    assert order_two_layers(2.0, 5.0, 1.0, 0.5) == pytest.approx(1000.0)
    assert order_two_layers(5.0, 2.0, 0.25, 0.5) == pytest.approx(10_000.0)
    assert order_two_layers(1e200, 1.0, 1.0, 0.1) == math.inf
    assert order_two_layers(math.inf, 1.0, 1.0, 0.1) == math.inf
    assert order_two_layers(1.0, 1.0, math.inf, 0.1) == pytest.approx(1000.0)


def test_mistakes():
    c = two_layer_constants(weak(1, 1))
    for tolerance in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="tolerance must be positive"):
            two_layer_length(c, c, tolerance)
        with pytest.raises(ValueError, match="must be positive"):
            order_two_layers(1.0, 1.0, 1.0, tolerance)
    with pytest.raises(ValueError, match="one vocabulary, got 2 and 3"):
        two_layer_length(c, dataclasses.replace(c, vocabulary=3), 0.1)
