"""Regular languages, and the formal-language suite of Huang et al. (ICLR 2025).

A decoder reads ``<bos>`` and a word, letter by letter. After ``<bos>`` and after every letter it must say
which letters can follow within some word of the language, and whether what it has read is itself a word.

Words are drawn from the language alone, uniformly among all words of a length; a set is a statement about all
words, so no words outside the language are needed to tell right from wrong.
"""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, make_dataclass, replace
from functools import cache, lru_cache
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.functional import pad

from lengthwise._messages import shown
from lengthwise.automata import (
    DFA,
    compile_regex,
    draw_words,
    next_sets,
    states_along,
    word_lengths,
)
from lengthwise.tasks._interface import Theory
from lengthwise.tasks._prediction import (
    BEGIN,
    POSITIONAL,
    Examples,
    Kind,
    PredictionTask,
    check_range,
    joined,
    standing,
)


@dataclass(frozen=True, kw_only=True)
class LanguageTask(PredictionTask):
    """What can follow each prefix of a word of a regular language.

    Axes: B batch, N letters of a word, T = N + 1 prefixes. Class c at a place says that letter c can follow;
    the last class says that the prefix is a word.
    """

    name: ClassVar[str] = "language"
    title: ClassVar[str] = "a regular language"
    kind: ClassVar[Kind] = "set"
    known: ClassVar[Theory | None] = None

    expression: str = field(
        default="(ab)*", metadata={"about": "its regular expression, with | * + ? and parentheses"}
    )
    letters: str = field(default="", metadata={"about": "its alphabet; empty for that of the expression"})

    def __post_init__(self) -> None:
        kind = type(self)
        if not isinstance(self.expression, str) or not isinstance(self.letters, str):
            raise ValueError("the expression and the letters of a language must be text")
        if kind is not LanguageTask and (self.expression, self.letters) != (kind.expression, kind.letters):
            raise ValueError(
                f"{self.name} is the language {kind.expression}; the task named language takes any expression"
            )
        object.__setattr__(self, "letters", "".join(_compiled(self.expression, self.letters).alphabet))

    def __reduce__(self) -> tuple[object, ...]:
        """By what defines the language: classes that ``define`` makes cannot be looked up in a module."""
        return _restored, (self.name, self.expression, self.letters, self.title, self.known)

    @property
    def automaton(self) -> DFA:
        """The minimal automaton."""
        return _compiled(self.expression, self.letters)

    @property
    def alphabet(self) -> tuple[str, ...]:
        """``<bos>`` and the letters."""
        return (BEGIN, *self.letters)

    @property
    def classes(self) -> int:
        """The letters, and whether the prefix is a word."""
        return len(self.letters) + 1

    @property
    def form(self) -> Hashable:
        """That of every language: models have what they need for its letters."""
        return LanguageTask

    @property
    def shortest(self) -> int:
        """The length of the shortest word, which visits no state twice."""
        return word_lengths(self.automaton, 0, len(self.automaton.states))[0]

    @property
    def theory(self) -> Theory:
        """What was found out about the languages of the suite; of any other, how to ask whether a program
        tells what may follow. (``lengthwise crasp decide`` answers whether one tells the language.)
        """
        if self.known is not None:
            return self.known
        return Theory(
            period=None,
            locality=None,
            in_crasp=None,
            statement="ask: lw.predict, or lengthwise report of the runs",
        )

    def lengths(self, low: int, high: int) -> tuple[int, ...]:
        """Those at which the language has words."""
        check_range(low, high)
        return word_lengths(self.automaton, low, high)

    def answers(self, length: int) -> int:
        """Every prefix."""
        return length + 1

    def stream_length(self, length: int) -> int:
        """``<bos>`` and the word."""
        return length + 1

    def chances(self, batch: int, high: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """One number a letter."""
        drawn = torch.rand((high, batch), dtype=torch.float64, generator=generator, device=generator.device)
        return (drawn.mT,)

    def examples(self, *noise: Tensor, high: int) -> Examples:
        """The words that this noise makes."""
        lengths, chances = noise
        sets = _sets(self.automaton, lengths.device)
        return _examples(sets, *draw_words(self.automaton, lengths, chances), lengths)

    def examples_together(
        self, tasks: Sequence[PredictionTask], noises: Sequence[tuple[Tensor, ...]], high: int
    ) -> Examples:
        """All words are drawn from one automaton, letter by letter at once."""
        automata = [task.automaton for task in tasks if isinstance(task, LanguageTask)]
        beside, starts, sets = _beside(*dict.fromkeys(automata), device=noises[0][0].device)
        lengths, chances = joined(noises)
        counts = torch.tensor([len(noise[0]) for noise in noises])
        first = torch.tensor([starts[automaton] for automaton in automata]).repeat_interleave(counts)
        words = draw_words(beside, lengths, chances, first.to(lengths.device))
        return _examples(sets, *words, lengths)

    def examples_of(self, words: Int[Tensor, "B N"], sizes: Int[Tensor, "B"]) -> Examples:
        """The streams of the first ``sizes`` letters of some words, each the number of its letter. They need
        not be of the language: of a prefix that no word begins with, the set is empty.
        """
        sets = _sets(self.automaton, sizes.device)
        return _examples(sets, words, states_along(self.automaton, words), sizes)


def _examples(
    sets_QC: Bool[Tensor, "Q C"],
    letters_BN: Int[Tensor, "B N"],
    states_BT: Int[Tensor, "B T"],
    sizes_B: Int[Tensor, "B"],
) -> Examples:
    place_T = torch.arange(states_BT.shape[1], device=sizes_B.device)
    unread_BT = place_T > sizes_B.unsqueeze(1)
    tokens_BT = pad(letters_BN + 1, (1, 0)).masked_fill_(unread_BT, 0)
    places_BT = place_T.expand_as(tokens_BT).masked_fill(unread_BT, 0)
    return Examples(tokens_BT, places_BT, ~unread_BT, sets_QC[states_BT])


@lru_cache(maxsize=256)
def _compiled(expression: str, letters: str) -> DFA:
    return compile_regex(expression, letters or None)


@lru_cache(maxsize=256)
def _sets(dfa: DFA, device: torch.device) -> Bool[Tensor, "states classes"]:
    return next_sets(dfa).to(device)


@lru_cache(maxsize=64)
def _beside(
    *automata: DFA, device: torch.device
) -> tuple[DFA, dict[DFA, int], Bool[Tensor, "states classes"]]:
    """One automaton for all, where each begins in it, and the sets of each, in its own columns."""
    found, starts = automata[0].beside(automata[1:])
    sets = torch.zeros(len(found.states), len(found.alphabet) + 1, dtype=torch.bool)
    first = 0
    for own in map(next_sets, automata):
        sets[first : first + len(own), : own.shape[1]] = own
        first += len(own)
    return found, dict(zip(automata, starts, strict=True)), sets.to(device)


def define(
    name: str, expression: str, letters: str = "", title: str | None = None, known: Theory | None = None
) -> type[LanguageTask]:
    """The task of a language that has a name of its own: the same class for the same language."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"a name has small letters, digits and hyphens between them, got {shown(name)}")
    whole = LanguageTask(expression=expression, letters=letters)
    return _named(name, whole.expression, whole.letters, title or expression, known)


@cache
def _named(name: str, expression: str, letters: str, title: str, known: Theory | None) -> type[LanguageTask]:
    return make_dataclass(
        "".join(map(str.capitalize, name.split("-"))) + "Task",
        [("expression", str, expression), ("letters", str, letters)],
        bases=(LanguageTask,),
        namespace={"name": name, "title": title, "known": known, "__doc__": f"The language {expression}."},
        frozen=True,
        kw_only=True,
    )


def _restored(name: str, expression: str, letters: str, title: str, known: Theory | None) -> LanguageTask:
    if name == LanguageTask.name:
        return LanguageTask(expression=expression, letters=letters)
    return _named(name, expression, letters, title, known)()


IN_CRASP = standing(True, True, 1, 0)
NOWHERE = replace(
    standing(False, False),
    statement=f"no program of {POSITIONAL} does it: without positions as published, with them by an argument "
    "of our own (lengthwise crasp decide)",
)


def _dyck(height: int) -> type[LanguageTask]:
    """D_n: D_0 has the empty word alone, and D_n = (a D_{n-1} b)*."""
    return define(f"dyck-{height}", "(a" * height + "b)*" * height, "ab", f"D_{height}", IN_CRASP)


FORMAL: dict[str, type[LanguageTask]] = {
    kind.name: kind
    for kind in (
        define("tomita-1", "1*", "01", "Tomita 1", IN_CRASP),
        define("tomita-2", "(10)*", "01", "Tomita 2", IN_CRASP),
        # No odd run of 1 is followed at once by an odd run of 0.
        define("tomita-3", "(0|1((00)+1)*1)*(1((00)+1)*(00)*)?", "01", "Tomita 3", NOWHERE),
        # No 000: whether the letter before a 0 is 0 says what may follow.
        define("tomita-4", "1*(01+|001+)*(00?)?", "01", "Tomita 4", standing(False, True, 1, 1)),
        # An even number of 0 and an even number of 1.
        define("tomita-5", "(00|11|(01|10)(00|11)*(01|10))*", "01", "Tomita 5", NOWHERE),
        # The number of 0 less that of 1 is a multiple of 3.
        define("tomita-6", "(0(01)*(1|00)|1(10)*(0|11))*", "01", "Tomita 6", NOWHERE),
        define("tomita-7", "0*1*0*1*", "01", "Tomita 7", IN_CRASP),
        *map(_dyck, (2, 3, 4, 12)),
        define("aa-star", "(aa)*", "a", "(aa)*", standing(False, True, 2, 0)),
        define("aaaa-star", "(aaaa)*", "a", "(aaaa)*", standing(False, True, 4, 0)),
        define("abab-star", "(abab)*", "ab", "(abab)*", standing(False, True, 4, 0)),
        define("aa-bb-cc-dd-ee", "aa*bb*cc*dd*ee*", "abcde", "aa*bb*cc*dd*ee*", IN_CRASP),
        define("ab-d-bc", "(a|b)*d(b|c)*", "abcd", "{a,b}*d{b,c}*", IN_CRASP),
        define("012-02", "(0|1|2)*02*", "012", "{0,1,2}*02*", NOWHERE),
        # An even number of 1. The algorithmic suite has the task parity: one answer, after the whole word.
        define("parity-language", "0*(10*10*)*", "01", "parity, a language", NOWHERE),
    )
}
"""The languages of the suite by the names that users type."""
