"""Adam for a stack of models, with a learning rate for each model and each role."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from lengthwise.models.layers import fuses
from lengthwise.models.stack import Stack
from lengthwise.training.checkpoint import Shape

KNOWN = ("step", "exp_avg", "exp_avg_sq")
"""What Adam knows of the gradients so far, by PyTorch's names."""

EPSILON = 1e-8
"""Added to the root of the mean square."""


class StackAdam:
    """One fused Adam, whose rate is the schedule alone, finds the direction; the rates then scale it.

    The direction is written into a buffer that starts each step at zero, so that any pattern of rates
    costs one multiplication. Where kernels of our own work, one of them does all of this. With
    ``weight_decay`` it is AdamW: before each step, a parameter shrinks by the share rate * schedule *
    weight_decay * the decay of its role, apart from the direction. With ``clip``, a model's gradient is first
    shortened to this norm if it is longer.
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
        self._betas, self._fused = betas, fuses(stack.values)
        self._start({})

    def _start(self, known: dict[str, Tensor]) -> None:
        """Know this of the gradients of the stack as it is now, or nothing."""
        values = self.stack.values
        if self._fused:
            nothing = [values.new_zeros(()), torch.zeros_like(values), torch.zeros_like(values)]
            self._own = known or dict(zip(KNOWN, nothing, strict=True))
            return
        self.direction = torch.zeros_like(values)
        self.direction.grad = self.stack.gradients
        self._adam = torch.optim.Adam(
            [self.direction],
            lr=self._schedule,
            betas=self._betas,
            eps=EPSILON,
            fused=True,
            capturable=values.is_cuda,
        )
        if known:
            self._adam.state[self.direction] = known

    def _known(self) -> dict[str, Tensor]:
        """What is known; nothing before the first step, maybe."""
        return self._own if self._fused else self._adam.state.get(self.direction, {})

    def set_schedule(self, share: float) -> None:
        """The share of every rate that the next steps take."""
        self._schedule.fill_(share)

    def step(self) -> None:
        """Move every model by its rates times the schedule, and clear the gradients."""
        if self._clip:
            self.stack.shorten_gradients(self._clip)
        if self._fused:
            from lengthwise.models import fused_gradients

            known = self._own["step"], self._own["exp_avg"], self._own["exp_avg_sq"]
            given = self.stack.values, self.stack.gradients, known, self.rates, self.decay, self._schedule
            fused_gradients.adam(*given, self._betas, EPSILON)
            return
        self._adam.step()
        with torch.no_grad():
            if self.decay is not None:
                self.stack.values.addcmul_(self.stack.values, self.decay * self._schedule, value=-1)
            self.stack.values.addcmul_(self.direction, self.rates)
            self.direction.zero_()
            self.stack.gradients.zero_()

    def keep(self, models: Sequence[int]) -> None:
        """Go on with some of the models alone: the stack and what is known of its gradients shrink."""
        known = dict(self._known())
        buffers = {name: value for name, value in known.items() if value.shape == self.rates.shape}
        decays = [] if self.decay is None else [self.decay]
        self.rates, *rest = self.stack.keep(models, self.rates, *decays, *buffers.values())
        if decays:
            self.decay = rest.pop(0)
        self._start(known | dict(zip(buffers, rest, strict=True)))

    def state(self) -> dict[str, Tensor]:
        """The weights and all that is known of their gradients, after at least one step."""
        known = self._known()
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
        moments = {name: torch.empty_like(self.rates).copy_(value) for name, value in known.items()}
        self._start({"step": count.to(self.rates.device), **moments})
