"""The library of C against definitions in double precision, for all kinds of processors that can run here."""

import hashlib
import math
import shutil

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.models import native
from lengthwise.models.decoder import DecoderEnsemble, DecoderModel
from lengthwise.models.decoder_forward import Streams, forward_streams
from lengthwise.models.positions import SCHEMES

pytestmark = pytest.mark.usefixtures("one_thread")

KINDS = ("default", "avx2", "avx512")
"""Each can also do what those before it do."""


def runs_here(kind):
    """Whether this processor is of a kind, or of a later one."""
    own = torch.backends.cpu.get_cpu_capability().lower()
    return kind == "default" or (own in KINDS and KINDS.index(own) >= KINDS.index(kind))


@pytest.fixture(params=KINDS)
def library(request, monkeypatch):
    found = native.load(request.param)
    if found is None or not runs_here(request.param):
        pytest.skip(f"no library for {request.param} was built, or this processor is none")
    monkeypatch.setattr(native, "_library", lambda: found)


def gelu(x):
    """By its definition."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@pytest.mark.usefixtures("library")
@settings(max_examples=80)
@given(
    models=st.integers(1, 3),
    rows=st.one_of(st.integers(1, 20), st.sampled_from([127, 128, 129, 511, 512, 513, 1030])),
    terms=st.integers(1, 40),
    columns=st.one_of(st.integers(1, 40), st.sampled_from([64, 96, 200])),
    contiguous=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_products_and_their_gradients(models, rows, terms, columns, contiguous, seed):
    """Sums of n terms are off by n 2^-24 of the sum of their absolute values, or less."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(models, rows, terms, generator=random)
    matrix = torch.randn(models, terms, columns, generator=random)
    bias = torch.randn(models, 1, columns, generator=random)
    onto = torch.randn(models, rows, columns, generator=random)
    if not contiguous:
        x, matrix, onto = (one.mT.contiguous().mT for one in (x, matrix, onto))
    single = [one.detach().requires_grad_() for one in (x, matrix, bias)]
    found = native.linear(*single)
    found.backward(onto)
    x, matrix, bias, onto = (one.double() for one in (x, matrix, bias, onto))
    expected = [x @ matrix + bias, onto @ matrix.mT, x.mT @ onto, onto.sum(1, keepdim=True)]
    sizes = [
        x.abs() @ matrix.abs() + bias.abs(),
        onto.abs() @ matrix.abs().mT,
        x.abs().mT @ onto.abs(),
        onto.abs().sum(1, keepdim=True),
    ]
    counts = (terms + 1, columns, rows, rows)
    results = [found, *(one.grad for one in single)]
    for one, other, size, count in zip(results, expected, sizes, counts, strict=True):
        assert ((one - other).abs() <= count * 2**-24 * size).all()


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("count", [1, 3, 16, 17, 1000])
@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 6.0, 1e3, 1e12])
def test_gelu_and_its_slope(count, scale):
    x = scale * torch.randn(count, generator=torch.Generator().manual_seed(count))
    onto = torch.randn(count, generator=torch.Generator().manual_seed(count + 1))
    single, double = x.clone().requires_grad_(), x.double().requires_grad_()
    native.gelu(single.view(1, 1, -1)).flatten().backward(onto)
    gelu(double).backward(onto.double())
    assert single.grad is not None
    assert double.grad is not None
    found = native.gelu(x.view(1, 1, -1)).flatten()
    assert ((found - gelu(x.double())).abs() <= 2e-6 * x.abs() + 1e-37).all()
    assert ((single.grad - double.grad).abs() <= 4e-6 * onto.abs() + 1e-37).all()


@pytest.mark.usefixtures("library")
def test_gelu_where_it_bends_and_where_it_is_flat():
    x = torch.cat([torch.linspace(-12, 12, 4801), torch.tensor([0.0, -0.0, 87.0, -87.0, 200.0, -200.0])])
    found = native.gelu(x.view(1, 1, -1)).flatten()
    assert ((found - gelu(x.double())).abs() <= 1e-6 * x.abs() + 1e-37).all()
    assert native.gelu(torch.full((1, 1, 20), torch.nan)).isnan().all()


