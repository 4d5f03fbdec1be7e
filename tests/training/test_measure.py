"""Curves of any model on any task: exact answers have no loss, constant ones the baseline."""

import math

import pytest
import torch

import lengthwise as lw


def test_the_exact_answer_has_no_loss_and_the_mean_has_the_baseline():
    task = lw.SimpleTask(omega=3)
    exact = lw.evaluate(lambda tokens: task.target(tokens), task, [1, 7, 50])
    assert exact.losses == (0.0, 0.0, 0.0)
    zero = lw.evaluate(lambda tokens: torch.zeros(len(tokens), 1), task, [50], sequences=4000)
    assert zero.losses[0] == pytest.approx(zero.baselines[0], rel=0.02)  # the mean of the wave is 0
    assert zero.errors[0] < 0.02


def test_outputs_at_every_position_are_read_at_the_last():
    task = lw.ModPTask(period=2, residue=1)

    def everywhere(tokens):
        ends = [task.target(tokens[:, : end + 1]) for end in range(tokens.shape[1])]
        return torch.stack(ends, 1)

    assert lw.evaluate(everywhere, task, [1, 4, 9]).losses == (0.0, 0.0, 0.0)


def test_a_limit_transformer_is_measured_from_counts_at_any_length():
    task, f = lw.ModPTask(period=5, residue=2), lw.constructions.mod_p(5, 2)
    curve = lw.evaluate(f, task, [2, 100, 10**12])
    assert max(curve.losses) < 1e-20
    task, f = lw.SimpleTask(omega=8), lw.constructions.simple_task(8, 64)
    error = lw.constructions.simple_task_error(8, 64)
    curve = lw.evaluate(f, task, [3, 10**4, 10**7, 10**8, 10**9])
    assert max(curve.losses) <= error**2
    assert curve.plateau.value <= error**2
    tokens = lw.evaluate(lambda word: f(word), task, [3])  # from the strings themselves: other draws
    assert tokens.losses[0] <= error**2


def test_two_layers_and_a_task_of_strings():
    task, f = lw.KGramTask(k=1, vocabulary=2), lw.constructions.k_gram(1, 2, 0.01)
    curve = lw.evaluate(f, task, [50, 400, 2000], sequences=64)
    assert curve.losses[0] > curve.losses[1] > curve.losses[2]
    assert curve.losses[2] < 1e-3


def test_a_module_is_measured_in_evaluation_mode_and_left_as_it_was():
    class Noisy(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = torch.nn.Dropout(0.9)
            self.scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, tokens):
            assert not torch.is_grad_enabled()
            return self.drop(self.scale * (tokens == 1).double().mean(-1, keepdim=True))

    model, task = Noisy(), lw.ModPTask(period=1, residue=0)
    assert lw.evaluate(model, task, [10]).losses[0] < 1e-12
    assert model.training


def test_effective_length():
    curve = lw.LossCurve((4, 8, 16, 32), (0.0, 0.1, 0.4, 0.05), (0.0,) * 4, (1.0,) * 4)
    assert lw.effective_length(curve, 0.2) == 8  # what comes back later does not count
    assert lw.effective_length(curve, 0.5) == 32
    assert lw.effective_length(curve, -1.0) is None
    broken = lw.LossCurve((4, 8), (0.0, math.inf), (0.0, 0.0), (1.0, 1.0))
    assert lw.effective_length(broken, 10.0) == 4


def test_mistakes():
    task = lw.SimpleTask()
    for model, lengths, message in (
        (lambda tokens: torch.zeros(3, 1), [5], "output has shape \\(3, 1\\), expected \\(1024, 1\\)"),
        (lambda tokens: torch.zeros(len(tokens), 2), [5], "expected \\(1024, 1\\)"),
        (lambda tokens: [0.0], [5], "must return a tensor, got list"),
        (lambda tokens: task.target(tokens), [5, 5], "must be given and increase"),
        (lambda tokens: task.target(tokens), [], "must be given and increase"),
        (lambda tokens: task.target(tokens), [0], "test length must be between 1"),
    ):
        with pytest.raises(ValueError, match=message):
            lw.evaluate(model, task, lengths)
    with pytest.raises(ValueError, match="needs strings of at least 5 tokens, got 4"):
        lw.evaluate(lambda tokens: tokens, lw.ModPTask(period=5, residue=0), [4])
