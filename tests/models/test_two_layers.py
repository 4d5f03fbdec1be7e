"""Two-layer ensembles: every model evaluates as the limit transformer that it is, and gradients are right."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.limit.infinity import at_infinity, end_width
from lengthwise.models.limit import LimitEnsemble

RECIPES = st.fixed_dictionaries(
    {
        "width": st.integers(1, 5),
        "hidden": st.sampled_from([0, 0, 4]),
        "heads": st.integers(1, 3),
        "period": st.integers(1, 3),
        "locality": st.sampled_from([None, 0, 1, 3]),
        "local_heads": st.sampled_from([None, 0, 1]),
        "vocabulary": st.integers(1, 4),
        "outputs": st.integers(1, 3),
        "models": st.integers(1, 3),
        "strings": st.integers(1, 4),
        "length": st.integers(1, 25),
        "scale": st.sampled_from([0.0, 0.3, 1.0, 3.0]),
        "seed": st.integers(0, 10**6),
    }
)


def build(recipe):
    names = ("width", "hidden", "heads", "period", "locality", "local_heads")
    model = lw.LimitModel(layers=2, **{name: recipe[name] for name in names})
    random = torch.Generator().manual_seed(recipe["seed"])
    ensemble = LimitEnsemble(
        model,
        vocabulary=recipe["vocabulary"],
        outputs=recipe["outputs"],
        generators=[random] * recipe["models"],
        dtype=torch.float64,
    )
    with torch.no_grad():
        values = torch.randn(ensemble.stack.values.shape, generator=random, dtype=torch.float64)
        ensemble.stack.values.copy_(recipe["scale"] * values)
    shape = (recipe["models"], recipe["strings"], recipe["length"])
    return ensemble, torch.randint(recipe["vocabulary"], shape, generator=random)


@settings(max_examples=300)
@given(RECIPES)
def test_each_model_is_its_limit_transformer(recipe):
    ensemble, tokens = build(recipe)
    outputs = ensemble.forward_tokens(tokens).detach()
    for index in range(ensemble.size):
        reference = ensemble.transformer(index).evaluate(tokens[index], "reference")
        scale = max(1.0, float(reference.abs().max()))
        torch.testing.assert_close(outputs[index] / scale, reference / scale, rtol=1e-8, atol=1e-9)


@settings(max_examples=25)
@given(RECIPES)
def test_gradients_are_those_of_finite_differences(recipe):
    ensemble, tokens = build({**recipe, "scale": 0.5, "hidden": 0, "length": 1 + recipe["length"] % 8})
    ensemble.forward_tokens(tokens).square().sum().backward()
    gradient = ensemble.stack.gradients.clone()
    assert gradient.isfinite().all()
    random = torch.Generator().manual_seed(1)
    direction = torch.randn(gradient.shape, generator=random, dtype=torch.float64)
    values, step = ensemble.stack.values, 1e-5
    sums = []
    with torch.no_grad():
        for sign in (1, -1):
            values.add_(sign * step * direction)
            sums.append(float(ensemble.forward_tokens(tokens).square().sum()))
            values.sub_(sign * step * direction)
    expected = (sums[0] - sums[1]) / (2 * step)
    assert float((gradient * direction).sum()) == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_mistakes():
    with pytest.raises(ValueError, match="layers must be 1 or 2"):
        lw.LimitModel(layers=3)
    with pytest.raises(ValueError, match="infinite precision only"):
        lw.LimitModel(layers=2, precision=lw.Finite(8))


@settings(max_examples=60)
@given(RECIPES)
def test_limits_of_each_model_are_those_of_its_limit_transformer(recipe):
    ensemble, _ = build(recipe | {"period": 1, "vocabulary": min(recipe["vocabulary"], 3)})
    random = torch.Generator().manual_seed(recipe["seed"])
    shape = ensemble.size, recipe["strings"], ensemble.vocabulary**ensemble.model.window
    often = torch.rand(shape, generator=random, dtype=torch.float64)
    often /= often.sum(-1, keepdim=True)
    limits = ensemble.at_infinity(often)
    for index in range(ensemble.size):
        f = ensemble.transformer(index)
        assert end_width(f) == ensemble.model.window
        expected = at_infinity(f, often[index])
        scale = max(1.0, float(expected.abs().max()))
        torch.testing.assert_close(limits[index] / scale, expected / scale, rtol=1e-9, atol=1e-9)
