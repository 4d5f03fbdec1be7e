"""On a GPU: the same counts, the same outputs, the right distributions, and steps that replay truly."""

import math
from collections import Counter

import pytest
import torch
from instances import build
from scipy import stats

import lengthwise as lw
from lengthwise.models import stack as stack_module
from lengthwise.models.attention import attend as plain_attend
from lengthwise.models.decoder import DecoderModel
from lengthwise.models.limit import LimitEnsemble
from lengthwise.models.mup import Role
from lengthwise.models.positions import slopes
from lengthwise.models.stack import Stack
from lengthwise.sequences import Summary, counts, prefix_counts, summarize
from lengthwise.tasks.algorithmic import BinaryMajorityTask, CopyUniqueTask
from lengthwise.tasks.formal import LanguageTask
from lengthwise.training import adam as adam_module
from lengthwise.training import decoder_data, start_ensemble
from lengthwise.training.adam import StackAdam
from lengthwise.training.data import count_batches
from lengthwise.training.decoder_config import DecoderEvaluation, DecoderTraining
from lengthwise.training.decoder_data import FreshData
from lengthwise.training.decoder_step import Backward
from lengthwise.training.decoders import BETAS, linear, start_decoders, train_decoders
from lengthwise.training.loop import cosine
from lengthwise.training.randomness import generator
from lengthwise.training.step import GraphStep, Step
from lengthwise.training.workers import Workers

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_counts_are_the_same():
    tokens = torch.randint(3, (5, 1000), generator=torch.Generator().manual_seed(0))
    assert torch.equal(counts(tokens.cuda(), 3, 4).cpu(), counts(tokens, 3, 4))
    assert torch.equal(prefix_counts(tokens.cuda(), 3, 4).cpu(), prefix_counts(tokens, 3, 4))


@pytest.mark.parametrize("length", [6, 40])
def test_sampled_counts_are_uniform_under_the_uniform_prior(length):
    """With concentration 1 every number of zeros is equally likely, and the last token is one of them."""
    summary = lw.SimpleTask().sample_counts(50_000, length, generator(0, "data", "cuda"))
    zeros = summary.token_counts()[:, 0].long().tolist()
    observed = Counter(zeros)
    assert stats.chisquare([observed[k] for k in range(length + 1)]).pvalue > 1e-3
    last_is_zero = (summary.suffix[:, 0] == 0).double()
    share = summary.token_counts()[:, 0] / length
    excess = (last_is_zero - share).sum() / (share * (1 - share)).sum().sqrt()
    assert abs(excess) < 4


def test_long_counts_follow_the_prior():
    summary = lw.SimpleTask(concentration=2.0).sample_counts(50_000, 10**9, generator(1, "data", "cuda"))
    share = (summary.token_counts()[:, 0] / 10**9).cpu().numpy()
    assert stats.kstest(share, stats.beta(2, 2).cdf).pvalue > 1e-3


@pytest.mark.parametrize("precision", [lw.Infinite(), lw.Finite(6)])
def test_outputs_are_those_of_the_cpu(precision):
    model = lw.LimitModel(width=8, hidden=16, heads=2, period=3, locality=2, precision=precision)
    outputs = []
    tokens = torch.randint(2, (3, 20, 50), generator=torch.Generator().manual_seed(0))
    for device in ("cpu", "cuda"):
        generators = [torch.Generator().manual_seed(seed) for seed in range(3)]
        ensemble = LimitEnsemble(
            model, vocabulary=2, outputs=1, generators=generators, device=device, dtype=torch.float64
        )
        values = torch.randn(ensemble.stack.values.shape, generator=generators[0], dtype=torch.float64)
        with torch.no_grad():
            ensemble.stack.values.copy_(values)
            summary = summarize(tokens.to(device), 2, 3, 2)
            shaped = Summary(summary.counts, summary.suffix, summary.length.expand(3, 1))
            outputs += [
                ensemble.forward_counts(shaped).cpu(),
                ensemble.forward_tokens(tokens.to(device)).cpu(),
            ]
    for other in outputs[1:]:
        torch.testing.assert_close(other, outputs[0], rtol=1e-9, atol=1e-10)


