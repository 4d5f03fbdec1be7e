"""What all figures share: the style, the colours, and how they are saved."""

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lengthwise._files import make_folder, replacing

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.labelsize": 9.5,
    "axes.titlesize": 10,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "savefig.dpi": 200,
    "mathtext.default": "regular",
}
ANSWER = "#c1272d"
GREY = "#555555"
FIT = "#1f5fa8"


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that needs no display; draw on it within ``rc_context(STYLE)``."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write a PNG, complete or not at all."""
    make_folder(path.parent)
    with replacing(path) as temporary, matplotlib.rc_context(STYLE):
        figure.savefig(temporary, format="png")
