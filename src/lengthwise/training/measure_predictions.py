"""Any model on a task of decoders: its logits at every position, against what must be predicted at some.

Axes: B stream, T position, A place after which something is predicted, C class.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from operator import index
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengthwise._messages import shown
from lengthwise.tasks import Examples, PredictionTask
from lengthwise.training.curves import AccuracyCurve
from lengthwise.training.randomness import generator
from lengthwise.training.trained import Decoder

DRAWN_AT_ONCE = 2**20
"""Streams are made for at most this many tokens at a time, but for one stream at least. Another value gives
other draws."""

TOKENS_AT_ONCE, PAIRS_AT_ONCE, LOGITS_AT_ONCE = 2**14, 2**24, 2**24
"""A model is called with at most so many tokens, pairs of tokens of one stream, and logits that it returns,
but with one stream at least."""


def measure_predictions(
    model: Callable[[Tensor], object],
    task: PredictionTask,
    lengths: Sequence[Any],
    *,
    sequences: int,
    seed: int,
    device: torch.device,
) -> AccuracyCurve:
    """The curve of a model; see ``evaluate``."""
    bins = _bins(task, lengths)
    _check_model(model, task, bins)
    rows = [
        _at(model, task, low, high, sequences, generator(seed, f"evaluation {low}-{high}", device))
        for low, high in bins
    ]
    losses, errors, baselines, accuracies, accuracy_errors = zip(*rows, strict=True)
    shortest, longest = zip(*bins, strict=True)
    return AccuracyCurve(longest, losses, errors, baselines, shortest, accuracies, accuracy_errors)


def _bins(task: PredictionTask, lengths: Sequence[Any]) -> list[tuple[int, int]]:
    """The shortest and the longest length of each bin, or of each length."""
    pairs = [tuple(one) if isinstance(one, tuple | list) else (one, one) for one in lengths]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"a bin of lengths is its shortest and its longest one, got {shown(list(lengths))}")
    bins = [(_length(low), _length(high)) for low, high in pairs]
    for low, high in bins:
        if not task.lengths(low, high):
            told = f"length {low}" if low == high else f"a length from {low} to {high}"
            raise ValueError(f"{task.title} has no inputs of {told}")
    ends = [end for low, high in bins for end in ((low,) if low == high else (low, high))]
    if not bins or ends != sorted(set(ends)):
        raise ValueError(f"test lengths must be given and increase, got {shown(list(lengths))}")
    return bins


def _length(value: object) -> int:
    try:
        return index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise ValueError(f"a test length must be a whole number, got {shown(value)}") from None


def _check_model(model: object, task: PredictionTask, bins: Sequence[tuple[int, int]]) -> None:
    """Raise ``ValueError`` where a model says that it cannot read the streams."""
    known = _whole(getattr(model, "config", None), "vocab_size")
    if known is not None and known < task.vocabulary:
        raise ValueError(f"the model has {known} tokens, {task.title} has {task.vocabulary}")
    most = _most_tokens(model)
    length = task.lengths(*bins[-1])[-1]
    needed = task.stream_length(length)
    if most is not None and needed > most:
        raise ValueError(
            f"the model has {most} positions, but streams of {task.title} have up to {needed} tokens at "
            f"length {length}"
        )


def _most_tokens(model: object) -> int | None:
    """The most tokens that a model can read; None if it does not say.

    The configuration of a Hugging Face model names such a number also where positions go on beyond it; it is
    a limit only for a table of positions.
    """
    if isinstance(model, Decoder):
        return model.longest
    if not isinstance(model, torch.nn.Module):
        return None
    named = (
        name.rpartition(".")[2]
        for name, part in model.named_modules()
        if isinstance(part, torch.nn.Embedding)
    )
    if not any(name == "wpe" or "position" in name for name in named):
        return None
    return _whole(getattr(model, "config", None), "max_position_embeddings")


def _whole(config: object, name: str) -> int | None:
    value = getattr(config, name, None)
    return value if isinstance(value, int) else None


def _at(
    model: Callable[[Tensor], object],
    task: PredictionTask,
    low: int,
    high: int,
    sequences: int,
    random: torch.Generator,
) -> tuple[float, float, float, float, float]:
    """Loss and standard error, baseline, accuracy and standard error on one bin.

    The loss is a quotient of two means over sequences, of what is lost and of how many places are scored.
    """
    lost, scored, right, often = [], [], [], torch.zeros(task.classes, dtype=torch.float64)
    together = max(1, DRAWN_AT_ONCE // task.stream_length(high))
    for start in range(0, sequences, together):
        drawn = task.sample(min(together, sequences - start), low, high, random)
        for examples in _pieces(drawn, _width(model, task)):
            logits = _at_places(_logits(model(examples.tokens), examples.tokens, task), examples)
            places = examples.scored.sum(-1).double()
            lost.append((task.loss(logits, examples) * places.mean()).cpu())
            scored.append(places.cpu())
            right.append(task.right(logits, examples).double().cpu())
            often += _frequencies(task, examples).cpu()
    lost_B, scored_B, right_B = torch.cat(lost), torch.cat(scored), torch.cat(right)
    loss = float(lost_B.sum() / scored_B.sum())
    error = float((lost_B - loss * scored_B).std() / scored_B.mean() / sequences**0.5)
    accuracy_error = float(right_B.std() / sequences**0.5)
    baseline = _entropy(often / scored_B.sum(), task)
    loss = loss if math.isfinite(loss) else math.inf
    return loss, error, baseline, float(right_B.mean()), accuracy_error


def _pieces(examples: Examples, width: int) -> Iterator[Examples]:
    """Streams of one length each, so that nothing is padded, and as many as a model may be called with."""
    tokens_B = examples.places.where(examples.scored, 0).amax(-1) + 1
    for tokens in tokens_B.unique().tolist():
        alike = (tokens_B == tokens).nonzero().squeeze(1)
        most = min(TOKENS_AT_ONCE // tokens, PAIRS_AT_ONCE // tokens**2, LOGITS_AT_ONCE // (tokens * width))
        for rows in alike.split(max(1, most)):
            yield Examples(
                examples.tokens[rows, :tokens],
                examples.places[rows],
                examples.scored[rows],
                examples.target[rows],
            )


def _width(model: object, task: PredictionTask) -> int:
    """How many logits a model returns at a position, as far as it says."""
    return max(task.classes, _whole(getattr(model, "config", None), "vocab_size") or 0)


def _logits(output: object, tokens: Int[Tensor, "B T"], task: PredictionTask) -> Float[Tensor, "B T C"]:
    """What a model returned, cut to the classes of the task."""
    # Causal language models of transformers return an object that has them.
    found = output if isinstance(output, Tensor) else getattr(output, "logits", None)
    if not isinstance(found, Tensor):
        raise ValueError(
            f"the model must return a tensor, or an object with one as logits, got {type(output).__name__}"
        )
    if found.dim() != 3 or found.shape[:2] != tokens.shape:
        expected = *tokens.shape, task.classes
        raise ValueError(f"the model's logits have shape {tuple(found.shape)}, expected {expected}")
    logits = found.shape[-1]
    if task.kind == "set" and logits != task.classes:
        raise ValueError(
            f"{task.title} asks for sets: the model must return one logit for each of its {task.classes} "
            f"classes, the letters and whether the prefix is a word, got {logits}"
        )
    if logits < task.classes:
        raise ValueError(f"the model returns logits of {logits} tokens, {task.title} has {task.classes}")
    return found[..., : task.classes]


def _at_places(logits: Float[Tensor, "B T C"], examples: Examples) -> Float[Tensor, "B A C"]:
    places = examples.places.unsqueeze(-1).expand(-1, -1, logits.shape[-1])
    return logits.gather(1, places).double()


def _frequencies(task: PredictionTask, examples: Examples) -> Float[Tensor, " C"]:
    """How often each class is right at a scored place."""
    target = examples.target[examples.scored]
    if task.kind == "token":
        return target.bincount(minlength=task.classes).double()
    return target.double().sum(0)


def _entropy(share: Float[Tensor, " C"], task: PredictionTask) -> float:
    """The loss of the best constant answer, where classes are right with these frequencies."""
    found = -torch.xlogy(share, share).sum()
    if task.kind == "set":
        found = found - torch.xlogy(1 - share, 1 - share).sum()
    return float(found)
