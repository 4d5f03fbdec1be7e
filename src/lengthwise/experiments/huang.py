"""The experiments of Huang et al. (ICLR 2025), as lists of runs: two suites, by task and scheme of positions.

Decoders are trained at lengths up to 50 and measured in three bins, up to 50, 100 and 150, that never
overlap (``paper``); ``quick`` has bins up to 20, 40 and 60, smaller models and some of the tasks, and takes
minutes on two CPU cores. All seeds count. The paper ran seeds until five were perfect on the first bin and
dropped the others; what that gives stands beside.

Gradients are shortened to the norm 1, as the published code of the algorithmic suite does by its trainer's
default. A model stops when it is perfect on the first bin; languages at the paper's scale are trained to the
end, as by their published code, whose passes over fixed lists of words come to 300 to 62,500 steps.

A cell is a task with a scheme. Where the paper names the architecture that it selected from its grid, and
this has at most four layers, it is trained here; for rotary positions and ALiBi, that of learned positions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import pandas as pd

from lengthwise._checks import whole
from lengthwise._messages import nearest
from lengthwise.experiments.published import PUBLISHED, Published, Shape
from lengthwise.experiments.results import accuracies
from lengthwise.experiments.run import MOST_SEEDS, Run
from lengthwise.models import DecoderModel
from lengthwise.models.positions import SCHEMES, Positions
from lengthwise.tasks import ALGORITHMIC, FORMAL, PREDICTION_TASKS, PredictionTask
from lengthwise.training import DecoderEvaluation, DecoderTraining
from lengthwise.training.decoder_config import Rounding

Suite = Literal["algorithmic", "formal"]
Scale = Literal["quick", "paper"]
Until = Literal["perfect", "end"]

FIRST_SEED = 10_000
"""Seeds of published tables begin here: smaller ones were used in finding out what to train."""

MOST_LAYERS = 4
"""Architectures with more layers are not trained."""

FORMAL_SHAPE = Shape(2, 2, 64)
"""For languages: which architectures were selected is not known; the published code looked for them among 1,
2 and 4 layers of width 32 and 64 with 1, 2 and 4 heads (and 6 layers for some).
"""

ENOUGH = 0.7
"""A cell generalises if the median seed is right on this share of the last bin. Every published cell with a
program is above it, and every one without is below."""

NOT_THERE = "not all its runs are there"

FIVE = 5
"""So many seeds that were perfect on the first bin make a published accuracy."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How the models of a suite are trained.

    - ``steps``: over which the learning rate falls to 0;
    - ``until``: a model stops when it is perfect on the first bin, at a rate that is still high, or at the
      end;
    - ``clip``: the norm that its gradient is shortened to, 0 for never;
    - ``rounding``: what a GPU may round;
    - ``regulariser``: the factor on the paper's regulariser of learned positions (there, 1e-4);
    - ``spare_positions``: how many learned positions there are behind those of the longest test input: a
      search tries all of these choices, else the first is taken.
    """

    steps: int
    until: Until
    clip: float = 1.0
    rounding: Rounding = "none"
    regulariser: float = 0.0
    spare_positions: tuple[int, ...] = (0,)


RECIPES: Mapping[tuple[Suite, Scale], Recipe] = {
    ("algorithmic", "quick"): Recipe(steps=3000, until="perfect"),
    ("algorithmic", "paper"): Recipe(steps=30_000, until="perfect", rounding="bfloat16"),
    ("formal", "quick"): Recipe(steps=3000, until="perfect"),
    ("formal", "paper"): Recipe(steps=20_000, until="end", rounding="tf32", spare_positions=(150, 0)),
}
"""Of languages the published code has as many positions to spare as the longest input takes, that of the
algorithmic suite has none."""


@dataclass(frozen=True)
class Cell:
    """A task with a scheme of positions: its seeds, and a run of each or why there are none; what is to be
    known of its architecture is in ``note``.
    """

    task: PredictionTask
    positions: Positions
    seeds: tuple[int, ...]
    runs: tuple[Run, ...]
    not_run: str | None = None
    note: str = ""

    @property
    def published(self) -> Published | None:
        """What the paper reports of it; nothing of lengths that are not the paper's."""
        if self.runs and self.runs[0].test_lengths != DecoderEvaluation().ends:
            return None
        return PUBLISHED.get(self.task.name, {}).get(self.positions)


def cells(
    suite: Suite,
    scale: Scale = "quick",
    *,
    tasks: Sequence[str] | None = None,
    schemes: Sequence[str] | None = None,
    seeds: int = FIVE,
    seed: int = FIRST_SEED,
    recipe: Recipe | None = None,
) -> list[Cell]:
    """The cells of a suite, of all its tasks and schemes at this scale unless some are named, by its own
    recipe unless there is another.
    """
    recipe = recipe or RECIPES[suite, scale]
    known = ALGORITHMIC if suite == "algorithmic" else FORMAL
    for name in tasks or ():
        if name not in known:
            raise ValueError(f"the {suite} suite has no task {name!r}{nearest(name, list(known))}")
    chosen = tasks or (QUICK_TASKS[suite] if scale == "quick" else list(known))
    usual = ("learned", "none")
    if suite == "algorithmic" and scale == "paper":
        usual = ("learned", "none", "rotary", "alibi")
    for scheme in schemes or ():
        if scheme not in SCHEMES:
            raise ValueError(f"there is no scheme of positions {scheme!r}{nearest(scheme, list(SCHEMES))}")
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    whole(seeds, "seeds", 1, MOST_SEEDS)
    every = range(seed, seed + seeds)
    pairs = product(chosen, (SCHEMES[SCHEMES.index(scheme)] for scheme in schemes or usual))
    return [_cell(PREDICTION_TASKS[name](), scheme, scale, every, recipe) for name, scheme in pairs]


