"""What the library knows of one task or language."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from lengthwise.crasp.program import Program
from lengthwise.crasp.regular import DFA, compile_regex, decide
from lengthwise.crasp.verdict import Verdict

Suite = Literal["algorithmic", "formal", "both"]
"""The suites of Huang et al. (ICLR 2025): algorithmic tasks, formal languages; parity is in both."""

POSITIONAL = "C-RASP[periodic,local]"
PUBLISHED = "decided after arXiv 2608.13433"
OWN = "decided by our own argument"


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """A task or a language, a program for it if there is one, and where it stands in C-RASP.

    - ``name``: as users type it; ``title``: as mathematicians write it; ``says``: the same in a few words;
    - ``alphabet``: the letters that a program for it reads;
    - ``write``: makes the program that the library has for it, and ``write_without`` one without positions
      where that program uses them; None if it has none;
    - ``regex``: a regular expression, where it is a regular language;
    - ``not_without``, ``not_with``: a proof, named in a few words, that no program without positions, or
      none at all, does it. Regular languages have none here: the decision procedure answers for them;
    - ``finite``: whether there are finitely many inputs. Whatever has finitely many is in C-RASP, so that of
      such a task only the size of a program tells something;
    - ``suite``: in which suite of experiments it was published; None if in none of the two.

    Words are accepted at their last letter, unless the end mark is named. Tasks whose answer is a word have
    programs that predict it symbol by symbol (see ``lengthwise.crasp.library.functions``).
    """

    name: str
    title: str
    says: str
    alphabet: tuple[str, ...]
    write: Callable[[], Program] | None = None
    write_without: Callable[[], Program] | None = None
    regex: str | None = None
    not_without: str | None = None
    not_with: str | None = None
    finite: bool = False
    suite: Suite | None = None

    @cached_property
    def _written(self) -> Program | None:
        return None if self.write is None else self.write()

    @cached_property
    def automaton(self) -> DFA | None:
        """The minimal automaton, where it is a regular language."""
        return None if self.regex is None else compile_regex(self.regex, self.alphabet)

    @property
    def program(self) -> Program | None:
        """The program that the library has; otherwise, of a regular language, the one that the decision
        procedure makes; None if there is none.
        """
        if self._written is not None:
            return self._written
        return self.in_crasp.witness if self.in_crasp.answer else self.in_positional.witness

    @cached_property
    def in_crasp(self) -> Verdict:
        """Whether a program without positions does it."""
        if self._written is not None and self._written.fragment != POSITIONAL:
            return Verdict(True, self._written, "program")
        if self.write_without is not None:
            return Verdict(True, self.write_without(), "program, another one")
        if self.automaton is not None:
            return _sourced(decide(self.automaton), PUBLISHED)
        return _refuted(self.not_without or self.not_with)

    @cached_property
    def in_crasp_eos(self) -> Verdict | None:
        """Whether a program without positions does it that accepts at an end mark; None for tasks whose
        answer is a word.

        Languages of the library that are not regular have programs that say the same at an end mark as at
        the last letter.
        """
        if self.automaton is not None:
            return _sourced(decide(self.automaton, acceptance="eos"), PUBLISHED)
        if self._written is None or self._written.accept is None:
            return None
        return Verdict(True, replace(self._written, mode="eos"), "program")

    @cached_property
    def in_positional(self) -> Verdict:
        """Whether a program does it that may use positions modulo a number and distances."""
        if self._written is not None:
            return Verdict(True, self._written, "program")
        if self.automaton is not None:
            return _sourced(decide(self.automaton, positional=True), OWN)
        return _refuted(self.not_with)

    @property
    def depth(self) -> int | None:
        """How deeply the program nests counts; None if there is none."""
        return None if self.program is None else self.program.depth

    @property
    def period(self) -> int | None:
        """The least common multiple of the program's moduli; None if there is none."""
        return None if self.program is None else self.program.period

    @property
    def locality(self) -> int | None:
        """The largest distance that the program looks back by itself; None if there is none."""
        return None if self.program is None else self.program.locality

    @property
    def fragment(self) -> str | None:
        """The smallest class that the program's form shows; None if there is none."""
        return None if self.program is None else self.program.fragment


def _sourced(found: Verdict, source: str) -> Verdict:
    """A verdict of the decision procedure with its source; that of a yes is the program that it made."""
    return replace(
        found, method="program made from the automaton" if found.answer else f"{source}: {found.method}"
    )


def _refuted(why: str | None) -> Verdict:
    return Verdict(None, None, "nothing is known") if why is None else Verdict(False, None, f"proved: {why}")
