"""Adam for a stack of models, with a learning rate for each model and each role."""

from collections.abc import Sequence

import torch

from lengthwise.models.stack import Stack


class StackAdam:
    """One fused Adam, whose rate is the schedule alone, finds the direction; the rates then scale it.

    The direction is written into a buffer that starts each step at zero, so that any pattern of rates
    costs one multiplication. With ``weight_decay`` it is AdamW: before each step, a parameter shrinks by the
    share rate * schedule * weight_decay * the decay of its role, apart from the direction.
    """

    def __init__(
        self,
        stack: Stack,
        learning_rates: Sequence[float],
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        self.stack = stack
        self.rates = stack.spread(learning_rates)
        self.decay = None
        if weight_decay:
            decays = [rate * weight_decay for rate in learning_rates]
            self.decay = stack.spread(decays, lambda role: role.rate * role.decay)
        self._schedule = torch.ones((), device=stack.values.device)
        self._betas = betas
        self._start()

    def _start(self) -> None:
        self.direction = torch.zeros_like(self.stack.values)
        self.direction.grad = self.stack.gradients
        self._adam = torch.optim.Adam(
            [self.direction], lr=self._schedule, betas=self._betas, fused=True, capturable=self.rates.is_cuda
        )

    def set_schedule(self, share: float) -> None:
        """The share of every rate that the next steps take."""
        self._schedule.fill_(share)

    def step(self) -> None:
        """Move every model by its rates times the schedule, and clear the gradients."""
        self._adam.step()
        with torch.no_grad():
            if self.decay is not None:
                self.stack.values.addcmul_(self.stack.values, self.decay * self._schedule, value=-1)
            self.stack.values.addcmul_(self.direction, self.rates)
            self.direction.zero_()
            self.stack.gradients.zero_()

    def keep(self, models: Sequence[int]) -> None:
        """Go on with some of the models alone: the stack and what is known of its gradients shrink."""
        state = self._adam.state.pop(self.direction, {})
        buffers = {name: value for name, value in state.items() if value.shape == self.rates.shape}
        decays = [] if self.decay is None else [self.decay]
        self.rates, *rest = self.stack.keep(models, self.rates, *decays, *buffers.values())
        if decays:
            self.decay = rest.pop(0)
        self._start()
        if state:
            self._adam.state[self.direction] = {**state, **dict(zip(buffers, rest, strict=True))}
