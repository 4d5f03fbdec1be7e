"""Colours that are seen on white and on black: each is a pair, for the light theme and for the dark one."""

from collections.abc import Sequence

import matplotlib
from matplotlib.colors import to_hex, to_rgb

from lengthwise.reporting.curves import Color, shades
from lengthwise.reporting.huang import COLORS

Pair = tuple[str, str]


def by_length(lengths: Sequence[int]) -> dict[int, Pair]:
    """A colour for each training length, the longest the strongest: on white those of all figures."""
    values = [max(1, length) for length in lengths]
    light = shades(values)
    dark = matplotlib.colormaps["viridis"]
    spaced = _spaced(len(values))
    return {
        length: (_hex(light[value]), to_hex(dark(0.36 + 0.64 * place)))
        for length, value, place in zip(lengths, values, spaced, strict=True)
    }


def by_setting(labels: Sequence[str]) -> dict[str, Pair]:
    """A colour for each setting."""
    plasma = matplotlib.colormaps["plasma"]
    return {
        label: (to_hex(plasma(0.05 + 0.8 * place)), to_hex(plasma(0.45 + 0.5 * place)))
        for label, place in zip(labels, _spaced(len(labels)), strict=True)
    }


def by_bin(count: int) -> list[Pair]:
    """A colour for each bin of lengths."""
    viridis = matplotlib.colormaps["viridis"]
    return [(to_hex(viridis(0.85 * place)), to_hex(viridis(0.36 + 0.6 * place))) for place in _spaced(count)]


def of_scheme(positions: str) -> Pair:
    """The colour of a scheme of positions."""
    color = to_rgb(COLORS[positions])
    return _hex(color), _hex(tuple(0.5 * part + 0.5 for part in color))


def _hex(color: Color) -> str:
    return to_hex(color)  # pyright: ignore[reportArgumentType]


def _spaced(count: int) -> list[float]:
    return [place / max(1, count - 1) for place in range(count)]
