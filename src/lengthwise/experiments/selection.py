"""The paper's choice of an architecture for a cell: a grid, and a rule that takes one from it.

The rule never looks at the last bin. It is the best on the second bin, so that nothing behind a run that is
perfect on the first two can be taken in its place: the search of a cell ends there, and finds what going
through the whole grid would find.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby, product

import pandas as pd

from lengthwise.experiments.huang import NOT_THERE, Cell, Scale, Until, run_of
from lengthwise.experiments.published import Shape
from lengthwise.experiments.results import accuracies
from lengthwise.experiments.run import Run
from lengthwise.models.positions import Positions
from lengthwise.tasks import PredictionTask

GRID = tuple(
    Shape(layers, heads, width, rate)
    for layers, width, heads, rate in product((1, 2, 4), (16, 64, 256), (1, 2, 4), (1e-3, 1e-4))
)
"""The paper's grid, the simplest first: fewest layers, then the smallest width, then the fewest heads."""

NONE_PERFECT = "none in the grid is perfect on the first bin"

Measure = Callable[[str, Sequence[Run]], pd.DataFrame]
"""Takes what is being done, in words, and runs; returns the results of those that there are."""


def grid_up_to(largest: str | None) -> tuple[Shape, ...]:
    """The grid, without what has more layers, more heads or more width than ``largest``, such as 2/2/64."""
    if largest is None:
        return GRID
    sizes = largest.split("/")
    if len(sizes) != 3 or not all(size.isdecimal() for size in sizes):
        raise ValueError(f"the largest shape is given as layers/heads/width, such as 2/2/64, got {largest!r}")
    grid = tuple(shape for shape in GRID if all(a <= int(b) for a, b in zip(shape, sizes, strict=False)))
    if not grid:
        raise ValueError(f"no shape of the grid is within {largest}: the smallest is 1/1/16")
    return grid


def search_runs(
    task: PredictionTask,
    positions: Positions,
    scale: Scale,
    seed: int,
    grid: Sequence[Shape] = GRID,
    until: Until = "perfect",
) -> list[Run]:
    """The runs from which the paper's rule selects an architecture, the simplest first."""
    shapes = [shape for shape in grid if positions != "rotary" or shape.width // shape.heads % 2 == 0]
    return [run_of(task, positions, shape, scale, seed, until) for shape in shapes]


def select(runs: Sequence[Run], results: pd.DataFrame) -> Run | None:
    """The paper's choice: among the runs that are perfect on the first bin, the best on the second, and the
    first of them in this order if several are. None if no run is perfect. The last bin has no part in it.
    """
    _, second, *_ = runs[0].test_lengths
    perfect = _perfect(runs, results)
    if not perfect:
        return None
    best = max(perfect[run][second] for run in perfect)
    return next(run for run in perfect if perfect[run][second] == best)


def searched(
    chosen: Sequence[Cell],
    scale: Scale,
    measure: Measure,
    grid: Sequence[Shape] = GRID,
    until: Until = "perfect",
) -> list[Cell]:
    """The cells with the architectures that the rule selects, found with the seed behind theirs.

    Where no run of the grid is perfect on the first bin, the paper took a model of 12 layers. Here it is then
    the run that is best on the first bin, and the cell says so.
    """
    rounds = [_rounds(cell, scale, grid, until) for cell in chosen]
    tried: list[list[Run]] = [[] for _ in chosen]
    left, tables = list(range(len(chosen))), []
    for number in range(max(map(len, rounds))):
        left = [cell for cell in left if number < len(rounds[cell])]
        if not left:
            break
        many = f"{len(left)} cells" if len(left) > 1 else "one cell"
        fresh = [run for cell in left for run in rounds[cell][number]]
        tables.append(measure(f"the grid, round {number + 1}: {many}", fresh))
        results = pd.concat(tables, ignore_index=True)
        for cell in left:
            tried[cell] += rounds[cell][number]
        left = [cell for cell in left if not _settled(tried[cell], results)]
    results = pd.concat(tables, ignore_index=True)
    return [_with(cell, runs, results) for cell, runs in zip(chosen, tried, strict=True)]


def _rounds(cell: Cell, scale: Scale, grid: Sequence[Shape], until: Until) -> list[list[Run]]:
    """The runs of a grid, those together that differ in their learning rate alone."""
    runs = search_runs(cell.task, cell.positions, scale, max(cell.seeds) + 1, grid, until)
    return [list(alike) for _, alike in groupby(runs, key=lambda run: run.decoder.model)]


def _settled(runs: Sequence[Run], results: pd.DataFrame) -> bool:
    """Whether no run behind these can be selected, or some of these are missing."""
    _, second, *_ = runs[0].test_lengths
    missing = not {run.id for run in runs} <= {*results["run"]}
    return missing or any(own[second] == 1 for own in _perfect(runs, results).values())


def _with(cell: Cell, runs: Sequence[Run], results: pd.DataFrame) -> Cell:
    """The cell with what is selected from these runs."""
    if not {run.id for run in runs} <= {*results["run"]}:
        return replace(cell, runs=(), not_run=NOT_THERE)
    best, note = select(runs, results), ""
    if best is None:
        first, *_ = runs[0].test_lengths
        shares = _accuracies(runs, results)
        best, note = max(runs, key=lambda run: shares[run][first]), NONE_PERFECT
    return replace(cell, runs=tuple(best.but(seed=seed) for seed in cell.seeds), not_run=None, note=note)


def _accuracies(runs: Sequence[Run], results: pd.DataFrame) -> dict[Run, dict[int, float]]:
    """What these runs end with in every bin, in their order."""
    table = accuracies(results[results["run"].isin([run.id for run in runs])]).set_index("run")
    columns = {end: table[f"accuracy_{end}"].to_dict() for end in runs[0].test_lengths}
    return {run: {end: shares[run.id] for end, shares in columns.items()} for run in runs}


def _perfect(runs: Sequence[Run], results: pd.DataFrame) -> dict[Run, dict[int, float]]:
    """Those of these runs that are there and perfect on the first bin."""
    there = {*results["run"]}
    known = [run for run in runs if run.id in there]
    shares = _accuracies(known, results) if known else {}
    return {run: own for run, own in shares.items() if own[run.test_lengths[0]] == 1}
