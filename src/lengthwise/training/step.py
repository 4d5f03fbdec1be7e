"""One optimiser step of an ensemble; on a GPU, recorded once and then replayed as a whole.

A step is many small operations. Launched one by one they cost a GPU more than their work
does, so after a few ordinary steps the next one is captured as a CUDA graph.
"""

from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from lengthwise.training.adam import StackAdam

ORDINARY_STEPS = 3
"""Steps of a kind before its graph is captured: libraries set up their workspaces in them."""


class Step:
    """Gradients and update of every model.

    ``backward``, called with the parts of a batch and what else a step is told, adds each model's gradient to
    the stack's and returns the training losses, one a model; ``take_total`` gives their sums since it was
    last called.
    """

    def __init__(self, adam: StackAdam, backward: Callable[..., Tensor]) -> None:
        self._adam, self._backward = adam, backward
        self._total = torch.zeros_like(adam.stack.values[: adam.stack.size])

    def __call__(self, batch: Sequence[Tensor], schedule: float, **told: Hashable) -> None:
        """Take one step, at this share of the learning rates; there are few different things to be told."""
        self._adam.set_schedule(schedule)
        self._work(batch, **told)

    def take_total(self) -> Tensor:
        """The losses summed since the last call, on the CPU."""
        total = self._total.cpu().clone()
        self._total.zero_()
        return total

    @property
    def total(self) -> Tensor:
        """The losses summed so far since then, where they are."""
        return self._total

    def load_total(self, total: Tensor) -> None:
        """Go on from such a sum."""
        self._total.copy_(total)

    def _work(self, batch: Sequence[Tensor], **told: Hashable) -> None:
        loss_M = self._backward(*batch, **told)
        self._adam.step()
        self._total.add_(loss_M.detach())


class GraphStep(Step):
    """The same step on a GPU, replayed from a graph after the first few: one for each thing to be told."""

    def __init__(self, adam: StackAdam, backward: Callable[..., Tensor]) -> None:
        super().__init__(adam, backward)
        self._done: dict[Hashable, int] = {}
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._batch: list[Tensor] = []
        self._stream = torch.cuda.Stream()

    def _work(self, batch: Sequence[Tensor], **told: Hashable) -> None:
        kind = tuple(told.items())
        if self._done.setdefault(kind, 0) < ORDINARY_STEPS:
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                super()._work(batch, **told)
            torch.cuda.current_stream().wait_stream(self._stream)
        else:
            if kind not in self._graphs:
                self._graphs[kind] = self._recorded(batch, **told)
            for static, part in zip(self._batch, batch, strict=True):
                static.copy_(part)
            self._graphs[kind].replay()
        self._done[kind] += 1

    def _recorded(self, batch: Sequence[Tensor], **told: Hashable) -> torch.cuda.CUDAGraph:
        """One graph more. Nothing that a graph leaves in its memory is read later, so all share it."""
        if not self._batch:
            self._batch = [torch.empty_like(part, memory_format=torch.contiguous_format) for part in batch]
        others = iter(self._graphs.values())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=next((other.pool() for other in others), None)):
            super()._work(self._batch, **told)
        return graph


def step_of(adam: StackAdam, backward: Callable[..., Tensor]) -> Step:
    """The kind of step that suits the stack's device."""
    return (GraphStep if adam.stack.values.is_cuda else Step)(adam, backward)
