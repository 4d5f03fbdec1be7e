"""Adam for a stack of models, with a learning rate for each model and each role."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from lengthwise.models.stack import Stack
from lengthwise.training.checkpoint import Shape

KNOWN = ("step", "exp_avg", "exp_avg_sq")
"""What PyTorch's Adam knows of the gradients so far."""


class StackAdam:
    """One fused Adam, whose rate is the schedule alone, finds the direction; the rates then scale it.

    The direction is written into a buffer that starts each step at zero, so that any pattern of rates
    costs one multiplication. With ``weight_decay`` it is AdamW: before each step, a parameter shrinks by the
    share rate * schedule * weight_decay * the decay of its role, apart from the direction. With ``clip``, a
    model's gradient is first shortened to this norm if it is longer.
    """

    def __init__(
        self,
        stack: Stack,
        learning_rates: Sequence[float],
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        clip: float = 0.0,
    ) -> None:
        self.stack, self._clip = stack, clip
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
        if self._clip:
            self.stack.shorten_gradients(self._clip)
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

    def state(self) -> dict[str, Tensor]:
        """The weights and all that is known of their gradients, after at least one step."""
        known = self._adam.state[self.direction]
        return {"weights": self.stack.values, **{f"adam.{name}": known[name] for name in KNOWN}}

    def shapes(self, models: int | None = None) -> dict[str, Shape]:
        """What ``load`` takes; with ``models``, once only so many are left."""
        each = self.stack.values.numel() // self.stack.size
        like = (each * (self.stack.size if models is None else models),), self.stack.values.dtype
        count = (), torch.float32
        return {"weights": like} | {f"adam.{name}": count if name == "step" else like for name in KNOWN}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from what ``state`` gave, of the same models."""
        self.stack.values.copy_(tensors["weights"])
        known = {name: tensors[f"adam.{name}"] for name in KNOWN}
        count = known.pop("step").clone()
        moments = {name: torch.empty_like(self.direction).copy_(value) for name, value in known.items()}
        on_gpu = self.rates.is_cuda
        self._adam.state[self.direction] = {"step": count.cuda() if on_gpu else count, **moments}
