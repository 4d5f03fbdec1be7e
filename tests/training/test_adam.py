"""Adam over a stack against PyTorch's own Adam, one model and one parameter at a time."""

import pytest
import torch

import lengthwise as lw
from lengthwise.models.limit import LimitEnsemble
from lengthwise.models.mup import Role
from lengthwise.models.stack import Stack
from lengthwise.training.adam import StackAdam


def test_each_model_moves_as_under_its_own_adam():
    model = lw.LimitModel(width=3, hidden=5, heads=2, period=2, locality=1)
    generators = [torch.Generator().manual_seed(seed) for seed in range(3)]
    ensemble = LimitEnsemble(model, vocabulary=2, outputs=1, generators=generators, dtype=torch.float64)
    rates = [1e-3, 1e-1, 0.0]
    adam = StackAdam(ensemble.stack, rates)
    expected, optimisers = [], []
    for index, rate in enumerate(rates):
        own = {name: value.clone() for name, value in ensemble.stack.weights(index).items()}
        groups = [
            {"params": [own[name].requires_grad_()], "lr": rate * role.rate, "rate": rate * role.rate}
            for name, role in ensemble.stack.roles.items()
        ]
        expected.append(own)
        optimisers.append(torch.optim.Adam(groups, betas=(0.9, 0.99)))
    random = torch.Generator().manual_seed(5)
    for share in (1.0, 0.75, 0.25, 0.0, 0.5):  # exact in single precision, as the schedule is kept
        adam.set_schedule(share)
        for name, parameter in ensemble.stack.parameters.items():
            gradient = torch.randn(parameter.shape, generator=random, dtype=torch.float64)
            assert parameter.grad is not None
            parameter.grad.copy_(gradient)
            for index in range(3):
                expected[index][name].grad = gradient[index].clone()
        adam.step()
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = share * group["rate"]
            optimiser.step()
    for index in range(3):
        for name, value in ensemble.stack.weights(index).items():
            torch.testing.assert_close(value, expected[index][name].detach(), rtol=1e-7, atol=1e-12)
    assert torch.count_nonzero(ensemble.stack.gradients) == 0


def test_weight_decay_is_that_of_adamw():
    """Apart from the gradient, on the roles that decay, scaled by each model's rate and the schedule."""
    roles = {"decays": Role((3, 2), 1.0, 0.5, decay=1.0), "stays": Role((4,), 1.0, 2.0)}
    generators = [torch.Generator().manual_seed(seed) for seed in range(2)]
    stack = Stack(roles, generators, dtype=torch.float64)
    rates, decay = [1e-1, 1e-3], 0.3
    adam = StackAdam(stack, rates, (0.9, 0.999), decay)
    own = [
        [weights[name].clone().requires_grad_() for name in roles]
        for weights in (stack.weights(0), stack.weights(1))
    ]
    optimisers = [
        torch.optim.AdamW(
            [
                {"params": [parameter], "weight_decay": decay * role.decay}
                for parameter, role in zip(parameters, roles.values(), strict=True)
            ],
            betas=(0.9, 0.999),
        )
        for parameters in own
    ]
    random = torch.Generator().manual_seed(5)
    for share in (1.0, 0.75, 0.25, 0.0, 0.5):
        adam.set_schedule(share)
        for index, (name, stacked) in enumerate(stack.parameters.items()):
            gradient = torch.randn(stacked.shape, generator=random, dtype=torch.float64)
            assert stacked.grad is not None
            stacked.grad.copy_(gradient)
            for model in range(2):
                own[model][index].grad = gradient[model].clone()
                optimisers[model].param_groups[index]["lr"] = share * rates[model] * roles[name].rate
        adam.step()
        for optimiser in optimisers:
            optimiser.step()
    for model in range(2):
        for index, value in enumerate(stack.weights(model).values()):
            torch.testing.assert_close(value, own[model][index].detach(), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("clip", [0.7, 3.0, 1e6])
def test_long_gradients_are_shortened_model_by_model(clip):
    """To a norm over all of a model's parameters, against PyTorch's own, one model at a time; a model whose
    gradient is short, zero or not finite changes nothing for the others.
    """
    roles = {"a": Role((3, 2), 1.0, 1.0), "b": Role((4,), 1.0, 1.0), "c": Role((), 1.0, 1.0)}
    sizes = [1.0, 1e-3, 0.0, float("inf"), 30.0]
    stack = Stack(roles, [torch.Generator().manual_seed(seed) for seed in range(5)], dtype=torch.float64)
    random = torch.Generator().manual_seed(5)
    expected = []
    for index, size in enumerate(sizes):
        own = [parameter[index] for parameter in stack.parameters.values()]
        for parameter, stacked in zip(own, stack.parameters.values(), strict=True):
            gradient = size * torch.randn(parameter.shape, generator=random, dtype=torch.float64)
            gradient[...] = torch.where(gradient.isnan(), torch.zeros_like(gradient), gradient)
            assert stacked.grad is not None
            stacked.grad[index] = gradient
        alone = [torch.zeros_like(parameter).requires_grad_() for parameter in own]
        for parameter, stacked in zip(alone, stack.parameters.values(), strict=True):
            assert stacked.grad is not None
            parameter.grad = stacked.grad[index].clone()
        before = float(torch.nn.utils.clip_grad_norm_(alone, clip))
        assert 0 < before < float("inf") or size in (0.0, float("inf"))
        expected.append([parameter.grad for parameter in alone])
    stack.shorten_gradients(clip)
    for index, size in enumerate(sizes):
        if size == float("inf"):
            continue
        for gradient, stacked in zip(expected[index], stack.parameters.values(), strict=True):
            assert stacked.grad is not None
            # PyTorch divides by the norm plus 1e-6.
            torch.testing.assert_close(stacked.grad[index], gradient, rtol=2e-6, atol=0)


def test_models_that_leave_take_their_state_with_them():
    """Those that stay move exactly as if the others had never been there."""
    roles = {"a": Role((2, 3), 1.0, 1.0, decay=1.0), "b": Role((2,), 0.0, 2.0, constant=1.0)}

    def run(seeds, rates, leave):
        stack = Stack(roles, [torch.Generator().manual_seed(seed) for seed in seeds])
        adam = StackAdam(stack, rates, (0.9, 0.99), 0.1)
        random = {seed: torch.Generator().manual_seed(10 + seed) for seed in seeds}
        for step in range(6):
            for parameter in stack.parameters.values():
                assert parameter.grad is not None
                for index, seed in enumerate(seeds):
                    parameter.grad[index] = torch.randn(parameter.shape[1:], generator=random[seed])
            adam.step()
            if step in leave:
                adam.keep(leave[step])
                seeds = [seeds[index] for index in leave[step]]
        return {seed: stack.weights(index) for index, seed in enumerate(seeds)}

    left = run([0, 1, 2, 3], [0.1, 0.2, 0.3, 0.4], {1: [3, 1, 2], 3: [1]})
    (alone,) = run([1], [0.2], {}).values()
    assert list(left) == [1]
    for name, value in alone.items():
        assert torch.equal(left[1][name], value)
    # Before the first step there is no state yet.
    early = Stack(roles, [torch.Generator().manual_seed(seed) for seed in range(2)])
    adam = StackAdam(early, [0.1, 0.2])
    expected = early.weights(1)
    adam.keep([1])
    assert all(torch.equal(early.weights(0)[name], value) for name, value in expected.items())
    assert early.size == 1
