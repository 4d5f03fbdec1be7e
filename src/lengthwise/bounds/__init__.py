"""How long is long enough: theorems with their constants, exact divergence, tightness."""

from lengthwise.bounds.average import AverageError, average_bound, average_error, average_length
from lengthwise.bounds.bound import bound
from lengthwise.bounds.divergence import Bracket, Divergence, divergence, limit_divergence
from lengthwise.bounds.result import Bound
from lengthwise.bounds.tightness import Tightness, tightness

__all__ = [
    "AverageError",
    "Bound",
    "Bracket",
    "Divergence",
    "Tightness",
    "average_bound",
    "average_error",
    "average_length",
    "bound",
    "divergence",
    "limit_divergence",
    "tightness",
]
