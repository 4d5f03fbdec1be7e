"""What a bound says."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Bound:
    """How long is long enough: if |f - g| <= e on all inputs of at most ``length`` tokens, then
    |f - g| <= e + tolerance on all inputs of every length.

    - ``length``: infinite if there is no such length, or none is known;
    - ``certified``: a finite length, proved with every constant written out; otherwise, if finite, of this
      order (paper), constant 1;
    - ``theorem``: which one; "none" where none applies;
    - ``terms``: of Theorem C and the orders, the parts of the length, of which the largest decides; of
      Theorem E, the parts of the error at that length, whose sum is within the tolerance;
    - ``growth``: by what factor the length grows if one parameter is made twice as bad (margins: half as
      large) and the others stay; empty where it is infinite, and for orders;
    - ``parameters``: what the theorem took in;
    - ``words``: the same as a sentence, or why the length is infinite;
    - ``order``: of a certified bound, the paper's expression beside it.
    """

    length: int | float
    terms: dict[str, int | float]
    theorem: str
    certified: bool
    tolerance: float
    parameters: dict[str, Any]
    words: str
    order: "Bound | None" = None
    grow: Callable[[], dict[str, float]] = field(default=dict, repr=False, compare=False)

    @cached_property
    def growth(self) -> dict[str, float]:
        """The factors, computed when they are first asked for."""
        return self.grow() if self.length < math.inf else {}

    @property
    def dominant(self) -> str | None:
        """The largest term."""
        return max(self.terms, key=lambda name: self.terms[name]) if self.terms else None

    def to_json(self) -> dict[str, Any]:
        """Plain data, with the keys that scripts rely on; None stands for infinite."""
        return {
            "length": _plain(self.length),
            "certified": self.certified,
            "theorem": self.theorem,
            "terms": {name: _plain(value) for name, value in self.terms.items()},
            "dominant": self.dominant,
            "growth": {name: _plain(value) for name, value in self.growth.items()},
            "tolerance": self.tolerance,
            "parameters": {name: _plain(value) for name, value in self.parameters.items()},
            "words": self.words,
            "order": self.order.to_json() if self.order else None,
        }


def _plain(value: Any) -> Any:
    """Infinities become None, and integers with more digits than JSON readers take become floats."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and value.bit_length() > 1000:
        return float(value) if value.bit_length() <= 1023 else None
    return value
