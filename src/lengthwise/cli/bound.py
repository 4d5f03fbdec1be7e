"""Say how long the inputs must be on which two limit transformers agree, so that they agree at every length:
certified, with every constant proved, beside the order that the paper states.
"""

import json as json_module
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from lengthwise.bounds import bound
from lengthwise.cli.models import TwoModels, model_of
from lengthwise.cli.printing import print_files
from lengthwise.reporting.bounds import bound_figure, bound_sentence, bound_table
from lengthwise.reporting.canvas import save_figure


@dataclass(frozen=True, kw_only=True)
class Command(TwoModels):
    """The flags of ``lengthwise bound``."""

    tolerance: float = 0.1
    """By how much more f and g may differ at lengths beyond."""
    output: Path = Path("runs/bound")
    """Folder for the figure, training length against tolerance."""
    seed: int = 0
    """Taken by every command that prints a result; a bound draws nothing."""
    json: bool = False
    """Print one JSON document instead of a table and a sentence."""


def run(command: Command) -> None:
    """Bound, draw, print."""
    f = model_of(command.f)
    g = None if command.g is None else model_of(command.g)
    found = bound(f, g, command.tolerance)
    files = {}
    if found.length < float("inf") and found.theorem != "equality" and command.tolerance > 0:
        figure = command.output / "bound.png"
        around = [bound(f, g, command.tolerance * 10 ** (step / 3)) for step in range(-6, 7)]
        save_figure(bound_figure([one for one in around if one.length < 1e300], found), figure)
        files["figure"] = str(figure)
    if command.json:
        print(
            json_module.dumps({"f": command.f, "g": command.g, **found.to_json(), "files": files}, indent=2)
        )
        return
    console = Console()
    if found.theorem not in ("equality", "none"):
        console.print(bound_table(found))
    console.print(bound_sentence(found, alone=g is None), style="bold", highlight=False)
    print_files(console, files)
