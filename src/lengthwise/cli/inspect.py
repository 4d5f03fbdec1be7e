"""Tell what a limit transformer is: period, locality, margins, regimes, norms, the length from which its
attention is hard; and draw the attention of each head on an input.
"""

import json as json_module
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from lengthwise.cli.models import LONGEST_PICTURE, input_of, model_of
from lengthwise.cli.printing import print_files
from lengthwise.reporting.canvas import save_figure
from lengthwise.reporting.inspection import attention_figure, inspection, inspection_tables


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise inspect``."""

    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """A file that ``save`` wrote, or a construction with its parameters: simple:omega=8,knots=64,
    modp:period=3,residue=0, kgram:k=2,vocabulary=3,tolerance=0.01, induction:vocabulary=3,tolerance=0.01;
    or a compiled C-RASP program such as crasp:binary-majority."""
    input: str | None = None
    """Tokens to draw attention on, as digits (01101), with powers ((01)^9 1) or with commas (0,1,12), or the
    word that a program reads; None: 24 drawn at random."""
    output: Path = Path("runs/inspect")
    """Folder for the picture."""
    seed: int = 0
    """For the tokens drawn at random."""
    json: bool = False
    """Print one JSON document instead of tables."""


def run(command: Command) -> None:
    """Inspect, draw, print."""
    f = model_of(command.model)
    tokens = input_of(command.model, command.input, f.vocabulary, command.seed, length=24)
    if len(tokens) > LONGEST_PICTURE:
        raise ValueError(f"a picture of attention takes at most {LONGEST_PICTURE} tokens, got {len(tokens)}")
    picture = command.output / "attention.png"
    save_figure(attention_figure(f, tokens), picture)
    if command.json:
        measures = {"model": command.model, **inspection(f)}
        output = {"input": tokens.tolist(), "output": f(tokens).tolist(), "files": {"figure": str(picture)}}
        print(json_module.dumps({**measures, **output}, indent=2))
        return
    console = Console()
    console.print(inspection_tables(f))
    outputs = ", ".join(f"{value:.6g}" for value in f(tokens).tolist())
    console.print(f"output on this input: {outputs}", highlight=False)
    print_files(console, {"figure": picture})
