"""Curves for one's own: any function from tokens to outputs, measured on any task at any lengths."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, overload

import torch
from torch import Tensor

from lengthwise._checks import several, whole
from lengthwise._messages import shown
from lengthwise.limit import LimitTransformer
from lengthwise.sequences import check_length, check_seed
from lengthwise.tasks import CountTask, PredictionTask, Task
from lengthwise.training.curves import AccuracyCurve, LossCurve
from lengthwise.training.data import draw_summaries
from lengthwise.training.measure_predictions import measure_predictions
from lengthwise.training.randomness import generator
from lengthwise.training.trained import Decoder

TOKENS_AT_ONCE = 2**20
"""A model is called with at most this many tokens, but with one string at least."""


@overload
def evaluate(
    model: Callable[[Tensor], object],
    task: PredictionTask,
    lengths: Sequence[int | tuple[int, int]],
    *,
    sequences: int = ...,
    seed: int = ...,
    device: str | torch.device | None = ...,
) -> AccuracyCurve: ...
@overload
def evaluate(
    model: Callable[[Tensor], Tensor],
    task: Task,
    lengths: Sequence[int],
    *,
    sequences: int = ...,
    seed: int = ...,
    device: str | torch.device | None = ...,
) -> LossCurve: ...
def evaluate(
    model: Callable[[Tensor], Any],
    task: Task | PredictionTask,
    lengths: Sequence[Any],
    *,
    sequences: int = 1024,
    seed: int = 0,
    device: str | torch.device | None = None,
) -> LossCurve:
    """The loss of any model on a task, at each of some increasing lengths.

    On a ``Task`` ``model`` takes tokens (batch, length), int64, and returns the outputs at the last position,
    (batch, outputs), or at every position, (batch, length, outputs), of which the last is scored. A
    ``LimitTransformer`` of one layer on a task that samples counts never sees strings, so that lengths up to
    2^53 cost no more than short ones.

    On a ``PredictionTask`` it returns logits at every position, (batch, length, classes), and the curve has
    accuracies too. It may be a ``Decoder``, or a causal language model of Hugging Face's ``transformers``
    that was trained on the task's tokens; if it knows more tokens, their logits are left out. Streams are
    never padded. ``lengths`` are those of inputs, or bins of them, as in ``[(1, 50), (51, 100)]``.

    A PyTorch module is put into evaluation mode meanwhile. Strings are made on ``device`` (by default, where
    the module's parameters are).
    """
    whole(sequences, "sequences", 2)
    check_seed(seed)
    lengths = several(lengths, "test lengths")
    if not callable(model):
        raise ValueError(f"the model must be a function of tokens, got {shown(model)}")
    if not isinstance(task, Task | PredictionTask):
        raise ValueError(f"the task must be one, as lw.task('simple') is, got {shown(task)}")
    chosen = _device(model) if device is None else torch.device(device)
    with _evaluation_mode(model), torch.no_grad():
        if isinstance(task, PredictionTask):
            return measure_predictions(model, task, lengths, sequences=sequences, seed=seed, device=chosen)
        for length in lengths:
            check_length(length, "test length")
            task.check_length(length)
        if not lengths or list(lengths) != sorted(set(lengths)):
            raise ValueError(f"test lengths must be given and increase, got {shown(list(lengths))}")
        rows = [
            _at(model, task, length, sequences, generator(seed, "evaluation", chosen)) for length in lengths
        ]
    losses, errors, baselines = zip(*rows, strict=True)
    return LossCurve(tuple(lengths), losses, errors, baselines)


@contextmanager
def _evaluation_mode(model: object) -> Iterator[None]:
    """Modules as they are used, and afterwards as they were."""
    if not isinstance(model, torch.nn.Module):
        yield
        return
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


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
    if isinstance(model, LimitTransformer):
        return model.embedding.device
    return model.device if isinstance(model, Decoder) else torch.device("cpu")
