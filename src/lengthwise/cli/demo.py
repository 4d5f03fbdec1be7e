"""Train transformers on SimpleTask at short lengths, measure them far beyond, and say how long the
training sequences must be. Every finished run is kept: the same command goes on where it was stopped.
"""

from dataclasses import dataclass
from pathlib import Path

from lengthwise.cli import advise
from lengthwise.tasks import SimpleTask


@dataclass(frozen=True, kw_only=True)
class Command(advise.Command):
    """The flags of ``lengthwise demo``: those of ``advise``, with defaults for a laptop."""

    omega: float = 8.0
    """Frequency of SimpleTask, f(x) = sin(omega (c0 - c1) / (c0 + c1))."""
    steps: int = 3000
    """Training steps of each model."""
    output: Path | None = Path("runs/demo")
    """Folder for the runs, the table of results and the figure."""


def run(command: Command) -> None:
    """The same as ``lengthwise advise simple``."""
    advise.report(SimpleTask(omega=command.omega), command)
