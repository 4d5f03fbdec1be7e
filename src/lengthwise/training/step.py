"""One optimiser step of an ensemble; on a GPU, recorded once and then replayed as a whole.

A step is many small operations. Launched one by one they cost a GPU more than their work
does, so after a few ordinary steps the next one is captured as a CUDA graph.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lengthwise.models import LimitEnsemble
from lengthwise.tasks import Task
from lengthwise.training.adam import StackAdam

ORDINARY_STEPS = 3
"""Steps before a graph is captured: libraries set up their workspaces in them."""


class Step:
    """Forward, loss, backward and update of every model, on (inputs ..., target).

    ``total`` sums the training loss of each model since ``take_total`` was last called.
    """

    def __init__(
        self, ensemble: LimitEnsemble, forward: Callable[..., Tensor], task: Task, rates: Sequence[float]
    ) -> None:
        self._forward, self._task = forward, task
        self._adam = StackAdam(ensemble.stack, rates)
        self._total = torch.zeros_like(ensemble.stack.values[: ensemble.size])

    def __call__(self, batch: Sequence[Tensor], schedule: float) -> None:
        """Take one step, at this share of the learning rates."""
        self._adam.set_schedule(schedule)
        self._work(batch)

    def take_total(self) -> Tensor:
        """The losses summed since the last call, on the CPU."""
        total = self._total.cpu().clone()
        self._total.zero_()
        return total

    def _work(self, batch: Sequence[Tensor]) -> None:
        *inputs, target = batch
        loss_M = self._task.loss(self._forward(*inputs), target.to(self._total.dtype)).mean(-1)
        loss_M.sum().backward()
        self._adam.step()
        self._total.add_(loss_M.detach())


class GraphStep(Step):
    """The same step on a GPU, replayed from a graph after the first few."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self._done = 0
        self._graph = torch.cuda.CUDAGraph()
        self._batch: list[Tensor] = []
        self._stream = torch.cuda.Stream()

    def _work(self, batch: Sequence[Tensor]) -> None:
        if self._done < ORDINARY_STEPS:
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                super()._work(batch)
            torch.cuda.current_stream().wait_stream(self._stream)
        else:
            if self._done == ORDINARY_STEPS:
                self._batch = [
                    torch.empty_like(part, memory_format=torch.contiguous_format) for part in batch
                ]
                with torch.cuda.graph(self._graph):
                    super()._work(self._batch)
            for static, part in zip(self._batch, batch, strict=True):
                static.copy_(part)
            self._graph.replay()
        self._done += 1
