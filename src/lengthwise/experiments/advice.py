"""How long must the training sequences be? A pilot, a prediction, and its confirmation.

1. *Pilot*: short training lengths, until the plateau of the test loss has clearly begun to fall.
2. *Prediction*: from the pilot alone, where the plateau will pass the tolerance.
3. *Confirmation*: training around the prediction, on a grid no coarser than a factor 1.2, until the
   shortest length within the tolerance is found; and whether the prediction came true.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from lengthwise._checks import whole
from lengthwise.experiments.decay import FALLING, FEWEST, Prediction, predict
from lengthwise.experiments.engine import train_all
from lengthwise.experiments.recipes import recipe
from lengthwise.experiments.results import Curve, Result, curves, table
from lengthwise.experiments.run import MOST_SEEDS, Run
from lengthwise.experiments.store import Store
from lengthwise.limit import LimitTransformer
from lengthwise.models import LimitModel
from lengthwise.tasks import CountTask, Task
from lengthwise.training import Evaluation, Progress, Training

GRID = 1.2
"""Neighbouring training lengths differ by at most this factor (or by one)."""

FINE = 1.1
"""At the answer, the next shorter length measured is no further away than this factor (or one)."""

SHORTEST = 4
"""The shortest training length of a pilot."""

PILOT_LONGEST = 256
"""The longest training length of a pilot, unless the caller says otherwise."""

FAR, FAR_STRINGS = 1000, 100
"""Test lengths reach at least this many times as far as the pilot's training lengths; the second where test
strings must be made."""

WIDE = 3.0
"""A pilot goes on, below the length that it predicts, while its interval spans more than this factor."""

Stage = Callable[[str, int], Progress]
"""Called when a stage begins, with its name and its number of model-steps; returns what counts them."""


@dataclass(frozen=True)
class AtLength:
    """All that was measured at one training length, and in which stage."""

    training_length: int
    stage: str
    curves: tuple[Curve, ...]

    @property
    def plateaus(self) -> list[float]:
        """One plateau a seed; infinite where a curve is still rising or diverged."""
        return [curve.settled for curve in self.curves]

    @property
    def plateau(self) -> float:
        """The median over seeds."""
        return median(self.plateaus)

    @property
    def median(self) -> Curve:
        """The curve whose plateau is the median (of an even number, the lower one)."""
        ordered = sorted(self.curves, key=lambda curve: curve.settled)
        return ordered[(len(ordered) - 1) // 2]

    @property
    def worst(self) -> float:
        """The largest loss at any test length, as the median over seeds."""
        return median(curve.worst for curve in self.curves)

    @property
    def fitted(self) -> float:
        """The loss at the training length itself, as the median over seeds."""
        return median(curve.losses[0] for curve in self.curves)

    @property
    def level(self) -> int:
        """How many seeds' curves have levelled off."""
        return sum(curve.plateau.trend == "level" for curve in self.curves)


@dataclass(frozen=True)
class Advice:
    """The answer, with everything it rests on.

    - ``prediction``: made from the pilot alone;
    - ``confirmed_length``: the shortest training length measured around the answer whose plateau (median
      over seeds) is within the tolerance; None if none was found or no prediction could be made;
    - ``confirmed``: whether it lies in the predicted interval, widened by the factor 1.1 to which it is
      known;
    - ``lengths``: what was measured at each training length, in increasing order;
    - ``results``: all rows of all runs;
    - ``trained``: the model of the median seed at the confirmed length.
    """

    task: Task
    tolerance: float
    prediction: Prediction
    confirmed_length: int | None
    lengths: tuple[AtLength, ...]
    results: pd.DataFrame
    longest_test: int
    trained: LimitTransformer | None = None

    @property
    def predicted_length(self) -> int | None:
        """The training length expected to suffice."""
        return self.prediction.length

    @property
    def interval(self) -> tuple[int, int] | None:
        """The lengths between which the answer is expected."""
        return self.prediction.interval

    @property
    def confirmed(self) -> bool:
        """Whether the prediction came true."""
        if self.confirmed_length is None or self.interval is None:
            return False
        low, high = self.interval
        return low / FINE <= self.confirmed_length <= high * FINE

    @property
    def answer(self) -> AtLength | None:
        """What was measured at the confirmed length."""
        return next((at for at in self.lengths if at.training_length == self.confirmed_length), None)

    @property
    def exceptions(self) -> tuple[int, ...]:
        """Measured lengths longer than the confirmed one that are not within the tolerance."""
        return tuple(
            at.training_length
            for at in self.lengths
            if self.answer and at.training_length > self.answer.training_length and not self.within(at)
        )

    def within(self, at: AtLength) -> bool:
        """Whether the plateau at a training length is within the tolerance."""
        return at.plateau <= self.tolerance

    def to_json(self) -> dict[str, Any]:
        """Plain data, with the keys that scripts rely on."""
        decay = self.prediction.decay
        return {
            "task": {"name": self.task.name, **self.task.knobs},
            "tolerance": self.tolerance,
            "predicted_length": self.predicted_length,
            "interval": list(self.interval) if self.interval else None,
            "confirmed_length": self.confirmed_length,
            "confirmed": self.confirmed,
            "reason": self.prediction.reason,
            "exceptions": list(self.exceptions),
            "worst_loss": _finite(self.answer.worst) if self.answer else None,
            "longest_test": self.longest_test,
            "decay": asdict(decay) if decay else None,
            "lengths": [
                {
                    "training_length": at.training_length,
                    "stage": at.stage,
                    "plateau": _finite(at.plateau),
                    "plateaus": [_finite(curve.plateau.value) for curve in at.curves],
                    "trends": [curve.plateau.trend for curve in at.curves],
                    "within": self.within(at),
                }
                for at in self.lengths
            ],
        }


