"""Measured loss against the exact expectation, and its reproducibility."""

import math
from itertools import pairwise

import pytest
import torch
from scipy.special import betaln

import lengthwise as lw
from lengthwise.sequences import Summary
from lengthwise.training import length_grid, loss_at_infinity, loss_at_length, start_ensemble


def exact_loss(ensemble, task, length):
    """The expected loss over all strings of a length, by summing over (last token, zeros before it)."""
    a, expected = task.concentration, torch.zeros(ensemble.size, dtype=torch.float64)
    mass = 0.0
    for last in (0, 1):
        for zeros in range(length):
            total = zeros + (last == 0)
            probability = math.comb(length - 1, zeros) * math.exp(
                betaln(a + total, a + length - total) - betaln(a, a)
            )
            counts = torch.tensor([[[[zeros], [length - 1 - zeros]]]], dtype=torch.float64)
            summary = Summary(
                counts.expand(ensemble.size, -1, -1, -1),
                torch.full((ensemble.size, 1, 1), last),
                torch.full((ensemble.size, 1), length),
            )
            target = task.target_of_counts(summary)
            expected += probability * task.loss(ensemble.forward_counts(summary).detach(), target)[:, 0]
            mass += probability
    assert mass == pytest.approx(1)
    return expected


@pytest.mark.parametrize("length", [1, 3, 12])
@pytest.mark.parametrize("concentration", [0.5, 1.0])
def test_loss_is_an_unbiased_estimate_with_its_standard_error(length, concentration):
    task = lw.SimpleTask(concentration=concentration)
    ensemble = start_ensemble(lw.LimitModel(width=8, hidden=16), task, range(4), dtype=torch.float64)
    expected = exact_loss(ensemble, task, length)
    scores = []
    for seed in range(12):
        measured = loss_at_length(ensemble, [task] * 4, length, lw.Evaluation(seed=seed))
        scores.append((measured.loss - expected) / measured.error)
    score = torch.stack(scores)
    assert score.abs().max() < 4.5
    assert score.square().mean() < 2.5
    assert score.square().mean() > 0.3


def test_baseline_is_the_variance_of_the_target():
    """At great length u = (c0 - c1)/T is uniform on (-1, 1), so E sin(omega u)^2 has a closed form."""
    task = lw.SimpleTask(omega=5)
    ensemble = start_ensemble(lw.LimitModel(width=4, hidden=4), task, [0])
    measured = loss_at_length(ensemble, [task], 10**8, lw.Evaluation(sequences=40_000))
    assert measured.baseline[0] == pytest.approx(0.5 - math.sin(10) / 20, abs=0.01)


def test_every_run_is_measured_on_the_same_strings():
    """Whatever its neighbours and its place in the ensemble, also beside other knobs."""
    tasks = [lw.SimpleTask(omega=omega) for omega in (3, 5)]
    alone = start_ensemble(lw.LimitModel(width=4, hidden=8), tasks[0], [7], dtype=torch.float64)
    beside = start_ensemble(lw.LimitModel(width=4, hidden=8), tasks[0], [8, 7], dtype=torch.float64)
    one = loss_at_length(alone, [tasks[0]], 1000, lw.Evaluation())
    two = loss_at_length(beside, [tasks[1], tasks[0]], 1000, lw.Evaluation())
    torch.testing.assert_close(one.loss[0], two.loss[1], rtol=1e-10, atol=0)
    torch.testing.assert_close(one.baseline[0], two.baseline[1])


def test_length_grid():
    grid = length_grid(10**9)
    assert grid[-1] == 10**9
    assert all(low < high for low, high in pairwise(grid))
    assert max(high / low for low, high in pairwise(grid)) < 3.3
    assert length_grid(37)[-1] == 37
    assert lw.Evaluation(lengths=(10, 100)).lengths_for(10) == (10, 100)
    assert lw.Evaluation(lengths=(10, 100)).lengths_for(11) == (11, 100)
    for wrong in ({"lengths": (10, 10)}, {"lengths": (-1, 10)}, {"sequences": 1}):
        with pytest.raises(ValueError, match="must"):
            lw.Evaluation(**wrong)


@pytest.mark.parametrize(("k", "vocabulary", "locality"), [(1, 2, 1), (2, 2, 2), (3, 2, 1), (1, 3, 2)])
def test_the_loss_tends_to_the_loss_at_infinity(k, vocabulary, locality):
    """Untrained models, whose losses are far from 0 and hardly vary: at 2,000 tokens they are there."""
    task = lw.KGramTask(k=k, vocabulary=vocabulary)
    model = lw.LimitModel(width=4, hidden=3, heads=k + 1, layers=2, locality=locality)
    ensemble = start_ensemble(model, task, [1, 2], dtype=torch.float64)
    evaluation = lw.Evaluation(lengths=[10], sequences=600)
    limit = loss_at_infinity(ensemble, [task] * 2, evaluation)
    apart = []
    for length in (30, 2000):
        found = loss_at_length(ensemble, [task] * 2, length, evaluation)
        apart.append((found.loss - limit.loss).abs())
        noise = 4 * (found.error.square() + limit.error.square()).sqrt()
    assert (apart[1] <= noise).all()
    assert (apart[1] <= 0.1 * limit.loss).all()
    assert (limit.baseline > 0).all()


def test_no_limit_where_none_is_known():
    task = lw.KGramTask(k=1, vocabulary=2)
    evaluation = lw.Evaluation(lengths=[10], sequences=10)
    for model in (lw.LimitModel(width=4, hidden=3), lw.LimitModel(width=4, layers=2, period=2)):
        assert loss_at_infinity(start_ensemble(model, task, [1]), [task], evaluation) is None
    two = lw.LimitModel(width=4, hidden=0, layers=2)
    assert loss_at_infinity(start_ensemble(two, lw.SimpleTask(), [1]), [lw.SimpleTask()], evaluation) is None
