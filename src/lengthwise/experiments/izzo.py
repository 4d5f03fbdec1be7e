"""The experiments of Izzo, Nichani and Lee (ICLR 2026), as lists of runs.

Their widths, steps and grids are not public; these are ours. ``quick`` takes minutes on two CPU cores,
``paper`` minutes on one GPU.
"""

from dataclasses import dataclass
from typing import Literal

from lengthwise.experiments.recipes import recipe
from lengthwise.experiments.run import Run, vary
from lengthwise.tasks import KGramTask, ModPTask, SimpleTask
from lengthwise.training import Evaluation, length_grid

Figure = Literal["figure1", "figure2", "figure3", "figure4"]
Scale = Literal["quick", "paper"]

FIRST_SEED = 2000
"""Seeds of published figures begin here: seeds below it were used in finding the recipes."""


@dataclass(frozen=True)
class Study:
    """Every value of a knob (a column of the results) with every training length and every seed; loss curves
    are shown at one value.
    """

    title: str
    knob: str
    shown: object
    runs: tuple[Run, ...]


def studies(figure: Figure, scale: Scale = "quick", seed: int = FIRST_SEED) -> list[Study]:
    """The studies behind a figure."""
    return {"figure1": _simple, "figure2": _modp, "figure3": _hardmax, "figure4": _kgram}[figure](scale, seed)


def _simple(scale: Scale, seed: int) -> list[Study]:
    baseline = recipe(SimpleTask()).run(SimpleTask())
    if scale == "quick":
        baseline, seeds = baseline.but(steps=2000), 5
        lengths: tuple[int, ...] = (4, 8, 16, 32, 64)
    else:
        seeds, lengths = 16, (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
    runs = vary(baseline, omega=(2.0, 4.0, 8.0, 12.0, 16.0), length=lengths, seed=_seeds(seed, seeds))
    return [Study("SimpleTask", "task.omega", 8.0, tuple(runs))]


def _modp(scale: Scale, seed: int) -> list[Study]:
    task = ModPTask(period=5, residue=1)
    baseline, seeds = recipe(task).run(task), 16
    lengths: tuple[int, ...] = (4, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64)
    if scale == "quick":
        baseline, seeds, lengths = baseline.but(steps=2000), 5, (4, 6, 8, 12, 16, 24)
    runs = vary(baseline, period=(2, 3, 4, 5, 6, 8), length=lengths, seed=_seeds(seed, seeds))
    return [Study("ModPTask", "task.period", 5, tuple(runs))]


def _hardmax(scale: Scale, seed: int) -> list[Study]:
    """The runs of figure 2 with period 5."""
    (study,) = _modp(scale, seed)
    chosen = [run for run in study.runs if run.task.knobs["period"] == study.shown]
    return [Study(study.title, study.knob, study.shown, tuple(chosen))]


def _kgram(scale: Scale, seed: int) -> list[Study]:
    """Training lengths begin at 12: in shorter strings over several tokens a context hardly ever recurs."""
    changes: dict[str, object] = {}
    if scale == "quick":
        changes, seeds, lengths = {"steps": 1200, "learning_rate": 1e-3}, 5, (12, 16, 24, 32)
        evaluation = Evaluation(lengths=length_grid(10**4), sequences=256)
        by_vocabulary = [KGramTask(k=2, vocabulary=size) for size in (2, 3, 4)]
        by_k = [KGramTask(k=k, vocabulary=2) for k in (1, 2, 3)]
    else:
        seeds, lengths = 16, (12, 16, 24, 32, 48, 64, 96, 128)
        evaluation = Evaluation(lengths=length_grid(10**4, each=4), sequences=1024)
        by_vocabulary = [KGramTask(k=2, vocabulary=size) for size in (2, 3, 4, 5, 6)]
        by_k = [KGramTask(k=k, vocabulary=2) for k in (1, 2, 3, 4, 5)]

    def runs(tasks: list[KGramTask]) -> tuple[Run, ...]:
        baselines = [recipe(task).run(task).but(evaluation=evaluation, **changes) for task in tasks]
        return tuple(
            run for baseline in baselines for run in vary(baseline, length=lengths, seed=_seeds(seed, seeds))
        )

    return [
        Study("in-context 2-gram", "task.vocabulary", 3, runs(by_vocabulary)),
        Study("in-context k-gram over 2 tokens", "task.k", 2, runs(by_k)),
    ]


def _seeds(first: int, count: int) -> range:
    return range(first, first + count)
