"""What knobs may be."""

import math


def positive(value: object, name: str) -> float:
    """A positive, finite number, or what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {value!r}")
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return float(value)


def whole(value: object, name: str, least: int, most: int | None = None) -> int:
    """A whole number within its range, or what is wrong with it."""
    sort = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be {sort}, got {value!r}")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {sort}, got {value}")
    return value
