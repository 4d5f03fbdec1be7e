"""Plateaus of SimpleTask over frequency and training length, beside those of a trial that we must match.

Trains one-layer limit transformers for 5,000 steps (omega 4, 8, 16; training lengths 4 to 128), measures
them up to test length 10^9, and writes into the folder given (default docs/reproductions) a Parquet table
of every run, a page and a figure.

    python benchmarks/simple_plateaus.py [FOLDER]
"""

import sys
import time
from itertools import pairwise
from pathlib import Path
from statistics import median

import matplotlib
from matplotlib.figure import Figure
from timing import machine

from lengthwise import LimitModel, Run, SimpleTask, Training, plateaus, train
from lengthwise.experiments.results import curves
from lengthwise.reporting.canvas import STYLE, save_figure

OMEGAS, LENGTHS, SEEDS, STEPS = (4, 8, 16), (4, 8, 16, 32, 64, 128), range(5), 5000
TRIAL = {
    4: (0.031, 0.0026, 0.0001, 1e-4, 1e-4, 1e-4),
    8: (0.57, 0.037, 0.0031, 0.0003, 0.0001, 0.0001),
    16: (0.92, 0.58, 0.039, 0.0042, 0.0012, 0.0005),
}
"""Median of 3 seeds at test length 10^6, of a separate 70-line trial; "under 10^-4" is taken as 10^-4."""


def main(folder: Path) -> None:
    runs = [
        Run(SimpleTask(omega=omega), LimitModel(), Training(length=length, steps=STEPS, seed=seed))
        for omega in OMEGAS
        for length in LENGTHS
        for seed in SEEDS
    ]
    start = time.perf_counter()
    results = train(runs)
    spent = time.perf_counter() - start

    omega_of = {run.id: int(run.task.omega) for run in runs if isinstance(run.task, SimpleTask)}
    at_million, ends, trends = {}, {}, []
    for curve in curves(results):
        cell = (omega_of[curve.run], curve.training_length)
        at_million.setdefault(cell, []).append(curve.losses[curve.test_lengths.index(10**6)])
        ends.setdefault(cell, []).append(curve.plateau.value)
        trends.append(curve.plateau.trend)

    lines = [
        "# SimpleTask: plateau against frequency and training length",
        "",
        f"Command: `python benchmarks/simple_plateaus.py`. Machine: {machine()}; {len(runs)} models of "
        f"{STEPS} steps in {spent:.0f} s. Width 64, 256 hidden units, one head, no positions, infinite "
        "precision, batch 256, Adam with learning rate 10^-3 and a half-cosine schedule, Dirichlet prior. "
        "Every seed is in [simple-plateaus.parquet](simple-plateaus.parquet).",
        "",
        "Loss at test length 10^6: median of seeds 0 to 2 (lowest to highest of all 5); *trial*: median of 3 "
        "seeds of an earlier, separate implementation, the mark to come within a factor 2 of.",
        "",
        "| omega | training length | loss at 10^6 | trial | within twice the trial |",
        "|---|---|---|---|---|",
    ]
    kept = []
    for omega in OMEGAS:
        for length, trial in zip(LENGTHS, TRIAL[omega], strict=True):
            values = at_million[omega, length]
            middle = median(values[:3])
            kept.append(middle <= 2 * trial)
            lines.append(
                f"| {omega} | {length} | {middle:.2g} ({min(values):.2g} to {max(values):.2g}) | {trial:g} | "
                f"{'yes' if kept[-1] else 'no'} |"
            )
    middles = {cell: median(values) for cell, values in at_million.items()}
    falling = [
        middles[omega, short] > middles[omega, long] for omega in OMEGAS for short, long in pairwise(LENGTHS)
    ]
    rising = [
        middles[low, length] < middles[high, length] for length in LENGTHS for low, high in pairwise(OMEGAS)
    ]
    lines += [
        "",
        f"- {sum(kept)} of {len(kept)} cells within twice the trial.",
        f"- Medians of 5 seeds fall from one training length to the next in {sum(falling)} of {len(falling)} "
        f"steps, and rise from one frequency to the next in {sum(rising)} of {len(rising)}.",
        f"- {trends.count('level')} of {len(trends)} curves have levelled off by test length 10^9.",
        "",
        "![Plateau against training length](simple-plateaus.png)",
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "simple-plateaus.md").write_text("\n".join(lines) + "\n")
    results.to_parquet(folder / "simple-plateaus.parquet", index=False, compression="zstd")
    save_figure(_figure(ends), folder / "simple-plateaus.png")
    print("\n".join(lines))
    print(plateaus(results).groupby("trend").size().to_string())


def _figure(ends: dict[tuple[int, int], list[float]]) -> Figure:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.0, 3.6), layout="constrained")
        axes = figure.subplots()
        for omega, color in zip(OMEGAS, ("#7ad151", "#22a884", "#414487"), strict=True):
            lines = [ends[omega, length] for length in LENGTHS]
            axes.plot(LENGTHS, [median(values) for values in lines], color=color, label=f"omega = {omega}")
            axes.fill_between(LENGTHS, list(map(min, lines)), list(map(max, lines)), color=color, alpha=0.2)
            for length, values in zip(LENGTHS, lines, strict=True):
                axes.plot([length] * len(values), values, ".", color=color, markersize=4)
        axes.set(xscale="log", yscale="log", xlabel="training length", ylabel="plateau of the test loss")
        axes.set_xticks(LENGTHS, [str(length) for length in LENGTHS])
        axes.minorticks_off()
        axes.legend()
    return figure


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reproductions"))
