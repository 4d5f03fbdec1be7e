"""The experiments of Huang et al. (ICLR 2025), as lists of runs: two suites, by task and scheme of positions.

Decoders are trained at lengths up to 50 and measured in three bins, up to 50, 100 and 150, that never
overlap (``paper``); ``quick`` has bins up to 20, 40 and 60, smaller models and some of the tasks, and takes
minutes on two CPU cores. All seeds count. The paper ran seeds until five were perfect on the first bin and
dropped the others; what that gives stands beside.

Gradients of the algorithmic suite are shortened to the norm 1, as the published code does by its trainer's
default; those of the formal one are not. In both suites a model stops when it is perfect on the first bin.
(The published code of the formal suite does not stop.)

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

Suite = Literal["algorithmic", "formal"]
Scale = Literal["quick", "paper"]
Until = Literal["perfect", "end"]

FIRST_SEED = 10_000
"""Seeds of published tables begin here: smaller ones were used in finding out what to train."""

CLIP: Mapping[Suite, float] = {"algorithmic": 1.0, "formal": 0.0}
"""What a model's gradient is shortened to."""

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
    regulariser: float = 0.0,
    clip: float | None = None,
    until: Until = "perfect",
) -> list[Cell]:
    """The cells of a suite, of all its tasks and schemes at this scale unless some are named; with the
    paper's regulariser of learned positions, if its factor is not 0 (there, 1e-4); and with gradients
    shortened to ``clip``, 0 for never, if not to what is usual in the suite. A model is trained ``until`` it
    is perfect on the first bin, when its learning rate is still high, or to the end.
    """
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

    def changed(run: Run) -> Run:
        task, model, training, evaluation = run.decoder
        factor = regulariser if model.positions == "learned" else 0.0
        longest = training.clip if clip is None else clip
        return Run(task, model, replace(training, regulariser=factor, clip=longest), evaluation)

    found = [_cell(PREDICTION_TASKS[name](), scheme, scale, every, until) for name, scheme in pairs]
    return [replace(cell, runs=tuple(map(changed, cell.runs))) for cell in found]


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
    until: Until = "perfect",
) -> Run:
    """One model of this shape, trained in the way of this scale."""
    model = DecoderModel(layers=shape.layers, heads=shape.heads, width=shape.width, positions=positions)
    suite: Suite = "algorithmic" if task.name in ALGORITHMIC else "formal"
    usual = DecoderTraining(learning_rate=shape.learning_rate, clip=CLIP[suite], seed=seed)
    evaluation = DecoderEvaluation(stop=until == "perfect")
    if scale == "quick":
        evaluation = replace(evaluation, ends=(20, 40, 60), sequences=500, every=500)
        return Run(task, model, replace(usual, length=20, steps=3000), evaluation)
    return Run(task, model, replace(usual, rounding="bfloat16"), evaluation)


def _cell(task: PredictionTask, positions: Positions, scale: Scale, seeds: range, until: Until) -> Cell:
    shape = _shape(task, positions, scale)
    if shape.layers > MOST_LAYERS:
        told = f"the paper took {shape.layers} layers of width {shape.width} with {shape.heads} heads"
        return Cell(task, positions, tuple(seeds), (), told)
    runs = tuple(run_of(task, positions, shape, scale, seed, until) for seed in seeds)
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
                "note": cell.note,
                "generalises": bool(own[bins[-1]].median() >= ENOUGH),
            }
        rows.append(row)
    return pd.DataFrame(rows)
