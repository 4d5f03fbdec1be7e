"""Ensembles of decoders against a plain module, short cuts against the long way, and their gradients."""

import math

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.models import layers
from lengthwise.models.decoder import DecoderEnsemble, DecoderModel
from lengthwise.models.decoder_forward import Streams, fold, forward_counts, forward_streams
from lengthwise.models.layers import gelu
from lengthwise.models.positions import SCHEMES
from lengthwise.models.token_counts import token_counts
from plain_decoder import PlainDecoder

pytestmark = pytest.mark.usefixtures("one_thread")

RECIPES = st.fixed_dictionaries(
    {
        "positions": st.sampled_from(SCHEMES),
        "layers": st.integers(1, 3),
        "heads": st.integers(1, 4),
        "each": st.sampled_from([2, 4]),
        "log_scaling": st.booleans(),
        "vocabulary": st.integers(1, 5),
        "classes": st.sampled_from([None, 1, 4]),
        "models": st.integers(1, 3),
        "streams": st.integers(1, 3),
        "length": st.integers(1, 20),
        "places": st.integers(1, 4),
        "spare": st.integers(0, 9),
        "scale": st.sampled_from([0.1, 0.5, 1.5]),
        "seed": st.integers(0, 10**6),
    }
)


def build(recipe):
    """Decoders with every parameter random, at scales from tame to violent, and streams to read."""
    model = DecoderModel(
        layers=recipe["layers"],
        heads=recipe["heads"],
        width=recipe["heads"] * recipe["each"],
        positions=recipe["positions"],
        position_range=64,
        spare_positions=recipe["spare"] if recipe["positions"] == "learned" else 0,
        log_scaling=recipe["log_scaling"],
    )
    random = torch.Generator().manual_seed(recipe["seed"])
    ensemble = DecoderEnsemble(
        model,
        vocabulary=recipe["vocabulary"],
        classes=recipe["classes"],
        longest=recipe["length"] + 5,
        generators=[random] * recipe["models"],
        dtype=torch.float64,
    )
    values = torch.randn(ensemble.stack.values.shape, generator=random, dtype=torch.float64)
    with torch.no_grad():
        ensemble.stack.values.copy_(recipe["scale"] * values)
    shape = (recipe["models"], recipe["streams"])
    tokens = torch.randint(recipe["vocabulary"], (*shape, recipe["length"]), generator=random)
    places = torch.randint(recipe["length"], (*shape, recipe["places"]), generator=random)
    positions = None
    if recipe["positions"] == "randomised" or (recipe["positions"] == "learned" and recipe["seed"] % 2):
        chances = torch.rand((*shape, ensemble.span), generator=random)
        positions = chances.argsort(-1)[..., : recipe["length"]].sort(-1).values
    return ensemble, tokens, places, positions


def plain_logits(ensemble, tokens, places, positions):
    """The same by the plain module, everywhere; and the modules."""
    rows, modules = [], []
    for model in range(ensemble.size):
        module = PlainDecoder(ensemble.model, ensemble.stack.weights(model))
        modules.append(module)
        rows += [
            module(word, None if positions is None else positions[model, stream])[places[model, stream]]
            for stream, word in enumerate(tokens[model])
        ]
    return torch.stack(rows).unflatten(0, tokens.shape[:2]), modules


def assert_same(found, expected, tolerance=1e-10):
    scale = max(1.0, float(expected.detach().abs().max()))
    torch.testing.assert_close(found / scale, expected / scale, rtol=tolerance, atol=tolerance)


@settings(max_examples=80)
@given(RECIPES)
def test_outputs_and_gradients_are_those_of_the_plain_module(recipe):
    ensemble, tokens, places, positions = build(recipe)
    logits = ensemble.forward(tokens, places, positions)
    expected, modules = plain_logits(ensemble, tokens, places, positions)
    assert_same(logits, expected)
    weights = torch.linspace(-1, 1, logits.numel(), dtype=torch.float64).view_as(logits)
    (logits * weights).sum().backward()
    (expected * weights).sum().backward()
    for name, parameter in ensemble.stack.parameters.items():
        for model, module in enumerate(modules):
            gradient = module.weight(name).grad
            gradient = torch.zeros_like(parameter[model]) if gradient is None else gradient
            assert parameter.grad is not None
            assert_same(parameter.grad[model], gradient, 1e-8)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("heads", [1, 2, 3, 4])
@pytest.mark.parametrize("positions", SCHEMES)
def test_every_scheme_and_size(positions, heads, layers):
    recipe = {"positions": positions, "layers": layers, "heads": heads, "each": 4, "log_scaling": False}
    recipe |= {"vocabulary": 4, "classes": None, "models": 2, "streams": 1, "length": 30, "places": 5}
    ensemble, tokens, places, drawn = build(recipe | {"spare": 2, "scale": 0.7, "seed": 10 * layers + heads})
    places[..., 0], places[..., 1] = 29, 0
    with torch.no_grad():
        expected, _ = plain_logits(ensemble, tokens, places, drawn)
        assert_same(ensemble.forward(tokens, places, drawn), expected)


