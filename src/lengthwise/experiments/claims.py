"""Claims about learning, put to a test that was stated before the seeds it is put to were trained.

Of a grid of runs, every knob value with every training length and every seed:

(a) *plateau*: at a fixed training length the test loss tends to a finite limit. A run counts if its loss does
    not rise by more than 10% (or two standard errors) over the last two factors of ten of test length; where
    the limit itself is known, if the loss at the longest test length differs from it by at most 25% (or three
    standard errors). The claim holds if 95% of the runs count, and 95% of those of each knob value.
(b) *falls with the training length*: Page's test for ordered alternatives, of the plateaus at increasing
    training lengths, each seed a block. It holds if, at every knob value, p < 0.01 after Holm's correction.
(c) *rises with the knob*: Page's test of the plateaus at increasing knob values, each pair of a seed and a
    training length a block. It holds if p < 0.01 and every single seed's mean rank correlation is positive.

(d) *attention becomes hard* (ModPTask): at every training length of at least twice the period, in every seed,
    attention off the residue class and the distance from uniform on it (total variation) are each under 1%
    in the mean over test strings.

Nothing is left out: a run that diverged has an infinite plateau, and takes the last rank.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import page_trend_test

LEVEL_SHARE = 0.95
SIGNIFICANT = 0.01
HARD = 0.01

Measure = Literal["plateau", "relative"]
"""``plateau`` is the loss itself, ``relative`` the loss over that of the best constant answer."""


@dataclass(frozen=True)
class Claim:
    """The outcome of one test.

    - ``effect``: of (a), the share of level runs; of (b) and (c), the mean Kendall correlation of the plateau
      with the training length or the knob, over all blocks; of (d), the largest share of attention amiss;
    - ``p``: of (b), the largest over the knob values, corrected; None for (a) and (d);
    - ``by_seed``: the effect in each seed alone;
    - ``details``: of (a) and (b), by knob value; of (c), the p value of each training length alone; of (d),
      by training length.
    """

    name: str
    statement: str
    test: str
    effect: float
    p: float | None
    holds: bool
    by_seed: dict[int, float]
    details: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def claims(measured: pd.DataFrame, knob: str, measure: Measure = "plateau") -> list[Claim]:
    """The claims (a), (b) and (c) on a table of plateaus (``lengthwise.plateaus``) with a column ``knob``."""
    table = measured.assign(
        value=measured["plateau"] / (measured["baseline"] if measure == "relative" else 1.0)
    )
    table.loc[~np.isfinite(table["value"]), "value"] = np.inf
    knobs, lengths, seeds = (sorted(set(table[c].tolist())) for c in (knob, "training_length", "seed"))
    grid = table.set_index([knob, "training_length", "seed"])["value"]
    if grid.index.has_duplicates or len(grid) != len(knobs) * len(lengths) * len(seeds):
        raise ValueError(
            f"claims need one run for every combination of {knob} {knobs}, training length {lengths} and "
            f"seed {seeds}; got {len(grid)} runs"
        )
    if min(len(knobs), len(lengths)) < 3 or len(seeds) < 2:
        raise ValueError("claims need at least 3 knob values, 3 training lengths and 2 seeds")
    values_KNS = grid.sort_index().to_numpy(float).reshape(len(knobs), len(lengths), len(seeds))
    name = knob.rpartition(".")[2]
    return [
        _levels(table, knob, seeds),
        _falls(values_KNS, name, knobs, seeds),
        _rises(values_KNS, name, lengths, seeds, measure),
    ]


def attention_claim(evidence: pd.DataFrame, period: int) -> Claim:
    """The claim (d), on a table of ``Hardness`` by training length and seed."""
    long = evidence[evidence["training_length"] >= 2 * period]
    worst = long[["off", "spread"]].max(axis=1)
    by_seed = worst.groupby(long["seed"]).max()
    by_length = worst.groupby(long["training_length"]).max()
    return Claim(
        "d",
        f"with period {period} the trained attention is near 0 off the class and near uniform on it",
        f"attention off the class and distance from uniform on it, each under {HARD:g} in every seed, "
        f"trained at {2 * period} or longer",
        float(worst.max()),
        None,
        bool((worst < HARD).all()) and len(long) > 0,
        {int(str(seed)): float(value) for seed, value in by_seed.items()},
        {f"largest at length {length}": float(value) for length, value in by_length.items()},
    )


def _levels(table: pd.DataFrame, knob: str, seeds: Sequence[int]) -> Claim:
    exact = bool(table["exact"].all())
    table = table.assign(level=table["trend"].isin(["level"] if exact else ["level", "falling"]))
    counted = (
        "share of runs whose loss at the longest test length is within 25% or three standard errors of its "
        "exact limit"
        if exact
        else "share of runs whose loss rises by at most 10% or two standard errors over the last two decades"
    )
    by_knob = table.groupby(knob)["level"].mean()
    share, by_seed = float(table["level"].mean()), table.groupby("seed")["level"].mean()
    name = knob.rpartition(".")[2]
    return Claim(
        "a",
        "at a fixed training length the test loss tends to a finite plateau",
        f"{counted}, at least {LEVEL_SHARE:g} for every {name}",
        share,
        None,
        bool((by_knob >= LEVEL_SHARE).all()),
        {seed: float(by_seed[seed]) for seed in seeds},
        {f"{name} = {value}": float(part) for value, part in by_knob.items()},
    )


def _falls(values_KNS: np.ndarray, name: str, knobs: Sequence[Any], seeds: Sequence[int]) -> Claim:
    raw = [_page(-block_NS.T) for block_NS in values_KNS]
    corrected = _holm(raw)
    tau_KS = np.array([[_kendall(column) for column in block_NS.T] for block_NS in values_KNS])
    return Claim(
        "b",
        "the plateau falls with the training length",
        f"Page's test with seeds as blocks, p < {SIGNIFICANT:g} at every {name} after Holm's correction",
        float(tau_KS.mean()),
        max(corrected),
        max(corrected) < SIGNIFICANT,
        {seed: float(tau) for seed, tau in zip(seeds, tau_KS.mean(0), strict=True)},
        {f"p at {name} = {value}": p for value, p in zip(knobs, corrected, strict=True)},
    )


def _rises(
    values_KNS: np.ndarray, name: str, lengths: Sequence[int], seeds: Sequence[int], measure: Measure
) -> Claim:
    blocks = values_KNS.reshape(len(values_KNS), -1).T
    p = _page(blocks)
    seeds_first = values_KNS.transpose(2, 0, 1)
    tau_SN = np.array([[_kendall(column) for column in block_KN.T] for block_KN in seeds_first])
    by_seed = {seed: float(tau) for seed, tau in zip(seeds, tau_SN.mean(1), strict=True)}
    what = "the plateau" if measure == "plateau" else "the plateau, over the loss of a constant answer,"
    return Claim(
        "c",
        f"{what} rises with {name}",
        f"Page's test with (seed, training length) as blocks, p < {SIGNIFICANT:g}, and a positive mean rank "
        "correlation in every seed",
        float(tau_SN.mean()),
        p,
        p < SIGNIFICANT and min(by_seed.values()) > 0,
        by_seed,
        {f"p at length {length}": _page(values_KNS[:, n].T) for n, length in enumerate(lengths)},
    )


def _page(blocks: np.ndarray) -> float:
    """The p value of Page's test that the columns increase, over blocks (rows)."""
    ranks = pd.DataFrame(blocks).rank(axis=1).to_numpy()
    return float(page_trend_test(ranks, ranked=True).pvalue)


def _kendall(values: np.ndarray) -> float:
    """Kendall's correlation of the values with their order: rising pairs minus falling ones, over all."""
    before, after = np.triu_indices(len(values), 1)
    rising = (values[after] > values[before]).astype(int) - (values[after] < values[before]).astype(int)
    return float(rising.mean())


def _holm(p_values: Sequence[float]) -> list[float]:
    """P values corrected for as many tests, by Holm's step-down method."""
    order = np.argsort(p_values)
    corrected, largest = [0.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = largest
    return corrected
