"""The first layer and its limit: the dense definition, and the inequalities E1 and E2."""

import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import RECIPES, build

import lengthwise as lw
from lengthwise.limit.complexity import two_layer_constants
from lengthwise.limit.reference import after
from lengthwise.sequences import types
from lengthwise.simulation import first_layer as module
from lengthwise.simulation.first_layer import first_layer, limit_stream

SLACK = 1 + 1e-9
LOCAL = st.sampled_from([-3.0, 0.0, 0.5, 0.9, 1.0, 1.25, 2.0, 3.5])


pytestmark = pytest.mark.usefixtures("one_thread")


def two_layers(recipe, **changes):
    recipe = {**recipe, "precision": lw.Infinite(), "activation": "relu", "localities": [2, 1], **changes}
    recipe["period"] = min(recipe["period"], 7)
    recipe["length"] = min(recipe["length"], 100)
    return build(recipe)


def with_local(f, local):
    first = dataclasses.replace(f.layers[0], local=torch.tensor(local, dtype=torch.float64))
    return dataclasses.replace(f, layers=(first, *f.layers[1:]))


@settings(max_examples=60)
@given(RECIPES, st.sampled_from([0, 1, 2, 5, 40]), st.sampled_from([150, 2**20]))
def test_the_stream_is_that_of_the_definition(recipe, tau, numbers):
    f, tokens = two_layers(recipe, localities=[tau, 0], activation=recipe["activation"])
    position = torch.arange(1, tokens.shape[1] + 1)
    dense = after(f.layers[0], f.embedding[tokens] + f.positions[position % f.period], f.precision)
    kept = module.NUMBERS
    module.NUMBERS = numbers
    try:
        found = first_layer(f, tokens[0])
    finally:
        module.NUMBERS = kept
    size = 1 + dense[0].abs().max()
    if recipe["activation"] == "relu":
        assert (found.true - dense[0]).abs().max() <= 1e-9 * size
    assert torch.equal(found.true[:tau], found.limit[:tau])
    assert torch.isfinite(found.limit).all()


@settings(max_examples=60)
@given(RECIPES, st.lists(st.tuples(LOCAL, LOCAL, LOCAL), min_size=1, max_size=3))
def test_the_stream_approaches_its_limit(recipe, local):
    """E1, for heads of all three regimes, with ties between distances and with huge logits."""
    f, tokens = two_layers({**recipe, "heads": len(local)})
    f = with_local(f, local)
    c = two_layer_constants(f)
    found = first_layer(f, tokens[0])
    position = torch.arange(1, tokens.shape[1] + 1).double()
    bound = c.convergence * position**-c.margin_first
    late = position > f.layers[0].locality
    apart = (found.true - found.limit).norm(dim=-1)
    size = 1 + found.true.abs().max()
    assert (apart[late] <= bound[late] * SLACK + 1e-12 * size).all()


def one_head(local, logit):
    """Two tokens with values 0 and 1 and logits 0 and ``logit``, whatever the query."""
    zeros = torch.zeros
    embedding = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], dtype=torch.float64)
    key_query, value = zeros(1, 3, 3, dtype=torch.float64), zeros(1, 3, 3, dtype=torch.float64)
    key_query[0, 1, 0], value[0, 2, 1] = logit, 1.0
    none = [zeros(*shape, dtype=torch.float64) for shape in ((0, 3), (0,), (3, 0))]
    local = torch.tensor([local], dtype=torch.float64)
    first = lw.LimitLayer(key_query, value, local, *none)
    second = lw.LimitLayer(0 * key_query, value, zeros(1, 1, dtype=torch.float64), *none)
    readout = torch.eye(3, dtype=torch.float64)[2:]
    return lw.LimitTransformer(
        embedding, zeros(1, 3, dtype=torch.float64), (first, second), readout, lw.Infinite()
    )


def test_the_rate_of_convergence_is_attained():
    """Heavy tokens near, light ones far, and local logits of 1 - gamma: the error is nearly C1 i^-gamma."""
    for logit, gamma, length in ((0.0, 0.5, 10**5), (1.0, 0.75, 10**4), (2.0, 0.9, 10**4)):
        f = one_head([1 - gamma] * 4, logit)
        tokens = torch.zeros(length, dtype=torch.long)
        tokens[-4:] = 1
        c, found = two_layer_constants(f), first_layer(f, tokens)
        apart = (found.true[-1] - found.limit[-1]).norm()
        assert c.margin_first == pytest.approx(gamma)
        assert 0.5 <= apart / (c.convergence * length**-gamma) <= 1


