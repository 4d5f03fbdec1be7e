"""Questions about programs: is one empty, is one included in another, are two equivalent, and on words of
which length does that show?
"""

from lengthwise.crasp.programs.lengths import (
    LengthBound,
    automaton_length,
    closed_length,
    distinguishing_length,
    hypotheses_length,
    size_length,
)
from lengthwise.crasp.programs.questions import empty, equivalent, included

__all__ = [
    "LengthBound",
    "automaton_length",
    "closed_length",
    "distinguishing_length",
    "empty",
    "equivalent",
    "hypotheses_length",
    "included",
    "size_length",
]
