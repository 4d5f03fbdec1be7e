"""Values that nobody should give, and some that one may."""

import math
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch

INTEGERS = [0, 1, 2, 3, 5, 8, -1, -2, -(10**9), 7, 2**31, 2**31 - 1, 2**53, 2**53 + 1, 2**63, 2**64, 10**30]
INTEGERS += [10**5, 10**400, -(2**63) - 1]
FLOATS = [0.0, -0.0, 0.5, 1.0, 1.5, -1.0, 1e-300, 5e-324, 1e300, 1e9, math.inf, -math.inf, math.nan]
TEXTS = [
    "",
    "a",
    "ab",
    "0",
    "1",
    "01101",
    "none",
    "None",
    "nan",
    "inf",
    "1e9",
    " ",
    "\n",
    "a\nb",
    "\x1b[31mred",
]
TEXTS += ["\x00", "é", "\U0001f600", "\ud800", "../x", "/dev/null", "[/red]", "%s", "{}", "true", "x" * 5000]


def integer(source: random.Random) -> int:
    """A whole number of any size."""
    return source.choice([*INTEGERS, source.randint(-3, 12), source.randint(0, 300)])


def odd(source: random.Random) -> Any:
    """Anything."""
    return source.choice(
        [
            integer,
            integer,
            lambda source: source.choice(FLOATS),
            lambda source: source.choice(FLOATS),
            lambda source: source.choice(TEXTS),
            lambda source: source.choice([None, True, False]),
            lambda source: [odd(source) for _ in range(source.randint(0, 3))],
            lambda source: tuple(odd(source) for _ in range(source.randint(0, 3))),
            lambda source: {source.choice(TEXTS): odd(source)},
            lambda source: np.float64(source.choice(FLOATS)),
            lambda source: np.int64(source.randint(-3, 12)),
            lambda source: np.array(source.choice([[], [1, 2], [[0, 1], [1, 0]], 3, ["a"], [1.5]])),
            lambda source: torch.tensor(source.choice([[], [1, 2], [[0, 1], [1, 0]], 3, [1.5], [True]])),
            lambda source: source.choice([Fraction(1, 3), Decimal("0.1"), 1j, b"ab", range(3), Path("x")]),
            lambda source: source.choice(
                [object, len, {1, 2}, frozenset(), ..., NotImplemented, lambda x: x]
            ),
        ]
    )(source)


def mostly(source: random.Random, good: Any, chance: float = 0.5) -> Any:
    """A good value (one of a list) or any."""
    return odd(source) if source.random() < chance else source.choice(good)


def mutated(source: random.Random, data: bytes) -> bytes:
    """Bytes with some changed, cut, doubled or put in."""
    for _ in range(source.choice([1, 1, 2, 4, 16])):
        at = source.randint(0, len(data))
        end = min(len(data), at + source.choice([0, 1, 1, 4, 8, 64]))
        match source.randrange(6):
            case 0:
                data = data[:at] + source.randbytes(end - at) + data[end:]
            case 1:
                data = data[:at] + data[end:]
            case 2:
                data = data[:end] + data[at:]
            case 3:
                data = data[:at] + source.choice([b"\x00", b"\xff", b"\x80"]) * (end - at) + data[end:]
            case 4:
                data = data[:at] if source.random() < 0.5 else data[at:]
            case _:
                if at < len(data):
                    data = data[:at] + bytes([data[at] ^ (1 << source.randrange(8))]) + data[at + 1 :]
    return data


def damaged(source: random.Random, told: Any) -> Any:
    """JSON data with something in it changed, taken out, put in or put elsewhere."""
    if isinstance(told, dict) and told and source.random() < 0.9:
        key = source.choice(list(told))
        match source.randrange(8):
            case 0:
                return {name: value for name, value in told.items() if name != key}
            case 1:
                return {**told, source.choice(TEXTS[:-1]): plain(source)}
            case 2:
                return {("x" if name == key else name): value for name, value in told.items()}
            case _:
                return {**told, key: damaged(source, told[key])}
    if isinstance(told, list) and told and source.random() < 0.8:
        at = source.randrange(len(told))
        return [*told[:at], *([damaged(source, told[at])] if source.random() < 0.7 else []), *told[at + 1 :]]
    return plain(source)


def plain(source: random.Random) -> Any:
    """Any JSON data."""
    match source.randrange(6):
        case 0:
            return integer(source)
        case 1:
            return source.choice(FLOATS)
        case 2:
            return source.choice([None, True, False, [], {}, [[]], [1, 2, 3]])
        case 3:
            return {source.choice(TEXTS): source.choice(FLOATS)}
        case _:
            return source.choice(TEXTS)
