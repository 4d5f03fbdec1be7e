"""Repeat the published experiments: train every run, draw what was found, and test what it stands for, all
seeds included. Every finished run is kept: the same command goes on where it was stopped.

figure1: SimpleTask; figure2: ModPTask; figure3: attention on ModPTask; figure4: in-context k-gram
(Izzo, Nichani and Lee, ICLR 2026).

algorithmic, formal: decoders on the two suites of Huang et al. (ICLR 2025), prediction against outcome.
"""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from lengthwise._checks import whole
from lengthwise.cli.figures import reproduce_figure
from lengthwise.cli.suites import reproduce_suite
from lengthwise.experiments import huang, izzo
from lengthwise.experiments.run import MOST_SEEDS
from lengthwise.experiments.selection import grid_up_to
from lengthwise.models.positions import Positions
from lengthwise.training.decoder_config import Rounding


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise reproduce``."""

    experiment: Annotated[
        Literal["figure1", "figure2", "figure3", "figure4", "algorithmic", "formal"],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="EXPERIMENT"),
    ]
    """Which: figure1, figure2, figure3, figure4, algorithmic or formal."""
    scale: Literal["quick", "paper"] = "quick"
    """quick: minutes on two CPU cores; paper: the whole grid, on a GPU."""
    output: Path | None = None
    """Folder for the runs, the table of results, the figure and the page (None: runs/EXPERIMENT-SCALE)."""
    device: Literal["cpu", "cuda"] | None = None
    """Where to train (None: on a GPU if there is one)."""
    seed: int | None = None
    """The first seed, the others follow it (None: one that no recipe was looked for with)."""
    tasks: tuple[str, ...] = ()
    """Of a suite: these tasks alone."""
    positions: tuple[Positions, ...] = ()
    """Of a suite: these schemes of positions alone (none: no positions)."""
    seeds: int | None = None
    """Of a suite: so many seeds of every cell (None: 5, at the quick scale 3)."""
    steps: int | None = None
    """Of a suite: over so many steps the learning rate falls to 0 (None: at the paper scale 30,000; formal:
    20,000; at the quick scale 3,000)."""
    until: Literal["perfect", "end"] | None = None
    """Of a suite: train a model until it is perfect on the first bin, or to the end in any case (None:
    perfect; formal at the paper scale: end)."""
    clip: float | None = None
    """Of a suite: the norm that gradients are shortened to, 0 for never (None: 1)."""
    rounding: Rounding | None = None
    """Of a suite: what a GPU may round (None: at the paper scale bfloat16; formal: tf32; else none)."""
    regulariser: float | None = None
    """Of a suite: the factor on the paper's regulariser of learned positions (there, 1e-4; None: 0)."""
    spare_positions: tuple[int, ...] = ()
    """Of a suite: how many learned positions are to spare; a search tries each, else the first is taken
    (empty: 0; formal at the paper scale: 150 and 0)."""
    search: int = 0
    """Of a suite: select each architecture from the paper's grid first, by the paper's rule, with so many
    seeds (there, 1; 0: no search)."""
    largest: str | None = None
    """Of a search: leave out what has more layers, more heads or more width than this, such as 2/2/64."""
    tables: tuple[Path, ...] = ()
    """Of a suite: train nothing, and take the rows of these Parquet files or folders of runs;
    of a run that several have, those of the first."""
    json: bool = False
    """Print one JSON document instead of tables."""


def run(command: Command) -> None:
    """Train, draw, test, print."""
    name = command.experiment
    output = command.output or Path(f"runs/{name}-{command.scale}")
    if name == "algorithmic" or name == "formal":
        if command.largest is not None and not command.search:
            raise ValueError("--largest is for a search: give it with --search 1")
        whole(command.search, "search", 0, MOST_SEEDS)
        given = {flag: value for flag in RECIPE if (value := getattr(command, flag)) not in (None, ())}
        recipe = replace(huang.RECIPES[name, command.scale], **given)
        seeds = (
            command.seeds if command.seeds is not None else (3 if command.scale == "quick" else huang.FIVE)
        )
        chosen = huang.cells(
            name,
            command.scale,
            tasks=command.tasks,
            schemes=command.positions,
            seeds=seeds,
            seed=huang.FIRST_SEED if command.seed is None else command.seed,
            recipe=recipe,
        )
        reproduce_suite(
            name,
            command.scale,
            chosen,
            output,
            command.device,
            recipe=recipe,
            grid=grid_up_to(command.largest) if command.search else (),
            selecting=command.search,
            tables=command.tables,
            told=f"lengthwise reproduce {name}{_flags(command)}",
            json=command.json,
        )
        return
    for flag in ("tasks", "positions", "seeds", *RECIPE, "search", "largest", "tables"):
        if getattr(command, flag) != getattr(Command, flag):
            raise ValueError(
                f"--{flag.replace('_', '-')} is for the suites algorithmic and formal; {name} has none"
            )
    first = izzo.FIRST_SEED if command.seed is None else command.seed
    reproduce_figure(name, command.scale, output, command.device, first, command.json)


RECIPE = tuple(field.name for field in fields(huang.Recipe))
"""The flags that are entries of a recipe."""


def _flags(command: Command) -> str:
    """The flags that decide what is run, as they were typed."""
    words = [f" --scale {command.scale}"]
    for flag in ("tasks", "positions", "seeds", "seed", "tables", *RECIPE, "search", "largest"):
        value = getattr(command, flag)
        if value == getattr(Command, flag):
            continue
        told = " ".join(map(str, value)) if isinstance(value, tuple) else value
        told = f"{told:g}" if isinstance(told, float) else told
        words.append(f" --{flag.replace('_', '-')} {told}")
    return "".join(words)
