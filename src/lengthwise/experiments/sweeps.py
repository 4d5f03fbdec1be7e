"""Sweeps: a file of Python that lists runs, and what varies between them."""

import runpy
from pathlib import Path

import pandas as pd

from lengthwise._messages import one_line
from lengthwise.experiments.results import accuracies, plateaus
from lengthwise.experiments.run import FAMILIES, Run


def runs_in(path: Path) -> list[Run]:
    """The runs that a sweep file lists under the name ``runs``. The file is a program, and is run."""
    if not path.is_file():
        raise ValueError(f"there is no file {path}: a sweep is a Python file that lists its runs")
    try:
        found = runpy.run_path(str(path)).get("runs")
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        trace, line = error.__traceback__, None
        while trace is not None:
            line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == str(path) else line
            trace = trace.tb_next
        where = f"{path}, line {line}" if line else str(path)
        raise ValueError(f"{where}: {type(error).__name__}: {one_line(error)}") from error
    if found is None:
        raise ValueError(f"{path} has no list named runs: end it with runs = [lengthwise.Run(...), ...]")
    if not isinstance(found, list | tuple) or not all(isinstance(run, Run) for run in found):
        raise ValueError(f"{path}: runs must be a list of lengthwise.Run")
    if not found:
        raise ValueError(f"{path}: the list runs is empty")
    if len({run.family for run in found}) > 1:
        families = " and ".join(sorted(FAMILIES[family] for family in {run.family for run in found}))
        raise ValueError(f"{path} lists runs of {families}: give each family a file of its own")
    return list(dict.fromkeys(found))


def varied(results: pd.DataFrame) -> list[str]:
    """The columns of the specification, other than training length and seed, that differ between runs; of
    columns that differ together, such as a task's period and its model's, the first.
    """
    columns = [column for column in results.columns if "." in column]
    first = results.groupby("run", sort=False).first()[columns].drop(columns=list(APART), errors="ignore")
    found: list[str] = []
    for column in first.columns:
        if first[column].nunique(dropna=False) < 2:
            continue
        told = first.groupby(found, dropna=False)[column].nunique(dropna=False).max() if found else 2
        if told > 1:
            found.append(column)
    return found


APART = ("training.length", "training.shortest", "training.seed")
"""What every sweep may vary."""


def plateaus_by(results: pd.DataFrame, knobs: list[str]) -> pd.DataFrame:
    """``plateaus`` with the columns of some knobs beside them."""
    return _beside(plateaus(results), results, knobs)


def accuracies_by(results: pd.DataFrame, knobs: list[str]) -> pd.DataFrame:
    """``accuracies`` with the columns of some knobs beside them."""
    return _beside(accuracies(results), results, knobs)


def _beside(table: pd.DataFrame, results: pd.DataFrame, knobs: list[str]) -> pd.DataFrame:
    asked = results.groupby("run", sort=False).first()[knobs]
    return table.join(asked, on="run")


def near_median(table: pd.DataFrame, knobs: list[str], factor: float = 3.0) -> int:
    """How many plateaus are at most a factor above the median of those that differ from them by seed alone.

    A run that diverged is near nothing.
    """
    middle = table.groupby([*knobs, "training_length"])["plateau"].transform("median")
    return int((table["plateau"] <= factor * middle).sum())
