"""The suites of Huang et al., for ``lengthwise reproduce``: train, draw, compare with theory, print."""

import json as json_module
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from lengthwise._files import make_folder, replacing
from lengthwise._messages import one_line
from lengthwise.cli import typed
from lengthwise.cli.printing import print_files
from lengthwise.cli.progress import progress_bars
from lengthwise.experiments import Run, Store, train
from lengthwise.experiments.engine import machine_words
from lengthwise.experiments.folder import note
from lengthwise.experiments.huang import Cell, Recipe, Scale, Suite, there
from lengthwise.experiments.published import Shape
from lengthwise.experiments.results import COLUMNS
from lengthwise.experiments.selection import searched
from lengthwise.experiments.verdicts import agreement, verdicts
from lengthwise.reporting.canvas import save_figure
from lengthwise.reporting.huang import agreement_words, suite_figure, suite_page, suite_table
from lengthwise.reporting.reproductions import Made


def reproduce_suite(
    suite: Suite,
    scale: Scale,
    chosen: Sequence[Cell],
    output: Path,
    device: str | None,
    *,
    recipe: Recipe,
    grid: Sequence[Shape],
    selecting: int,
    tables: Sequence[Path],
    told: str,
    json: bool,
) -> None:
    """Train what is not there yet, or read it from ``tables``, then write and print what was found; ``told``
    is the command as typed. Architectures are selected from the ``grid`` first, if there is one, with as many
    seeds as are ``selecting``.
    """
    begun, new, measured = time.perf_counter(), set[str](), list[pd.DataFrame]()
    known = _read(tables) if tables else None

    def measure(title: str, runs: Sequence[Run]) -> pd.DataFrame:
        if known is not None:
            found = known[known["run"].isin([run.id for run in runs])]
        else:
            store = Store(output / "runs")
            new.update(run.id for run in runs if run not in store)
            found = _trained(title, runs, output, device)
        measured.append(found)
        return found

    if grid:
        chosen = searched(chosen, scale, measure, recipe, grid, selecting)
    if known is not None:
        chosen = there(chosen, known)
    runs = [run for cell in chosen for run in cell.runs]
    measure(f"{suite}, {len(runs)} runs", runs)
    results = pd.concat(measured, ignore_index=True)
    if known is None:
        steps = results.groupby("run")["step"].max()
        taken = int(steps[steps.index.isin(new)].sum())
        made = Made(told, machine_words(device), len(new), time.perf_counter() - begun, taken).words()
    else:
        made = f"Command: `{told}`."
    table = verdicts(chosen, results)
    files = _write(suite, output, chosen, results, table, made)
    note(output, typed())
    if json:
        agree, decided = agreement(table)
        rows = json_module.loads(table.to_json(orient="records"))
        document = {"suite": suite, "cells": rows, "agree": agree, "decided": decided, "files": files}
        print(json_module.dumps(document, indent=2))
        return
    console = Console(highlight=False)
    console.print(suite_table(table))
    console.print(agreement_words(table))
    print_files(console, files)


def _read(tables: Sequence[Path]) -> pd.DataFrame:
    """The rows of all runs; of one that several tables have, those of the first."""
    frames: list[pd.DataFrame] = []
    known = set[str]()
    for path in tables:
        try:
            frame = Store(path).table() if path.is_dir() else pd.read_parquet(path)
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} cannot be read as a table of results: {one_line(error)}") from error
        if missing := {*COLUMNS} - {*frame.columns}:
            raise ValueError(
                f"{path} is no table of results: it lacks the columns {', '.join(sorted(missing))}"
            )
        frames.append(frame[~frame["run"].isin(known)].drop_duplicates())
        known.update(frame["run"])
    return pd.concat(frames, ignore_index=True)


def _trained(title: str, runs: Sequence[Run], output: Path, device: str | None) -> pd.DataFrame:
    with progress_bars() as stage:
        steps = stage(title, sum(run.training.steps for run in runs))
        return train(runs, output=output / "runs", device=device, progress=steps)


def _write(
    suite: Suite,
    output: Path,
    chosen: Sequence[Cell],
    results: pd.DataFrame,
    table: pd.DataFrame,
    made: str,
) -> dict[str, str]:
    make_folder(output)
    files: dict[str, Any] = {
        "figure": output / f"{suite}.png",
        "results": output / "results.parquet",
        "cells": output / "cells.parquet",
        "page": output / f"{suite}.md",
    }
    save_figure(suite_figure(suite, chosen, results, table), files["figure"])
    for name, frame in (("results", results), ("cells", table)):
        with replacing(files[name]) as temporary:
            frame.to_parquet(temporary, index=False)
    with replacing(files["page"]) as temporary:
        temporary.write_text(suite_page(suite, table, made))
    return {name: str(path) for name, path in files.items()}
