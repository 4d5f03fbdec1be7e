"""Curves for one's own: any function from tokens to outputs, measured on any task at any lengths."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pandas as pd
import torch
from torch import Tensor

from lengthwise.limit import LimitTransformer
from lengthwise.sequences import check_length
from lengthwise.tasks import CountTask, Task
from lengthwise.training.data import draw_summaries
from lengthwise.training.plateaus import Plateau, plateau
from lengthwise.training.randomness import generator

TOKENS_AT_ONCE = 2**20
"""A model is called with at most this many tokens, but with one string at least."""


@dataclass(frozen=True)
class LossCurve:
    """Loss against test length: mean over the test sequences, its standard error, and the loss of the best
    constant answer (``baselines``).
    """

    test_lengths: tuple[int, ...]
    losses: tuple[float, ...]
    errors: tuple[float, ...]
    baselines: tuple[float, ...]

    @property
    def plateau(self) -> Plateau:
        """Where the curve ends."""
        return plateau(self.test_lengths, self.losses, self.errors)

    def frame(self) -> pd.DataFrame:
        """One row a test length."""
        return pd.DataFrame(
            {
                "test_length": self.test_lengths,
                "loss": self.losses,
                "loss_error": self.errors,
                "baseline": self.baselines,
            }
        )


@runtime_checkable
class HasLosses(Protocol):
    """A curve: losses at increasing test lengths."""

    @property
    def test_lengths(self) -> Sequence[int]:
        """The lengths."""
        ...

    @property
    def losses(self) -> Sequence[float]:
        """The loss at each."""
        ...


def effective_length(curve: HasLosses, threshold: float) -> int | None:
    """The longest test length up to and with which the loss stays within the threshold; None if it is above
    it from the first one on.
    """
    within = None
    for length, loss in zip(curve.test_lengths, curve.losses, strict=True):
        if not loss <= threshold:
            break
        within = length
    return within


def evaluate(
    model: Callable[[Tensor], Tensor],
    task: Task,
    lengths: Sequence[int],
    *,
    sequences: int = 1024,
    seed: int = 0,
    device: str | torch.device | None = None,
) -> LossCurve:
    """The loss of any model on a task, at each of some increasing lengths.

    ``model`` takes tokens (batch, length), int64, and returns the outputs at the last position, (batch,
    outputs), or at every position, (batch, length, outputs), of which the last is scored. A PyTorch module is
    put into evaluation mode meanwhile. Strings are made on ``device`` (by default, where the module's
    parameters are). A ``LimitTransformer`` of one layer on a task that samples counts never sees strings, so
    that lengths up to 2^53 cost no more than short ones.
    """
    if sequences < 2:
        raise ValueError(f"sequences must be at least 2, got {sequences}")
    for length in lengths:
        check_length(length, "test length")
        task.check_length(length)
    if not lengths or list(lengths) != sorted(set(lengths)):
        raise ValueError(f"test lengths must be given and increase, got {list(lengths)}")
    chosen = _device(model) if device is None else torch.device(device)
    training = isinstance(model, torch.nn.Module) and model.training
    if isinstance(model, torch.nn.Module):
        model.eval()
    try:
        with torch.no_grad():
            rows = [
                _at(model, task, length, sequences, generator(seed, "evaluation", chosen))
                for length in lengths
            ]
    finally:
        if isinstance(model, torch.nn.Module):
            model.train(training)
    losses, errors, baselines = zip(*rows, strict=True)
    return LossCurve(tuple(lengths), losses, errors, baselines)


def _at(
    model: Callable[[Tensor], Tensor], task: Task, length: int, sequences: int, random: torch.Generator
) -> tuple[float, float, float]:
    """Loss, standard error and baseline at one length."""
    if isinstance(model, LimitTransformer) and len(model.layers) == 1 and isinstance(task, CountTask):
        shape = {"period": model.period, "locality": model.locality}
        summary, target = draw_summaries(task, sequences, length, random, **shape)
        output = model.evaluate_counts(summary)
    else:
        tokens = task.sample(sequences, length, random)
        target = task.target(tokens)
        pieces = tokens.split(max(1, TOKENS_AT_ONCE // length))
        output = torch.cat([_last(model(piece), piece, task) for piece in pieces])
    if output.shape != target.shape:
        raise ValueError(
            f"the model's output has shape {tuple(output.shape)}, expected {tuple(target.shape)}"
        )
    loss = task.loss(output.double(), target)
    baseline = task.loss(target.nanmean(0, keepdim=True).expand_as(target), target).mean()
    mean, error = float(loss.mean()), float(loss.std() / sequences**0.5)
    return (mean if math.isfinite(mean) else math.inf), error, float(baseline)


def _last(output: object, tokens: Tensor, task: Task) -> Tensor:
    if not isinstance(output, Tensor):
        raise ValueError(f"the model must return a tensor, got {type(output).__name__}")
    if output.dim() == 3 and output.shape[:2] == tokens.shape:
        output = output[:, -1]
    if output.shape != (len(tokens), task.outputs):
        expected = f"({len(tokens)}, {task.outputs}) or ({len(tokens)}, {tokens.shape[1]}, {task.outputs})"
        raise ValueError(f"the model's output has shape {tuple(output.shape)}, expected {expected}")
    return output


def _device(model: object) -> torch.device:
    if isinstance(model, torch.nn.Module):
        return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    return model.embedding.device if isinstance(model, LimitTransformer) else torch.device("cpu")
