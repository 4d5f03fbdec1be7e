"""What a task is: strings to learn from, the right answer for each, and what theory says of it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengthwise._checks import whole
from lengthwise._messages import shown
from lengthwise.sequences import LONGEST_WRITTEN, Summary, check_length


@dataclass(frozen=True, kw_only=True)
class Theory:
    """What is known of a task before anything is trained.

    - ``period``, ``locality``: of a limit transformer that solves it; None where none is known;
    - ``in_crasp``: whether a C-RASP program does it; None where the question has no meaning or no answer;
    - ``in_positional``: whether one does that may use positions modulo a number and distances;
    - ``statement``: the same in words, with the guarantee where there is one.
    """

    period: int | None
    locality: int | None
    in_crasp: bool | None
    in_positional: bool | None = None
    statement: str


def check_together(batch: int, numbers: int) -> None:
    """Raise ``ValueError`` if a batch holds more numbers than are ever made at once."""
    whole(batch, "batch", 1)
    if batch * numbers > LONGEST_WRITTEN:
        raise ValueError(
            f"{batch} strings that take {shown(numbers)} numbers each are too many to be made at once: "
            "take fewer or shorter ones"
        )


class Task(ABC):
    """Strings over ``alphabet``, a target for each, and a loss for each sequence.

    A task is a frozen dataclass whose fields are its knobs, so that it is also its own specification: two
    equal tasks are the same task. What a knob means may stand in its field's metadata, as "about". All
    randomness comes from the generator that the caller passes.
    """

    name: ClassVar[str] = "own"
    title: ClassVar[str] = "this task"

    @property
    @abstractmethod
    def alphabet(self) -> tuple[str, ...]:
        """The symbols; token s stands for ``alphabet[s]``."""

    @property
    def outputs(self) -> int:
        """The dimension of the target."""
        return 1

    @property
    def theory(self) -> Theory:
        """What theory says of the task at these knobs."""
        return Theory(period=1, locality=0, in_crasp=None, statement="nothing is known of it")

    @abstractmethod
    def sample(self, batch: int, length: int, generator: torch.Generator) -> Int[Tensor, "{batch} {length}"]:
        """A batch of strings of one length, on the generator's device."""

    @abstractmethod
    def target(self, tokens: Int[Tensor, "*batch length"]) -> Float[Tensor, "*batch outputs"]:
        """The right answer for each string, in float64."""

    def loss(
        self, output: Float[Tensor, "*batch outputs"], target: Float[Tensor, "*batch outputs"]
    ) -> Float[Tensor, "*batch"]:
        """The loss of each sequence, trained on and reported: squared error, summed over the outputs."""
        return (output - target).square().sum(-1)

    @property
    def shortest(self) -> int:
        """The length of the shortest string that has a target."""
        return 1

    def check_length(self, length: int) -> None:
        """Raise ``ValueError`` unless strings of this length have a target."""
        check_length(length)
        if length < self.shortest:
            raise ValueError(f"{self.title} needs strings of at least {self.shortest} tokens, got {length}")

    @property
    def vocabulary(self) -> int:
        """The number of symbols."""
        return len(self.alphabet)

    @property
    def knobs(self) -> dict[str, object]:
        """The fields that describe this task, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # pyright: ignore[reportArgumentType]


class CountTask(Task):
    """A task whose target is a function of counts, and that can sample counts without making the string.

    ``sample_counts`` has exactly the distribution of ``summarize(sample(...))``, at a cost that does not
    grow with the length. ``target_of_counts`` needs residues modulo the period that theory names.
    """

    @abstractmethod
    def sample_counts(
        self,
        batch: int,
        length: int | Int[Tensor, "{batch}"],
        generator: torch.Generator,
        *,
        period: int = 1,
        locality: int = 0,
    ) -> Summary:
        """Summaries of a batch of strings of one length, or of a length each, on the generator's device."""

    @abstractmethod
    def target_of_counts(self, summary: Summary) -> Float[Tensor, "*batch outputs"]:
        """The right answer for each summarised string, in float64."""


class SequentialTask(Task):
    """A task whose strings are made token by token, for which many are best made at once: the random numbers
    come from each caller's own generator, and one call then makes the strings of all of them.
    """

    @abstractmethod
    def noise(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The random numbers that strings are made of, each with a leading batch axis."""

    @abstractmethod
    def strings(self, *noise: Tensor) -> Int[Tensor, "batch length"]:
        """The strings that the noise makes; nothing else is random."""

    def sample(self, batch: int, length: int, generator: torch.Generator) -> Int[Tensor, "{batch} {length}"]:
        """A batch of strings of one length, on the generator's device."""
        return self.strings(*self.noise(batch, length, generator))


class StationaryTask(SequentialTask):
    """A task of which is known what its strings come to if they never end: how often each window occurs."""

    @property
    @abstractmethod
    def context(self) -> int:
        """How many of the last tokens of an endless string decide its target."""

    @abstractmethod
    def at_infinity(
        self, batch: int, width: int, generator: torch.Generator
    ) -> tuple[Float[Tensor, "{batch} windows"], Float[Tensor, "{batch} windows outputs"]]:
        """Of the endless strings whose first tokens the generator would give: the frequency of each window of
        ``width`` tokens, at least ``context``, numbered in base ``vocabulary``, and the target of a string
        that ends with it.
        """
