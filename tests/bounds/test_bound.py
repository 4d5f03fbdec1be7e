"""``bound``: the right theorem, its length by hand, and plain words where there is none."""

import dataclasses
import itertools
import json
import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import RECIPES, build

import lengthwise as lw
from lengthwise.bounds.one_layer import certified_length, far_sets, order_one_layer
from lengthwise.simulation.pair import Pair


@settings(max_examples=300)
@given(
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(0, 6),
    st.integers(0, 4),
    st.fractions(Fraction(1, 200), Fraction(1, 2), max_denominator=400),
    st.integers(1, 10**6),
)
def test_the_certified_length_by_hand(S, D, tau, H, eta, hard):
    """tau + 1 + max(N_hard + 2D, D (H R B^(H-1) + S + 1)), rounded up."""
    found = certified_length(S, D, tau, H, eta, hard)
    K = S * D + max(D, tau + 1)
    R, B = H * K / eta, max(H / eta, 4 * (H - 1) * D, 1)
    simulated = D * ((H * R * B ** (H - 1) if H else 0) + S + 1)
    exact = tau + 1 + max(hard + 2 * D, simulated)
    assert found == math.ceil(exact)
    assert certified_length(S, D, tau, H, eta * Fraction(9, 10), hard) >= found


def test_the_leading_term_for_one_head_each():
    """8 D (S D + max(D, tau + 1)) / eta^2 for two sets and eta <= 1/(2D)."""
    for S, D, tau, eta in itertools.product((2, 5), (1, 3), (0, 4), (0.05, 0.001)):
        leading = 8 * D * (S * D + max(D, tau + 1)) / eta**2
        assert certified_length(S, D, tau, 2, Fraction(eta), 1) == pytest.approx(leading, rel=0.02)


def test_theorem_c_for_simple_task():
    """Uniform attention in both models: one set; Lambda is the steepest slope times 2."""
    f, g = lw.constructions.simple_task(8, 64), lw.constructions.simple_task(4, 64)
    found = lw.bound(f, g, 0.1)
    slope = 32 * (torch.sin(8 * torch.linspace(-1, 1, 65, dtype=torch.float64)).diff().abs().max().item())
    other = 32 * (torch.sin(4 * torch.linspace(-1, 1, 65, dtype=torch.float64)).diff().abs().max().item())
    eta = 0.1 / (2 * slope + 2 * other)
    assert found.length == pytest.approx(1 + 1 * 3 / eta + 3, abs=2)  # H = 1: K/eta = (2 + 1)/eta
    assert (found.theorem, found.certified, found.dominant) == ("Theorem C", True, "simulation")
    assert found.order is not None
    assert not found.order.certified
    assert found.order.length == pytest.approx((2 * slope) ** 2 * 2**6 / 0.1**2)


def test_the_hardmax_length_decides_where_the_margin_is_small():
    f, g = lw.constructions.mod_p(2, 1, bits=8), lw.constructions.mod_p(2, 0, bits=8)
    (layer,) = f.layers
    weak = dataclasses.replace(layer, key_query=layer.key_query / 16)  # margin 1/2: hard from 2^16 on
    found = lw.bound(dataclasses.replace(f, layers=(weak,)), g, 1.0)
    assert found.dominant == "hardmax"
    assert found.length == 0 + 1 + 2**16 + 2 * 2
    assert "hardmax length decides" in found.words


def test_far_sets_counts_orders_of_far_types_that_matter():
    f, g = lw.constructions.mod_p(2, 1), lw.constructions.mod_p(2, 0)
    assert far_sets(Pair.of(f, f)) == 1
    assert far_sets(Pair.of(f, g)) == 2
    (layer,) = g.layers
    idle = dataclasses.replace(g, layers=(dataclasses.replace(layer, value=0 * layer.value),))
    assert far_sets(Pair.of(f, idle)) == 1
    assert far_sets(Pair.of(idle, idle)) == 0


@settings(max_examples=50)
@given(RECIPES, RECIPES, st.floats(1e-6, 10))
def test_a_bound_of_any_pair_is_plain_data(one, two, tolerance):
    """Whatever the models: a length or the reason why there is none, and JSON that reads back."""
    same = {"vocabulary": one["vocabulary"], "outputs": one["outputs"]}
    f, _ = build({**one, "period": min(one["period"], 3)}, layers=2)
    g, _ = build({**two, **same, "period": min(two["period"], 3)}, layers=2)
    found = lw.bound(f, g, tolerance)
    assert found.words
    assert found.length >= 1
    if found.length == math.inf:
        assert found.theorem in ("none", "Theorem C", "Theorem E")
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert {"length", "certified", "theorem", "terms"} <= set(plain)
    wider = lw.bound(f, g, 2 * tolerance)
    assert wider.length <= found.length


def heaviside(f):
    (layer,) = f.layers
    return dataclasses.replace(f, layers=(dataclasses.replace(layer, activation="heaviside"),))


