"""Who tells whether a word is in the language that is to be learned."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool

from lengthwise.crasp.batch import accepts, outputs
from lengthwise.crasp.learning.deadline import Deadline
from lengthwise.crasp.learning.endings import at_last_letter
from lengthwise.crasp.learning.words import Word, padded, spelled
from lengthwise.crasp.program import Program


class Oracle(ABC):
    """Knows of every word whether it is in the language."""

    alphabet: tuple[str, ...]

    @abstractmethod
    def labels(self, words: Sequence[Word]) -> Bool[np.ndarray, "B"]:
        """Whether each word is in the language."""

    @abstractmethod
    def prefixes(self, words: Sequence[Word]) -> list[Bool[np.ndarray, "..."]]:
        """Whether each prefix but the empty one of each word is in the language."""


class ProgramOracle(Oracle):
    """A program that accepts the language; ``program`` is one that does so at the last letter."""

    def __init__(self, program: Program, deadline: Deadline) -> None:
        self.alphabet = tuple(program.alphabet)
        self.program, self._deadline = at_last_letter(program), deadline

    def labels(self, words: Sequence[Word]) -> Bool[np.ndarray, "B"]:
        """Whether each word is accepted."""
        self._deadline.check()
        lengths = torch.tensor([len(word) for word in words], dtype=torch.long)
        return accepts(self.program, padded(words), lengths).numpy()

    def prefixes(self, words: Sequence[Word]) -> list[Bool[np.ndarray, "..."]]:
        """Whether each prefix but the empty one of each word is accepted."""
        self._deadline.check()
        held_BT = outputs(self.program, padded(words))["accept"].numpy()
        return [held[: len(word)] for held, word in zip(held_BT, words, strict=True)]


class FunctionOracle(Oracle):
    """A function of words; it is asked about each word once."""

    def __init__(self, function: Callable[[Any], Any], alphabet: Sequence[str], deadline: Deadline) -> None:
        self.alphabet = tuple(alphabet)
        self._function, self._deadline = function, deadline
        self._known: dict[Word, bool] = {}

    def labels(self, words: Sequence[Word]) -> Bool[np.ndarray, "B"]:
        """What the function says of each word."""
        return np.fromiter((self._label(word) for word in words), dtype=np.bool_, count=len(words))

    def prefixes(self, words: Sequence[Word]) -> list[Bool[np.ndarray, "..."]]:
        """What the function says of each prefix but the empty one of each word."""
        return [self.labels([word[:end] for end in range(1, len(word) + 1)]) for word in words]

    def _label(self, word: Word) -> bool:
        found = self._known.get(word)
        if found is None:
            self._deadline.check()
            found = self._known[word] = bool(self._function(spelled(word, self.alphabet)))
        return found
