"""How exactly attention is computed: the two precisions of the theory."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Finite:
    """p bits: weights exp(log N (a - max a)) for a string of length N, values at most 2^-p become 0."""

    bits: float

    def __post_init__(self) -> None:
        if isinstance(self.bits, bool) or not isinstance(self.bits, int | float):
            raise ValueError(f"bits must be a number, got {self.bits!r}")
        if not (math.isfinite(self.bits) and self.bits > 0):
            raise ValueError(f"bits must be positive and finite, got {self.bits}")


@dataclass(frozen=True)
class Infinite:
    """Plain softmax, in which the local logits are multiplied by log i at position i."""


Precision = Finite | Infinite
