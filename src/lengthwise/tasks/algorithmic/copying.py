"""Copying, with and without repetitions, and sorting."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from lengthwise._checks import whole
from lengthwise.tasks._interface import Theory
from lengthwise.tasks._ordering import ascending, permutations
from lengthwise.tasks._prediction import standing
from lengthwise.tasks._streams import StreamTask, uniform

MOST_TOKENS = 2**16
"""There are at most so many numbers."""


@dataclass(frozen=True, kw_only=True)
class _DistinctTask(StreamTask):
    """Inputs of numbers without repetition, so that none is longer than there are numbers."""

    tokens: int = field(
        default=150, metadata={"about": "how many tokens there are; an input has each at most once"}
    )

    def __post_init__(self) -> None:
        whole(self.tokens, "tokens", 1, MOST_TOKENS)

    @property
    def letters(self) -> tuple[str, ...]:
        """The numbers from 0 on."""
        return tuple(map(str, range(self.tokens)))

    def lengths(self, low: int, high: int) -> tuple[int, ...]:
        """Up to the number of tokens."""
        return tuple(length for length in super().lengths(low, high) if length <= self.tokens)

    def longest_answer(self, length: int) -> int:
        """As many as the input has."""
        return min(length, self.tokens)

    def stream_length(self, length: int) -> int:
        """``<bos>``, the input, the separator and the answer."""
        return super().stream_length(min(length, self.tokens))

    def _counted(self) -> Theory:
        return replace(
            standing(True, True, 1, 0),
            statement="a C-RASP program without positions does it, of a size linear in the number of tokens "
            "(of any size one always does, since there are finitely many inputs)",
        )

    def chances(self, batch: int, high: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """For the order of all tokens, of which the first are used."""
        return (uniform(batch, self.tokens, generator=generator),)

    def inputs(self, *noise: Tensor, high: int) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B"]]:
        """Numbers."""
        lengths, order = noise
        return permutations(order)[:, :high] + 1, lengths


@dataclass(frozen=True, kw_only=True)
class CopyUniqueTask(_DistinctTask):
    """The input again. Its tokens are drawn without replacement."""

    name: ClassVar[str] = "copy-unique"
    title: ClassVar[str] = "copy, unique"

    @property
    def theory(self) -> Theory:
        """What comes next has as many symbols before it as have been copied."""
        return self._counted()

    def answer(
        self, inputs: Int[Tensor, "B N"], sizes: Int[Tensor, "B"]
    ) -> tuple[Int[Tensor, "B W"], Int[Tensor, "B"]]:
        """The input."""
        return inputs, sizes


@dataclass(frozen=True, kw_only=True)
class SortTask(_DistinctTask):
    """The input in ascending order. Its tokens are drawn without replacement."""

    name: ClassVar[str] = "sort"
    title: ClassVar[str] = "sort"

    @property
    def theory(self) -> Theory:
        """What comes next is the first token that occurs once so far."""
        return self._counted()

    def answer(
        self, inputs: Int[Tensor, "B N"], sizes: Int[Tensor, "B"]
    ) -> tuple[Int[Tensor, "B W"], Int[Tensor, "B"]]:
        """The input in order."""
        outside = torch.arange(inputs.shape[1], device=inputs.device) >= sizes.unsqueeze(1)
        return ascending(inputs.masked_fill(outside, self.vocabulary)), sizes


@dataclass(frozen=True, kw_only=True)
class CopyRepeatTask(StreamTask):
    """The input again. Its letters, a and b, are independent and equally likely."""

    name: ClassVar[str] = "copy-repeat"
    title: ClassVar[str] = "copy, repeated"

    @property
    def letters(self) -> tuple[str, ...]:
        """Two of them."""
        return ("a", "b")

    @property
    def theory(self) -> Theory:
        """Too many answers for what a program can remember."""
        return standing(False, False)

    def longest_answer(self, length: int) -> int:
        """As many as the input has."""
        return length

    def chances(self, batch: int, high: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The letters."""
        shape = batch, high
        return (torch.randint(2, shape, dtype=torch.uint8, generator=generator, device=generator.device),)

    def inputs(self, *noise: Tensor, high: int) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B"]]:
        """Letters."""
        lengths, letters = noise
        return letters.long() + 1, lengths

    def answer(
        self, inputs: Int[Tensor, "B N"], sizes: Int[Tensor, "B"]
    ) -> tuple[Int[Tensor, "B W"], Int[Tensor, "B"]]:
        """The input."""
        return inputs, sizes
