"""Norms and Lipschitz constants: the inequalities themselves, on points chosen to come close to them."""

import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import RECIPES, build

import lengthwise as lw
from lengthwise.limit.complexity import closed_form, two_layer_constants
from lengthwise.limit.norms import Parts, layer_norms, lipschitz, operator_norm
from lengthwise.limit.reference import after
from lengthwise.limit.sensitivity import sensitivity

SLACK = 1 + 1e-9


def after_first_layer(f, tokens):
    position = torch.arange(1, tokens.shape[1] + 1)
    return after(f.layers[0], f.embedding[tokens] + f.positions[position % f.period], f.precision)


def head(f, y):
    return f.layers[-1].after_mlp(y) @ f.readout.mT


def distances(points):
    return torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")


def smooth(recipe):
    return {**recipe, "activation": "relu", "heads": max(1, recipe["heads"])}


@settings(max_examples=100)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
def test_the_operator_norm_is_the_largest_factor(rows, columns, seed):
    random = torch.Generator().manual_seed(seed)
    matrix = torch.randn(rows, columns, generator=random, dtype=torch.float64)
    vector = torch.randn(columns, generator=random, dtype=torch.float64)
    norm = operator_norm(matrix)
    for _ in range(300):  # power iteration approaches it from below
        assert (matrix @ vector).norm() <= norm * vector.norm() * SLACK
        vector = matrix.mT @ (matrix @ vector)
        vector = vector / vector.norm()
    assert (matrix @ vector).norm() >= 0.9 * norm


@settings(max_examples=150)
@given(RECIPES)
def test_lipschitz_constant_of_mlp_and_readout(recipe):
    f, _ = build(smooth(recipe), layers=1)
    random = torch.Generator().manual_seed(recipe["seed"] + 1)
    bound = lipschitz(f)
    y = 3 * torch.randn(300, f.embedding.shape[1], generator=random, dtype=torch.float64)
    for size in (1e-4, 1.0, 100.0):
        step = size * torch.randn(y.shape, generator=random, dtype=torch.float64)
        moved = (head(f, y + step) - head(f, y)).norm(dim=-1)
        assert (moved <= bound * step.norm(dim=-1) * SLACK + 1e-10).all()


def distributions(f, count, random):
    """Distributions over types for each head: (count, H, K), a third of them on single types."""
    shape = (count, f.layers[0].heads, f.vocabulary * f.period)
    raw = torch.rand(shape, generator=random, dtype=torch.float64)
    sharp = torch.nn.functional.one_hot(raw.argmax(-1), shape[-1]).double()
    spread = raw**8 / (raw**8).sum(-1, keepdim=True)
    return torch.where(torch.rand(count, 1, 1, generator=random) < 1 / 3, sharp, spread)


def outputs_under(f, query, attention):
    y = f.types()[query] + torch.einsum("nhk,hde,ke->nd", attention, f.layers[0].value, f.types())
    return head(f, y)


@settings(max_examples=300)
@given(RECIPES, st.booleans())
def test_outputs_move_by_no_more_than_the_sensitivity(recipe, one_direction):
    """Whatever the query type, if every head's attention moves by at most eta in total variation."""
    f, _ = build(smooth(recipe), layers=1)
    if one_direction:  # all values on one line: its largest slope is taken
        layer = f.layers[0]
        value = layer.value.clone()
        value[:] = layer.value[:1, :, :1] @ layer.value[:, :1, :]
        f = dataclasses.replace(f, layers=(dataclasses.replace(layer, value=value),))
    bound = sensitivity(f)
    norms = layer_norms(f)[0]
    assert bound <= lipschitz(f) * sum(h.diameter for h in norms.heads) * SLACK + 1e-12
    random = torch.Generator().manual_seed(recipe["seed"] + 1)
    p = distributions(f, 400, random)
    for blend in (1.0, 1e-3):
        q = p + blend * (distributions(f, 400, random) - p)
        moved = (p - q).abs().sum(-1).amax(-1) / 2
        for query in range(0, f.vocabulary * f.period, 7):
            change = (outputs_under(f, query, p) - outputs_under(f, query, q)).norm(dim=-1)
            assert (change <= bound * moved * SLACK + 1e-9).all()


def test_the_sensitivity_of_a_line_is_attained():
    """SimpleTask: the steepest step of the interpolation, times the two that the mean can move."""
    for omega, knots in ((8, 64), (3.7, 11), (30, 500)):
        f = lw.constructions.simple_task(omega, knots)
        knot = torch.linspace(-1, 1, knots + 1, dtype=torch.float64)
        steepest = (torch.sin(omega * knot).diff() * knots / 2).abs().max().item()
        assert sensitivity(f) == pytest.approx(2 * steepest, rel=1e-9)
        assert f.complexity() <= 2 * omega


def test_the_sensitivity_without_kinks_is_attained():
    """Without MLP and with one head, moving all attention between the two farthest values attains it."""
    f = lw.constructions.mod_p(5, 2)
    assert sensitivity(f) == pytest.approx(1.0, rel=1e-12)
    recipe = {"precision": lw.Finite(4), "activation": "relu", "vocabulary": 4, "width": 4, "period": 2}
    recipe |= {"localities": [1], "heads": 1, "hidden": 0, "outputs": 2, "weights": "normal", "length": 3}
    g, _ = build(recipe | {"one_token": False, "seed": 5})
    eye = torch.eye(8, dtype=torch.float64).unsqueeze(1)
    outputs = outputs_under(g, 0, eye)
    assert sensitivity(g) == pytest.approx(distances(outputs).max().item(), rel=1e-9)


