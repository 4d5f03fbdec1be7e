"""Products by oneDNN against products in double precision, alone and in a decoder."""

import pytest
import torch

from lengthwise.models import products
from lengthwise.models.decoder import DecoderEnsemble, DecoderModel
from lengthwise.models.decoder_forward import Streams, forward_streams
from lengthwise.models.products import ROWS, plus_product, spare_rows

needs_one_dnn = pytest.mark.skipif(not products._ONE_DNN, reason="PyTorch has no oneDNN here")


@needs_one_dnn
@pytest.mark.parametrize("rows", [ROWS, 3 * ROWS])
@pytest.mark.parametrize(("columns", "made"), [(1, 1), (5, 96), (96, 5), (64, 256), (256, 64)])
@pytest.mark.parametrize("one_row", [True, False])
@pytest.mark.parametrize("dense", [True, False])
def test_product_and_gradients(rows, columns, made, one_row, dense):
    random = torch.Generator().manual_seed(rows + columns)
    added = torch.randn(1, 1 if one_row else rows, made, generator=random)
    x = torch.randn(1, rows, columns, generator=random)
    matrix = torch.randn(1, columns, made if dense else 3 * made, generator=random)[..., :made]
    if not dense:
        x = x.mT.contiguous().mT
    onto = torch.randn(1, rows, made, generator=random)
    single = [one.detach().requires_grad_() for one in (added, x, matrix)]
    double = [one.detach().double().requires_grad_() for one in (added, x, matrix)]
    found, expected = plus_product(*single), double[0] + double[1] @ double[2]
    assert type(found.grad_fn).__name__ == "_ProductBackward"
    found.backward(onto)
    expected.backward(onto.double())
    assert (found - expected).abs().max() <= 1e-6 * (columns + 10)
    for one, other, terms in zip(single, double, [rows, made, rows], strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert (one.grad - other.grad).abs().max() <= 1e-6 * (terms + 10)


@needs_one_dnn
@pytest.mark.parametrize("positions", ["learned", "rotary", "alibi"])
def test_a_decoder_in_single_precision(positions, monkeypatch):
    """Logits and gradients of a whole decoder, every product by oneDNN, against those in double precision."""
    monkeypatch.setattr(products, "ROWS", 32)
    model = DecoderModel(layers=2, heads=2, width=16, positions=positions)
    found = []
    for dtype in (torch.float32, torch.float64):
        random = torch.Generator().manual_seed(5)
        ensemble = DecoderEnsemble(
            model, vocabulary=7, classes=None, longest=23, generators=[random], dtype=dtype
        )
        tokens = torch.randint(7, (1, 9, 23), generator=random)
        places = torch.randint(23, (1, 9, 11), generator=random)
        logits = forward_streams(ensemble.shape, ensemble.weights(), [Streams(tokens, places)])
        logits.logsumexp(-1).square().mean().backward()
        found.append([logits, *(one.grad for one in ensemble.stack.parameters.values())])
    for single, double in zip(*found, strict=True):
        assert (single - double).norm() <= 1e-5 * double.norm() + 1e-9


def test_whom_it_suits():
    one, two = torch.zeros(1, 3, 4), torch.zeros(2, 3, 4)
    expected = ROWS - 1 if products._ONE_DNN else 0
    assert spare_rows(one, 2 * ROWS + 1) == expected
    assert spare_rows(one, 2 * ROWS) == spare_rows(one, ROWS - 1) == 0
    assert spare_rows(two, 2 * ROWS + 1) == spare_rows(one.double(), 2 * ROWS + 1) == 0