def test_limits_by_hand():
    """Tokens 0 and 1 with values 0 and 1: the third coordinate is the limit's attention to token 1."""
    tokens = torch.tensor([1, 0, 0, 1, 0, 0, 0, 0, 1, 0])  # 3 of 10; distances 0, 1, 2 hold 0, 1, 0
    e = math.e
    for local, attention in (
        ([0.0, 0.5, 0.0], 0.3 * e / (0.3 * e + 0.7)),
        ([0.0, 1.0, 0.0], 1.3 * e / (1.3 * e + 0.7)),
        ([1.0, 1.0, 0.5], 1.3 * e / (1.3 * e + 1.7)),
        ([2.0, 2.0, 1.0], e / (e + 1)),
        ([0.0, 1.5, 1.0], 1.0),
    ):
        found = first_layer(one_head(local, 1.0), tokens)
        assert found.limit[-1, 2].item() == pytest.approx(attention, rel=1e-12)


def histograms(f, count, random):
    """A third of them on single types."""
    raw = torch.rand(count, f.vocabulary * f.period, generator=random, dtype=torch.float64)
    sharp = torch.nn.functional.one_hot(raw.argmax(-1), raw.shape[1]).double()
    spread = raw**6 / (raw**6).sum(-1, keepdim=True)
    return torch.where(torch.rand(count, 1, generator=random) < 1 / 3, sharp, spread)


@settings(max_examples=60)
@given(RECIPES, st.lists(st.tuples(LOCAL, LOCAL, LOCAL), min_size=1, max_size=3))
def test_the_limit_is_lipschitz_in_the_histogram(recipe, local):
    """E2, between histograms that are close and histograms that are not."""
    f, tokens = two_layers({**recipe, "heads": len(local), "length": max(recipe["length"], 3)})
    f = with_local(f, local)
    bound = two_layer_constants(f).histogram
    near = types(tokens[0], f.period)[-3:].flip(0).expand(200, -1)
    random = torch.Generator().manual_seed(recipe["seed"] + 1)
    mu = histograms(f, 200, random)
    for blend in (1.0, 1e-3):
        nu = mu + blend * (histograms(f, 200, random) - mu)
        moved = (limit_stream(f, near, mu) - limit_stream(f, near, nu)).norm(dim=-1)
        variation = (mu - nu).abs().sum(-1) / 2
        apart = variation > 0  # where not, an infinite bound times nothing is not a number
        assert (moved[apart] <= bound * variation[apart] * SLACK + 1e-9).all()


def test_the_lipschitz_constant_is_attained():
    """All but a little mass on light types: moving a little to a heavy one moves attention e^omega times."""
    f = one_head([0.0], 3.0)
    step = 1e-7
    mu = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    nu = torch.tensor([[1 - step, step]], dtype=torch.float64)
    near = torch.zeros(1, 1, dtype=torch.long)
    moved = (limit_stream(f, near, mu) - limit_stream(f, near, nu)).norm().item()
    assert 0.99 <= moved / (two_layer_constants(f).histogram * step) <= 1


def test_the_limit_at_a_position_is_that_of_its_prefix():
    f, tokens = two_layers(
        {"vocabulary": 3, "width": 3, "period": 2, "heads": 2, "hidden": 2, "outputs": 1}
        | {"weights": "normal", "length": 40, "one_token": False, "seed": 3}
    )
    f = with_local(f, [[0.5, 1.0, 0.0], [0.0, 0.0, 2.0]])
    found, kinds = first_layer(f, tokens[0]), types(tokens[0], f.period)
    for i in range(3, 41):
        histogram = torch.bincount(kinds[:i], minlength=6).double() / i
        phi = limit_stream(f, kinds[i - 3 : i].flip(0).unsqueeze(0), histogram.unsqueeze(0))
        assert torch.allclose(phi[0], found.limit[i - 1], atol=1e-12, rtol=1e-12)


def test_chunks_of_single_positions():
    f, tokens = two_layers(
        {"vocabulary": 2, "width": 2, "period": 3, "heads": 1, "hidden": 0, "outputs": 1}
        | {"weights": "normal", "length": 20, "one_token": False, "seed": 4}
    )
    at_once, kept = first_layer(f, tokens[0]), module.NUMBERS
    module.NUMBERS = 1
    try:
        found = first_layer(f, tokens[0])
    finally:
        module.NUMBERS = kept
    assert torch.allclose(found.true, at_once.true, atol=1e-13)
    assert torch.allclose(found.limit, at_once.limit, atol=1e-13)


def test_models_that_have_no_such_limit():
    one, two = lw.constructions.mod_p(2, 1), lw.constructions.k_gram(1, 2, 0.1)
    tokens = torch.zeros(3, dtype=torch.long)
    with pytest.raises(ValueError, match="needs two layers in infinite precision, this model has 1"):
        first_layer(one, tokens)
    with pytest.raises(ValueError, match="this model has 2 in Finite"):
        first_layer(dataclasses.replace(two, precision=lw.Finite(8)), tokens)
    with pytest.raises(ValueError, match="tokens must be between 0 and 1"):
        first_layer(two, tokens + 2)
