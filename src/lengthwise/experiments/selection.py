"""The paper's choice of an architecture for a cell: a grid, and a rule that takes one from it.

The rule never looks at the last bin. It is the best on the second bin, so that nothing behind one that is
perfect on the first two can be taken in its place: the search of a cell ends there, and finds what going
through the whole grid would find. The paper trained one model of each; several seeds find what is good by
luck alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, product
from statistics import fmean

import pandas as pd

from lengthwise.experiments.huang import NOT_THERE, Cell, Recipe, Scale, run_of
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

NONE_PERFECT = "none in the grid is perfect on the first bin with every seed"

Measure = Callable[[str, Sequence[Run]], pd.DataFrame]
"""Takes what is being done, in words, and runs; returns the results of those that there are."""

Ends = Mapping[str, tuple[float, float]]
"""By the id of a run, the shares of the first and of the second bin on which it ends."""


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


def candidates(
    task: PredictionTask,
    positions: Positions,
    scale: Scale,
    seeds: Sequence[int],
    recipe: Recipe,
    grid: Sequence[Shape] = GRID,
) -> list[tuple[Run, ...]]:
    """What one is selected from, the simplest first: the runs of each, one a seed. Shapes come with every
    choice of spare positions, in the recipe's order.
    """
    shapes = [shape for shape in grid if positions != "rotary" or shape.width // shape.heads % 2 == 0]
    spares = recipe.spare_positions if positions == "learned" else recipe.spare_positions[:1]
    recipes = [replace(recipe, spare_positions=(spare,)) for spare in spares]
    return [
        tuple(run_of(task, positions, shape, scale, seed, own) for seed in seeds)
        for _, alike in groupby(shapes, key=lambda shape: shape[:3])
        for own, shape in product(recipes, list(alike))
    ]


def ends(results: pd.DataFrame) -> Ends:
    """What the runs of a table end with, by id."""
    if not len(results):
        return {}
    table = accuracies(results)
    first, second, *_ = (name for name in table if str(name).startswith("accuracy_"))
    return dict(zip(table["run"], zip(table[first], table[second], strict=True), strict=True))


def select(tried: Sequence[Sequence[Run]], known: Ends) -> Sequence[Run] | None:
    """The paper's choice: among the candidates that are perfect on the first bin with every seed, the best on
    the second in the mean, and the first of them in this order if several are. None if there is none. The
    last bin has no part in it.
    """
    perfect = [runs for runs in tried if _means(runs, known)[0] == 1]
    return max(perfect, key=lambda runs: _means(runs, known)[1], default=None)


def searched(
    chosen: Sequence[Cell],
    scale: Scale,
    measure: Measure,
    recipe: Recipe,
    grid: Sequence[Shape] = GRID,
    selecting: int = 1,
) -> list[Cell]:
    """The cells with what the rule selects, found with ``selecting`` seeds behind theirs (in the paper, 1).

    Where no candidate is perfect on the first bin, the paper took a model of 12 layers. Here it is then the
    one that is best on the first bin, and the cell says so.
    """
    rounds = [_rounds(cell, scale, recipe, grid, selecting) for cell in chosen]
    tried: list[list[tuple[Run, ...]]] = [[] for _ in chosen]
    left, known = list(range(len(chosen))), dict[str, tuple[float, float]]()
    for number in range(max(map(len, rounds))):
        left = [cell for cell in left if number < len(rounds[cell])]
        if not left:
            break
        many = f"{len(left)} cells" if len(left) > 1 else "one cell"
        fresh = [run for cell in left for runs in rounds[cell][number] for run in runs]
        known |= ends(measure(f"the grid, round {number + 1}: {many}", fresh))
        for cell in left:
            tried[cell] += rounds[cell][number]
        left = [cell for cell in left if not _settled(rounds[cell][number], known)]
    return [_with(cell, runs, known) for cell, runs in zip(chosen, tried, strict=True)]


def _rounds(
    cell: Cell, scale: Scale, recipe: Recipe, grid: Sequence[Shape], selecting: int
) -> list[list[tuple[Run, ...]]]:
    """The candidates of a grid, those together that differ in their learning rate alone."""
    behind = max(cell.seeds) + 1
    found = candidates(cell.task, cell.positions, scale, range(behind, behind + selecting), recipe, grid)
    return [list(alike) for _, alike in groupby(found, key=lambda runs: runs[0].decoder.model)]


def _settled(tried: Sequence[Sequence[Run]], known: Ends) -> bool:
    """Whether no candidate behind these can be selected, or some of these are missing."""
    return _missing(tried, known) or any(_means(runs, known) == (1, 1) for runs in tried)


def _with(cell: Cell, tried: Sequence[Sequence[Run]], known: Ends) -> Cell:
    """The cell with what is selected from these candidates."""
    if _missing(tried, known):
        return replace(cell, runs=(), not_run=NOT_THERE)
    best, note = select(tried, known), ""
    if best is None:
        best, note = max(tried, key=lambda runs: _means(runs, known)[0]), NONE_PERFECT
    return replace(cell, runs=tuple(best[0].but(seed=seed) for seed in cell.seeds), not_run=None, note=note)


def _missing(tried: Sequence[Sequence[Run]], known: Ends) -> bool:
    return any(run.id not in known for runs in tried for run in runs)


def _means(runs: Sequence[Run], known: Ends) -> tuple[float, float]:
    """Over the seeds of a candidate."""
    first, second = zip(*(known[run.id] for run in runs), strict=True)
    return fmean(first), fmean(second)