@settings(max_examples=60)
@given(RECIPES, st.integers(1, 32), st.integers(1, 150))
def test_counts_give_what_streams_give(recipe, vocabulary, length):
    """One layer without positions, over any alphabet and length: outputs and gradients."""
    changes = {"positions": "none", "layers": 1, "vocabulary": vocabulary, "length": length}
    ensemble, tokens, places, _ = build(recipe | changes)
    assert ensemble.counted
    found = []
    for way in ("streams", "counts"):
        ensemble.stack.gradients.zero_()
        if way == "streams":
            weights = fold(ensemble.stack.parameters, 1, counted=False)
            logits = forward_streams(ensemble.shape, weights, [Streams(tokens, places)])
        else:
            counts = token_counts(tokens, places, vocabulary, torch.float64)
            logits = forward_counts(ensemble.shape, ensemble.weights(), counts)
        logits.cos().sum().backward()
        found.append((logits.detach(), ensemble.stack.gradients.clone()))
    assert_same(found[1][0], found[0][0])
    assert_same(found[1][1], found[0][1], 1e-8)


def test_counts_of_tokens():
    random = torch.Generator().manual_seed(0)
    for vocabulary, length in ((1, 1), (2, 63), (5, 64), (31, 200), (7, 4000)):
        tokens = torch.randint(vocabulary, (3, 2, length), generator=random)
        tokens[0, 0] = vocabulary - 1
        places = torch.randint(length, (3, 2, 4), generator=random)
        places[..., 0] = length - 1
        query, log_counts, log_seen = token_counts(tokens, places, vocabulary, torch.float64)
        for model in range(3):
            for stream in range(2):
                for index, place in enumerate(places[model, stream].tolist()):
                    seen = tokens[model, stream, : place + 1]
                    expected = torch.bincount(seen, minlength=vocabulary).double()
                    torch.testing.assert_close(log_counts[model, stream, index].exp(), expected)
                    assert query[model, stream, index].nonzero().tolist() == [[int(seen[-1])]]
                    assert float(log_seen[model, stream, index]) == pytest.approx(math.log(place + 1))


@settings(max_examples=60)
@given(RECIPES, st.lists(st.tuples(st.integers(1, 4), st.integers(1, 12)), min_size=2, max_size=4))
def test_groups_of_streams_give_what_each_gives_alone(recipe, sizes):
    recipe = recipe | {"length": 12, "streams": sum(batch for batch, _ in sizes)}
    ensemble, tokens, places, positions = build(recipe)
    groups, start = [], 0
    for batch, length in sizes:
        rows = slice(start, start + batch)
        drawn = None if positions is None else positions[:, rows, :length]
        groups.append(Streams(tokens[:, rows, :length], places[:, rows].clamp_max(length - 1), drawn))
        start += batch
    weights = fold(ensemble.stack.parameters, ensemble.model.layers, counted=False)
    together = forward_streams(ensemble.shape, weights, groups)
    alone = torch.cat([forward_streams(ensemble.shape, weights, [group]) for group in groups], 1)
    assert_same(together, alone)


@settings(max_examples=60)
@given(RECIPES)
def test_what_stands_behind_a_place_does_not_matter(recipe):
    ensemble, tokens, places, positions = build(recipe)
    longer = torch.cat([tokens, tokens.flip(-1)[..., :3]], -1)
    if positions is not None:
        more = ensemble.span - 1 - torch.zeros_like(positions[..., :3])
        positions_longer = torch.cat([positions, more[..., : longer.shape[-1] - tokens.shape[-1]]], -1)
    else:
        positions_longer = None
    behind = torch.arange(longer.shape[-1]) > places.amax(-1, keepdim=True)
    other = torch.where(behind, (longer + 1) % recipe["vocabulary"], longer)
    with torch.no_grad():
        assert_same(
            ensemble.forward(other, places, positions_longer), ensemble.forward(tokens, places, positions)
        )


@pytest.mark.parametrize("positions", SCHEMES)
@pytest.mark.parametrize("classes", [None, 4])
def test_gradients_reach_every_parameter(positions, classes):
    """Every row of every table, but for tokens and positions that do not occur."""
    model = DecoderModel(layers=2, heads=2, width=8, positions=positions, position_range=64)
    random = torch.Generator().manual_seed(0)
    settings = {"vocabulary": 4, "classes": classes, "longest": 20, "generators": [random] * 2}
    ensemble = DecoderEnsemble(model, **settings, dtype=torch.float64)
    tokens = torch.randint(4, (2, 50, 20), generator=random)
    places = torch.arange(20).expand(2, 50, 20)
    drawn = torch.arange(20).expand(2, 50, 20) if positions == "randomised" else None
    ensemble.forward(tokens, places, drawn).cos().sum().backward()
    assert ensemble.stack.gradients.isfinite().all()
    for name, parameter in ensemble.stack.parameters.items():
        assert parameter.grad is not None
        reached = parameter.grad.abs() > 0
        if name == "by_bucket":
            assert reached[:, :18].all()  # of distances up to 19
        elif name.endswith("attention_in_bias"):
            assert reached[:, :8].all()
            assert reached[:, 16:].all()  # what all keys share cancels out
        else:
            assert reached.all(), name


