"""Prediction against outcome: what theory says of tasks and schemes of positions, and what was measured."""

from collections.abc import Sequence

import pandas as pd

from lengthwise.experiments.huang import Cell, outcomes
from lengthwise.experiments.predictions import predict


def verdicts(chosen: Sequence[Cell], results: pd.DataFrame) -> pd.DataFrame:
    """The rows of ``outcomes`` with what is predicted of each cell (``predicted``: True, False or None, and
    ``why``), what was published (``program``, ``published_1``, ..), and whether prediction and outcome agree
    (``agrees``: None where nothing is predicted or nothing was run).
    """
    measured = outcomes(chosen, results)
    rows = []
    for cell, outcome in zip(chosen, measured.to_dict("records"), strict=True):
        prediction, published = predict(cell.task, cell.positions), cell.published
        row: dict[str, object] = {
            **{str(name): value for name, value in outcome.items()},
            "predicted": prediction.answer,
            "why": prediction.why,
            "program": None if published is None else published.program,
            "agrees": None,
        }
        if prediction.answer is not None and cell.runs:
            row["agrees"] = prediction.answer == outcome["generalises"]
        if published is not None:
            row |= {f"published_{n}": share / 100 for n, share in enumerate(published.accuracy, 1)}
        rows.append(row)
    table = pd.DataFrame(rows)
    for name in ("predicted", "program", "agrees", "generalises"):
        if name in table:
            table[name] = table[name].astype("boolean")
    return table


def agreement(table: pd.DataFrame) -> tuple[int, int]:
    """In how many of the decided cells prediction and outcome agree, and how many there are."""
    decided = table["agrees"].dropna()
    return int(decided.sum()), len(decided)
