"""How tight the bounds are: true, certified and order lengths of pairs whose divergence is computed exactly.

SimpleTask, ModPTask, the lower-bound family and random pairs. Writes into the folder given (default
docs/reproductions) a Parquet table, a page and a figure, and stops if a certified length is below a true one.

    python benchmarks/tightness.py [FOLDER]
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import matplotlib
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from lengthwise import Finite, LimitLayer, LimitTransformer, constructions
from lengthwise.bounds.tightness import Tightness, tightness
from lengthwise.reporting.canvas import ANSWER, FIT, GREY, STYLE, new_figure, save_figure

RANDOM_PAIRS = 20
LOOKED = {(1, 0): 2000, (1, 1): 400, (2, 0): 150, (2, 1): 100}
WIDTH, HIDDEN = 4, 4
LENGTHS = ("certified", "order", "certified_ratio", "order_ratio")


@dataclass(frozen=True)
class Case:
    """A pair, how far it is enumerated, and its supremum over all lengths where that is known."""

    family: str
    name: str
    f: LimitTransformer
    g: LimitTransformer
    tolerance: float
    up_to: int
    supremum: float | None = None


def cases() -> Iterator[Case]:
    for omega in (4.0, 8.0):
        for change, other in (("48 knots", (omega, 48)), (f"omega {omega + 0.5:g}", (omega + 0.5, 64))):
            f, g = constructions.simple_task(omega, 64), constructions.simple_task(*other)
            supremum = apart((omega, 64), other)
            tolerance = float(f"{supremum / 50:.1g}")
            yield Case("SimpleTask", f"omega {omega:g}, against {change}", f, g, tolerance, 300, supremum)
    for period, up_to in ((3, 90), (5, 50)):
        f = constructions.mod_p(period, 1)
        wrong = constructions.mod_p(period, 2)
        yield Case("ModPTask", f"period {period}, against residue 2", f, wrong, 0.25, up_to, 1.0)
        biased = replace(f, readout=0.6 * f.readout)
        yield Case("ModPTask", f"period {period}, against 0.6 times it", f, biased, 0.25, up_to, 0.4)
    for slope in (1.5, 2.0, 3.0, 4.0):
        f, zero = constructions.lower_bound_family(2, slope), constructions.constant(3)
        yield Case("lower-bound family", f"k = 2, L = {slope:g}, against 0", f, zero, 0.9, 100, 1.0)
    random = torch.Generator().manual_seed(0)
    for index in range(RANDOM_PAIRS):
        period, locality = 1 + index % 2, index // 2 % 2
        f, g = (random_model(period, locality, random) for _ in range(2))
        name = f"{index}: period {period}, locality {locality}"
        yield Case("random pairs", name, f, g, 0.25, LOOKED[period, locality])


def apart(one: tuple[float, int], other: tuple[float, int]) -> float:
    """The largest distance of two interpolations of sin(omega u) on [-1, 1]: it is at a knot."""
    knots = [np.linspace(-1, 1, count + 1) for _, count in (one, other)]
    every = np.concatenate(knots)
    first, second = (
        np.interp(every, knot, np.sin(omega * knot))
        for (omega, _), knot in zip((one, other), knots, strict=True)
    )
    return float(np.abs(first - second).max())


def random_model(period: int, locality: int, random: torch.Generator) -> LimitTransformer:
    """Vocabulary 2, one head, width 4, 4 hidden units: normal weights of variance 1/4, except embeddings,
    positions, key_query and local, which are whole numbers from -1 to 1, so that with one bit attention is
    hard from length 2 on.
    """

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64) / 2

    def whole(*shape: int) -> torch.Tensor:
        return torch.randint(-1, 2, shape, generator=random).double()

    layer = LimitLayer(
        whole(1, WIDTH, WIDTH),
        normal(1, WIDTH, WIDTH),
        whole(1, locality + 1),
        normal(HIDDEN, WIDTH),
        normal(HIDDEN),
        normal(WIDTH, HIDDEN),
    )
    return LimitTransformer(whole(2, WIDTH), whole(period, WIDTH), (layer,), normal(1, WIDTH), Finite(1))


def main(folder: Path) -> None:
    start = time.perf_counter()
    rows = []
    for case in cases():
        found = tightness(case.f, case.g, case.tolerance, case.up_to, supremum=case.supremum)
        assert found.certified >= found.true, (case.name, found.certified, found.true)
        rows.append(row(case, found))
        print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    spent = time.perf_counter() - start
    folder.mkdir(parents=True, exist_ok=True)
    table.to_parquet(folder / "tightness.parquet", index=False, compression="zstd")
    save_figure(figure_of(table), folder / "tightness.png")
    (folder / "tightness.md").write_text("\n".join(page(rows, table, spent)) + "\n")


def row(case: Case, found: Tightness) -> dict[str, str | float | bool]:
    return {
        "family": case.family,
        "pair": case.name,
        "tolerance": case.tolerance,
        "up_to": case.up_to,
        "supremum_low": found.supremum[0],
        "supremum_high": found.supremum[1],
        "true": found.true,
        "exact": found.exact,
        "certified": float(found.certified),
        "order": float(found.order),
        "certified_ratio": found.certified_ratio,
        "order_ratio": found.order_ratio,
    }


def page(rows: list[dict[str, str | float | bool]], table: pd.DataFrame, spent: float) -> list[str]:
    lines = [
        "# How tight the bounds are",
        "",
        f"Command: `python benchmarks/tightness.py`. Machine: 2 CPU cores; {len(table)} pairs in "
        f"{spent:.0f} s. Every row is in [tightness.parquet](tightness.parquet).",
        "",
        "*True*: the smallest N such that on no input, of whatever length, |f - g| is more than the "
        "tolerance above the largest |f - g| on inputs of length at most N. It is found by exact divergence "
        "at every length up to *looked*; it is exact where the supremum over all lengths is known or "
        'bracketed closely, and a lower bound ("at least") elsewhere, where the ratios are upper bounds.',
        "",
        "*Certified*: Theorem C, proved, with its constants. *Order*: Theorem 4.1 of the paper with constant "
        "1 and our sensitivity for its L, not certified.",
        "",
        "| family | pair | tolerance | looked | true | certified | order | certified / true | order / true |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        true = f"{one['true']}" if one["exact"] else f"at least {one['true']}"
        lengths = " | ".join(words(float(one[name])) for name in LENGTHS)
        lines.append(
            f"| {one['family']} | {one['pair']} | {one['tolerance']} | {one['up_to']} | {true} | {lengths} |"
        )
    lines += ["", "What is seen:", ""]
    lines.append(f"- In all {len(table)} pairs the certified length is at least the true one, as it must be.")
    below = table[table.order < table.true]
    lines.append(
        f"- The paper's expression with constant 1 is below the true length in {len(below)} of {len(table)} "
        "pairs."
    )
    for family, part in table.groupby("family", sort=False):
        lines.append(
            f"- {family}: the certified length is {words(part.certified_ratio.min())} to "
            f"{words(part.certified_ratio.max())} times the true one (median "
            f"{words(median(part.certified_ratio))}), the order {words(part.order_ratio.min())} to "
            f"{words(part.order_ratio.max())} times (median {words(median(part.order_ratio))}); "
            f"true lengths are {part.true.min()} to {part.true.max()}."
        )
    chance = table[table.family == "random pairs"]
    lines += [
        f"- {(chance.true <= 3).sum()} of {len(chance)} random pairs, and all of ModPTask, come within the "
        "tolerance of the largest |f - g| that was found already on inputs of at most 3 tokens: they cannot "
        "tell a good bound from a bad one. The lower-bound family needs the longest inputs.",
        f"- Random pairs: vocabulary 2, period 1 or 2, locality 0 or 1 (in turn), one head, width {WIDTH}, "
        f"{HIDDEN} hidden units; embeddings, positions, key_query and local are whole numbers drawn evenly "
        "from -1, 0, 1, the other weights normal with standard deviation 1/2; one bit, so that attention is "
        "hard from length 2 on.",
        "",
        "![True length against certified and order lengths](tightness.png)",
    ]
    return lines


def words(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def figure_of(table: pd.DataFrame) -> Figure:
    markers = {"SimpleTask": "o", "ModPTask": "s", "lower-bound family": "^", "random pairs": "."}
    with matplotlib.rc_context(STYLE):
        figure = new_figure(5.4, 4.2)
        axes = figure.subplots()
        for family, part in table.groupby("family", sort=False):
            style = {"marker": markers[str(family)], "linestyle": "none", "markersize": 6, "alpha": 0.85}
            axes.plot(part.true, part.certified, color=FIT, label=f"{family}, certified", **style)
            hollow = {**style, "markerfacecolor": "none"}
            axes.plot(part.true, part.order, color=ANSWER, label=f"{family}, order", **hollow)
        low, high = 0.8, 2 * max(table.certified.max(), table.order.max())
        ends = [low, 2 * float(table.true.max())]
        axes.plot(ends, ends, color=GREY, linewidth=0.9)
        axes.annotate("equal to the true length", (12, 5), color=GREY, fontsize=8, va="top")
        axes.set(xscale="log", xlabel="true length (of most random pairs, a lower bound)")
        axes.set(yscale="log", ylabel="length that a theorem asks for")
        axes.set(xlim=(low, 2.4 * float(table.true.max())), ylim=(low, high))
        axes.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    return figure


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reproductions"))