@pytest.mark.usefixtures("library")
@given(
    width=st.integers(1, 70),
    rows=st.integers(1, 9),
    models=st.integers(1, 3),
    shift=st.sampled_from([0.0, 1.0, 300.0]),
    scale=st.sampled_from([1e-4, 1.0, 1e4]),
    joins=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_joined_rows_and_their_gradients(width, rows, models, shift, scale, joins, seed):
    random = torch.Generator().manual_seed(seed)
    stream, branch, onto, along = (torch.randn(models, rows, width, generator=random) for _ in range(4))
    stream = scale * (stream + shift)
    found, expected = [], []
    for dtype, into in ((torch.float32, found), (torch.float64, expected)):
        x, b = (one.to(dtype, copy=True).requires_grad_() for one in (stream, branch))
        if dtype == torch.float32:
            summed, rows_of = native.joined_normed(x, b) if joins else (x, native.normed(x))
        else:
            # The sum as single precision has it: what is normalised are its rows.
            summed = x + b + ((stream + branch).double() - (x + b)).detach() if joins else x
            centred = summed - summed.mean(-1, keepdim=True)
            rows_of = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        (summed * along.to(dtype) + rows_of * onto.to(dtype)).sum().backward()
        into += [summed.detach(), rows_of.detach(), x.grad, *([b.grad] if joins else [])]
    # A row is known to its largest number times 2^-24, and normalising divides by its spread.
    summed = expected[0]
    inverse = 1 / (summed.var(-1, keepdim=True, correction=0) + 1e-5).sqrt()
    condition = (1 + summed.abs().amax(-1, keepdim=True) * inverse) * math.sqrt(width)
    largest = onto.double().abs().amax(-1, keepdim=True) * inverse * condition
    bounds = [summed.abs(), condition, *2 * [largest + along.double().abs()]]
    for one, other, bound in zip(found, expected, bounds, strict=False):
        assert ((one - other).abs() <= 8 * 2**-23 * bound).all()


@pytest.mark.usefixtures("library")
def test_rows_without_a_spread():
    x = torch.full((1, 2, 33), 7.0).requires_grad_()
    native.normed(x).sum().backward()
    assert native.normed(x).abs().max() == 0
    assert x.grad is not None
    assert x.grad.abs().max() <= 1e-3


def attention(own, other, sizes, places, slopes, log_scaling):
    """By the definition, one query at a time; rows without a query are zeros."""
    models, rows, _, heads, width = own.shape
    read = own[:, :, 1:] if other is None else other
    out = torch.zeros(models, rows, heads, width, dtype=own.dtype)
    for model in range(models):
        query, key = 0, 0
        for streams, queries, keys in sizes:
            for _ in range(streams):
                for a in range(queries):
                    place = a if places is None else int(places[model, query + a])
                    k, v = read[model, key : key + place + 1].unbind(1)
                    logits = (own[model, query + a, 0] * k).sum(-1) / math.sqrt(width)
                    if slopes is not None:
                        logits = logits - slopes * (place - torch.arange(place + 1)).unsqueeze(1)
                    if log_scaling:
                        logits = logits * math.log(place + 1)
                    mean = (torch.softmax(logits, 0).unsqueeze(-1) * v).sum(0)
                    out[model, query + a] = mean
                query, key = query + queries, key + keys
    return out.flatten(2)


CASES = st.fixed_dictionaries(
    {
        "models": st.integers(1, 2),
        "heads": st.integers(1, 3),
        "width": st.sampled_from([1, 2, 5, 8, 16, 20, 33]),
        "groups": st.lists(
            st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 40)), min_size=1, max_size=3
        ),
        "places": st.booleans(),
        "slopes": st.booleans(),
        "log_scaling": st.booleans(),
        "scale": st.sampled_from([0.1, 1.0, 30.0]),
        "spare": st.integers(0, 3),
        "seed": st.integers(0, 10**6),
    }
)


