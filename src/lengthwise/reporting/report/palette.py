"""Colours that are seen on white and on black: each is a pair, for the light theme and for the dark one, and
stands out from the paper of its theme as WCAG asks of what is drawn.
"""

from collections.abc import Sequence

import matplotlib
from matplotlib.colors import to_hex, to_rgb

from lengthwise.reporting.curves import Color, shades
from lengthwise.reporting.huang import COLORS

Pair = tuple[str, str]

PAPERS = ("#ffffff", "#191f28")
"""What is drawn on, as ``style.css`` has it."""

LEAST = 3.0
"""The contrast of what is drawn to its paper, at least (WCAG 2.2, 1.4.11)."""


def by_length(lengths: Sequence[int]) -> dict[int, Pair]:
    """A colour for each training length, the longest the strongest."""
    values = [max(1, length) for length in lengths]
    light = shades(values)
    dark = matplotlib.colormaps["viridis"]
    spaced = _spaced(len(values))
    return {
        length: _pair(light[value], dark(0.36 + 0.64 * place))
        for length, value, place in zip(lengths, values, spaced, strict=True)
    }


def by_setting(labels: Sequence[str]) -> dict[str, Pair]:
    """A colour for each setting."""
    plasma = matplotlib.colormaps["plasma"]
    return {
        label: _pair(plasma(0.05 + 0.8 * place), plasma(0.45 + 0.5 * place))
        for label, place in zip(labels, _spaced(len(labels)), strict=True)
    }


def by_bin(count: int) -> list[Pair]:
    """A colour for each bin of lengths."""
    viridis = matplotlib.colormaps["viridis"]
    return [_pair(viridis(0.85 * place), viridis(0.36 + 0.6 * place)) for place in _spaced(count)]


def of_scheme(positions: str) -> Pair:
    """The colour of a scheme of positions."""
    color = to_rgb(COLORS[positions])
    return _pair(color, tuple(0.5 * part + 0.5 for part in color))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG defines it, from 1 to 21."""
    dark, light = sorted(_luminance(to_rgb(color)) for color in (one, other))
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: tuple[float, float, float]) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _pair(light: Color, dark: Color) -> Pair:
    """The two colours, made darker on white and lighter on black until they stand out."""
    (white, black), shares = PAPERS, [step / 20 for step in range(21)]
    darker = (_mixed(light, share, 0.0) for share in shares)
    lighter = (_mixed(dark, share, 1.0) for share in shares)
    return (
        next(color for color in darker if contrast(color, white) >= LEAST),
        next(color for color in lighter if contrast(color, black) >= LEAST),
    )


def _mixed(color: Color, share: float, end: float) -> str:
    parts = to_rgb(color)  # pyright: ignore[reportArgumentType]
    return to_hex(tuple((1 - share) * part + share * end for part in parts))  # pyright: ignore[reportArgumentType]


def _spaced(count: int) -> list[float]:
    return [place / max(1, count - 1) for place in range(count)]