def test_a_replayed_step_is_the_ordinary_step():
    task = lw.SimpleTask()
    streams = [generator(seed, "data", "cuda") for seed in range(3)]
    batches = count_batches([task] * 3, [4, 8, 16], 32, streams, period=1, locality=0)
    drawn = [next(batches) for _ in range(20)]
    results = []
    for kind in (Step, GraphStep):
        ensemble = start_ensemble(lw.LimitModel(width=8, hidden=16), task, range(3), "cuda", torch.float64)

        def backward(counts, suffix, length, target, ensemble=ensemble):
            loss_M = task.loss(ensemble.forward_counts(Summary(counts, suffix, length)), target).mean(-1)
            loss_M.sum().backward()
            return loss_M

        step = kind(StackAdam(ensemble.stack, [1e-3, 1e-2, 1e-3]), backward)
        for done, batch in enumerate(drawn):
            step(batch, cosine(done, 20))
        results.append((ensemble.stack.values.clone(), step.take_total()))
    torch.testing.assert_close(results[1][0], results[0][0], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(results[1][1], results[0][1], rtol=1e-10, atol=1e-12)


DECODERS = [
    (BinaryMajorityTask(), DecoderModel(width=16, heads=2)),
    (CopyUniqueTask(tokens=9), DecoderModel(layers=2, width=16, positions="learned")),
    (CopyUniqueTask(tokens=9), DecoderModel(layers=2, width=16, positions="relative")),
    (LanguageTask(expression="(ab)*c"), DecoderModel(layers=2, width=16, heads=2, positions="rotary")),
    (CopyUniqueTask(tokens=9), DecoderModel(layers=3, width=16, positions="alibi")),
]


@pytest.mark.parametrize(("task", "model"), DECODERS)
def test_a_replayed_step_of_decoders_is_the_ordinary_step(task, model):
    """Also beside the CPU's own way, in pieces, on the same batches."""
    rates, results = [1e-3, 1e-2, 1e-3], []
    drawing = start_decoders(model, task, range(3), 9, "cuda", torch.float64)
    data = FreshData(drawing, [task] * 3, length=6, batch=32, seeds=range(3))
    workers = Workers(1)
    drawn = [data.take(workers).parts() for _ in range(10)]
    for kind, device in ((Step, "cuda"), (GraphStep, "cuda"), (Step, "cpu")):
        ensemble = start_decoders(model, task, range(3), 9, device, torch.float64)
        adam = StackAdam(ensemble.stack, rates, BETAS, 0.01)
        step = kind(adam, Backward(ensemble, task, 0.0, workers))
        for done, batch in enumerate(drawn):
            step([part.to(device) for part in batch], linear(done, 10))
        results.append((ensemble.stack.values.cpu(), step.take_total()))
    for values, total in results[1:]:
        torch.testing.assert_close(total, results[0][1], rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(values, results[0][0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("task", "model"), DECODERS[1:])
def test_groups_change_nothing(task, model, monkeypatch):
    """Gradients of batches that are padded in groups, against those of whole batches."""
    monkeypatch.setattr(decoder_data, "LARGE", 2**10)
    ensemble = start_decoders(model, task, range(3), 9, "cuda", torch.float64)
    data, workers = FreshData(ensemble, [task] * 3, length=9, batch=32, seeds=range(3)), Workers(1)
    backward, grouped = Backward(ensemble, task, 0.0, workers), 0
    for _ in range(20):
        parts, groups = data.take(workers).parts(), data.groups()
        grouped += groups is not None
        found = []
        for told in (None, groups):
            ensemble.stack.gradients.zero_()
            found.append((backward(*parts, groups=told), ensemble.stack.gradients.clone()))
        torch.testing.assert_close(found[1], found[0], rtol=1e-9, atol=1e-12)
    assert grouped > 10


def same_gradients(inputs, found, expected, small):
    """Values, and the gradients of their sum with random weights, against those in float64."""
    towards = [torch.randn(y.shape, dtype=torch.float64, device="cuda") for y in expected]
    gradients = [
        torch.autograd.grad(sum((y.double() * w).sum() for y, w in zip(ys, towards, strict=True)), inputs)
        for ys in (found, expected)
    ]
    for own, other in zip((*found, *gradients[0]), (*expected, *gradients[1]), strict=True):
        assert own.shape == other.shape
        assert (own - other).norm() <= small * other.norm()


@pytest.mark.parametrize("shape", [(1, 5, 256), (3, 1, 16), (2, 3000, 48), (5, 700, 1024)])
@pytest.mark.parametrize("rounded", [torch.float32, torch.bfloat16])
def test_fused_operations_are_the_plain_ones(shape, rounded):
    from lengthwise.models import fused, layers

    assert layers._has_triton()
    models, _, width = shape
    random = torch.Generator("cuda").manual_seed(math.prod(shape))

    def drawn(*sizes):
        return torch.randn(sizes, generator=random, device="cuda", requires_grad=True)

    stream, row, bias = drawn(*shape), drawn(models, 1, width), drawn(models, width)
    branch = drawn(*shape).detach().to(rounded).requires_grad_()
    norm = drawn(models, width), drawn(models, width)

    def plain_norm(*added, norm=None):
        total = sum(part.double() for part in added)
        y = torch.nn.functional.layer_norm(total, (width,))
        return total, y if norm is None else y * norm[0].double().unsqueeze(1) + norm[1].double().unsqueeze(1)

    small = 3e-6 if rounded == torch.float32 else 6e-3
    same_gradients([stream], [fused.normed(stream, None, rounded)], plain_norm(stream)[1:], small)
    scaled = fused.normed(stream, norm, rounded)
    same_gradients([stream, *norm], [scaled], plain_norm(stream, norm=norm)[1:], small)
    for own in (None, norm):
        found = fused.joined_normed(stream, branch, bias, own, rounded)
        expected = plain_norm(stream, branch, bias.unsqueeze(1), norm=own)
        same_gradients([stream, branch, bias, *(own or ())], found, expected, small)
    gelu = torch.nn.functional.gelu(branch.double() + row.double(), approximate="tanh")
    same_gradients([branch, row], [fused.bias_gelu(branch, row)], [gelu], small)
    table, rows = drawn(models, 37, width), torch.randint(35, shape[:2], generator=random, device="cuda")
    own = torch.stack([part[at] for part, at in zip(table.double(), rows, strict=True)])
    same_gradients([table], [fused.looked_up(table, rows)], [own], 3e-6)
    table = drawn(models, shape[1] + 3, width)
    rows = torch.argsort(torch.rand(table.shape[:2], generator=random, device="cuda"), 1)[:, : shape[1]]
    own = torch.stack([part[at] for part, at in zip(table.double(), rows, strict=True)])
    same_gradients([table], [fused.picked(table, rows)], [own], 3e-6)


def rounded_through(x, dtype):
    """As products take it, with the gradient as if it were not rounded. The logarithm of a length makes what
    this rounding changes in attention several times as large, which is not to be taken for a kernel's fault.
    """
    return x + (x.to(dtype).double() - x).detach()


@pytest.mark.parametrize("alibi", [False, True])
@pytest.mark.parametrize("log_scaling", [False, True])
@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize(
    ("sizes", "heads", "width"),
    [
        ([(3, 7, 9), (2, 1, 1)], 2, 8),
        ([(2, 33, 64), (4, 5, 17)], 4, 64),
        ([(1, 150, 302), (2, 65, 65)], 1, 20),
        ([(2, 70, 129)], 2, 128),
    ],
)
@pytest.mark.parametrize("rounded", [torch.float32, torch.bfloat16])
def test_fused_attention_is_the_plain_one(rounded, sizes, heads, width, placed, log_scaling, alibi):
    """Of streams in groups; at places in any order, some more than once. Heads may have at most 64 columns in
    float32, 128 in bfloat16.
    """
    from lengthwise.models.fused_attention import WIDEST, attend

    width = min(width, WIDEST[rounded])

    random = torch.Generator("cuda").manual_seed(len(sizes) * width)
    if not placed:
        sizes = [(streams, keys, keys) for streams, _, keys in sizes]
    queries, keys = (sum(one[0] * one[at] for one in sizes) for at in (1, 2))
    columns = heads * width

    def drawn(*shape):
        return torch.randn(shape, generator=random, device="cuda")

    parts = [(queries, columns), (keys, 2 * columns)] if placed else [(queries, 3 * columns)]
    inputs = []
    for rows, n in parts:
        inputs += [drawn(2, rows, n).to(rounded).requires_grad_(), drawn(2, 1, n).requires_grad_()]
    places, slope = None, slopes(heads, torch.device("cuda"), torch.float32) if alibi else None
    if placed:
        drawn_places = [
            torch.randint(own, (2, streams * asked), generator=random, device="cuda")
            for streams, asked, own in sizes
        ]
        places = torch.cat(drawn_places, 1)
    given = tuple(inputs[:2]), tuple(inputs[2:]) if placed else None
    found = attend(*given, tuple(sizes), places, slope, heads=heads, log_scaling=log_scaling)

    own, *other = (
        rounded_through(rows.double() + bias.double(), rounded)
        for rows, bias in zip(inputs[::2], inputs[1::2], strict=True)
    )
    mixed, first_query, first_key = [], 0, 0
    for streams, asked, known in sizes:
        last_query, last_key = first_query + streams * asked, first_key + streams * known
        query = own[:, first_query:last_query].unflatten(1, (streams, asked))
        at = None
        if placed:
            key, value = other[0][:, first_key:last_key].unflatten(1, (streams, known)).chunk(2, -1)
            at = places[:, first_query:last_query].unflatten(1, (streams, asked))
        else:
            query, key, value = query.chunk(3, -1)
        split = (part.unflatten(-1, (heads, width)) for part in (query, key, value))
        scheme = "alibi" if alibi else "none"
        result = plain_attend(*split, at, scheme=scheme, log_scaling=log_scaling, by_bucket=None)
        mixed.append(result.flatten(3).flatten(1, 2))
        first_query, first_key = last_query, last_key
    small = 1e-5 if rounded == torch.float32 else 2e-2
    same_gradients(inputs, [found], [torch.cat(mixed, 1)], small)


@pytest.mark.parametrize("clip", [0.0, 0.5])
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_fused_steps_are_those_of_pytorch(decay, clip, monkeypatch):
    """Gradients of many sizes, shortened or not; models leave, and a state is loaded."""
    roles = {"a": Role((70, 90), 1.0, 1.0, decay=1.0), "b": Role((4,), 1.0, 2.0), "c": Role((), 1.0, 1.0)}
    found = []
    for own in (True, False):
        for module in (adam_module, stack_module):
            monkeypatch.setattr(module, "fuses", lambda _, own=own: own)
        generators = [torch.Generator().manual_seed(seed) for seed in range(4)]
        stack = Stack(roles, generators, device="cuda")
        adam = StackAdam(stack, [1e-2, 1e-3, 1e-1, 1e-2], BETAS, decay, clip)
        random = torch.Generator("cuda").manual_seed(3)
        for step in range(30):
            adam.set_schedule(linear(step, 30))
            drawn = torch.randn(stack.gradients.shape, generator=random, device="cuda")
            stack.gradients.copy_(drawn * 10 ** (step % 5 - 3))
            adam.step()
            assert not stack.gradients.any()
            if step == 10:
                adam.keep([2, 0, 3])
                adam.load({name: value.clone() for name, value in adam.state().items()})
        found.append(stack.values)
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=3e-6)


@pytest.mark.parametrize(("task", "model"), DECODERS[1:])
def test_rounding_is_small(task, model):
    """The gradient in bfloat16 points where that in float32 does."""
    ensemble = start_decoders(model, task, range(3), 9, "cuda")
    data, workers = FreshData(ensemble, [task] * 3, length=9, batch=64, seeds=range(3)), Workers(1)
    with torch.no_grad():
        ensemble.stack.values.mul_(5)  # logits are then not almost equal
    parts, found = data.take(workers).parts(), []
    for rounding in ("none", "bfloat16"):
        ensemble.stack.gradients.zero_()
        loss = Backward(ensemble, task, 0.0, workers, rounding)(*parts, groups=data.groups())
        found.append((loss, ensemble.stack.gradients.clone()))
    torch.testing.assert_close(found[1][0], found[0][0], rtol=0.01, atol=0.01)
    assert 0.98 < torch.cosine_similarity(found[0][1], found[1][1], dim=0) < 1 - 1e-7


@pytest.mark.parametrize(("task", "model"), DECODERS)
def test_decoders_repeat_bit_for_bit(task, model):
    """With models that leave, so that steps are recorded anew."""
    evaluation = DecoderEvaluation(ends=(4, 9), sequences=50, every=40)
    trainings = [
        DecoderTraining(length=4, steps=120, seed=seed, learning_rate=rate)
        for seed, rate in enumerate((1e-2, 1e-4, 3e-2))
    ]
    first, second = (train_decoders(model, task, trainings, evaluation, device="cuda") for _ in range(2))
    for one, two in zip(first, second, strict=True):
        assert one.steps == two.steps
        assert torch.equal(one.accuracy, two.accuracy)
        assert all(torch.equal(one.weights[name], value) for name, value in two.weights.items())


@pytest.mark.parametrize(
    "model", [DecoderModel(width=16), DecoderModel(layers=2, width=16, positions="learned")]
)
def test_languages_that_share_an_ensemble_are_trained_as_alone(model):
    """With alphabets of their own, in float64, and one that leaves early."""
    tasks = [LanguageTask(expression=own) for own in ("a*", "(ab)*", "(a|b)*cd", "a*")]
    trainings = [
        DecoderTraining(length=6, steps=60, batch=16, seed=seed, learning_rate=rate, clip=0.5)
        for seed, rate in enumerate((1e-2, 1e-4, 1e-3, 1e-4))
    ]
    evaluation = DecoderEvaluation(ends=(6, 9), sequences=50, every=20)
    given = {"device": "cuda", "dtype": torch.float64}
    together = train_decoders(model, tasks, trainings, evaluation, **given)
    assert len({own.steps for own in together}) > 1
    for task, training, found in zip(tasks, trainings, together, strict=True):
        (alone,) = train_decoders(model, task, [training], evaluation, **given)
        assert found.steps == alone.steps
        torch.testing.assert_close(found.loss, alone.loss, rtol=1e-8, atol=1e-10)
        for name, value in alone.weights.items():
            torch.testing.assert_close(found.weights[name], value, rtol=1e-5, atol=1e-7)


def test_a_sweep_repeats_bit_for_bit():
    runs = [
        lw.Run(lw.SimpleTask(), lw.LimitModel(), lw.Training(length=length, steps=100, seed=seed))
        for length in (4, 9)
        for seed in range(3)
    ]
    first, second = (lw.train(runs, device="cuda") for _ in range(2))
    assert first["value"].map(math.isfinite).all()
    assert (first["value"] == second["value"]).all()


def on_cuda(f):
    tensors = {name: tensor.cuda() for name, tensor in f.tensors().items()}
    return lw.LimitTransformer.from_tensors(tensors, f.precision, [layer.activation for layer in f.layers])


@pytest.mark.parametrize("weights", ["normal", "integers", "huge"])
@pytest.mark.parametrize("precision", [lw.Infinite(), lw.Finite(6)])
@pytest.mark.parametrize("localities", [[2], [2, 5], [0, 1, 2]])
def test_limit_transformers_are_evaluated_as_on_the_cpu(localities, precision, weights):
    for seed in range(5):
        recipe = {"activation": "relu", "vocabulary": 3, "width": 4, "period": 2, "heads": 2, "hidden": 5}
        recipe |= {"precision": precision, "localities": localities, "weights": weights, "seed": seed}
        f, tokens = build(recipe | {"outputs": 2, "length": 150, "one_token": False})
        expected = f.evaluate(tokens, "reference")
        scale = float(expected.abs().max())
        for method in ("fast", "reference"):
            found = on_cuda(f).evaluate(tokens.cuda(), method).cpu()
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9 * scale)


def test_two_layers_at_a_hundred_million_tokens():
    """The k-gram construction at 10^8 tokens is within its proved error of what followed the last token."""
    f = on_cuda(lw.constructions.k_gram(1, 3, 1e-3))
    random = torch.Generator("cuda").manual_seed(0)
    tokens = torch.randint(3, (10**8,), dtype=torch.uint8, generator=random, device="cuda")
    followers = tokens[1:][tokens[:-1] == tokens[-1]]
    exact = torch.bincount(followers, minlength=3).double() / len(followers)
    bound = lw.constructions.k_gram_error(tokens.long(), 1, 3, 1e-3)
    assert float((f(tokens) - exact).abs().sum()) / 2 <= bound < 1e-3
