"""What a decoder learns: streams to read, and what must be predicted at which of their positions.

Axes: M models (any number of leading axes), B batch, T positions of a stream, A places of a stream after
which something is predicted, C classes.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from lengthwise._checks import whole
from lengthwise.tasks._interface import Theory

BEGIN, SEPARATOR, END = "<bos>", "<sep>", "<eos>"
"""The symbols of a stream that belong to no input and to no answer."""

POSITIONAL = "C-RASP[periodic,local]"

Kind = Literal["token", "set"]


@dataclass(frozen=True)
class Examples:
    """Streams to be read, and what must be predicted where.

    - ``tokens``: what a decoder reads, everything but the last symbol of a stream of kind "token", with
      padding to the right that has no meaning;
    - ``places``: the positions, from 0, after which something is predicted, padded with 0;
    - ``scored``: which of these are real;
    - ``target``: the token that follows (kind "token"), or the set of classes that hold (kind "set"); without
      meaning where nothing is scored.
    """

    tokens: Int[Tensor, "*M B T"]
    places: Int[Tensor, "*M B A"]
    scored: Bool[Tensor, "*M B A"]
    target: Int[Tensor, "*M B A"] | Bool[Tensor, "*M B A C"]


class PredictionTask(ABC):
    """Streams over ``alphabet``, and what must be predicted at some of their positions.

    A task is a frozen dataclass whose fields are its knobs, as a ``Task`` is. Its length is that of the
    input, in symbols. Random numbers come from the generator that the caller passes (``noise``); all else
    follows from them (``examples``), row by row, so that the examples of many callers can be made at once.
    """

    name: ClassVar[str] = "own"
    title: ClassVar[str] = "this task"
    kind: ClassVar[Kind]

    @property
    @abstractmethod
    def alphabet(self) -> tuple[str, ...]:
        """The symbols of streams, the special ones included; token s stands for ``alphabet[s]``."""

    @property
    def vocabulary(self) -> int:
        """The number of symbols."""
        return len(self.alphabet)

    @property
    def classes(self) -> int:
        """How many numbers a model puts out at a place: one for every symbol, unless a subclass says
        otherwise.
        """
        return self.vocabulary

    @property
    def shortest(self) -> int:
        """The length of the shortest input."""
        return 1

    @property
    def form(self) -> Hashable:
        """What tasks have in common whose models may be trained as one ensemble: how long streams are, where
        and how they are scored and, of kind "token", the symbols. By default a task has a form of its own; a
        class whose tasks share one must make their examples together.
        """
        return self

    @property
    def theory(self) -> Theory:
        """What theory says of the task at these knobs."""
        return Theory(period=None, locality=None, in_crasp=None, statement="nothing is known of it")

    @property
    def knobs(self) -> dict[str, object]:
        """The fields that describe this task, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # pyright: ignore[reportArgumentType]

    def lengths(self, low: int, high: int) -> tuple[int, ...]:
        """The lengths from ``low`` to ``high`` at which there are inputs, in ascending order."""
        check_range(low, high)
        return tuple(range(max(low, self.shortest), high + 1))

    @abstractmethod
    def answers(self, length: int) -> int:
        """The most places of a stream after which something is predicted, for inputs up to this length."""

    @abstractmethod
    def stream_length(self, length: int) -> int:
        """The most tokens that are read of a stream, for inputs up to this length."""

    def noise(self, batch: int, low: int, high: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The random numbers that examples are made of, each with a leading batch axis, on the generator's
        device. The first are the lengths of the inputs: uniform among ``lengths(low, high)``.
        """
        whole(batch, "batch", 1)
        allowed = self.lengths(low, high)
        if not allowed:
            raise ValueError(f"{self.title} has no inputs of a length from {low} to {high}")
        device = generator.device
        drawn = torch.randint(len(allowed), (batch,), generator=generator, device=device)
        return torch.tensor(allowed, device=device)[drawn], *self.chances(batch, high, generator)

    @abstractmethod
    def chances(self, batch: int, high: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """What is random of inputs beside their lengths, for lengths up to ``high``."""

    @abstractmethod
    def examples(self, *noise: Tensor, high: int) -> Examples:
        """The examples that this noise makes; ``high`` is the longest length that it was drawn for.

        Their shapes depend on the batch and on ``high`` alone, and nothing waits for the device, but for
        tables that the first call at a ``high`` prepares.
        """

    def examples_together(
        self, tasks: Sequence["PredictionTask"], noises: Sequence[tuple[Tensor, ...]], high: int
    ) -> Examples:
        """The examples of several tasks of this task's form, each from its noise, one after the other."""
        assert all(task == self for task in tasks)
        return self.examples(*joined(noises), high=high)

    def sample(self, batch: int, low: int, high: int, generator: torch.Generator) -> Examples:
        """Examples with inputs of lengths that are uniform among ``lengths(low, high)``."""
        return self.examples(*self.noise(batch, low, high, generator), high=high)

    def loss(self, logits: Float[Tensor, "*M B A C"], examples: Examples) -> Float[Tensor, "*M B"]:
        """The loss of each sequence, weighted so that the mean over the batch of a model is its mean over all
        scored places of that batch.

        At a place it is - log of the probability of what must be predicted: the cross-entropy of the token,
        or the sum of the binary cross-entropies of all classes.
        """
        if self.kind == "token":
            chosen = logits.gather(-1, examples.target.unsqueeze(-1)).squeeze(-1)
            lost = logits.logsumexp(-1) - chosen
        else:
            target = examples.target.to(logits.dtype)
            lost = binary_cross_entropy_with_logits(logits, target, reduction="none").sum(-1)
        scored = examples.scored.sum(-1).to(logits.dtype)
        return lost.masked_fill(~examples.scored, 0.0).sum(-1) / scored.mean(-1, keepdim=True)

    def right(self, logits: Float[Tensor, "*M B A C"], examples: Examples) -> Bool[Tensor, "*M B"]:
        """Whether every scored place of a sequence is right: the token has the largest logit, or exactly the
        classes of the set have positive logits. Equal logits, zeros and NaN decide nothing, so are wrong.
        """
        if self.kind == "token":
            target = examples.target.unsqueeze(-1)
            others = logits.scatter(-1, target, -torch.inf).amax(-1)
            good = logits.gather(-1, target).squeeze(-1) > others
        else:
            good = torch.where(examples.target, logits > 0, logits < 0).all(-1)
        return (good | ~examples.scored).all(-1)


LONGEST_INPUT = 2**20
"""Inputs of decoders have at most so many symbols."""


def joined(several: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Tuples of tensors as one, put behind each other along the first axis."""
    if len(several) == 1:
        return several[0]
    return tuple(torch.cat(column) for column in zip(*several, strict=True))


def check_range(low: int, high: int) -> None:
    """Raise ``ValueError`` unless these are the ends of a range of lengths."""
    whole(low, "the shortest length", 0)
    whole(high, "the longest length", 0, LONGEST_INPUT)
    if low > high:
        raise ValueError(f"the shortest length {low} is larger than the longest, {high}")


def standing(
    in_crasp: bool, in_positional: bool, period: int | None = None, locality: int | None = None
) -> Theory:
    """What theory says of a task, with the period and the locality of a program for it if there is one."""
    if in_crasp:
        statement = "a C-RASP program without positions does it"
    elif in_positional:
        statement = f"a program of {POSITIONAL} does it, and none without positions"
    else:
        statement = f"no program of {POSITIONAL} does it"
    return Theory(
        period=period, locality=locality, in_crasp=in_crasp, in_positional=in_positional, statement=statement
    )
