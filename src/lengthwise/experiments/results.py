"""What a run leaves: rows of one long table, and the weights.

A row is (run, step, test_length, metric, value). Metrics:

- ``loss``: mean loss at a test length, after the last step; ``loss_error``: its standard error;
- ``baseline``: the loss of the best constant answer there;
- ``training_loss``: mean training loss since the last such row, at the training length;
- ``limit``: what the loss tends to as the test length grows, where that can be computed, and
  ``limit_error``, its standard error; their test length is 0, which is none.

Of decoders, after every step at which they are measured:

- ``accuracy``: the share of the sequences of a bin that are right at every scored place; the test length is
  the last one of the bin;
- ``training_loss``, likewise.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd
from torch import Tensor

from lengthwise.experiments.run import Run
from lengthwise.training import Plateau, plateau

COLUMNS = {"run": "str", "step": "int64", "test_length": "int64", "metric": "str", "value": "float64"}

Row = tuple[int, int, str, float]
"""Step, test length, metric, value."""

Measured = Callable[[Run, Sequence[Row]], None]
"""Called with a run and its new rows."""

NO_LENGTH = 0
"""The test length of what is measured at none."""


@dataclass(frozen=True)
class Result:
    """A finished run."""

    run: Run
    metrics: pd.DataFrame
    weights: Mapping[str, Tensor]


def metrics_frame(run: Run, rows: Iterable[Row]) -> pd.DataFrame:
    """The rows of one run as a table."""
    records = [(run.id, *row) for row in rows]
    return pd.DataFrame(records, columns=pd.Index(COLUMNS)).astype(COLUMNS)


def table(runs: Sequence[Run], metrics: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """All rows of some runs, with what was asked beside what was measured: one column for each entry of
    the specification, as ``training.length`` or ``task.omega``.
    """
    described = []
    for run, rows in zip(runs, metrics, strict=True):
        specification = {
            f"{part}.{name}": value
            for part, entries in run.specification().items()
            for name, value in entries.items()
            if not isinstance(value, list | dict)
        }
        described.append(rows.assign(**specification))
    return pd.concat(described, ignore_index=True) if described else pd.DataFrame(columns=pd.Index(COLUMNS))


@dataclass(frozen=True)
class Curve:
    """Loss against test length, of one run; ``limit``, if known, is what it tends to, with standard error."""

    run: str
    training_length: int
    seed: int
    test_lengths: tuple[int, ...]
    losses: tuple[float, ...]
    errors: tuple[float, ...]
    baseline: float
    limit: tuple[float, float] | None = None

    @cached_property
    def plateau(self) -> Plateau:
        """Where the curve ends."""
        return plateau(self.test_lengths, self.losses, self.errors, self.limit)

    @property
    def settled(self) -> float:
        """The plateau's value; infinite if there is none: the curve diverged, or it still rises and its limit
        is not known.
        """
        known = self.limit is not None or self.plateau.trend in ("level", "falling")
        return self.plateau.value if known else math.inf

    @property
    def worst(self) -> float:
        """The largest loss at any test length."""
        return math.inf if self.plateau.trend == "diverged" else max(self.losses)


def curves(results: pd.DataFrame) -> list[Curve]:
    """The curve of every run in a table of results, in the order of the table."""
    if (results["metric"] == "accuracy").any():
        raise ValueError("decoders are measured by bins of lengths and have no plateau: see lw.accuracies")
    found = []
    # As arrays: of thousands of runs, a few operations of pandas each would take minutes.
    columns = ("metric", "test_length", "value", "training.length", "training.seed")
    metrics, lengths, values, trained, seeds = (results[name].to_numpy() for name in columns)
    for run, places in results.groupby("run", sort=False).indices.items():
        of = {
            metric: sorted((int(lengths[at]), float(values[at])) for at in places if metrics[at] == metric)
            for metric in ("loss", "loss_error", "baseline", "limit", "limit_error")
        }
        found.append(
            Curve(
                run=str(run),
                training_length=int(trained[places[0]]),
                seed=int(seeds[places[0]]),
                test_lengths=tuple(length for length, _ in of["loss"]),
                losses=tuple(loss for _, loss in of["loss"]),
                errors=tuple(error for _, error in of["loss_error"]),
                baseline=of["baseline"][-1][1],
                limit=(of["limit"][0][1], of["limit_error"][0][1]) if of["limit"] else None,
            )
        )
    return found


def plateaus(results: pd.DataFrame) -> pd.DataFrame:
    """One row a run: training length, seed, plateau with its interval and trend, worst test loss, and whether
    the plateau is the exact limit.
    """
    return plateau_table(curves(results))


def plateau_table(found: Iterable[Curve]) -> pd.DataFrame:
    """The same from the curves."""
    return pd.DataFrame(
        {
            "run": curve.run,
            "training_length": curve.training_length,
            "seed": curve.seed,
            "plateau": curve.plateau.value,
            "low": curve.plateau.interval[0],
            "high": curve.plateau.interval[1],
            "trend": curve.plateau.trend,
            "start": curve.plateau.start,
            "worst_loss": curve.worst,
            "baseline": curve.baseline,
            "exact": curve.limit is not None,
        }
        for curve in found
    )


def accuracies(results: pd.DataFrame) -> pd.DataFrame:
    """One row a run of a decoder: task, scheme of positions, training length, seed, learning rate, the number
    of steps that it was trained for, its accuracy then (``accuracy_50`` on the bin that ends at length 50,
    and so on), and whether it was perfect on the first bin.
    """
    asked = {
        "task": "task.name",
        "positions": "model.positions",
        "training_length": "training.length",
        "seed": "training.seed",
        "learning_rate": "training.learning_rate",
    }
    found, ends = [], sorted(results[results["metric"] == "accuracy"]["test_length"].unique())
    for run, rows in results.groupby("run", sort=False):
        measured = rows[rows["metric"] == "accuracy"]
        if measured.empty:
            raise ValueError(
                f"run {run} is of a limit transformer, which has no accuracy by bins: see lw.plateaus"
            )
        last = measured[measured["step"] == measured["step"].max()].set_index("test_length")["value"]
        found.append(
            {"run": run}
            | {name: rows[column].iloc[0] for name, column in asked.items()}
            | {"steps": measured["step"].max()}
            | {f"accuracy_{end}": last.get(end, math.nan) for end in ends}
            | {"perfect": last[last.index.min()] == 1.0}
        )
    columns = ["run", *asked, "steps", *(f"accuracy_{end}" for end in ends), "perfect"]
    return pd.DataFrame(found, columns=pd.Index(columns))
