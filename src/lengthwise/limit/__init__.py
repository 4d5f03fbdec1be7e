"""Limit transformers: weights, precision, evaluation, margins, norms, ready constructions."""

from lengthwise.limit.precision import Finite, Infinite, Precision

__all__ = ["Finite", "Infinite", "Precision"]
