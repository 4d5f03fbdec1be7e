"""Door: regular expressions."""

import random
from pathlib import Path
from typing import Any

from fuzz_doors.door import Door, require
from fuzz_doors.values import TEXTS, mostly
from lengthwise.crasp import compile_regex, decide, decide_next

MOST_LETTERS = 14
"""Expressions have at most so many characters, so that answers are quick."""

PARTS = [*"aab01|*+?()", "()", "(a|b)", "(ab)*", "a*b", "é", ".", "[", "\\", " ", "\x00", "\ud800", "^", "$"]


def draw(source: random.Random) -> dict[str, Any]:
    """An expression, and what is asked of it."""
    regex: Any = "".join(source.choices(PARTS[:18], k=source.randint(0, 5)))[:MOST_LETTERS]
    if source.random() < 0.3:
        at = source.randint(0, len(regex))
        regex = regex[:at] + source.choice(PARTS) + regex[at:]
    if source.random() < 0.05:
        regex = source.choice(
            ["(" * 20000, "a" * 3000, "(a?)" * 200, "a|" * 3000, "(" * 500 + "a" + ")" * 500]
        )
    if source.random() < 0.05:
        regex = "(a|b)*a" + "(a|b)" * source.choice([3, 9, 20, 60])
    if source.random() < 0.05:
        regex = mostly(source, [""], 0.9)
    asked: dict[str, Any] = {"regex": regex}
    if source.random() < 0.3:
        asked["alphabet"] = mostly(source, ["ab", "01", ["a", "b"], "aa", "", ["ab"], *TEXTS[:6]], 0.3)
    if source.random() < 0.3:
        asked["acceptance"] = mostly(source, ["last", "eos"], 0.3)
    if source.random() < 0.2:
        asked["positional"] = True
        asked["most_window"] = mostly(source, [0, 1, 2], 0.3)
        asked["most_period"] = mostly(source, [1, 2, 3], 0.3)
    asked["ask"] = source.choice(["compile", "compile", "decide", "decide_next"])
    return asked


def enter(given: dict[str, Any], folder: Path) -> None:
    """An expression is refused, or is an automaton, and a question about it is answered."""
    asked = dict(given)
    ask, regex = asked.pop("ask"), asked.pop("regex")
    large = isinstance(regex, str) and len(regex) > 40
    if ask == "compile" or large:
        dfa = compile_regex(regex, asked.get("alphabet"))
        require(dfa == dfa.minimal(), "not minimal")
    elif ask == "decide_next":
        verdict = decide_next(regex, asked.get("alphabet"))
        require(verdict.answer in (True, False, None), "no answer", verdict.answer)
    else:
        verdict = decide(regex, **asked)
        if not asked.get("positional"):
            require(verdict.answer in (True, False), "no answer", verdict.answer)
        if verdict.answer is True:
            dfa = compile_regex(regex, asked.get("alphabet"))
            for word in ("", dfa.alphabet[0], dfa.alphabet[-1] * 2, dfa.alphabet[0] + dfa.alphabet[-1]):
                if not (word == "" and verdict.witness.mode == "last"):
                    require(verdict.witness(word) == dfa.accepts(word), "other answer on", repr(word))


DOOR = Door(name="regex", about="regular expressions", share=5, seconds=60.0, draw=draw, enter=enter)
