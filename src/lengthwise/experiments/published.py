"""What Huang et al. (ICLR 2025) report of the two suites: accuracies, and whether they found a program.

Their accuracies are means over five seeds, the first that were perfect on the shortest lengths.
"""

from typing import NamedTuple

from lengthwise.models.positions import Positions


class Shape(NamedTuple):
    """A decoder's sizes and its learning rate."""

    layers: int
    heads: int
    width: int
    learning_rate: float = 1e-3


class Published(NamedTuple):
    """One cell of their tables.

    - ``program``: whether a program of the scheme's class was found: C-RASP[periodic,local] for learned
      positions, C-RASP[] for none;
    - ``accuracy``: in percent, at lengths up to 50, from 51 to 100 and from 101 to 150;
    - ``shape``: the architecture that they selected, where it is known.
    """

    program: bool
    accuracy: tuple[float, float, float]
    shape: Shape | None = None


LARGEST = Shape(12, 12, 768)
"""What they took where no architecture of the grid did."""

PERFECT = (100.0, 100.0, 100.0)

_BOTH_PERFECT: dict[Positions, Published] = {
    "learned": Published(True, PERFECT),
    "none": Published(True, PERFECT),
}

PUBLISHED: dict[str, dict[Positions, Published]] = {
    "binary-majority": {
        "learned": Published(True, PERFECT, Shape(1, 1, 16)),
        "none": Published(True, PERFECT, Shape(1, 1, 16)),
    },
    "majority": {
        "learned": Published(True, (100.0, 99.6, 97.8), Shape(1, 2, 256)),
        "none": Published(True, (100.0, 99.9, 98.5), Shape(1, 1, 64)),
    },
    "binary-majority-interleaved": {
        "learned": Published(True, (100.0, 96.8, 84.7), Shape(2, 4, 256, 1e-4)),
        "none": Published(False, (96.2, 68.8, 39.5), LARGEST),
    },
    "copy-unique": {
        "learned": Published(True, (100.0, 99.9, 98.7), Shape(2, 1, 64)),
        "none": Published(False, (100.0, 18.0, 0.0), Shape(4, 4, 256)),
    },
    "copy-repeat": {
        "learned": Published(False, (100.0, 25.6, 0.0), Shape(4, 4, 256)),
        "none": Published(False, (100.0, 28.0, 0.0), Shape(4, 4, 256)),
    },
    "sort": {
        "learned": Published(True, (100.0, 100.0, 99.4), Shape(1, 2, 256, 1e-4)),
        "none": Published(True, (100.0, 99.8, 80.6), Shape(1, 1, 256)),
    },
    "parity": {
        "learned": Published(False, (100.0, 83.0, 62.1), Shape(4, 2, 256, 1e-4)),
        "none": Published(False, (97.5, 74.5, 63.3), LARGEST),
    },
    "addition": {
        "learned": Published(False, (99.7, 26.8, 0.0), LARGEST),
        "none": Published(False, (99.5, 27.7, 0.0), LARGEST),
    },
    "tomita-1": _BOTH_PERFECT,
    "tomita-2": _BOTH_PERFECT,
    "tomita-3": {
        "learned": Published(False, (60.5, 7.7, 0.0)),
        "none": Published(False, (21.1, 0.0, 0.0)),
    },
    "tomita-4": {
        "learned": Published(True, (100.0, 85.4, 84.4)),
        "none": Published(False, (100.0, 16.5, 0.0)),
    },
    "tomita-5": {
        "learned": Published(False, (54.4, 0.0, 0.0)),
        "none": Published(False, (7.1, 0.0, 0.0)),
    },
    "tomita-6": {
        "learned": Published(False, (59.6, 0.0, 0.0)),
        "none": Published(False, (2.4, 0.0, 0.0)),
    },
    "tomita-7": {
        "learned": Published(True, (100.0, 94.2, 93.2)),
        "none": Published(True, (100.0, 87.5, 76.2)),
    },
    "dyck-2": _BOTH_PERFECT,
    "dyck-3": _BOTH_PERFECT,
    "dyck-4": _BOTH_PERFECT,
    "dyck-12": _BOTH_PERFECT,
    "aa-star": {
        "learned": Published(True, PERFECT),
        "none": Published(False, (100.0, 0.0, 0.0)),
    },
    "aaaa-star": {
        "learned": Published(True, (100.0, 92.3, 86.7)),
        "none": Published(False, (100.0, 0.0, 0.0)),
    },
    "abab-star": {
        "learned": Published(True, (100.0, 89.4, 82.3)),
        "none": Published(False, (100.0, 0.0, 0.0)),
    },
    "aa-bb-cc-dd-ee": _BOTH_PERFECT,
    "ab-d-bc": {
        "learned": Published(True, (100.0, 99.8, 98.5)),
        "none": Published(True, (100.0, 99.8, 98.5)),
    },
    "012-02": {
        "learned": Published(False, (99.7, 24.4, 1.2)),
        "none": Published(False, (18.2, 11.2, 0.0)),
    },
}
"""By task and scheme; the language of parity is not among them."""