def test_words_where_there_is_no_bound():
    f, g = lw.constructions.simple_task(8, 64), lw.constructions.simple_task(4, 64)
    two = lw.constructions.k_gram(1, 2, 0.1)
    three = dataclasses.replace(two, layers=(*two.layers, two.layers[1]))
    finite = dataclasses.replace(two, precision=lw.Finite(8))
    (layer,) = lw.constructions.mod_p(2, 1).layers
    tiny = dataclasses.replace(layer, key_query=layer.key_query * 1e-9)
    soft = dataclasses.replace(lw.constructions.mod_p(2, 1), layers=(tiny,))
    for one, other, tolerance, words in (
        (three, two, 0.1, "No bound is known for 3 layers"),
        (finite, finite_like(finite), 0.1, "two layers in finite precision"),
        (f, dataclasses.replace(g, precision=lw.Infinite()), 0.1, "one model in finite and one in infinite"),
        (f, heaviside(g), 0.1, "steps (heaviside)"),
        (f, g, 0.0, "With tolerance 0"),
        (f, soft, 0.1, "logit margin is so small"),
    ):
        found = lw.bound(one, other, tolerance)
        assert found.length == math.inf
        assert words in found.words
        assert not found.certified
        assert found.growth == {}
    same = lw.bound(f, lw.constructions.simple_task(8, 64), 0.0)
    assert (same.length, same.certified, same.theorem) == (1, True, "equality")


def test_growth_is_what_a_worse_parameter_does_to_the_length():
    f, g = lw.constructions.mod_p(3, 1), lw.constructions.mod_p(3, 2)
    found = lw.bound(f, g, 0.1)
    eta = Fraction(found.parameters["eta"])
    base = certified_length(2, 3, 0, 2, eta, 2)
    assert found.growth["sensitivity"] == pytest.approx(
        certified_length(2, 3, 0, 2, eta / 2, 2) / base, rel=1e-6
    )
    assert found.growth["vocabulary"] == pytest.approx(certified_length(4, 3, 0, 2, eta, 2) / base, rel=1e-6)
    assert found.growth["sensitivity"] == pytest.approx(4, rel=0.01)  # eta^-2, for two sets
    assert found.growth["margin"] == 1  # the simulation length decides
    small = lw.bound(f, g, 1e-300)
    assert small.growth["far_sets"] == math.inf
    json.dumps(small.to_json(), allow_nan=False)


def test_the_terms_of_theorem_e_are_its_error_and_growth_its_exponents():
    f, g = lw.constructions.k_gram(2, 3, 0.1), lw.constructions.induction_head(3, 0.1)
    found = lw.bound(f, g, 0.1)
    assert sum(found.terms.values()) == pytest.approx(
        found.parameters["error_f"] + found.parameters["error_g"], rel=1e-9
    )
    assert 0.099 < sum(found.terms.values()) <= 0.1
    assert found.growth["second_layer_values"] == pytest.approx(4, rel=0.05)  # (C/eps)^2
    assert max(found.growth, key=lambda name: found.growth[name]) == "second_layer_logits"
    assert all(factor >= 1 - 1e-9 for factor in found.growth.values())


def finite_like(f):
    return dataclasses.replace(f, readout=2 * f.readout)


def test_one_layer_in_infinite_precision_is_two_with_nothing_in_the_second():
    f = dataclasses.replace(lw.constructions.simple_task(1, 4), precision=lw.Infinite())
    g = dataclasses.replace(lw.constructions.simple_task(0.5, 4), precision=lw.Infinite())
    found = lw.bound(f, g, 0.5)
    assert found.theorem == "Theorem E"
    assert 1 < found.length < 10**6


def test_the_order_of_theorem_4_1():
    assert order_one_layer(2, 3, 4, 5.0, 0.1, 100) == (100.0, pytest.approx(25 * 3**7 * 2**6 * 16 / 0.01))
    assert order_one_layer(2, 1, 0, 1.0, 0.0, 2**2000) == (math.inf, math.inf)


def test_mistakes():
    f = lw.constructions.simple_task(8, 64)
    for other, tolerance, message in (
        (lw.constructions.k_gram(1, 3, 0.1), 0.1, "one vocabulary, got 2 and 3"),
        (f, -0.1, "tolerance must be a finite number of at least 0"),
        (f, math.nan, "tolerance must be a finite number of at least 0"),
        (f, math.inf, "tolerance must be a finite number of at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            lw.bound(f, other, tolerance)


@settings(max_examples=25)
@given(RECIPES, st.permutations(range(4)), st.booleans(), st.floats(1e-3, 1))
def test_a_model_alone_stands_for_all_with_its_constants(recipe, order, negated, tolerance):
    """Renaming tokens or changing the sign of the output changes no constant: the bound for the pair is never
    longer than that for f alone, and the same where sets of keys do not enter.
    """
    f, _ = build({**recipe, "period": min(recipe["period"], 3)}, layers=2)
    chosen = [token for token in order if token < f.vocabulary]
    sign = -1.0 if negated else 1.0
    g = dataclasses.replace(f, embedding=f.embedding[chosen], readout=sign * f.readout)
    alone, together = lw.bound(f, None, tolerance), lw.bound(f, g, tolerance)
    if together.theorem == "equality":
        return
    assert alone.theorem == together.theorem
    if alone.length < math.inf:
        assert Fraction(together.length) <= Fraction(alone.length) * (1 + Fraction(1, 10**6))
    if alone.theorem == "Theorem E" and alone.length < 1e15:
        assert alone.length == pytest.approx(together.length, rel=1e-3)
    if alone.theorem == "Theorem C" and alone.length < math.inf:
        assert alone.parameters["far_sets"] == 2 * far_sets(Pair.of(f, f))
