"""What the loss of trained models tends to as test strings grow, where that can be computed."""

from collections.abc import Sequence

import torch

from lengthwise.limit import Infinite
from lengthwise.models import LimitEnsemble
from lengthwise.tasks import StationaryTask, Task
from lengthwise.training.config import Evaluation
from lengthwise.training.evaluation import LossAtLength
from lengthwise.training.randomness import generator

MOST_WINDOWS = 2**12
"""The limit is computed if what decides the output at the end of a string can be at most so many windows."""


def loss_at_infinity(
    ensemble: LimitEnsemble, tasks: Sequence[Task], evaluation: Evaluation
) -> LossAtLength | None:
    """The limit of the loss of every model, over the distributions that ``loss_at_length`` draws strings
    from: exact for each of them, over all ways to end. None where it is not known.

    Outputs are bounded and tend to those of ``at_infinity``, targets to their limits, and the end of a string
    to the stationary distribution; so the mean loss tends to this one.
    """
    model, device = ensemble.model, ensemble.stack.values.device
    if model.period > 1 or model.layers != 2 or not isinstance(model.precision, Infinite):
        return None
    stationary = [task for task in tasks if isinstance(task, StationaryTask)]
    if len(stationary) < len(tasks):
        return None
    # A target may need more of the end of a string than the models see.
    width = max(model.window, *(task.context for task in stationary))
    if ensemble.vocabulary**width > MOST_WINDOWS:
        return None
    limits = {}
    for task in set(stationary):
        random = generator(evaluation.seed, "evaluation", device)
        limits[task] = task.at_infinity(evaluation.sequences, width, random)
    often_MBW = torch.stack([limits[task][0] for task in tasks])
    target_MBWo = torch.stack([limits[task][1] for task in tasks])
    seen = ensemble.vocabulary**model.window
    output_MBVo = ensemble.at_infinity(often_MBW.unflatten(-1, (-1, seen)).sum(-2))
    output_MBWo = output_MBVo.repeat(1, 1, often_MBW.shape[-1] // seen, 1)
    loss_MBW = tasks[0].loss(output_MBWo, target_MBWo)
    constant = torch.einsum("mbw,mbwo->mo", often_MBW, target_MBWo) / evaluation.sequences
    baseline_MBW = tasks[0].loss(constant[:, None, None].expand_as(target_MBWo), target_MBWo)
    loss_MB, baseline_MB = ((often_MBW * one).sum(-1) for one in (loss_MBW, baseline_MBW))
    error = loss_MB.std(-1) / evaluation.sequences**0.5
    return LossAtLength(loss_MB.mean(-1).cpu(), error.cpu(), baseline_MB.mean(-1).cpu())
