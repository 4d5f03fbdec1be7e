"""What a bound says."""

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bound:
    """How long is long enough: if |f - g| <= e on all inputs of at most ``length`` tokens, then
    |f - g| <= e + tolerance on all inputs of every length.

    - ``length``: infinite if there is no such length, or none is known;
    - ``certified``: proved with every constant written out; otherwise of this order (paper), constant 1;
    - ``theorem``: which one; "none" where none applies;
    - ``terms``: the parts of the length, in tokens, of which the largest decides;
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
