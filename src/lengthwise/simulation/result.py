"""What a simulation returns."""

from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from lengthwise.sequences import Summary

Method = Literal["counts", "shortest", "markov", "stratified", "balanced"]


@dataclass(frozen=True)
class Simulation:
    """A short string z with nearly the outputs of a long one, x.

    - ``tokens``: z; None where it is known by its ``summary`` alone and too long to write out;
    - ``length``: |z|;
    - ``error_f``, ``error_g``: the distances between the outputs on x and on z, measured by evaluating them;
    - ``guaranteed_f``, ``guaranteed_g``: what the theorem promises of them; None where it promises nothing;
    - ``guarantee``: "always", or "on average" over the draws for a random method, or "none";
    - ``summary``: all that a pair of one-layer models sees of z; None for deeper models;
    - ``details``: what the method has to say of itself (numbers and words).
    """

    tokens: Tensor | None
    length: int
    error_f: float
    error_g: float
    method: Method
    guaranteed_f: float | None
    guaranteed_g: float | None
    guarantee: Literal["always", "on average", "none"]
    summary: Summary | None
    details: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Plain data, with the keys that scripts rely on."""
        return {
            "tokens": None if self.tokens is None else self.tokens.tolist(),
            "length": self.length,
            "error_f": self.error_f,
            "error_g": self.error_g,
            "method": self.method,
            "guaranteed_f": self.guaranteed_f,
            "guaranteed_g": self.guaranteed_g,
            "guarantee": self.guarantee,
            "counts": None if self.summary is None else self.summary.counts.long().tolist(),
            "details": self.details,
        }
