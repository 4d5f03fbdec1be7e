"""Coordinate check: under muP, no activation's change in a step grows or dies with the width."""

import math

import numpy as np
import pytest
import torch

import lengthwise as lw
from lengthwise.models import mup
from lengthwise.models.limit import LimitEnsemble
from lengthwise.sequences import Summary
from lengthwise.training.adam import StackAdam

WIDTHS = (64, 128, 256, 512)
STEPS, SEEDS, BATCH = 3, 8, 64
RATE = 5e-5  # small, so that a few steps do not yet oscillate about a minimum


def activations(ensemble):
    """Typical size of a coordinate of everything that flows through the model, for each model."""
    p = ensemble.stack.parameters
    y = p["embedding"]
    values = (y.unsqueeze(1) @ p["layers.0.value"].mT)[:, 0]
    hidden = torch.relu((y + values) @ p["layers.0.mlp_in"].mT + p["layers.0.mlp_bias"].unsqueeze(1))
    update = hidden @ p["layers.0.mlp_out"].mT
    return {
        "embedding": y,
        "attention logit": y @ p["layers.0.key_query"][:, 0].mT @ y.mT,
        "attention output": values,
        "hidden": hidden,
        "mlp output": update,
        "output": (y + values + update) @ p["readout"].mT,
    }


def changes(width, roles=None):
    """Mean absolute change of each activation's coordinates after a few steps of training."""
    task = lw.SimpleTask(omega=4)
    model = lw.LimitModel(width=width, hidden=4 * width)
    generators = [torch.Generator().manual_seed(seed) for seed in range(SEEDS)]
    ensemble = LimitEnsemble(model, vocabulary=2, outputs=1, generators=generators)
    if roles:
        for name, role in ensemble.stack.roles.items():
            ensemble.stack.roles[name] = roles(name, role)
    before = {name: value.detach().clone() for name, value in activations(ensemble).items()}
    adam = StackAdam(ensemble.stack, [RATE] * SEEDS)
    data = torch.Generator().manual_seed(7)
    for _ in range(STEPS):
        summary = task.sample_counts(SEEDS * BATCH, 16, data)
        shaped = Summary(
            summary.counts.unflatten(0, (SEEDS, BATCH)),
            summary.suffix.unflatten(0, (SEEDS, BATCH)),
            summary.length.expand(SEEDS, 1),
        )
        target = task.target_of_counts(summary).unflatten(0, (SEEDS, BATCH)).float()
        task.loss(ensemble.forward_counts(shaped), target).mean(-1).sum().backward()
        adam.step()
    return {
        name: float((value.detach() - before[name]).abs().mean())
        for name, value in activations(ensemble).items()
    }


def exponents(roles=None):
    """How each change grows with the width: the slope on logarithmic axes."""
    found = [changes(width, roles) for width in WIDTHS]
    return {
        name: float(np.polyfit(np.log(WIDTHS), [math.log(change[name]) for change in found], 1)[0])
        for name in found[0]
    }


def test_changes_do_not_depend_on_the_width():
    for name, exponent in exponents().items():
        assert abs(exponent) < 0.15, (name, exponent)


def test_one_learning_rate_for_all_fails_the_check():
    """The control: without the width in the rates, changes do grow with it."""

    def same_rate(name, role):
        return mup.Role(role.shape, role.deviation, 1.0)

    grown = exponents(same_rate)
    assert grown["attention logit"] > 1.5
    for name in ("attention output", "hidden", "mlp output", "output"):
        assert grown[name] > 0.4, (name, grown[name])


@pytest.mark.parametrize("width", WIDTHS)
def test_first_activations_are_of_order_one(width):
    model = lw.LimitModel(width=width, hidden=4 * width)
    generators = [torch.Generator().manual_seed(seed) for seed in range(8)]
    ensemble = LimitEnsemble(model, vocabulary=2, outputs=1, generators=generators)
    sizes = {
        name: float(value.detach().square().mean().sqrt()) for name, value in activations(ensemble).items()
    }
    assert 0.7 < sizes["embedding"] < 1.4
    assert 5 < sizes["attention output"] < 12
    assert sizes["attention logit"] == 0
    assert sizes["output"] < 60 / width**0.5
