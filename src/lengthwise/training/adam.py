"""Adam for a stack of models, with a learning rate for each model and each role."""

from collections.abc import Sequence

import torch

from lengthwise.models.stack import Stack


class StackAdam:
    """One fused Adam of rate 1 finds the direction; the rates then scale it.

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
        self._adam = torch.optim.Adam([self.direction], lr=1.0, betas=betas, fused=True)

    def step(self, schedule: float) -> None:
        """Move every model by its rates times ``schedule``, and clear the gradients."""
        self._adam.step()
        with torch.no_grad():
            self.stack.values.addcmul_(self.direction, self.rates, value=schedule)
            self.direction.zero_()
            self.stack.gradients.zero_()