def _finite(number: float) -> float | None:
    """JSON has no infinity."""
    return number if math.isfinite(number) else None


def at_lengths(found: Iterable[Curve], stages: Mapping[str, str] | None = None) -> tuple[AtLength, ...]:
    """Curves by training length, in increasing order; ``stages`` says of runs in which they were trained."""
    by_length: dict[int, list[Curve]] = {}
    for curve in sorted(found, key=lambda curve: (curve.training_length, curve.seed)):
        by_length.setdefault(curve.training_length, []).append(curve)
    return tuple(
        AtLength(length, (stages or {}).get(own[0].run, ""), tuple(own)) for length, own in by_length.items()
    )


def advise(
    task: Task,
    model: LimitModel | None = None,
    tolerance: float = 0.01,
    *,
    seeds: int = 5,
    seed: int = 0,
    training: Training | None = None,
    evaluation: Evaluation | None = None,
    pilot_longest: int | None = None,
    output: Path | str | None = None,
    device: str | None = None,
    stage: Stage | None = None,
) -> Advice:
    """How long the training sequences must be for the loss to stay within ``tolerance``.

    - ``model``, ``training``, ``evaluation``: by default those of the task's ``recipe``; the length and seed
      of the training are not used;
    - ``seeds``: runs at each training length, with seeds ``seed``, ``seed + 1``, ...;
    - ``pilot_longest``: the longest training length that the pilot may try (unless given, 256, or less where
      the longest test length is not 1000 times as far, or 100 times where test strings must be made);
    - ``output``: a folder that keeps every run, so that a killed call goes on where it was.
    """
    if not (isinstance(tolerance, int | float) and 0 < tolerance < math.inf):
        raise ValueError(f"tolerance must be positive and finite, got {tolerance!r}")
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    whole(seeds, "seeds", 1, MOST_SEEDS)
    default = recipe(task)
    evaluation, template = evaluation or default.evaluation, training or default.training
    far = FAR if isinstance(task, CountTask) else FAR_STRINGS
    room, shortest = evaluation.lengths[-1] // far, max(SHORTEST, 2 * task.shortest)
    pilot_longest = min(PILOT_LONGEST, room) if pilot_longest is None else pilot_longest
    if not shortest + FEWEST <= pilot_longest <= room:
        raise ValueError(
            f"the pilot's longest training length must be at least {shortest + FEWEST} and at most a "
            f"{far}th of the longest test length {evaluation.lengths[-1]}, for a plateau to show; "
            f"got {pilot_longest}"
        )
    if output is not None:
        Store(output).check()
    lab = _Lab(
        task, model or default.model, template, evaluation, range(seed, seed + seeds), output, device, stage
    )

    prediction = _pilot(lab, tolerance, shortest, pilot_longest)
    confirmed = _confirm(lab, tolerance, prediction.length) if prediction.length else None
    return Advice(
        task,
        float(tolerance),
        prediction,
        confirmed,
        tuple(lab.measured[length] for length in lab.lengths),
        lab.results,
        evaluation.lengths[-1],
        lab.median_model(confirmed) if confirmed else None,
    )


def grid_between(low: int, high: int) -> list[int]:
    """Whole numbers from low to high whose neighbours differ by at most a factor ``GRID`` or by one."""
    lengths = [low]
    while lengths[-1] < high:
        lengths.append(min(high, max(lengths[-1] + 1, math.floor(lengths[-1] * GRID))))
    return lengths


