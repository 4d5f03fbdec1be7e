"""Evaluation: the reference against plain Python, the fast one against the reference."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import RECIPES, build, plain_output
from torch.utils._python_dispatch import TorchDispatchMode

import lengthwise as lw
from lengthwise.limit.prefixes import NUMBERS, evaluate_two_layers
from lengthwise.limit.reference import attention, stream


def close(one, other, scale):
    torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9 * scale)


def scale_of(f):
    """How large a stream can be, for the relative tolerance of sums that may cancel."""
    return max(1.0, *(float(tensor.abs().max()) for tensor in f.tensors().values() if tensor.numel())) ** 2


@settings(max_examples=250)
@given(RECIPES)
def test_the_reference_is_the_definition(recipe):
    f, tokens = build({**recipe, "length": 1 + recipe["length"] % 14})
    found = f.evaluate(tokens, "reference")
    for row, word in zip(found, tokens.tolist(), strict=True):
        close(row, torch.tensor(plain_output(f, word), dtype=torch.float64), scale_of(f))


@settings(max_examples=1500)
@given(RECIPES)
def test_fast_is_reference_for_one_layer(recipe):
    f, tokens = build(recipe, layers=1)
    close(f.evaluate(tokens, "fast"), f.evaluate(tokens, "reference"), scale_of(f))
    close(f(tokens[0]), f(tokens)[0], scale_of(f))


@settings(max_examples=1500)
@given(RECIPES, st.sampled_from([1, 2, 3, 7, 64, None]), st.sampled_from([0, 1, 2, 5, 40]))
def test_fast_is_reference_for_two_layers_whatever_the_chunk(recipe, chunk, locality):
    f, tokens = build({**recipe, "localities": [recipe["localities"][0], locality]})
    if recipe["activation"] == "heaviside" and recipe["weights"] != "integers":
        f = without_steps_at_zero(f)
    close(evaluate_two_layers(f, tokens, chunk), f.evaluate(tokens, "reference"), scale_of(f))


@pytest.mark.parametrize("precision", [lw.Infinite(), lw.Finite(8)])
@pytest.mark.parametrize("length", range(1, 13))
def test_fast_is_reference_at_every_short_length(precision, length):
    """Where the window is longer than the string, and where the first far position appears."""
    for seed in range(6):
        recipe = {**PLAIN, "precision": precision, "period": 3, "localities": [4, 2]}
        f, tokens = build({**recipe, "length": length, "seed": seed})
        close(f.evaluate(tokens, "fast"), f.evaluate(tokens, "reference"), scale_of(f))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
@pytest.mark.parametrize("localities", [[2], [2, 1], [2, 1, 0]])
def test_tokens_may_be_integers_of_any_size(dtype, localities):
    f, tokens = build({**PLAIN, "localities": localities, "length": 50})
    for method in ("fast", "reference"):
        assert torch.equal(f.evaluate(tokens.to(dtype), method), f.evaluate(tokens, method))


class LargestTensor(TorchDispatchMode):
    """The number of elements of the largest tensor that any operation makes, besides views of one."""

    def __init__(self, known):
        super().__init__()
        self.known, self.largest = known.untyped_storage().data_ptr(), 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple) else (result,):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().data_ptr() != self.known:
                self.largest = max(self.largest, tensor.untyped_storage().nbytes() // tensor.element_size())
        return result


@pytest.mark.parametrize("localities", [[2], [2, 1]])
@pytest.mark.parametrize("precision", [lw.Infinite(), lw.Finite(8)])
def test_beside_the_tokens_memory_does_not_grow_with_the_length(localities, precision):
    """Whatever is computed on the way stays smaller than a chunk, also where the string is much longer."""
    f, _ = build({**PLAIN, "localities": localities, "precision": precision})
    tokens = torch.randint(2, (1, 5_000_000), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    with LargestTensor(tokens) as seen:
        f.evaluate(tokens)
    assert seen.largest <= NUMBERS < tokens.numel() // 8


PLAIN = {
    "precision": lw.Infinite(),
    "activation": "relu",
    "vocabulary": 2,
    "width": 3,
    "period": 2,
    "heads": 2,
    "hidden": 4,
    "outputs": 1,
    "weights": "normal",
    "length": 10,
    "one_token": False,
    "seed": 3,
}


@pytest.mark.parametrize("large", [30.0, 400.0, -400.0])
def test_local_logits_that_would_overflow_as_powers(large):
    """i^phi(t) with phi = 400 has no double: products give way to logarithms, and both are the reference."""
    f, tokens = build({**PLAIN, "localities": [2, 0], "length": 200})
    local = f.layers[0].local.clone()
    local[:, 1] = large
    f = dataclasses.replace(f, layers=(dataclasses.replace(f.layers[0], local=local), f.layers[1]))
    found = f.evaluate(tokens, "fast")
    assert found.isfinite().all()
    close(found, f.evaluate(tokens, "reference"), scale_of(f))


def without_steps_at_zero(f):
    """Rounding on two sides of a step is no error of either method: steps far from any pre-activation."""
    layers = tuple(dataclasses.replace(layer, mlp_bias=layer.mlp_bias + 1e6) for layer in f.layers)
    return dataclasses.replace(f, layers=layers)


@settings(max_examples=100)
@given(RECIPES)
def test_attention_is_a_causal_distribution(recipe):
    f, tokens = build(recipe, layers=1)
    y = f.embedding[tokens] + f.positions[torch.arange(1, tokens.shape[1] + 1) % f.period]
    weights = attention(f.layers[0], y, f.precision)
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert (weights >= 0).all()
    assert torch.equal(weights, weights.tril())


@settings(max_examples=60)
@given(RECIPES)
def test_a_prefix_is_read_as_if_it_were_all_in_infinite_precision(recipe):
    """Causality: later tokens do not change earlier outputs (in p bits the length itself does)."""
    f, tokens = build({**recipe, "precision": lw.Infinite(), "length": 1 + recipe["length"] % 40})
    everywhere = stream(f, tokens) @ f.readout.mT
    for end in {1, tokens.shape[1] // 2 + 1, tokens.shape[1]}:
        close(everywhere[:, end - 1], f.evaluate(tokens[:, :end], "reference"), scale_of(f))


def cliff(bits, gap):
    """One head over {0, 1} with logit ``gap`` on token 0: the output at a 0 is 1 plus the attention to 1s."""
    one = torch.ones(1, 1, dtype=torch.float64)
    embedding = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], dtype=torch.float64)
    key_query = torch.zeros(1, 3, 3, dtype=torch.float64)
    key_query[0, 0, 2] = gap
    value = torch.zeros(1, 3, 3, dtype=torch.float64)
    value[0, 0, 1] = 1.0
    readout = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
    empty = torch.zeros(0, 3, dtype=torch.float64)
    layer = lw.LimitLayer(key_query, value, 0 * one, empty, empty[:, 0], empty.mT)
    return lw.LimitTransformer(
        embedding, torch.zeros(1, 3, dtype=torch.float64), (layer,), readout, lw.Finite(bits)
    )


@pytest.mark.parametrize(("bits", "gap"), [(3, 1.0), (4, 1.0), (6, 2.0), (5, 0.5), (8, 1.0)])
@pytest.mark.parametrize("method", ["fast", "reference"])
def test_attention_is_hard_from_the_hardmax_length_on_and_not_before(bits, gap, method):
    """From N = 2^(p/gap) on, the lower logit has no weight at all; one token shorter, it has some."""
    f = cliff(bits, gap)
    hardmax = 2 ** (bits / gap)
    assert hardmax == int(hardmax)
    near = range(int(hardmax) - 20, int(hardmax) + 20)
    for length in sorted({*range(2, 60), *near} - {*range(-20, 2)}):
        word = [0] * (length // 2) + [1] * (length - length // 2 - 1) + [0]
        output = f.evaluate(torch.tensor(word), method).item() - 1
        if length >= hardmax:
            assert output == 0, length
        elif 1 in word:
            zeros, ones = word.count(0), word.count(1)
            weight = ones * length**-gap
            assert output == pytest.approx(weight / (weight + zeros), rel=1e-12)
            assert output > 0


def test_a_trained_model_comes_out_and_evaluates_identically():
    from lengthwise.training import start_ensemble, train_on_tokens

    for model in (
        lw.LimitModel(width=8, hidden=16),
        lw.LimitModel(width=8, hidden=16, heads=2, period=3, locality=2, precision=lw.Finite(12)),
    ):
        task, trainings = lw.SimpleTask(), [lw.Training(length=9, steps=20, batch=16, seed=s) for s in (0, 1)]
        ensemble = start_ensemble(model, task, [0, 1], dtype=torch.float64)
        train_on_tokens(ensemble, [task] * 2, trainings)
        for length in (1, 2, 9, 200):
            tokens = torch.randint(2, (5, length), generator=torch.Generator().manual_seed(length))
            outputs = ensemble.forward_tokens(tokens.expand(2, -1, -1)).detach()
            for index in range(2):
                f = ensemble.transformer(index)
                assert (f.period, f.locality) == (model.period, model.locality or 0)
                for method in ("fast", "reference"):
                    torch.testing.assert_close(
                        f.evaluate(tokens, method), outputs[index], rtol=1e-10, atol=1e-12
                    )
