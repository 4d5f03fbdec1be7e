"""Finite automata, regular expressions, and the words of both: counted, drawn, and continued."""

from lengthwise.automata.automaton import DFA
from lengthwise.automata.regex import compile_regex
from lengthwise.automata.words import (
    draw_words,
    next_sets,
    sample_words,
    states_along,
    word_counts,
    word_lengths,
)

__all__ = [
    "DFA",
    "compile_regex",
    "draw_words",
    "next_sets",
    "sample_words",
    "states_along",
    "word_counts",
    "word_lengths",
]
