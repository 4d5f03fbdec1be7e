"""How exactly attention is computed: the two precisions of the theory."""

from dataclasses import dataclass

from lengthwise._checks import positive
from lengthwise._messages import shown

MOST_BITS = 2**20
"""Weights are never cut off by more: exponents of doubles end at about 2^10."""


@dataclass(frozen=True)
class Finite:
    """p bits: weights exp(log N (a - max a)) for a string of length N, values at most 2^-p become 0."""

    bits: float

    def __post_init__(self) -> None:
        if positive(self.bits, "bits") > MOST_BITS:
            raise ValueError(f"bits must be at most {MOST_BITS:,}, got {shown(self.bits)}")


@dataclass(frozen=True)
class Infinite:
    """Plain softmax, in which the local logits are multiplied by log i at position i."""


Precision = Finite | Infinite
