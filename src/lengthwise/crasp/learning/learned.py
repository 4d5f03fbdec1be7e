"""What learning ends with."""

from dataclasses import dataclass
from typing import Literal

from lengthwise.crasp.learning.words import Text
from lengthwise.crasp.program import Program
from lengthwise.crasp.verdict import Verdict


@dataclass(frozen=True)
class Learned:
    """A program that was learned, and how much is known of it.

    - ``found``: the program fits all that was given or asked: every labelled word, or every word that an
      oracle was asked about. If False, no program was found in time, which does not say that there is none;
      unless ``verdict`` says so;
    - ``program``: the program found; if none was, the one of least error on the sample, or None;
    - ``errors``: words that this one is wrong on, some of them if they are many; empty if it was found;
    - ``method``: "search", or "extraction" from an automaton;
    - ``checked``: the program agrees with the oracle on all words up to this length; None where there is no
      oracle, where no program was found, and for an automaton too large to be compared with;
    - ``verdict``: of ``equivalent`` where the oracle is a program and the solver is there, of ``decide`` for
      an automaton; None otherwise;
    - ``rounds``: how many programs fitted the sample, of which all but the last were refuted, or could not be
      proved right;
    - ``counterexamples``: words on which those were wrong, added to the sample;
    - ``examples``: how many words the sample had at first; ``moves``: changes tried; ``seconds``: it took.
    """

    program: Program | None
    found: bool
    errors: tuple[Text, ...]
    method: Literal["search", "extraction"]
    checked: int | None
    verdict: Verdict | None
    rounds: int
    counterexamples: tuple[Text, ...]
    examples: int
    moves: int
    seconds: float

    @property
    def proved(self) -> bool:
        """Whether it is proved that the program accepts exactly the language."""
        return self.found and self.verdict is not None and self.verdict.answer is True

    @property
    def known(self) -> Literal["proved", "checked", "fits", "not found"]:
        """How much is known: the program is proved right; it was compared on all words up to the length
        ``checked`` and on some longer ones; it fits the examples, and no more was asked; or there is none.
        """
        if not self.found:
            return "not found"
        return "proved" if self.proved else "fits" if self.checked is None else "checked"
