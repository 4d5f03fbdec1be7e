"""What a program is learned from: labelled words, or an oracle that is asked."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from lengthwise.crasp.learning.checking import Checker, proved
from lengthwise.crasp.learning.deadline import Deadline
from lengthwise.crasp.learning.oracles import Oracle
from lengthwise.crasp.learning.samples import first_words, with_labels, with_prefixes
from lengthwise.crasp.learning.values import Sample
from lengthwise.crasp.learning.words import Word, power
from lengthwise.crasp.power import PowerWord
from lengthwise.crasp.program import Program
from lengthwise.crasp.verdict import Verdict


class Teacher(ABC):
    """Gives a sample, and says what is wrong with a program that fits it.

    - ``empty``: whether the empty word is in the language, if that is known;
    - ``examples``: how many words are known at first;
    - ``checked``: programs are compared on all words up to this length; None where that cannot be done.
    """

    alphabet: tuple[str, ...]
    empty: bool | None
    examples: int

    @property
    @abstractmethod
    def checked(self) -> int | None:
        """Up to which length all words are compared."""

    @abstractmethod
    def sample(self, counterexamples: Sequence[Word]) -> Sample:
        """The sample, with words on which programs were wrong."""

    @abstractmethod
    def refute(self, program: Program) -> list[PowerWord]:
        """Words on which a program is wrong, if some are found."""

    @abstractmethod
    def prove(self, program: Program) -> Verdict | None:
        """Whether a program accepts exactly the language, where that can be asked."""


class Examples(Teacher):
    """Labelled words, and nothing else."""

    def __init__(self, labels: Mapping[Word, bool], alphabet: Sequence[str]) -> None:
        self.alphabet = tuple(alphabet)
        self.empty = labels.get(())
        self.examples = len(labels)
        self._labels = {word: label for word, label in labels.items() if word}

    @property
    def checked(self) -> None:
        """No words but the examples can be compared."""
        return None

    def sample(self, counterexamples: Sequence[Word]) -> Sample:
        """The words that are not empty; there are never counterexamples."""
        assert not counterexamples
        return with_labels(list(self._labels), list(self._labels.values()))

    def refute(self, program: Program) -> list[PowerWord]:
        """Nothing is known beyond the sample."""
        return []

    def prove(self, program: Program) -> Verdict | None:
        """Labelled words say nothing of all others."""
        return None


class Questions(Teacher):
    """An oracle; the first sample is drawn from it."""

    def __init__(self, oracle: Oracle, seed: int, deadline: Deadline) -> None:
        self.alphabet, self._oracle, self._deadline = oracle.alphabet, oracle, deadline
        self.empty: bool | None = bool(oracle.labels([()])[0])
        self._words = first_words(oracle, Random(seed), deadline)
        self.examples = len(self._words)
        self._checker = Checker(oracle, self._words, seed, deadline)

    @property
    def checked(self) -> int | None:
        """Up to which length all words are compared."""
        return self._checker.length

    def sample(self, counterexamples: Sequence[Word]) -> Sample:
        """The first words and the counterexamples, with the labels of all their prefixes."""
        words = [*self._words, *counterexamples]
        return with_prefixes(words, self._oracle.prefixes(words), len(counterexamples))

    def refute(self, program: Program) -> list[PowerWord]:
        """Words, short ones first, on which the program is wrong."""
        return [power(word) for word in self._checker.counterexamples(program)]

    def prove(self, program: Program) -> Verdict | None:
        """Whether the oracle's program, if it has one, is equivalent."""
        return proved(program, self._oracle, self._deadline)


def examples(target: Mapping[Any, Any] | Iterable[Any], alphabet: Sequence[str] | None) -> Examples:
    """Labelled words as they are given: a mapping, or pairs."""
    labels: dict[tuple[str, ...], bool] = {}
    for word, label in _pairs(target):
        letters = _letters(word)
        if label not in (False, True):
            raise ValueError(f"the label of {word!r} must be true or false, got {label!r}")
        if labels.setdefault(letters, bool(label)) != bool(label):
            raise ValueError(f"the word {word!r} is labelled both true and false: remove one")
    if not labels:
        raise ValueError("there are no examples: give some words with their labels")
    if not any(labels):
        raise ValueError("there is no example but the empty word: give some words with letters")
    found = sorted({letter for word in labels for letter in word})
    chosen = found if alphabet is None else list(alphabet)
    missing = [letter for letter in found if letter not in chosen]
    if missing:
        raise ValueError(f"letter {missing[0]!r} of the examples is not in the alphabet {' '.join(chosen)}")
    number = {letter: index for index, letter in enumerate(chosen)}
    return Examples({tuple(number[a] for a in word): label for word, label in labels.items()}, chosen)


def _pairs(target: Mapping[Any, Any] | Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    for pair in target.items() if isinstance(target, Mapping) else target:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ValueError(f"an example is a pair of a word and its label, got {pair!r}")
        yield pair[0], pair[1]


def _letters(word: Any) -> tuple[str, ...]:
    if not isinstance(word, Sequence) or not all(isinstance(letter, str) and letter for letter in word):
        raise ValueError(f"a word is a string or a sequence of letters, got {word!r}")
    return tuple(word)
