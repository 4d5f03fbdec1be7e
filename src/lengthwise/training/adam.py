"""Adam for a stack of models, with a learning rate for each model and each role."""

from collections.abc import Sequence

import torch

from lengthwise.models.stack import Stack


class StackAdam:
    """One fused Adam, whose rate is the schedule alone, finds the direction; the rates then scale it.

    The direction is written into a buffer that starts each step at zero, so that any pattern of rates
    costs one multiplication.
    """

    def __init__(
        self, stack: Stack, learning_rates: Sequence[float], betas: tuple[float, float] = (0.9, 0.99)
    ) -> None:
        self.stack = stack
        self.rates = stack.spread(learning_rates)
        self.direction = torch.zeros_like(stack.values)
        self.direction.grad = stack.gradients
        self._schedule = torch.ones((), device=stack.values.device)
        self._adam = torch.optim.Adam(
            [self.direction], lr=self._schedule, betas=betas, fused=True, capturable=stack.values.is_cuda
        )

    def set_schedule(self, share: float) -> None:
        """The share of every rate that the next steps take."""
        self._schedule.fill_(share)

    def step(self) -> None:
        """Move every model by its rates times the schedule, and clear the gradients."""
        self._adam.step()
        with torch.no_grad():
            self.stack.values.addcmul_(self.direction, self.rates)
            self.direction.zero_()
            self.stack.gradients.zero_()
