"""Regular languages: automata, their classes, and whether C-RASP can tell them."""

from lengthwise.crasp.regular.automaton import DFA
from lengthwise.crasp.regular.decide import Classes, classify, decide
from lengthwise.crasp.regular.families import Family
from lengthwise.crasp.regular.regex import compile_regex

__all__ = ["DFA", "Classes", "Family", "classify", "compile_regex", "decide"]