@dataclass
class _Lab:
    """Trains at the lengths asked for, all seeds of each, and remembers what was measured."""

    task: Task
    model: LimitModel
    template: Training
    evaluation: Evaluation
    seeds: Sequence[int]
    output: Path | str | None
    device: str | None
    stage: Stage | None

    def __post_init__(self) -> None:
        self.measured: dict[int, AtLength] = {}
        self.trained: dict[str, Result] = {}
        self.results = pd.DataFrame()

    def measure(self, lengths: Sequence[int], stage: str) -> None:
        new = [length for length in lengths if length not in self.measured]
        if not new:
            return
        runs = [
            Run(self.task, self.model, replace(self.template, length=length, seed=seed), self.evaluation)
            for length in new
            for seed in self.seeds
        ]
        title = f"{stage}: {', '.join(map(str, new))}"
        progress = self.stage(title, len(runs) * self.template.steps) if self.stage else None
        trained = train_all(runs, output=self.output, device=self.device, progress=progress)
        self.trained |= {result.run.id: result for result in trained}
        rows = table(runs, [result.metrics for result in trained])
        self.results = pd.concat([self.results, rows.assign(stage=stage)], ignore_index=True)
        found = curves(rows)
        for length in new:
            at_length = tuple(curve for curve in found if curve.training_length == length)
            self.measured[length] = AtLength(length, stage, at_length)

    def median_model(self, length: int) -> LimitTransformer:
        """The model whose plateau is the median of its training length."""
        result = self.trained[self.measured[length].median.run]
        return result.run.limit.model.transformer(result.weights)

    @property
    def lengths(self) -> list[int]:
        return sorted(self.measured)

    @property
    def baseline(self) -> float:
        return median(curve.baseline for at in self.measured.values() for curve in at.curves)


def _pilot(lab: _Lab, tolerance: float, shortest: int, longest: int) -> Prediction:
    """Train at short lengths, two more at a time, until enough of them are falling for a prediction that is
    certain enough, or the next would be longer than what is predicted; or until the models no longer fit even
    their own training lengths: longer ones would not be easier.
    """
    grid = grid_between(shortest, longest)
    begin, end = 0, min(5, len(grid))
    while True:
        lab.measure(grid[begin:end], "pilot")
        measured = [lab.measured[length] for length in lab.lengths]
        last = measured[-1]
        if all(at.fitted > FALLING * lab.baseline for at in measured[-FEWEST:]):
            return Prediction(
                None,
                None,
                None,
                f"the models do not even fit sequences of their training length {last.training_length} (loss "
                f"{last.fitted:.2g}, of a constant answer {lab.baseline:.2g}): train for more steps or with "
                "more hidden units",
            )
        found = predict(
            lab.lengths,
            [at.plateaus for at in measured],
            baseline=lab.baseline,
            tolerance=tolerance,
            seed=lab.seeds[0],
        )
        begin, end = end, min(end + 2, len(grid))
        if begin == end or not _worth_more(found, grid[end - 1]):
            return found


def _worth_more(found: Prediction, next_length: int) -> bool:
    """Whether a pilot should go on to this length: there is no fit yet, or an uncertain one further out."""
    if found.length is None or found.interval is None:
        return found.decay is None
    low, high = found.interval
    return high > WIDE * low and next_length < found.length


def _confirm(lab: _Lab, tolerance: float, predicted: int) -> int | None:
    """Train around the prediction until, among the lengths measured there, one is within the tolerance and
    the next shorter one is not, and close by; give up four times above the prediction.
    """
    least = lab.task.shortest
    low, high = max(least, math.floor(predicted / GRID)), max(least, math.ceil(predicted * GRID))
    lab.measure(grid_between(low, high), "confirmation")
    while True:
        around = [length for length in lab.lengths if low <= length <= high]
        within = [length for length in around if lab.measured[length].plateau <= tolerance]
        if not within:
            if high >= 4 * predicted:
                return None
            high = math.ceil(high * GRID)
            lab.measure(grid_between(around[-1], high), "confirmation")
        elif within[0] == low:
            if low == least:
                return low
            low = max(least, math.floor(low / GRID))
            lab.measure(grid_between(low, within[0]), "confirmation")
        else:
            answer, shorter = within[0], around[around.index(within[0]) - 1]
            if answer <= max(shorter + 1, shorter * FINE):
                return answer
            lab.measure([round(math.sqrt(shorter * answer))], "confirmation")
