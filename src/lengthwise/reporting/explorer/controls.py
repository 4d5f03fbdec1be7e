"""What can be moved: the constructions of the explorer, their parameters, and the ranges of these.

The ranges are such that every answer takes about a second or less.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from lengthwise._messages import nearest
from lengthwise.crasp.power import parse_power
from lengthwise.limit import LimitTransformer
from lengthwise.limit.constructions import k_gram, mod_p, simple_task

LONGEST_INPUT = 1000
"""An input has at most so many tokens."""

LONGEST_TEXT = 4000
"""The text of an input has at most so many characters."""


INFINITE = "infinite"
"""How plain data say that a parameter is infinite."""


@dataclass(frozen=True)
class Control:
    """A parameter from ``low`` to ``high``; a page moves it by ``step``, of its logarithm to base 10 if
    ``logarithmic``.
    """

    name: str
    label: str
    help: str
    low: float
    high: float
    default: float
    step: float = 1
    logarithmic: bool = False
    infinite: bool = False
    """Whether it may be infinite too."""

    @property
    def whole(self) -> bool:
        """Whether the parameter counts something."""
        return self.step == 1 and not self.logarithmic

    def value(self, given: Any) -> int | float:
        """The parameter, or a ``ValueError`` that says what is wrong with it."""
        sort = "a whole number" if self.whole else "a number"
        asked = f"{self.name} must be {sort} from {self.low:g} to {self.high:g}"
        if self.infinite:
            asked += f" or {INFINITE!r}"
            if given == INFINITE:
                return math.inf
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise ValueError(f"{asked}, got {_short(given)}")
        if not self.low <= given <= self.high or (self.whole and given != int(given)):
            raise ValueError(f"{asked}, got {_short(given)}")
        return int(given) if self.whole else float(given)


TOLERANCE = Control(
    "tolerance",
    "tolerance",
    "how much more outputs may differ beyond the length",
    1e-4,
    1.0,
    0.1,
    step=0.05,
    logarithmic=True,
)


@dataclass(frozen=True)
class Construction:
    """A family of limit transformers, what it computes, and an input to begin with."""

    title: str
    about: str
    example: str
    parameters: tuple[Control, ...]


def _precision(default: int) -> Control:
    return Control(
        "bits",
        "precision (bits)",
        "weights of at most 2^-bits of the largest become 0",
        1,
        64,
        default,
        infinite=True,
    )


CONSTRUCTIONS = {
    "simple": Construction(
        "SimpleTask",
        "sin(omega (c0 - c1)/(c0 + c1)), where c0 and c1 count the tokens 0 and 1, by straight pieces "
        "between knots. Attention is uniform at every length: there is no margin, and precision only decides "
        "which theorem speaks.",
        "(0110100)^100",
        (
            Control("omega", "omega", "how often the sine turns", 0.5, 32, 8, step=0.5),
            Control("knots", "knots", "straight pieces of the sine", 8, 256, 64),
            _precision(16),
        ),
    ),
    "modp": Construction(
        "ModPTask",
        "The fraction of 1s among the positions t with t = residue (mod period). In finite precision "
        "attention is hard from length 2^(bits/margin) on, and leaks to the other positions below; in "
        "infinite precision it leaks at every length.",
        "(011010)^100",
        (
            Control("period", "period", "positions repeat after so many", 1, 12, 3),
            Control("residue", "residue", "which positions count, below the period", 0, 11, 0),
            Control(
                "margin",
                "margin",
                "logit gap between these positions and others",
                0.05,
                50,
                4,
                step=0.05,
                logarithmic=True,
            ),
            _precision(16),
        ),
    ),
    "kgram": Construction(
        "k-gram (induction head)",
        "The distribution of the tokens that followed earlier occurrences of the last k tokens. Two layers, "
        "in infinite precision: no bound is known for two layers in finite precision.",
        "(0010110)^40 01",
        (
            Control("k", "k", "tokens of context", 1, 3, 2),
            Control("vocabulary", "vocabulary", "how many tokens there are", 2, 6, 3),
            Control(
                "margin",
                "margin",
                "logit for every token of the context that agrees",
                0.1,
                50,
                7.5,
                step=0.05,
                logarithmic=True,
            ),
        ),
    ),
}
"""What the explorer shows, by the names of ``lw.constructions``."""


def controls() -> dict[str, Any]:
    """All constructions and their parameters as plain data."""
    return {
        "longest_input": LONGEST_INPUT,
        "longest_text": LONGEST_TEXT,
        "infinite": INFINITE,
        "constructions": {
            name: {
                "title": one.title,
                "about": one.about,
                "example": one.example,
                "parameters": [
                    {**asdict(control), "whole": control.whole} for control in (*one.parameters, TOLERANCE)
                ],
            }
            for name, one in CONSTRUCTIONS.items()
        },
    }


@dataclass(frozen=True)
class Setting:
    """A construction with its parameters, and the tolerance."""

    construction: str
    parameters: tuple[tuple[str, int | float], ...]
    tolerance: float

    @property
    def model(self) -> LimitTransformer:
        """The limit transformer."""
        return _model(self.construction, self.parameters)

    @property
    def name(self) -> str:
        """What the model is called on the command line."""
        return f"{self.construction}:{','.join(f'{name}={exact(value)}' for name, value in self.parameters)}"


def setting_of(given: Mapping[str, Any]) -> Setting:
    """The setting that plain data describe; what is not given has its default."""
    name = given.get("construction")
    if not isinstance(name, str) or name not in CONSTRUCTIONS:
        raise ValueError(f"construction must be one of {', '.join(CONSTRUCTIONS)}, got {_short(name)}")
    known = {control.name: control for control in (*CONSTRUCTIONS[name].parameters, TOLERANCE)}
    for key in given:
        if key not in (*known, "construction", "input"):
            raise ValueError(f"construction {name!r} has no parameter {_short(key)}{nearest(key, [*known])}")
    values = {key: control.value(given.get(key, control.default)) for key, control in known.items()}
    if name == "modp" and values["residue"] >= values["period"]:
        raise ValueError(f"residue must be below the period, {values['period']}, got {values['residue']}")
    tolerance = values.pop("tolerance")
    return Setting(name, tuple(values.items()), tolerance)


class InputMistake(ValueError):
    """The input is not understood: to be expected of one that is still being typed."""


def tokens_of(given: Mapping[str, Any], vocabulary: int) -> list[int]:
    """The tokens of the input: digits, which may stand in powers as in (01)^20 1, or digits with commas."""
    try:
        return _tokens(given, vocabulary)
    except RecursionError:
        raise InputMistake("input has too many parentheses") from None
    except ValueError as error:
        raise InputMistake(str(error)) from None


def _tokens(given: Mapping[str, Any], vocabulary: int) -> list[int]:
    text = given.get("input")
    if not isinstance(text, str):
        raise ValueError(f"input must be a text such as 0110 or (01)^20, got {_short(text)}")
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"input must have at most {LONGEST_TEXT} characters, got {len(text)}")
    alphabet = [str(token) for token in range(vocabulary)]
    word = parse_power(text.replace(",", " "), alphabet)
    if word.length == 0:
        raise ValueError("the input is empty: a string has at least one token")
    if word.length > LONGEST_INPUT:
        raise ValueError(f"input must have at most {LONGEST_INPUT} tokens, got {_short(word.length)}")
    return [token for block, repetitions in word.blocks for token in block * repetitions]


@lru_cache(maxsize=64)
def _model(name: str, parameters: tuple[tuple[str, int | float], ...]) -> LimitTransformer:
    values: dict[str, Any] = dict(parameters)
    if name == "simple":
        return simple_task(values["omega"], values["knots"], bits=values["bits"])
    if name == "modp":
        return mod_p(values["period"], values["residue"], bits=values["bits"], margin=values["margin"])
    return k_gram(values["k"], values["vocabulary"], 1.0, margin=values["margin"])


def exact(value: float) -> str:
    """A number as the command line reads it back, without a fraction where there is none."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(value)


def _short(given: Any) -> str:
    """What was given, cut to a length that a sentence bears."""
    if isinstance(given, int) and given.bit_length() > 200:
        return "a number of more than 60 digits"
    told = f"{given:g}" if isinstance(given, float) else repr(given)
    return told if len(told) <= 40 else f"{told[:40]}..."
