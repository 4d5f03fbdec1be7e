"""Binary majority, three of them interleaved, and parity: the answer depends on how many 0 there are."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from lengthwise.tasks._interface import Theory
from lengthwise.tasks._ordering import shuffled
from lengthwise.tasks._prediction import standing
from lengthwise.tasks._streams import StreamTask, chosen, uniform

ZERO, ONE, EVEN = 1, 2, 3
"""Tokens; odd comes after even."""

STRINGS = 3
"""How many strings the interleaved task has."""


def _bits(
    zeros: Int[Tensor, "*B"], sizes: Int[Tensor, "*B"], chances: Float64[Tensor, "*B N"]
) -> Int[Tensor, "*B N"]:
    """Strings of these sizes with so many 0, in random order."""
    place = torch.arange(chances.shape[-1], device=chances.device)
    return shuffled((place >= zeros.unsqueeze(-1)) + ZERO, sizes, chances)


def _uneven(sizes: Int[Tensor, "*B"], chances: Float64[Tensor, "*B"]) -> Int[Tensor, "*B"]:
    """A number of 0 that is uniform from 0 to the size, half of it excepted."""
    tied = 1 - sizes % 2
    zeros = chosen(chances, sizes + 1 - tied)
    return zeros + tied * (zeros >= sizes // 2)


def _ones_win(bits: Int[Tensor, "*B N"], sizes: Int[Tensor, "*B"]) -> Int[Tensor, "*B"]:
    """The token of the majority; of 0, if there is none."""
    inside = torch.arange(bits.shape[-1], device=bits.device) < sizes.unsqueeze(-1)
    return (2 * ((bits == ONE) & inside).sum(-1) > sizes) + ZERO


@dataclass(frozen=True, kw_only=True)
class BinaryMajorityTask(StreamTask):
    """The bit that occurs more often. The number of 0 is uniform from 0 to the length, ties excepted; the
    bits are then shuffled.
    """

    name: ClassVar[str] = "binary-majority"
    title: ClassVar[str] = "binary majority"

    @property
    def letters(self) -> tuple[str, ...]:
        """The two bits."""
        return ("0", "1")

    @property
    def theory(self) -> Theory:
        """One comparison of two counts."""
        return standing(True, True, 1, 0)

    def longest_answer(self, length: int) -> int:
        """One bit."""
        return 1

    def chances(self, batch: int, high: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """For the number of 0, and for the order of the bits."""
        return uniform(batch, generator=generator), uniform(batch, high, generator=generator)

    def inputs(self, *noise: Tensor, high: int) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B"]]:
        """Bits."""
        lengths, count, order = noise
        return _bits(_uneven(lengths, count), lengths, order), lengths

    def answer(
        self, inputs: Int[Tensor, "B N"], sizes: Int[Tensor, "B"]
    ) -> tuple[Int[Tensor, "B W"], Int[Tensor, "B"]]:
        """The majority."""
        return _ones_win(inputs, sizes).unsqueeze(1), torch.ones_like(sizes)


@dataclass(frozen=True, kw_only=True)
class InterleavedMajorityTask(StreamTask):
    """The majority bits of three strings: of x_1 x_4 x_7 ..., of x_2 x_5 x_8 ... and of x_3 x_6 x_9 ...

    Each string is one of binary majority, with a number of 0 of its own. All are equally long, so that
    lengths of inputs are multiples of 3.
    """

    name: ClassVar[str] = "binary-majority-interleaved"
    title: ClassVar[str] = "binary majority, interleaved"

    @property
    def letters(self) -> tuple[str, ...]:
        """The two bits."""
        return ("0", "1")

    @property
    def shortest(self) -> int:
        """One bit a string."""
        return STRINGS

    def lengths(self, low: int, high: int) -> tuple[int, ...]:
        """Multiples of 3."""
        return tuple(length for length in super().lengths(low, high) if length % STRINGS == 0)

    @property
    def theory(self) -> Theory:
        """The strings are told apart by positions modulo 3, the answers by the distance to the separator."""
        return standing(False, True, STRINGS, STRINGS)

    def longest_answer(self, length: int) -> int:
        """One bit a string."""
        return STRINGS

    def chances(self, batch: int, high: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """For the number of 0 of every string, and for the order of its bits."""
        order = uniform(batch, STRINGS, high // STRINGS, generator=generator)
        return uniform(batch, STRINGS, generator=generator), order

    def inputs(self, *noise: Tensor, high: int) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B"]]:
        """Bits."""
        lengths, counts, orders = noise
        sizes = (lengths // STRINGS).unsqueeze(1).expand(-1, STRINGS)
        bits = _bits(_uneven(sizes, counts), sizes, orders).mT.flatten(1)
        return torch.nn.functional.pad(bits, (0, high % STRINGS)), lengths

    def answer(
        self, inputs: Int[Tensor, "B N"], sizes: Int[Tensor, "B"]
    ) -> tuple[Int[Tensor, "B W"], Int[Tensor, "B"]]:
        """The majorities, that of the first string first."""
        strings = inputs[:, : inputs.shape[1] // STRINGS * STRINGS].unflatten(1, (-1, STRINGS)).mT
        each = (sizes // STRINGS).unsqueeze(1).expand(-1, STRINGS)
        return _ones_win(strings, each), torch.full_like(sizes, STRINGS)


@dataclass(frozen=True, kw_only=True)
class ParityTask(StreamTask):
    """Whether the number of 1 is even or odd. It is uniform from 0 to the length; the bits are then shuffled.
    The empty input is even.
    """

    name: ClassVar[str] = "parity"
    title: ClassVar[str] = "parity"

    @property
    def letters(self) -> tuple[str, ...]:
        """The two bits and the two answers."""
        return ("0", "1", "even", "odd")

    @property
    def shortest(self) -> int:
        """The empty input has an answer."""
        return 0

    @property
    def theory(self) -> Theory:
        """No count tells even from odd, at all lengths."""
        return standing(False, False)

    def longest_answer(self, length: int) -> int:
        """One symbol."""
        return 1

    def chances(self, batch: int, high: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """For the number of 0, and for the order of the bits."""
        return uniform(batch, generator=generator), uniform(batch, high, generator=generator)

    def inputs(self, *noise: Tensor, high: int) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B"]]:
        """Bits."""
        lengths, count, order = noise
        return _bits(chosen(count, lengths + 1), lengths, order), lengths

    def answer(
        self, inputs: Int[Tensor, "B N"], sizes: Int[Tensor, "B"]
    ) -> tuple[Int[Tensor, "B W"], Int[Tensor, "B"]]:
        """Even or odd."""
        inside = torch.arange(inputs.shape[1], device=inputs.device) < sizes.unsqueeze(1)
        ones = ((inputs == ONE) & inside).sum(1, keepdim=True)
        return EVEN + ones % 2, torch.ones_like(sizes)
