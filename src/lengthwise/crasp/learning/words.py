"""Words as numbers and as letters."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.crasp.power import PowerWord

Word = tuple[int, ...]
"""Letters by their numbers in the alphabet."""

Text = str | Sequence[str] | Sequence[tuple[str | Sequence[str], int]]
"""A word as it is told: a string, or letters where one has several characters; a long word as such pieces,
each with its repetitions.
"""

MOST_SPELLED = 200
"""A word of more letters that has repetitions is told in pieces."""


def power(word: Word) -> PowerWord:
    """A word as a power word."""
    return PowerWord(((word, 1),))


def written(word: PowerWord) -> Word:
    """All letters of a power word, one after the other."""
    return tuple(chain.from_iterable(symbols * times for symbols, times in word.blocks))


def spelled(word: Word, alphabet: Sequence[str]) -> str | tuple[str, ...]:
    """The letters of a word: a string if each letter is one character."""
    letters = tuple(alphabet[symbol] for symbol in word)
    return "".join(letters) if all(len(letter) == 1 for letter in alphabet) else letters


def told(word: PowerWord, alphabet: Sequence[str]) -> Text:
    """A power word as people read it."""
    if word.length <= MOST_SPELLED or (len(word.blocks) == 1 and word.blocks[0][1] == 1):
        return spelled(written(word), alphabet)
    return [(spelled(symbols, alphabet), times) for symbols, times in word.blocks]


def padded(words: Sequence[Word]) -> Int64[Tensor, "B T"]:
    """Words as rows, filled up on the right with the first letter, which no earlier position sees."""
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    found = np.zeros((len(words), int(lengths.max(initial=0))), dtype=np.int64)
    found[np.arange(found.shape[1]) < lengths[:, None]] = list(chain.from_iterable(words))
    return torch.from_numpy(found)


def all_words(letters: int, length: int) -> Int64[Tensor, "B T"]:
    """Every word of one length, a row each, in the order of the alphabet."""
    place = letters ** torch.arange(length - 1, -1, -1)
    return torch.arange(letters**length).unsqueeze(1) // place % letters
