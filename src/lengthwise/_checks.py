"""What numbers may be."""

import math
from collections.abc import Iterable
from typing import Any

from lengthwise._messages import shown

WIDEST_TOLD = 10_000
"""Ranges up to here are told whole; a larger end only to those who pass it."""

LEAST_CONCENTRATION = 1e-300
"""Draws divide by the concentration: with smaller ones nothing finite is left."""


def number(value: object, name: str) -> float:
    """A number that a double can hold, which may be infinite or NaN, or what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {shown(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} must be less than 10^308, got {shown(value)}") from None


def positive(value: object, name: str) -> float:
    """A positive, finite number, or what is wrong with it."""
    held = number(value, name)
    if not (math.isfinite(held) and held > 0):
        raise ValueError(f"{name} must be positive and finite, got {shown(value)}")
    return held


def check_concentration(value: object) -> float:
    """The concentration of a Dirichlet distribution, or what is wrong with it."""
    held = positive(value, "concentration")
    if held < LEAST_CONCENTRATION:
        raise ValueError(f"concentration must be at least {LEAST_CONCENTRATION:g}, got {shown(value)}")
    return held


def at_least_zero(value: object, name: str) -> float:
    """A finite number of at least 0, or what is wrong with it."""
    held = number(value, name)
    if not 0 <= held < math.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {shown(value)}")
    return held


def whole(value: object, name: str, least: int, most: int | None = None) -> int:
    """A whole number within its range, or what is wrong with it."""
    sort = f"a whole number of at least {least}"
    if most is not None and most <= WIDEST_TOLD:
        sort = f"a whole number from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be {sort}, got {shown(value)}")
    if most is not None and value > most:
        sort = sort if most <= WIDEST_TOLD else f"at most {most:,}"
        raise ValueError(f"{name} must be {sort}, got {shown(value)}")
    return value


def several(values: Any, name: str) -> tuple[Any, ...]:
    """The members of a list, or what is wrong with it."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a list, got {shown(values)}")
    try:
        return tuple(values)
    except TypeError as error:  # an array without axes
        raise ValueError(f"{name} must be a list, got {shown(values)}") from error