def test_first_weights():
    """GPT-2's: 0.02, less by sqrt(2 layers) where a branch joins; LayerNorm weights 1, biases 0."""
    model = DecoderModel(layers=3, heads=2, width=64, positions="learned")
    random = [torch.Generator().manual_seed(seed) for seed in range(4)]
    ensemble = DecoderEnsemble(model, vocabulary=60, classes=5, longest=80, generators=random)
    for name, value in ensemble.stack.parameters.items():
        last = name.rpartition(".")[2]
        if last.endswith("bias"):
            assert torch.count_nonzero(value) == 0
        elif last.endswith("norm"):
            assert (value == 1).all()
        else:
            expected = 0.02 / math.sqrt(6) if last in ("attention_out", "mlp_out") else 0.02
            assert float(value.detach().std()) == pytest.approx(expected, rel=0.05)
            assert not torch.equal(value[0], value[1])


def test_gelu_is_the_tanh_form():
    x = torch.linspace(-30, 30, 2001, dtype=torch.float64).view(1, -1, 3).requires_grad_()
    expected = torch.nn.functional.gelu(x, approximate="tanh")
    torch.testing.assert_close(gelu(x), expected, rtol=1e-12, atol=1e-15)
    (by_hand,) = torch.autograd.grad(gelu(x).sin().sum(), x)
    (by_torch,) = torch.autograd.grad(expected.sin().sum(), x)
    torch.testing.assert_close(by_hand, by_torch, rtol=1e-10, atol=1e-13)
    single = torch.randn(1, 50, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(gelu(single), torch.nn.functional.gelu(single, approximate="tanh"))


def regulariser_by_loops(model, weights):
    total = 0.0
    each = model.width // model.heads
    for layer in range(model.layers):
        matrix = weights[f"layers.{layer}.attention_in"]
        for head in range(model.heads):
            columns = slice(head * each, (head + 1) * each)
            queries = weights["positions"] @ matrix[:, : model.width][:, columns]
            keys = weights["positions"] @ matrix[:, model.width : 2 * model.width][:, columns]
            sums = [
                sum(float(queries[i] @ keys[j]) ** 2 for i in range(j, len(keys))) for j in range(len(keys))
            ]
            total += sum(sums) / len(sums)
    return total


@settings(max_examples=20)
@given(RECIPES)
def test_the_regulariser_is_its_definition_and_so_is_its_gradient(recipe):
    ensemble, *_ = build(recipe | {"positions": "learned", "length": 1 + recipe["length"] % 6})
    value_M = ensemble.position_logits()
    expected = [
        regulariser_by_loops(ensemble.model, ensemble.stack.weights(model)) for model in range(ensemble.size)
    ]
    torch.testing.assert_close(value_M, torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-12)
    value_M.sum().backward()
    gradient, values = ensemble.stack.gradients.clone(), ensemble.stack.values
    random = torch.Generator().manual_seed(1)
    direction = torch.randn(values.shape, generator=random, dtype=torch.float64)
    sums, step = [], 1e-5
    with torch.no_grad():
        for sign in (1, -1):
            values.add_(sign * step * direction)
            sums.append(float(ensemble.position_logits().sum()))
            values.sub_(sign * step * direction)
    slope = (sums[0] - sums[1]) / (2 * step)
    assert float(gradient @ direction) == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_mistakes(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as for users
    for wrong, message in (
        ({"positions": "absolute"}, "positions must be one of none, learned, .*, got 'absolute'"),
        ({"layers": 0}, "layers must be a whole number of at least 1, got 0"),
        ({"heads": True}, "heads must be a whole number"),
        ({"heads": 3, "width": 16}, "the width, 16, must be a multiple of the 3 heads"),
        ({"heads": 2, "width": 6, "positions": "rotary"}, "need heads of even width, got 6 / 2 = 3"),
        ({"log_scaling": 1}, "log_scaling must be true or false"),
        ({"positions": "learned", "spare_positions": -1}, "spare_positions must be a whole number"),
        ({"spare_positions": 3}, "are of learned positions; with positions 'none' there are none"),
    ):
        with pytest.raises(ValueError, match=message):
            DecoderModel(**wrong)
    with pytest.raises(ValueError, match="position_range of at least the longest stream, 200; it is 100"):
        DecoderModel(positions="randomised", position_range=100).span(200)


@pytest.mark.skipif(torch.cuda.is_available(), reason="kernels run here")
def test_where_no_kernel_runs_operations_are_plain():
    assert not layers._has_triton()
