"""Sweeps and claims as tables."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from rich.table import Table

from lengthwise.experiments.claims import HARD, LEVEL_SHARE, Claim
from lengthwise.reporting.tasks import knob as knob_words


def sweep_table(measured: pd.DataFrame, knobs: Sequence[str]) -> Table:
    """Of a table of plateaus, one row a setting of the knobs and training length, over all seeds."""
    table = Table(title="plateau of the test loss", title_justify="left")
    for knob in knobs:
        table.add_column(knob.rpartition(".")[2], justify="right")
    for heading in ("trained at", "median", "lowest, highest seed", "seeds", "level", "diverged"):
        table.add_column(heading, justify="right")
    for key, rows in measured.groupby([*knobs, "training_length"], sort=True, dropna=False):
        values = rows["plateau"]
        diverged = int((rows["trend"] == "diverged").sum())
        table.add_row(
            *(knob_words(value) for value in key),
            f"{values.median():.2g}",
            f"{values.min():.2g}, {values.max():.2g}",
            str(len(rows)),
            str(int((rows["trend"] == "level").sum())),
            str(diverged) if diverged else "-",
        )
    table.caption = "level: seeds whose curve is level over the last two factors of ten of test length"
    table.caption_justify = "left"
    return table


def sweep_json(measured: pd.DataFrame, knobs: Sequence[str]) -> dict[str, Any]:
    """The same as plain data, every run with its plateau; None stands for infinite."""
    columns = [*knobs, "training_length", "seed", "plateau", "low", "high", "trend", "worst_loss", "run"]
    rows = [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in measured[columns].to_dict("records")
    ]
    return {"knobs": list(knobs), "runs": rows}


def claims_table(claims: Sequence[tuple[str, Claim]]) -> Table:
    """Claims with their tests, one row each, under the name of what they are about."""
    table = Table(title="claims", title_justify="left")
    for heading in ("task", "claim", "holds", "effect", "p", "seeds that agree"):
        table.add_column(heading)
    for subject, claim in claims:
        agree = sum(agrees(claim, effect) for effect in claim.by_seed.values())
        table.add_row(
            subject,
            f"({claim.name}) {claim.statement}",
            "yes" if claim.holds else "[bold]no[/bold]",
            f"{claim.effect:.2g}",
            "-" if claim.p is None else f"{claim.p:.1e}",
            f"{agree}/{len(claim.by_seed)}",
        )
    return table


def agrees(claim: Claim, effect: float) -> bool:
    """Whether the effect in one seed is what the claim says."""
    return {
        "a": effect >= LEVEL_SHARE,
        "b": effect < 0,
        "c": effect > 0,
        "d": effect < HARD,
    }[claim.name]
