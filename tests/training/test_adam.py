"""Adam over a stack against PyTorch's own Adam, one model and one parameter at a time."""

import torch

import lengthwise as lw
from lengthwise.models.limit import LimitEnsemble
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
