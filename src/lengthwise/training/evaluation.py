"""Measuring trained models at lengths far beyond their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.models import LimitEnsemble
from lengthwise.sequences import Summary
from lengthwise.tasks import CountTask, Task
from lengthwise.training.config import Evaluation
from lengthwise.training.data import draw_summaries
from lengthwise.training.randomness import generator

SEQUENCES_AT_ONCE = 512

TOKENS_IN_ALL, FEWEST_STRINGS = 2**22, 256
"""Where strings must be made, a test has so many tokens in all, but no fewer strings than this."""

TESTS_KEPT = 32
"""So many tests are kept, about a curve of them, for the ensembles that follow: making the strings of a
sequential task can take longer than reading them."""

NUMBERS, NUMBERS_ON_GPU = 2**23, 2**29
"""How many numbers the largest tensor of an evaluation may hold."""


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
    """The loss of every model on test strings of one length, at a cost that does not grow with it for one
    layer and tasks that sample counts. There, if the model has a period D, the strings have lengths that are
    uniform over the D up to ``length``, so that the loss is the mean over all residues at which it is read.
    """
    if ensemble.model.layers > 1:
        return _from_strings(ensemble, tasks, length, evaluation)
    model, device, dtype = ensemble.model, ensemble.stack.values.device, ensemble.stack.values.dtype
    summaries, targets, baselines = {}, {}, {}
    for task in set(tasks):
        stream = generator(evaluation.seed, "evaluation", device)
        varied = isinstance(task, CountTask) and model.period > 1
        summary, targets[task] = draw_summaries(
            task,
            evaluation.sequences,
            length,
            stream,
            period=model.period,
            locality=model.window - 1,
            shortest=max(task.shortest, length - model.period + 1) if varied else None,
        )
        lengths = summary.length.expand(evaluation.sequences)
        summaries[task] = Summary(summary.counts, summary.suffix, lengths)
        baselines[task] = _baseline(task, targets[task])
    losses = []
    for start in range(0, evaluation.sequences, SEQUENCES_AT_ONCE):
        part = slice(start, start + SEQUENCES_AT_ONCE)
        summary = Summary(
            torch.stack([summaries[task].counts[part] for task in tasks]),
            torch.stack([summaries[task].suffix[part] for task in tasks]),
            torch.stack([summaries[task].length[part] for task in tasks]),
        )
        target = torch.stack([targets[task][part] for task in tasks])
        with torch.no_grad():
            losses.append(tasks[0].loss(ensemble.forward_counts(summary), target.to(dtype)).double())
    return _summed_up(torch.cat(losses, -1), torch.stack([baselines[task] for task in tasks]))


def _from_strings(
    ensemble: LimitEnsemble, tasks: Sequence[Task], length: int, evaluation: Evaluation
) -> LossAtLength:
    """The same by making the strings, as few at once as fit, and fewer of them where they are long."""
    device, dtype = ensemble.stack.values.device, ensemble.stack.values.dtype
    model, kinds = ensemble.model, ensemble.vocabulary * ensemble.model.period
    sequences = min(evaluation.sequences, max(FEWEST_STRINGS, TOKENS_IN_ALL // length))
    numbers = ensemble.size * length * max(kinds * (model.heads + 1), model.hidden)
    at_once = max(1, (NUMBERS_ON_GPU if device.type == "cuda" else NUMBERS) // numbers)
    tests = {task: _test(task, sequences, length, evaluation.seed, device) for task in set(tasks)}
    outputs = []
    for start in range(0, sequences, at_once):
        tokens = torch.stack([tests[task][0][start : start + at_once].long() for task in tasks])
        with torch.no_grad():
            outputs.append(ensemble.forward_tokens(tokens))
    target = torch.stack([tests[task][1] for task in tasks])
    loss_MB = tasks[0].loss(torch.cat(outputs, 1), target.to(dtype)).double()
    return _summed_up(loss_MB, torch.stack([tests[task][2] for task in tasks]))


@lru_cache(maxsize=TESTS_KEPT)
def _test(
    task: Task, sequences: int, length: int, seed: int, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Test strings (small integers, since they are kept), their targets and the baseline: what these
    arguments determine.
    """
    strings = task.sample(sequences, length, generator(seed, "evaluation", device))
    target = task.target(strings)
    kept = strings.to(torch.uint8) if task.vocabulary <= 256 else strings
    return kept, target, _baseline(task, target)


def _baseline(task: Task, target: Float[Tensor, "B o"]) -> Tensor:
    """The mean loss of the best constant answer, over the strings that have a target."""
    mean = target.nanmean(0, keepdim=True)
    return task.loss(mean.expand_as(target), target).mean()


def _summed_up(loss_MB: Tensor, baseline: Tensor) -> LossAtLength:
    error = loss_MB.std(-1) / loss_MB.shape[-1] ** 0.5
    return LossAtLength(loss_MB.mean(-1).cpu(), error.cpu(), baseline.cpu())
