"""Limit transformers: weights, precision, evaluation, files."""

from lengthwise.limit.precision import Finite, Infinite, Precision
from lengthwise.limit.transformer import Activation, LimitLayer, LimitTransformer

__all__ = ["Activation", "Finite", "Infinite", "LimitLayer", "LimitTransformer", "Precision"]
