"""Addition of two binary numbers."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from lengthwise.tasks._interface import Theory
from lengthwise.tasks._prediction import standing
from lengthwise.tasks._streams import StreamTask, chosen, uniform

ZERO, ONE, PLUS = 1, 2, 3
"""Tokens."""


@dataclass(frozen=True, kw_only=True)
class AdditionTask(StreamTask):
    """The sum of two binary numbers, the most significant bit first: ``<bos> 1 0 + 1 1 = 1 0 1 <eos>``.

    The length counts both numbers, ``+`` and ``=``, so that the shortest input is 1 + 1 = with 4 symbols; the
    source gives 4 as the least length and does not say what it counts, and with ``=`` left out there would
    be inputs of length 3. The two numbers share the other symbols: the first has from 1 to all but one of
    them, each equally likely. Both begin with 1; their other bits are independent and equally likely.
    """

    name: ClassVar[str] = "addition"
    title: ClassVar[str] = "addition"
    separator: ClassVar[str] = "="

    @property
    def letters(self) -> tuple[str, ...]:
        """The two bits, and the sign between the numbers."""
        return ("0", "1", "+")

    @property
    def shortest(self) -> int:
        """One bit a number, and two signs."""
        return 4

    @property
    def theory(self) -> Theory:
        """Too many answers for what a program can remember."""
        return standing(False, False)

    def longest_answer(self, length: int) -> int:
        """One bit more than the longer number, which has all bits but one."""
        return max(length - 2, 0)

    def stream_length(self, length: int) -> int:
        """``<bos>``, the input, of which the separator is part, and the answer."""
        return length + 1 + self.longest_answer(length)

    def chances(self, batch: int, high: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """For the length of the first number, and the bits."""
        bits = torch.randint(
            2, (batch, high - 1), dtype=torch.uint8, generator=generator, device=generator.device
        )
        return uniform(batch, generator=generator), bits

    def inputs(self, *noise: Tensor, high: int) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B"]]:
        """Both numbers and the sign between them."""
        lengths, split, bits = noise
        sign_B1 = chosen(split, lengths - 3).unsqueeze(1) + 1
        place_N = torch.arange(bits.shape[1], device=bits.device)
        leading = (place_N == 0) | (place_N == sign_B1 + 1)
        tokens = (bits.long() + ZERO).masked_fill_(leading, ONE)
        return tokens.masked_fill_(place_N == sign_B1, PLUS), lengths - 1

    def answer(
        self, inputs: Int[Tensor, "B N"], sizes: Int[Tensor, "B"]
    ) -> tuple[Int[Tensor, "B W"], Int[Tensor, "B"]]:
        """The sum.

        A place where the bits are equal sends their value on as carry, whatever comes in; one where they
        differ sends on what comes in. So the carry out of a place is the bit at the last place up to it where
        they are equal, or 0 if there is none: a running maximum of (place, bit).
        """
        sizes_B1 = sizes.unsqueeze(1)
        sign_B1 = (inputs == PLUS).long().argmax(1, keepdim=True)
        place_W = torch.arange(inputs.shape[1] - 1, device=inputs.device)
        first = _bits(inputs, sign_B1 - 1 - place_W, 0)
        second = _bits(inputs, sizes_B1 - 1 - place_W, sign_B1 + 1)
        known = (2 * place_W + 2 + first).masked_fill(first != second, 0)
        sent = known.cummax(1).values & 1
        carried = torch.nn.functional.pad(sent[:, :-1], (1, 0))
        longer = torch.maximum(sign_B1, sizes_B1 - 1 - sign_B1)
        told = longer + sent.gather(1, longer - 1)
        sums = first ^ second ^ carried
        return sums.gather(1, (told - 1 - place_W).clamp_min(0)) + ZERO, told.squeeze(1)


def _bits(inputs: Int[Tensor, "B N"], place: Int[Tensor, "B W"], least: Tensor | int) -> Int[Tensor, "B W"]:
    """The bits at some places, 0 at those before ``least``."""
    return (inputs.gather(1, place.clamp_min(0)) - ZERO).masked_fill_(place < least, 0)
