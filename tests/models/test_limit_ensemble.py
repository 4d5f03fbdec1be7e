"""The two forward passes of an ensemble against each other, against plain Python, and their gradients."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.models.limit import LimitEnsemble, relu_readout
from lengthwise.sequences import Summary, summarize

RECIPES = st.fixed_dictionaries(
    {
        "precision": st.sampled_from([lw.Infinite(), lw.Finite(1), lw.Finite(4), lw.Finite(30)]),
        "width": st.integers(1, 5),
        "hidden": st.sampled_from([0, 1, 7]),
        "heads": st.integers(0, 3),
        "period": st.integers(1, 4),
        "locality": st.sampled_from([None, 0, 1, 3]),
        "vocabulary": st.integers(1, 4),
        "outputs": st.integers(1, 3),
        "models": st.integers(1, 3),
        "strings": st.integers(1, 4),
        "length": st.integers(1, 20),
        "scale": st.sampled_from([0.0, 0.3, 1.0, 3.0]),
        "seed": st.integers(0, 10**6),
    }
)


def build(recipe):
    """An ensemble with every parameter random, at scales from tame to violent, and strings to read."""
    model = lw.LimitModel(
        **{name: recipe[name] for name in ("precision", "width", "hidden", "heads", "period", "locality")}
    )
    random = torch.Generator().manual_seed(recipe["seed"])
    ensemble = LimitEnsemble(
        model,
        vocabulary=recipe["vocabulary"],
        outputs=recipe["outputs"],
        generators=[random] * recipe["models"],
        dtype=torch.float64,
    )
    values = torch.randn(ensemble.stack.values.shape, generator=random, dtype=torch.float64)
    with torch.no_grad():
        ensemble.stack.values.copy_(recipe["scale"] * values)
    shape = (recipe["models"], recipe["strings"], recipe["length"])
    return ensemble, torch.randint(recipe["vocabulary"], shape, generator=random)


def summary_of(ensemble, tokens):
    model = ensemble.model
    summary = summarize(tokens, ensemble.vocabulary, model.period, model.window - 1)
    return Summary(summary.counts, summary.suffix, summary.length.expand(ensemble.size, 1))


@settings(max_examples=400)
@given(RECIPES)
def test_counts_and_tokens_give_the_same_outputs_and_gradients(recipe):
    ensemble, tokens = build(recipe)
    found = []
    for output in (
        ensemble.forward_tokens(tokens),
        ensemble.forward_counts(summary_of(ensemble, tokens)),
    ):
        ensemble.stack.gradients.zero_()
        weights = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).view_as(output)
        (output * weights).sum().backward()
        found.append((output.detach(), ensemble.stack.gradients.clone()))
    (by_tokens, gradient_by_tokens), (by_counts, gradient_by_counts) = found
    torch.testing.assert_close(by_counts, by_tokens, rtol=1e-6, atol=1e-9)
    scale = max(1.0, float(gradient_by_tokens.abs().max()))
    torch.testing.assert_close(gradient_by_counts / scale, gradient_by_tokens / scale, rtol=1e-6, atol=1e-9)


def plain_output(model, weights, word):
    """The definition, in plain Python, for one model and one string: its output at the last position."""
    total = len(word)
    embedding = weights["embedding"].tolist()
    positions = weights["positions"].tolist() if model.period > 1 else [[0.0] * model.width]

    def vector(position):
        token, place = embedding[word[position - 1]], positions[position % model.period]
        return [a + b for a, b in zip(token, place, strict=True)]

    def apply(matrix, v):
        return [sum(a * b for a, b in zip(row, v, strict=True)) for row in matrix]

    query = vector(total)
    stream = list(query)
    for head in range(model.heads):
        key_query = weights["layers.0.key_query"][head].tolist()
        logits = []
        for position in range(1, total + 1):
            logit = sum(a * b for a, b in zip(vector(position), apply(key_query, query), strict=True))
            distance = total - position
            if model.locality is not None and distance <= model.locality:
                local = float(weights["layers.0.local"][head][distance])
                logit += local * (math.log(total) if model.precision == lw.Infinite() else 1.0)
            logits.append(logit)
        largest = max(logits)
        if model.precision == lw.Infinite():
            attention = [math.exp(logit - largest) for logit in logits]
        else:
            attention = [math.exp(math.log(total) * (logit - largest)) for logit in logits]
            attention = [0.0 if w <= 2.0**-model.precision.bits else w for w in attention]
        for position, weight in enumerate(attention, start=1):
            value = apply(weights["layers.0.value"][head].tolist(), vector(position))
            stream = [a + weight / sum(attention) * b for a, b in zip(stream, value, strict=True)]
    hidden = apply(weights["layers.0.mlp_in"].tolist(), stream)
    hidden = [max(0.0, h + float(b)) for h, b in zip(hidden, weights["layers.0.mlp_bias"], strict=True)]
    update = apply(weights["layers.0.mlp_out"].tolist(), hidden) if hidden else [0.0] * model.width
    return apply(weights["readout"].tolist(), [a + b for a, b in zip(stream, update, strict=True)])


@settings(max_examples=200)
@given(RECIPES)
def test_both_passes_are_the_definition(recipe):
    ensemble, tokens = build(recipe)
    by_tokens = ensemble.forward_tokens(tokens).detach()
    by_counts = ensemble.forward_counts(summary_of(ensemble, tokens)).detach()
    for index in range(ensemble.size):
        weights = ensemble.stack.weights(index)
        for row, word in enumerate(tokens[index].tolist()):
            expected = torch.tensor(plain_output(ensemble.model, weights, word), dtype=torch.float64)
            torch.testing.assert_close(by_tokens[index, row], expected, rtol=1e-8, atol=1e-9)
            torch.testing.assert_close(by_counts[index, row], expected, rtol=1e-8, atol=1e-9)


def test_models_of_one_ensemble_may_read_strings_of_different_lengths():
    model = lw.LimitModel(width=3, hidden=4, heads=2, period=3, locality=2)
    generators = [torch.Generator().manual_seed(seed) for seed in range(4)]
    ensemble = LimitEnsemble(model, vocabulary=2, outputs=1, generators=generators, dtype=torch.float64)
    with torch.no_grad():
        ensemble.stack.values.normal_(generator=torch.Generator().manual_seed(9))
    words = [torch.randint(2, (5, length), generator=generators[0]) for length in (1, 2, 7, 40)]
    parts = [summarize(word, 2, 3, 2) for word in words]
    together = ensemble.forward_counts(
        Summary(
            torch.stack([part.counts for part in parts]),
            torch.stack([part.suffix for part in parts]),
            torch.stack([part.length for part in parts]).unsqueeze(-1),
        )
    )
    for index, word in enumerate(words):
        alone = ensemble.forward_tokens(word.expand(4, -1, -1))[index]
        torch.testing.assert_close(together[index], alone, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("outputs", [1, 3])
def test_relu_readout_has_the_gradient_of_its_formula(outputs):
    random = torch.Generator().manual_seed(outputs)
    inputs = [
        torch.randn(shape, dtype=torch.float64, generator=random).requires_grad_()
        for shape in ((2, 6, 4), (2, 4, 5), (2, outputs, 5))
    ]
    assert torch.autograd.gradcheck(relu_readout, inputs)
    x, a, r = inputs
    torch.testing.assert_close(relu_readout(x, a, r), torch.relu(x @ a) @ r.mT)


def test_a_model_alone_is_the_same_model():
    """First weights and outputs do not depend on the neighbours in the ensemble."""
    model = lw.LimitModel(width=8, hidden=16)
    seeds = [3, 1, 4]
    tokens = torch.randint(2, (1, 7, 12), generator=torch.Generator().manual_seed(0))

    def start(chosen):
        generators = [torch.Generator().manual_seed(seed) for seed in chosen]
        return LimitEnsemble(model, vocabulary=2, outputs=1, generators=generators, dtype=torch.float64)

    together = start(seeds)
    for index, seed in enumerate(seeds):
        alone = start([seed])
        for name, value in alone.stack.weights(0).items():
            assert torch.equal(value, together.stack.weights(index)[name])
        output = together.forward_tokens(tokens.expand(3, -1, -1))[index]
        torch.testing.assert_close(alone.forward_tokens(tokens)[0], output, rtol=1e-12, atol=0)


def test_weights_come_out_and_go_in():
    model = lw.LimitModel(width=4, hidden=3, period=2, locality=1)
    first, second = (
        LimitEnsemble(model, vocabulary=3, outputs=2, generators=[torch.Generator().manual_seed(s)] * 2)
        for s in (0, 1)
    )
    second.stack.load(1, first.stack.weights(0))
    for name, value in first.stack.weights(0).items():
        assert torch.equal(second.stack.weights(1)[name], value)
    weights = first.stack.weights(0)
    with pytest.raises(ValueError, match=r"readout: shape \(2, 5\), expected \(2, 4\)"):
        second.stack.load(0, weights | {"readout": torch.zeros(2, 5)})
    del weights["embedding"]
    with pytest.raises(ValueError, match="expected"):
        second.stack.load(0, weights)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"width": 0}, "width must be"),
        ({"hidden": -1}, "hidden must be"),
        ({"heads": -1}, "heads must be"),
        ({"period": 0}, "period must be"),
        ({"locality": -1}, "locality must be None or"),
        ({"layers": 3}, "layers must be 1 or 2"),
    ],
)
def test_sizes_that_are_none(sizes, message):
    with pytest.raises(ValueError, match=message):
        lw.LimitModel(**sizes)
