"""Regular languages: automata, their classes, and whether C-RASP can tell them."""

from lengthwise.automata.automaton import DFA
from lengthwise.automata.regex import compile_regex
from lengthwise.crasp.regular.continuations import decide_next
from lengthwise.crasp.regular.decide import Classes, classify, decide
from lengthwise.crasp.regular.families import Family

__all__ = ["DFA", "Classes", "Family", "classify", "compile_regex", "decide", "decide_next"]