@pytest.mark.usefixtures("library")
@settings(max_examples=80)
@given(CASES)
def test_attention_and_its_gradients(case):
    random = torch.Generator().manual_seed(case["seed"])
    groups = case["groups"] if case["places"] else [(s, keys, keys) for s, _, keys in case["groups"]]
    sizes = torch.tensor(groups, dtype=torch.int32)
    queries, keys = (int((sizes[:, 0] * sizes[:, n]).sum()) + case["spare"] for n in (1, 2))
    models, heads, width = case["models"], case["heads"], case["width"]
    own = torch.randn(models, queries, 1 if case["places"] else 3, heads, width, generator=random)
    own[:, :, 0] *= case["scale"]
    other = torch.randn(models, keys, 2, heads, width, generator=random) if case["places"] else None
    places = None
    if case["places"]:  # in any order
        most = torch.cat([torch.full((s * q,), k) for s, q, k in groups] + [torch.ones(case["spare"])])
        places = (torch.rand(models, queries, generator=random) * most).int()
    slopes = torch.rand(heads, generator=random) if case["slopes"] else None
    onto = torch.randn(models, queries, heads * width, generator=random)
    single = [None if x is None else x.clone().requires_grad_() for x in (own, other)]
    double = [None if x is None else x.double().requires_grad_() for x in (own, other)]
    found = native.attend(*single, sizes, places, slopes, log_scaling=case["log_scaling"])
    wide = None if slopes is None else slopes.double()
    expected = attention(*double, groups, places, wide, case["log_scaling"])
    found.backward(onto)
    expected.backward(onto.double())
    # Logits are rounded at their own size, and gradients of keys grow with the queries.
    size = 1e-6 * (10 + case["scale"] * width**0.5 * (4 if case["log_scaling"] else 1))
    assert (found - expected).abs().max() <= size * 4
    for one, two in zip(single, double, strict=True):
        if one is not None:
            assert (one.grad - two.grad).abs().max() <= size * (10 + case["scale"]) * 12
    if case["spare"]:
        assert found[:, -case["spare"] :].abs().max() == 0
        assert single[0].grad[:, -case["spare"] :].abs().max() == 0


@pytest.mark.usefixtures("library")
def test_what_is_no_number_stays_none_and_stays_where_it_is():
    random = torch.Generator().manual_seed(0)
    own = torch.randn(1, 2 * 21, 3, 2, 8, generator=random)
    sizes = torch.tensor([[2, 21, 21]], dtype=torch.int32)
    whole = native.attend(own, None, sizes)
    own[0, 5, 0, 1] = torch.nan  # a query
    own[0, 30, 1, 0] = torch.nan  # a key
    found = native.attend(own, None, sizes).unflatten(-1, (2, 8))
    lost = found.isnan().any(-1)[0]
    assert lost[5, 1]
    expected = torch.zeros_like(lost)
    expected[5, 1] = True
    assert torch.equal(lost[:30], expected[:30])
    assert not lost[:, 1][30:].any()
    assert torch.equal(found[0, :5], whole.unflatten(-1, (2, 8))[0, :5])


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("positions", SCHEMES)
@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("log_scaling", [False, True])
def test_a_whole_decoder(positions, models, log_scaling):
    """Logits and gradients in single precision, with the library, against double precision without it."""
    model = DecoderModel(layers=2, heads=2, width=16, positions=positions, log_scaling=log_scaling)
    found = []
    for dtype in (torch.float32, torch.float64):
        random = torch.Generator().manual_seed(3)
        ensemble = DecoderEnsemble(
            model, vocabulary=7, classes=None, longest=23, generators=[random] * models, dtype=dtype
        )
        groups = []
        for streams, tokens, places in ((3, 23, 11), (4, 9, 9)):
            drawn = torch.randint(7, (models, streams, tokens), generator=random)
            at = torch.randint(tokens, (models, streams, places), generator=random)
            start = torch.randint(2, (models, streams, 1), generator=random)
            given = positions in ("learned", "randomised")
            where = (start + torch.arange(tokens)).clamp_max(22) if given else None
            groups.append(Streams(drawn, at, where))
        assert native.suits(ensemble.stack.values) == (dtype == torch.float32)
        logits = forward_streams(ensemble.shape, ensemble.weights(), groups)
        logits.logsumexp(-1).square().mean().backward()
        found.append([logits, *(one.grad for one in ensemble.stack.parameters.values())])
    for single, double in zip(*found, strict=True):
        assert (single - double).norm() <= 1e-5 * double.norm() + 1e-9


def test_whom_it_suits():
    there = native._library() is not None
    assert native.suits(torch.zeros(3)) == there
    assert not native.suits(torch.zeros(3, dtype=torch.float64))
    torch.set_num_threads(2)
    try:
        assert not native.suits(torch.zeros(3))
    finally:
        torch.set_num_threads(1)


def test_a_library_of_another_text_is_not_used(tmp_path, monkeypatch):
    kind = torch.backends.cpu.get_cpu_capability().lower()
    if native.load(kind) is None:
        pytest.skip("no library was built")
    for name in ("native.c", f"_native_{kind}.so"):
        shutil.copy(native.FOLDER / name, tmp_path)
    text = (tmp_path / "native.c").read_bytes()
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    assert native.load(kind) is not None
    (tmp_path / "native.c").write_bytes(text + b"\n")
    assert hashlib.sha256(text).hexdigest() != hashlib.sha256(text + b"\n").hexdigest()
    assert native.load(kind) is None
    (tmp_path / "_native_broken.so").write_bytes(b"no library")
    assert native.load("broken") is None
