"""The suites of Huang et al., for ``lengthwise reproduce``: train, draw, compare with theory, print."""

import json as json_module
import time
from collections.abc import Sequence
from dataclasses import replace
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
from lengthwise.experiments.huang import Cell, Scale, Suite, search_runs, select, there
from lengthwise.experiments.results import COLUMNS
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
    search: bool,
    tables: Sequence[Path],
    told: str,
    json: bool,
) -> None:
    """Train what is not there yet, or read it from ``tables``, then write and print what was found; ``told``
    is the command as typed.
    """
    if tables:
        results = _read(tables)
        chosen, made = there(chosen, results), f"Command: `{told}`."
    else:
        begun, store = time.perf_counter(), Store(output / "runs")
        if search:
            chosen = _selected(scale, chosen, output, device)
        runs = [run for cell in chosen for run in cell.runs]
        new = [run for run in runs if run not in store]
        results = _trained(f"{suite}, {len(runs)} runs", runs, output, device)
        steps = results.groupby("run")["step"].max()
        taken = int(sum(steps[run.id] for run in new))
        made = Made(told, machine_words(device), len(new), time.perf_counter() - begun, taken).words()
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
    frames = []
    for path in tables:
        try:
            frame = Store(path).table() if path.is_dir() else pd.read_parquet(path)
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} cannot be read as a table of results: {one_line(error)}") from error
        if missing := {*COLUMNS} - {*frame.columns}:
            raise ValueError(
                f"{path} is no table of results: it lacks the columns {', '.join(sorted(missing))}"
            )
        frames.append(frame)
    return pd.concat(frames, ignore_index=True).drop_duplicates(ignore_index=True)


def _trained(title: str, runs: Sequence[Run], output: Path, device: str | None) -> pd.DataFrame:
    with progress_bars() as stage:
        steps = stage(title, sum(run.training.steps for run in runs))
        return train(runs, output=output / "runs", device=device, progress=steps)


def _selected(scale: Scale, chosen: Sequence[Cell], output: Path, device: str | None) -> list[Cell]:
    """The cells with the architectures that the paper's rule selects, with the seed behind theirs."""
    found = []
    for cell in chosen:
        runs = search_runs(cell.task, cell.positions, scale, max(cell.seeds) + 1)
        results = _trained(f"{cell.task.name}, {cell.positions}: the grid", runs, output, device)
        best = select(runs, results)
        if best is None:
            told = "no architecture of the grid is perfect on the first bin"
            found.append(replace(cell, runs=(), not_run=told))
        else:
            found.append(replace(cell, runs=tuple(best.but(seed=seed) for seed in cell.seeds), not_run=None))
    return found


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