QUICK_TASKS: dict[Suite, tuple[str, ...]] = {
    "algorithmic": ("binary-majority", "majority", "copy-repeat", "parity"),
    "formal": ("tomita-1", "tomita-4", "tomita-5", "dyck-2", "aa-star", "ab-d-bc"),
}
"""What is trained at the quick scale."""

QUICK_SHAPES = {
    "binary-majority": Shape(1, 1, 16),
    "majority": Shape(1, 1, 64),
    "copy-unique": Shape(2, 1, 64),
    "parity": Shape(1, 1, 64),
}
"""Of all other tasks, ``QUICK_SHAPE``."""

QUICK_SHAPE = Shape(2, 2, 32)


def run_of(
    task: PredictionTask,
    positions: Positions,
    shape: Shape,
    scale: Scale,
    seed: int,
    recipe: Recipe,
) -> Run:
    """One model of this shape, measured in the way of this scale, with the recipe's first choice of spare
    positions.
    """
    model = DecoderModel(layers=shape.layers, heads=shape.heads, width=shape.width, positions=positions)
    training = DecoderTraining(
        steps=recipe.steps,
        learning_rate=shape.learning_rate,
        clip=recipe.clip,
        rounding=recipe.rounding,
        seed=seed,
    )
    if positions == "learned":
        model = replace(model, spare_positions=recipe.spare_positions[0])
        training = replace(training, regulariser=recipe.regulariser)
    evaluation = DecoderEvaluation(stop=recipe.until == "perfect")
    if scale == "quick":
        evaluation = replace(evaluation, ends=(20, 40, 60), sequences=500, every=500)
        training = replace(training, length=20)
    return Run(task, model, training, evaluation)


def _cell(task: PredictionTask, positions: Positions, scale: Scale, seeds: range, recipe: Recipe) -> Cell:
    shape = _shape(task, positions, scale)
    if shape.layers > MOST_LAYERS:
        told = f"the paper took {shape.layers} layers of width {shape.width} with {shape.heads} heads"
        return Cell(task, positions, tuple(seeds), (), told)
    runs = tuple(run_of(task, positions, shape, scale, seed, recipe) for seed in seeds)
    return Cell(task, positions, tuple(seeds), runs)


def _shape(task: PredictionTask, positions: Positions, scale: Scale) -> Shape:
    if scale == "quick":
        return QUICK_SHAPES.get(task.name, QUICK_SHAPE)
    published = PUBLISHED.get(task.name, {})
    known = published.get(positions) or published.get("learned")
    return FORMAL_SHAPE if known is None or known.shape is None else known.shape


def there(chosen: Sequence[Cell], results: pd.DataFrame) -> list[Cell]:
    """The cells, those with runs that these results lack as not run."""
    known = set(results["run"])
    return [
        cell if all(run.id in known for run in cell.runs) else replace(cell, runs=(), not_run=NOT_THERE)
        for cell in chosen
    ]


def outcomes(chosen: Sequence[Cell], results: pd.DataFrame) -> pd.DataFrame:
    """One row a cell: accuracy by bin (``mean_1``, ``low_1``, ``high_1``, ..) over all its seeds, how many
    seeds there are and how many were perfect on the first bin, the mean over the first five of these
    (``five_1``, ..), the median number of steps, and whether the cell ``generalises``; NaN and None where
    nothing was run.
    """
    table = accuracies(results).set_index("run") if len(results) else pd.DataFrame()
    rows = []
    for cell in chosen:
        row: dict[str, object] = {
            "task": cell.task.name,
            "positions": cell.positions,
            "not_run": cell.not_run or "",
        }
        if cell.runs:
            own = table.loc[[run.id for run in cell.runs]]
            bins = [f"accuracy_{end}" for end in cell.runs[0].test_lengths]
            five = own[own["perfect"]].head(FIVE)
            for number, name in enumerate(bins, 1):
                row |= {f"mean_{number}": own[name].mean(), f"low_{number}": own[name].min()}
                row |= {f"high_{number}": own[name].max()}
                row[f"five_{number}"] = five[name].mean() if len(five) == FIVE else float("nan")
            model = cell.runs[0].decoder.model
            row |= {
                "seeds": len(own),
                "perfect": int(own["perfect"].sum()),
                "steps": float(own["steps"].median()),
                "shape": f"{model.layers}/{model.heads}/{model.width}",
                "learning_rate": cell.runs[0].decoder.training.learning_rate,
                "spare_positions": model.spare_positions,
                "note": cell.note,
                "generalises": bool(own[bins[-1]].median() >= ENOUGH),
            }
        rows.append(row)
    return pd.DataFrame(rows)