def test_steps_have_no_lipschitz_constant_unless_they_cannot_be_crossed():
    recipe = {"precision": lw.Finite(4), "activation": "heaviside", "vocabulary": 2, "width": 3, "period": 1}
    recipe |= {"localities": [0], "heads": 1, "hidden": 3, "outputs": 1, "weights": "normal", "length": 3}
    f, _ = build(recipe | {"one_token": False, "seed": 5})
    assert sensitivity(f) == lipschitz(f) == math.inf
    (layer,) = f.layers
    far = dataclasses.replace(f, layers=(dataclasses.replace(layer, mlp_bias=layer.mlp_bias + 100),))
    plain = dataclasses.replace(f, layers=(dataclasses.replace(layer, mlp_out=0 * layer.mlp_out),))
    assert sensitivity(far) == pytest.approx(sensitivity(plain), rel=1e-12)


@settings(max_examples=150)
@given(RECIPES)
def test_the_stream_after_the_first_layer_stays_within_its_bounds(recipe):
    f, tokens = build({**smooth(recipe), "precision": lw.Infinite(), "localities": [2, 1]})
    c = two_layer_constants(f)
    y = after_first_layer(f, tokens).flatten(0, 1)  # causal: at every position, the stream of a prefix
    assert y.norm(dim=-1).max() <= c.norm * SLACK + 1e-9
    assert distances(y).max() <= c.diameter * SLACK + 1e-9
    for h, key_query, value in zip(c.heads, f.layers[1].key_query, f.layers[1].value, strict=True):
        logits = y @ key_query @ y.mT
        assert (logits.amax(0) - logits.amin(0)).max() <= h.oscillation * SLACK + 1e-9
        assert distances(y @ value.mT).max() <= h.moves * SLACK + 1e-9


@settings(max_examples=100)
@given(RECIPES)
def test_parts_bound_every_sum_of_their_points(recipe):
    f, _ = build({**smooth(recipe), "localities": [0, 0]})
    parts, random = Parts.after_first_layer(f), torch.Generator().manual_seed(recipe["seed"])
    count = 200
    y = sum(part[torch.randint(len(part), (count,), generator=random)] for part in parts.points)
    for ends in parts.ends:
        y = y + ends[torch.randint(2, (count,), generator=random)]
    key_query = f.layers[1].key_query[0]
    logits = y @ key_query @ y.mT
    assert y.norm(dim=-1).max() <= parts.norm() * SLACK
    assert distances(y).max() <= parts.diameter() * SLACK
    assert (logits.amax(0) - logits.amin(0)).max() <= parts.oscillation(key_query) * SLACK + 1e-9


def test_the_logits_of_a_k_gram_oscillate_by_beta_times_k():
    for k in (1, 2, 3):
        f = lw.constructions.k_gram(k, 3, 0.1)
        beta = math.log(2 * 3**k / 0.1)
        (found,) = two_layer_constants(f).heads
        assert found.oscillation == pytest.approx(beta * k)
        assert found.logits == pytest.approx(beta)


def test_the_complexity_of_a_k_gram_grows_as_its_tolerance_falls():
    """C(f) is a power of 1/tolerance that grows with k."""
    exponents = []
    for k in (1, 2, 3):
        large, small = (lw.constructions.k_gram(k, 3, e).complexity() for e in (1e-2, 1e-8))
        exponents.append(math.log(small / large) / math.log(1e6))
    assert exponents == sorted(exponents)
    assert all(k <= exponent <= k + 0.5 for k, exponent in zip((1, 2, 3), exponents, strict=True))


def test_the_closed_form_by_hand():
    """One loose head and one positional one, every constant a different small number."""
    f = lw.constructions.k_gram(1, 2, 0.5)
    c = two_layer_constants(f)
    loose = dataclasses.replace(c.heads[0], logits=2.0, values=3.0, oscillation=0.5, moves=5.0)
    positional = dataclasses.replace(loose, logits=7.0, values=11.0, moves=13.0, positional=True)
    c = dataclasses.replace(c, norm=17.0, diameter=19.0, convergence=23.0, histogram=29.0, out=31.0)
    c = dataclasses.replace(c, heads=(loose, positional))
    e = math.exp(0.5)
    d, tau, log_m, log_n = 4, 2, 1.5, 2.5
    runs = 3 * tau * 31 * e * 5
    sums = 1 + (2 * 19 * 5 + 3 + 2 * 17 * 5) + (7 * 19 * 13 + 11 + 7 * 17 * 13)
    bulk = e * ((18 + 2 * d) * 5 + (3 + 2 * 2 * 17 * 5) * 29 * ((d + 1) * log_m + 1))
    blocks = 31 * (29 * (d + 3) * sums + bulk)
    ends = 2 * 23
    for kappa, values, dv in ((2, 3, 5), (7, 11, 13)):
        ends += 2 * dv * (tau + 1) * e
        ends += 2 * values * (1 + kappa * 17 * 19) * (e * (tau * 19 + 23 * log_n) + 2 * 23)
        ends += 2 * kappa * dv * 19 * 23
    assert closed_form(c, d, tau, log_m, log_n) == pytest.approx((runs, blocks, 31 * ends))


def test_constants_that_are_not_defined():
    one, two = lw.constructions.mod_p(2, 1), lw.constructions.k_gram(1, 2, 0.1)
    with pytest.raises(ValueError, match="one layer, this model has 2"):
        sensitivity(two)
    with pytest.raises(ValueError, match="this model has 1"):
        two_layer_constants(one)
    with pytest.raises(ValueError, match="complexity is defined for one layer, or for two"):
        dataclasses.replace(two, precision=lw.Finite(8)).complexity()
