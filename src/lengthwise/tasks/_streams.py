"""Streams ``<bos> input <sep> answer <eos>``: the answer and ``<eos>`` are predicted, symbol by symbol.

Axes: B batch, N symbols of an input, W symbols of an answer, A = W + 1 places, T positions of a stream.
"""

from abc import abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float64, Int
from torch import Tensor
from torch.nn.functional import pad

from lengthwise.tasks._prediction import BEGIN, END, SEPARATOR, Examples, Kind, PredictionTask


class StreamTask(PredictionTask):
    """A task whose answer is a word. Letters have the tokens from 1 on, after ``<bos>``; the separator and
    ``<eos>`` come last.
    """

    kind: ClassVar[Kind] = "token"
    separator: ClassVar[str] = SEPARATOR

    @property
    @abstractmethod
    def letters(self) -> tuple[str, ...]:
        """The symbols of inputs and answers."""

    @property
    def alphabet(self) -> tuple[str, ...]:
        """The letters and the special symbols."""
        return (BEGIN, *self.letters, self.separator, END)

    @abstractmethod
    def longest_answer(self, length: int) -> int:
        """The most symbols of an answer to an input up to this length."""

    def answers(self, length: int) -> int:
        """Every symbol of the answer, and ``<eos>``."""
        return self.longest_answer(length) + 1

    def stream_length(self, length: int) -> int:
        """``<bos>``, the input, the separator and the answer."""
        return length + 2 + self.longest_answer(length)

    @abstractmethod
    def inputs(self, *noise: Tensor, high: int) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B"]]:
        """The tokens of the inputs that this noise makes, and how many each has; what follows these has no
        meaning.
        """

    @abstractmethod
    def answer(
        self, inputs: Int[Tensor, "B N"], sizes: Int[Tensor, "B"]
    ) -> tuple[Int[Tensor, "B W"], Int[Tensor, "B"]]:
        """The tokens of the answers to inputs of these sizes, and how many each has, likewise."""

    def examples(self, *noise: Tensor, high: int) -> Examples:
        """The streams of the inputs that this noise makes."""
        return self.examples_of(*self.inputs(*noise, high=high))

    def examples_of(self, inputs: Int[Tensor, "B N"], sizes: Int[Tensor, "B"]) -> Examples:
        """The streams of these inputs; streams are padded with ``<eos>``."""
        answer_BW, told_B = self.answer(inputs, sizes)
        end = self.vocabulary - 1
        place_A = torch.arange(answer_BW.shape[1] + 1, device=inputs.device)
        scored_BA = place_A <= told_B.unsqueeze(1)
        target_BA = pad(answer_BW, (0, 1)).masked_fill(place_A >= told_B.unsqueeze(1), end)
        places_BA = place_A + sizes.unsqueeze(1) + 1
        read_BA = pad(target_BA[:, :-1], (1, 0), value=end - 1)
        unread_BN = torch.arange(inputs.shape[1], device=inputs.device) >= sizes.unsqueeze(1)
        before_BT = pad(inputs.masked_fill(unread_BN, end), (1, answer_BW.shape[1] + 1), value=end)
        before_BT[:, 0] = 0
        tokens_BT = before_BT.scatter_(1, places_BA, read_BA)
        return Examples(tokens_BT, places_BA.masked_fill(~scored_BA, 0), scored_BA, target_BA)


def uniform(*shape: int, generator: torch.Generator) -> Float64[Tensor, "..."]:
    """Independent uniform numbers from 0 to below 1, on the generator's device."""
    return torch.rand(shape, dtype=torch.float64, generator=generator, device=generator.device)


def chosen(chances: Float64[Tensor, "*B"], choices: Int[Tensor, "*B"] | int) -> Int[Tensor, "*B"]:
    """A number from 0 to below ``choices``, uniform if the chance is: no product of floats is rounded up to
    ``choices``, since a chance is below 1 by at least 2^-53.
    """
    return (chances * choices).long()
