"""Whether a program does what an oracle says: on all short words, on longer ones, and, by proof, on all."""

import importlib.util
from collections.abc import Sequence
from random import Random

import numpy as np
import torch
from torch import Tensor

from lengthwise.crasp.batch import accepts
from lengthwise.crasp.learning.deadline import Deadline
from lengthwise.crasp.learning.oracles import Oracle, ProgramOracle
from lengthwise.crasp.learning.samples import changed, edited, random_word
from lengthwise.crasp.learning.words import Word, all_words, padded
from lengthwise.crasp.power import PowerWord
from lengthwise.crasp.program import Program
from lengthwise.crasp.verdict import Verdict

MOST_WORDS = 2**15
"""All words are compared of lengths with at most so many words."""

MOST_LENGTHS = 60
"""All words are compared of at most so many lengths; of one letter there is one word a length."""

PATIENCE = 0.25
"""The share of the time left that is spent at most on asking about all short words."""

LONGEST, LONGEST_PUMPED = 60, 120
"""Longer words that are compared have at most so many letters; those with a piece repeated, so many."""

GENERATIONS, EACH = 6, 100
"""Longer words are made by changing others, so often, and so many in each way."""

MOST_TOLD = 3
"""So many words are told on which a program is wrong."""

PROOF_SECONDS = 6.0
"""The longest time to look for a proof that a program is right."""

AT_ONCE = 1024
"""An oracle is asked about so many words at a time."""


class Checker:
    """Compares programs with an oracle.

    ``length`` says up to which length all words are compared; it is set with the first comparison.
    """

    def __init__(self, oracle: Oracle, parents: Sequence[Word], seed: int, deadline: Deadline) -> None:
        self._oracle, self._letters, self._deadline = oracle, len(oracle.alphabet), deadline
        self._parents, self._source = list(parents), Random(seed)
        self._short: list[tuple[Tensor, np.ndarray]] = []

    @property
    def length(self) -> int:
        """Up to which length all words are compared."""
        return len(self._short)

    def counterexamples(self, program: Program) -> list[Word]:
        """Words, at most three, on which a program is wrong: of all short words, one of the smallest length
        that has any, and one of the largest length if it has any; or else longer words. None if none was
        found.
        """
        if not self._short:
            self._ask_all_short()
        return self._among_short(program) or self._among_longer(program)

    def _ask_all_short(self) -> None:
        """All words of each length, with their labels, as far as the oracle is not too slow."""
        length, patience = 1, self._deadline.part(PATIENCE)
        while self._letters**length <= MOST_WORDS and length <= MOST_LENGTHS:
            tokens = all_words(self._letters, length)
            parts: list[np.ndarray] = []
            for some in tokens.split(AT_ONCE):
                if self._short and patience.left() <= 0:
                    return
                parts.append(self._oracle.labels([tuple(word) for word in some.tolist()]))
            self._short.append((tokens, np.concatenate(parts)))
            length += 1

    def _among_short(self, program: Program) -> list[Word]:
        for place in range(self.length):
            wrong = self._wrong_short(program, place)
            if wrong:
                return wrong if place == self.length - 1 else wrong + self._wrong_short(program, -1)
        return []

    def _wrong_short(self, program: Program, place: int) -> list[Word]:
        """A word of one length on which the program is wrong, if there is one."""
        self._deadline.check()
        tokens, truth = self._short[place]
        wrong = np.flatnonzero(accepts(program, tokens).numpy() != truth)
        if not len(wrong):
            return []
        return [tuple(tokens[int(wrong[self._source.randrange(len(wrong))])].tolist())]

    def _among_longer(self, program: Program) -> list[Word]:
        """Words made by changing those of the sample and, above all, those that the program accepts."""
        accepted = _accepted(program, self._parents)
        for _ in range(GENERATIONS):
            self._deadline.check()
            words = self._longer(accepted)
            held = _accepted(program, words)
            wrong = set(held) ^ {
                word for word, label in zip(words, self._oracle.labels(words), strict=True) if label
            }
            if wrong:
                return sorted(wrong, key=lambda word: (len(word), word))[:MOST_TOLD]
            accepted += held
        return []

    def _longer(self, accepted: Sequence[Word]) -> list[Word]:
        source, letters = self._source, self._letters
        words = [random_word(source, letters, source.randint(1, LONGEST)) for _ in range(EACH)]
        words += [changed(source, self._parents, letters, LONGEST) for _ in range(EACH)]
        if accepted:
            words += [changed(source, accepted, letters, LONGEST) for _ in range(EACH)]
            words += [_pumped(source, source.choice(accepted)) for _ in range(EACH)]
            words += [edited(source, source.choice(accepted), letters) for _ in range(2 * EACH)]
        return [word for word in dict.fromkeys(words) if word]


def _accepted(program: Program, words: Sequence[Word]) -> list[Word]:
    held = accepts(program, padded(words), torch.tensor([len(word) for word in words]))
    return [words[at] for at in held.nonzero().flatten().tolist()]


def _pumped(source: Random, word: Word) -> Word:
    """A word with a short piece of it repeated."""
    start, width = source.randrange(max(1, len(word))), source.randint(1, 3)
    piece = word[start : start + width]
    room = max(0, LONGEST_PUMPED - len(word)) // max(1, len(piece))
    return word[:start] + piece * source.randint(1, 1 + room) + word[start + width :]


def proved(program: Program, oracle: Oracle, deadline: Deadline) -> Verdict | None:
    """Whether a program is equivalent to the oracle's; None where the oracle has none, or where the solver is
    not installed.
    """
    if not isinstance(oracle, ProgramOracle) or importlib.util.find_spec("z3") is None:
        return None
    from lengthwise.crasp.programs import equivalent

    deadline.check()
    return equivalent(program, oracle.program, time_limit=min(PROOF_SECONDS, deadline.left()))


def witness(verdict: Verdict, program: Program) -> PowerWord:
    """The word on which a program differs from another one that it was compared with."""
    found = verdict.witness
    if not (isinstance(found, list) and found and isinstance(found[0], tuple)):
        found = [(found, 1)]
    return PowerWord(tuple((tuple(program.symbols(letters)), times) for letters, times in found))
