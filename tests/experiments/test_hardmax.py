"""Evidence of hard attention, against models for which it is known."""

import itertools
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.experiments.hardmax import class_attention, class_gap, hardness


@pytest.mark.parametrize(("period", "residue"), [(2, 0), (5, 1), (5, 4), (3, 2)])
def test_the_construction_is_hard(period, residue):
    task = lw.ModPTask(period=period, residue=residue)
    found = hardness(lw.constructions.mod_p(period, residue), task, length=60)
    assert found.off == found.largest_off == 0
    assert found.largest_spread == pytest.approx(0, abs=1e-12)
    assert found.gap == found.margin == 16
    assert found.log2_hardmax_length == 1


def test_soft_attention_leaks_what_its_gap_lets_through():
    """With logit 2 on the class, in infinite precision, a position off it weighs e^-2 of one on it."""
    task = lw.ModPTask(period=5, residue=1)
    f = replace(lw.constructions.mod_p(5, 1, bits=2), precision=lw.Infinite())
    found = hardness(f, task, length=500)
    leak = 4 * torch.tensor(-2.0).exp().item()
    assert found.off == pytest.approx(leak / (1 + leak), rel=0.02)
    assert found.spread == pytest.approx(0, abs=1e-12)
    assert found.log2_hardmax_length == 8  # read with 16 bits


@given(st.integers(2, 6), st.integers(0, 5), st.integers(6, 20), st.integers(0, 100))
def test_class_attention_by_hand(period, residue, length, seed):
    task = lw.ModPTask(period=period, residue=residue % period)
    weights = torch.rand(3, length, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    weights = weights / weights.sum(1, keepdim=True)
    off, spread = class_attention(weights, task)
    for row, amiss, uneven in zip(weights.tolist(), off.tolist(), spread.tolist(), strict=True):
        inside = [w for t, w in enumerate(row, 1) if t % period == task.residue]
        outside = [w for t, w in enumerate(row, 1) if t % period != task.residue]
        assert amiss == pytest.approx(sum(outside))
        even = sum(inside) / len(inside)
        assert uneven == pytest.approx(sum(max(0, w - even) for w in inside) / sum(inside))


def test_the_gap_by_hand():
    task, model = lw.ModPTask(period=3, residue=2), lw.LimitModel(width=4, hidden=0, period=3)
    random = torch.Generator().manual_seed(0)
    shapes = model.roles(2, 1)
    f = model.transformer({name: torch.randn(role.shape, generator=random) for name, role in shapes.items()})
    gaps = []
    for query in itertools.product(range(2), range(3)):
        logits = {}
        for key in itertools.product(range(2), range(3)):
            y_key, y_query = (f.embedding[token] + f.positions[residue] for token, residue in (key, query))
            logits[key] = float(y_key @ f.layers[0].key_query[0] @ y_query)
        gaps.append(
            min(v for (_, r), v in logits.items() if r == 2)
            - max(v for (_, r), v in logits.items() if r != 2)
        )
    assert class_gap(f, task) == pytest.approx(min(gaps))


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match="one layer with one head"):
        hardness(lw.constructions.k_gram(2, 2, 0.1), lw.ModPTask())
