"""The parameters of M models of one shape, stacked along a leading axis in one flat buffer.

One buffer holds all values and one all gradients, so that an optimiser step is a few operations however
many parameters there are, and no operation mixes two models.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from lengthwise.models.layers import fuses
from lengthwise.models.mup import Role

Shape = tuple[int, ...]

MOST_PARAMETERS = 2**31
"""No model has more."""


class Stack:
    """``parameters[name]`` has shape (M, *role.shape) and is a view into ``values``, its gradient into
    ``gradients``; ``spread`` lays a number for each model and a role's rate along the same buffer.

    ``smaller`` says, for each model, which of its parameters are smaller than that. They lie in the first
    rows and columns; the rest is 0, and stays so if its gradient is 0.
    """

    def __init__(
        self,
        roles: Mapping[str, Role],
        generators: Sequence[torch.Generator],
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        smaller: Sequence[Mapping[str, Shape]] | None = None,
    ) -> None:
        self.roles = dict(roles)
        self.size = len(generators)
        self._smaller = smaller or [{}] * self.size
        each = sum(math.prod(role.shape) for role in roles.values())
        if each > MOST_PARAMETERS:
            raise ValueError(
                f"the model would have {each:,} parameters, more than {MOST_PARAMETERS:,}: make it smaller"
            )
        total = self.size * each
        self.values = torch.zeros(total, dtype=dtype, device=device)
        self.gradients = torch.zeros_like(self.values)
        for name, block in self._blocks(self.values):
            role = self.roles[name]
            for model, generator in enumerate(generators):
                own = self._own(name, block, model)
                start = torch.randn(own.shape, generator=generator, dtype=torch.float64)
                own.copy_(role.deviation * start)
                if role.diagonal:
                    own += role.diagonal * torch.ones_like(own).triu(1).tril(1)
                if role.constant:
                    own += role.constant
                if role.rows is not None:
                    own[role.rows :] = 0
        self._name_parameters()

    def _name_parameters(self) -> None:
        self.parameters: dict[str, Tensor] = {
            name: block.detach().requires_grad_() for name, block in self._blocks(self.values)
        }
        for name, block in self._blocks(self.gradients):
            self.parameters[name].grad = block
        self._chunks: Tensor | None = None

    def _blocks(self, buffer: Tensor):
        start = 0
        for name, role in self.roles.items():
            end = start + self.size * math.prod(role.shape)
            yield name, buffer[start:end].view(self.size, *role.shape)
            start = end

    def shape(self, name: str, model: int) -> Shape:
        """That of one model's parameter, without padding."""
        return self._smaller[model].get(name, self.roles[name].shape)

    def _own(self, name: str, stacked: Tensor, model: int) -> Tensor:
        """One model's part of a parameter, without padding."""
        return stacked[(model, *map(slice, self.shape(name, model)))]

    def spread(
        self, rates: Sequence[float], factor: Callable[[Role], float] = lambda role: role.rate
    ) -> Tensor:
        """A buffer like ``values`` that holds rates[model] * factor(role) at each parameter that is learned,
        and 0 at the others.
        """
        buffer = torch.empty_like(self.values)
        rates_M = torch.tensor(rates, dtype=torch.float64)
        for name, block in self._blocks(buffer):
            role = self.roles[name]
            block.copy_((rates_M * factor(role)).view(-1, *(1,) * len(role.shape)).expand_as(block))
            if role.rows is not None:
                block[:, role.rows :] = 0
        return buffer

    def add_gradients(self, loss: Tensor) -> None:
        """Add the gradients of a loss to those that are there, in few operations; ``backward`` takes one for
        each parameter.
        """
        found = torch.autograd.grad(loss, list(self.parameters.values()), allow_unused=True)
        sums, new = [], []
        for parameter, gradient in zip(self.parameters.values(), found, strict=True):
            if gradient is not None:
                assert parameter.grad is not None
                sums.append(parameter.grad)
                new.append(gradient)
        torch._foreach_add_(sums, new)  # pyright: ignore[reportPrivateImportUsage]

    def shorten_gradients(self, longest: float) -> None:
        """Scale every model's gradient, over all its parameters, to this norm if it is longer."""
        if fuses(self.gradients):
            from lengthwise.models import fused_gradients

            if self._chunks is None:
                sizes = [math.prod(role.shape) for role in self.roles.values()]
                self._chunks = fused_gradients.chunks(sizes, self.size, self.gradients.device)
            fused_gradients.shorten(self.gradients, self._chunks, self.size, longest)
            return
        blocks = [block for _, block in self._blocks(self.gradients)]
        parts = [torch.linalg.vector_norm(block.reshape(len(block), -1), dim=1) for block in blocks]
        norm_M = torch.linalg.vector_norm(torch.stack(parts), dim=0)
        factor_M = (longest / norm_M).clamp_max(1)  # 1 where the norm is 0
        for block in blocks:
            block.mul_(factor_M.view(-1, *(1,) * (block.dim() - 1)))

    def keep(self, models: Sequence[int], *others: Tensor) -> list[Tensor]:
        """Go on with some of the models alone, in the order given; the gradients are cleared. Returns the
        same models' parts of other buffers that are laid out like ``values``.
        """
        kept = [
            torch.cat([block[list(models)].flatten() for _, block in self._blocks(buffer)])
            for buffer in (self.values, *others)
        ]
        self.size, self._smaller = len(models), [self._smaller[model] for model in models]
        self.values, self.gradients = kept[0], torch.zeros_like(kept[0])
        self._name_parameters()
        return kept[1:]

    def weights(self, model: int) -> dict[str, Tensor]:
        """A copy of one model's parameters, on the CPU."""
        own = {name: self._own(name, stacked, model) for name, stacked in self.parameters.items()}
        return {name: part.detach().cpu().clone() for name, part in own.items()}

    def load(self, model: int, weights: Mapping[str, Tensor]) -> None:
        """Put one model's parameters in its place; names and shapes must be the stack's."""
        if set(weights) != set(self.parameters):
            raise ValueError(f"weights named {sorted(weights)}, expected {sorted(self.parameters)}")
        for name in self.parameters:
            if weights[name].shape != self.shape(name, model):
                raise ValueError(
                    f"{name}: shape {tuple(weights[name].shape)}, expected {self.shape(name, model)}"
                )
        with torch.no_grad():
            for name, stacked in self.parameters.items():
                self._own(name, stacked, model).copy_(weights[name])
