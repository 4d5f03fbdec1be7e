"""Measuring trained models at lengths far beyond their own."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.models import LimitEnsemble
from lengthwise.sequences import Summary
from lengthwise.tasks import Task
from lengthwise.training.config import Evaluation
from lengthwise.training.data import draw_summaries
from lengthwise.training.randomness import generator

SEQUENCES_AT_ONCE = 512


@dataclass(frozen=True)
class LossAtLength:
    """Mean loss of each model over the test sequences, its standard error, and the task's ``baseline``:
    the mean loss of the best constant answer.
    """

    loss: Float[Tensor, "M"]
    error: Float[Tensor, "M"]
    baseline: Float[Tensor, "M"]


def loss_at_length(
    ensemble: LimitEnsemble, tasks: Sequence[Task], length: int, evaluation: Evaluation
) -> LossAtLength:
    """The loss of every model on test strings of one length, at a cost that does not grow with it (for
    tasks that sample counts).
    """
    model, device, dtype = ensemble.model, ensemble.stack.values.device, ensemble.stack.values.dtype
    summaries, targets, baselines = {}, {}, {}
    for task in set(tasks):
        stream = generator(evaluation.seed, "evaluation", device)
        summaries[task], targets[task] = draw_summaries(
            task, evaluation.sequences, length, stream, period=model.period, locality=model.window - 1
        )
        mean = targets[task].mean(0, keepdim=True)
        baselines[task] = task.loss(mean.expand_as(targets[task]), targets[task]).mean()
    losses = []
    for start in range(0, evaluation.sequences, SEQUENCES_AT_ONCE):
        part = slice(start, start + SEQUENCES_AT_ONCE)
        summary = Summary(
            torch.stack([summaries[task].counts[part] for task in tasks]),
            torch.stack([summaries[task].suffix[part] for task in tasks]),
            torch.full((ensemble.size, 1), length, device=device),
        )
        target = torch.stack([targets[task][part] for task in tasks])
        with torch.no_grad():
            losses.append(tasks[0].loss(ensemble.forward_counts(summary), target.to(dtype)).double())
    loss_MB = torch.cat(losses, -1)
    error = loss_MB.std(-1) / evaluation.sequences**0.5
    baseline = torch.stack([baselines[task] for task in tasks])
    return LossAtLength(loss_MB.mean(-1).cpu(), error.cpu(), baseline.cpu())
