"""What runs of limit transformers have shown: an answer, two charts, every run, and theory beside them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lengthwise.experiments import Advice
from lengthwise.experiments.advice import AtLength, Stage, at_lengths
from lengthwise.experiments.folder import Folder
from lengthwise.experiments.results import curves, plateau_table
from lengthwise.experiments.theory import BesideTheory, theory_beside
from lengthwise.reporting.advice import advice_figure
from lengthwise.reporting.bounds import certified_words, length_words
from lengthwise.reporting.curves import sweep_figure
from lengthwise.reporting.inspection import number as number_words
from lengthwise.reporting.report.charts import loss_chart, plateau_chart, thinned
from lengthwise.reporting.report.parts import Block, Chart, RunsTable, Section, Table, from_printed, several
from lengthwise.reporting.report.settings import SETTING, Setting, settings
from lengthwise.reporting.runs import plateau_words, run_figure
from lengthwise.reporting.sweeps import sweep_table
from lengthwise.reporting.tasks import subject
from lengthwise.reporting.words import advice_sentence, advice_table, power_of_ten, theory_table

SAID = 6
"""Of more settings than these the answer tells the range alone."""

DRAWN = 10
"""A figure on paper shows so many settings, at most."""


@dataclass(frozen=True)
class Limits:
    """Runs of limit transformers by setting and training length; ``advised``: the setting of the advice."""

    tolerance: float
    knobs: list[str]
    results: pd.DataFrame
    table: pd.DataFrame
    settings: tuple[Setting, ...]
    lengths: Mapping[str, tuple[AtLength, ...]]
    advice: Advice | None
    advised: str | None

    def sufficient(self, label: str) -> AtLength | None:
        """The shortest training length of a setting whose plateau is within the tolerance; that of the
        advice, which looks around its prediction, where there is one.
        """
        if self.advice is not None and label == self.advised:
            return self.advice.answer
        return next((at for at in self.lengths[label] if at.plateau <= self.tolerance), None)


def measured(folder: Folder, tolerance: float) -> Limits:
    """The runs of limit transformers in a folder."""
    runs = [run for run in folder.runs if run.family == "limit"]
    own = folder.results[folder.results["run"].isin({run.id for run in runs})].dropna(
        axis="columns", how="all"
    )
    knobs, found, results = settings(runs, own)
    every = {curve.run: curve for curve in curves(results)}
    advice = folder.advice
    advised = None
    if advice is not None:
        first = advice.lengths[0].curves[0].run
        advised = next(one.label for one in found if any(run.id == first for run in one.runs))
    table = plateau_table(every[run.id] for one in found for run in one.runs)
    beside = results.groupby("run", sort=False).first()[[*knobs, SETTING]]
    return Limits(
        tolerance,
        knobs,
        results,
        table.join(beside, on="run"),
        tuple(found),
        {one.label: at_lengths(every[run.id] for run in one.runs) for one in found},
        advice,
        advised,
    )


def answer(limits: Limits) -> str:
    """What the runs have shown, saying no more than was measured."""
    if limits.advice is not None:
        return advice_sentence(limits.advice)
    tolerance, found = limits.tolerance, limits.settings
    if len(limits.table) == 1:
        (at,) = limits.lengths[found[0].label]
        (curve,) = at.curves
        if curve.plateau.trend == "diverged":
            verdict = "so that no tolerance is kept"
        else:
            verdict = f"{'within' if at.plateau <= tolerance else 'not within'} {tolerance:g}"
        return (
            f"For {found[0].subject}, trained at length {at.training_length} and measured up to length "
            f"{power_of_ten(curve.test_lengths[-1])}: {plateau_words(curve)}, {verdict}."
        )
    if len(found) == 1:
        return f"For {found[0].subject}, {_one(limits, found[0])}."
    sufficient = {one.label: limits.sufficient(one.label) for one in found}
    if not any(sufficient.values()):
        longest = max(run.training.length for one in found for run in one.runs)
        return (
            f"In none of the {len(found)} settings is a plateau (median over seeds) within {tolerance:g}, at "
            f"training lengths up to {longest}."
        )
    tasks = {subject(run.task) for one in found for run in one.runs}
    name = f"For {next(iter(tasks))}, the" if len(tasks) == 1 else "The"
    begin = f"{name} shortest training length whose plateau (median over seeds) is within {tolerance:g}"
    if len(found) <= SAID:
        said = [
            f"none up to {limits.lengths[label][-1].training_length} for {label}"
            if at is None
            else f"{at.training_length} for {label}"
            for label, at in sufficient.items()
        ]
        return f"{begin} is {several(said)}.{_exceptions(limits)}"
    ordered = sorted((at.training_length, label) for label, at in sufficient.items() if at is not None)
    (short, first), (long, last) = ordered[0], ordered[-1]
    lacking = len(found) - len(ordered)
    without = f"; {lacking} of the {len(found)} settings have none" if lacking else ""
    return (
        f"{begin} lies between {short} ({first}) and {long} ({last}){without}; the table tells it of every "
        "setting."
    )


def _one(limits: Limits, one: Setting) -> str:
    lengths, at = limits.lengths[one.label], limits.sufficient(one.label)
    seeds = max(len(each.curves) for each in lengths)
    over = f"median over {seeds} seeds" if seeds > 1 else "one seed"
    longest = power_of_ten(max(curve.test_lengths[-1] for each in lengths for curve in each.curves))
    if at is None:
        tried = several([str(each.training_length) for each in lengths])
        return (
            f"no training length measured ({tried}) brought the plateau of the loss ({over}) within "
            f"{limits.tolerance:g}, measured up to length {longest}"
        )
    later = [each for each in lengths if each.training_length > at.training_length]
    fail = [str(each.training_length) for each in later if each.plateau > limits.tolerance]
    also = f"; of the longer ones {several(fail)} did not do as well" if fail else ""
    return (
        f"training sequences of length {at.training_length} are the shortest measured whose plateau of the "
        f"loss ({over}) is within {limits.tolerance:g}, measured up to length {longest}{also}"
    )


def _exceptions(limits: Limits) -> str:
    """Longer training lengths that do worse than the shortest that suffices."""
    worse = []
    for label, lengths in limits.lengths.items():
        at = limits.sufficient(label)
        worse += [
            f"{each.training_length} for {label}"
            for each in lengths
            if at and each.training_length > at.training_length and each.plateau > limits.tolerance
        ]
    return f" Not every longer one did as well: {several(worse)} did not." if worse else ""


def found(limits: Limits) -> list[dict[str, Any]]:
    """The shortest lengths that suffice, for scripts."""
    return [
        {
            "setting": one.label,
            "runs": len(one.runs),
            "training_lengths": [at.training_length for at in limits.lengths[one.label]],
            "sufficient_length": at.training_length if (at := limits.sufficient(one.label)) else None,
        }
        for one in limits.settings
    ]


def figures(limits: Limits) -> Section:
    """Loss against test length, plateau against training length, and a table over the seeds."""
    answers = {
        one.label: at.training_length if (at := limits.sufficient(one.label)) else None
        for one in limits.settings
    }
    losses = loss_chart(limits.lengths, limits.tolerance, answers)
    losses["selected"] = limits.advised or limits.settings[len(limits.settings) // 2].label
    losses["seeds"] = sorted({int(seed) for seed in limits.table["seed"]})
    plateaus = plateau_chart(limits.lengths, limits.tolerance, limits.advice, limits.advised)
    blocks: list[Block] = [
        Chart(
            "losses",
            "losses",
            "Loss beyond the training length",
            "Test loss against test length, both logarithmic, one colour a training length. The plateaus "
            "stand in the tables below, all points in the download.",
            _loss_caption(losses),
            _printed_caption(limits),
            losses,
            lambda: _figure(limits),
        ),
        Chart(
            "plateaus",
            "plateaus",
            "Plateau and advice" if limits.advice else "Plateau against training length",
            "Plateau of the test loss against the training length, both logarithmic, every seed with its "
            "interval. The numbers stand in the tables below.",
            _plateau_caption(limits, plateaus),
            "",
            plateaus,
            None,
        ),
    ]
    if limits.advice is not None:
        blocks.append(from_printed(advice_table(limits.advice)))
    if limits.advice is None or len(limits.settings) > 1:
        blocks.append(_over_seeds(limits))
    return Section("losses-section", "What was measured", tuple(blocks))


def _over_seeds(limits: Limits) -> Table:
    """A row a setting and training length; those of the shortest lengths that suffice stand out."""
    table = from_printed(sweep_table(limits.table, limits.knobs))
    groups = limits.table.groupby([*limits.knobs, "training_length"], sort=True, dropna=False)
    strong = set()
    for place, (_, rows) in enumerate(groups):
        at = limits.sufficient(str(rows[SETTING].iloc[0]))
        strong |= {place} if at and at.training_length == rows["training_length"].iloc[0] else set()
    note = table.note
    if strong:
        note += f"; strong: the shortest training length whose plateau is within {limits.tolerance:g}"
    rows = tuple(tuple("-" if cell in ("nan", "None") else cell for cell in row) for row in table.rows)
    return Table(table.title, table.headings, rows, note, frozenset(strong))


def _loss_caption(chart: Mapping[str, Any]) -> str:
    said = (
        "Thick lines are medians over seeds, thin ones single seeds, shaded areas span all of them; the "
        "dashed line is the tolerance. Point at a line, or tap it, for run, seed, value and standard error."
    )
    if any(one["groups"][0]["limit"] is not None for one in chart["settings"]):
        said += " Diamonds at the right edge are limits at infinite length."
    diverged = sum(one["diverged"] for one in chart["settings"])
    if diverged:
        said += (
            f" {diverged} run{'s' * (diverged > 1)} diverged: where a loss is not finite there is nothing to "
            "draw, and the table of runs says which."
        )
    if any(one["drawn"] < one["runs"] for one in chart["settings"]):
        said += " Of many seeds only some are drawn as lines; medians, ranges, tables and downloads have all."
    return said


def _printed_caption(limits: Limits) -> str:
    """What stands below the figure on paper."""
    said = "Test loss against test length, one colour a training length; areas span all seeds."
    if len(limits.table) > 1:
        said = f"Left: {said[0].lower()}{said[1:]} Right: plateau against training length, a point a seed."
    if limits.advice is None and len(limits.settings) > DRAWN:
        said += f" {DRAWN} of {len(limits.settings)} settings are drawn; the table has all."
    return said


def _plateau_caption(limits: Limits, chart: Mapping[str, Any]) -> str:
    said = (
        "A point a seed, with its 95% interval; lines go through the medians. Triangles are runs whose loss "
        "still rises or falls at the longest test lengths, crosses at the upper edge runs that diverged."
    )
    if limits.advice is not None and limits.advice.prediction.decay:
        said += " The blue line is the fit to the pilot, dashed where it is a prediction."
    if chart["drawn"] < chart["runs"]:
        said += (
            f" {chart['drawn']:,} of {chart['runs']:,} runs are drawn as points; the medians are over all."
        )
    return said


def _figure(limits: Limits) -> Any:
    """The two charts as one figure for paper."""
    if limits.advice is not None:
        return advice_figure(limits.advice)
    if len(limits.table) == 1:
        return run_figure(limits.settings[0].runs[0], limits.results)
    labels = [limits.settings[place].label for place in thinned(len(limits.settings), DRAWN)]
    shown = limits.results[limits.results[SETTING].isin(labels)]
    if not limits.knobs:
        return sweep_figure(shown, [], title=limits.settings[0].subject, tolerance=limits.tolerance)
    middle = labels[len(labels) // 2]
    if len(limits.knobs) == 1 and shown[limits.knobs[0]].notna().all():
        value = shown[limits.knobs[0]][shown[SETTING] == middle].iloc[0]
        return sweep_figure(shown, limits.knobs, value, tolerance=limits.tolerance)
    return sweep_figure(shown, [SETTING], middle, tolerance=limits.tolerance)


def every_run(limits: Limits) -> RunsTable:
    """One row a run; a run that diverged says so."""
    headings = (*(["setting"] if limits.knobs else []), "trained at", "seed", "plateau", "interval", "trend")
    rows = []
    for row in limits.table.to_dict("records"):
        diverged = row["trend"] == "diverged"
        end = "-" if diverged else f"{row['plateau']:.3g}"
        span = "-" if diverged else f"{row['low']:.3g} to {row['high']:.3g}"
        worst = f"{row['worst_loss']:.3g}" if math.isfinite(row["worst_loss"]) else "not finite"
        rows.append(
            (
                *([str(row[SETTING])] if limits.knobs else []),
                (str(row["training_length"]), row["training_length"]),
                (str(row["seed"]), row["seed"]),
                (end, None if diverged else float(row["plateau"])),
                (span, None if diverged else float(row["low"])),
                f"{row['trend']}, the limit" if row["exact"] and not diverged else str(row["trend"]),
                (worst, row["worst_loss"] if math.isfinite(row["worst_loss"]) else None),
                str(row["run"]),
            )
        )
    return RunsTable(
        "limit-runs", "Runs of limit transformers", (*headings, "worst loss", "run"), tuple(rows)
    )


def theory(limits: Limits, folder: Folder, most: int, stage: Stage | None) -> Section | None:
    """What theory says of trained models, for at most so many settings."""
    chosen = [limits.settings[place] for place in thinned(len(limits.settings), most)] if most else []
    if not chosen:
        return None
    progress = stage("theory", len(chosen)) if stage else lambda _: None
    beside: list[tuple[Setting, AtLength, BesideTheory]] = []
    missing = []
    for one in chosen:
        sufficient = limits.sufficient(one.label)
        at = sufficient or limits.lengths[one.label][-1]
        run = next(run for run in one.runs if run.id == at.median.run)
        try:
            model = folder.store.transformer(run.id)
            measured = sufficient.training_length if sufficient else None
            beside.append((one, at, theory_beside(run.limit.task, model, limits.tolerance, measured)))
        except ValueError as error:
            missing.append(f"Of {one.label}, theory says nothing here: {error}.")
        progress(1)
    said = (
        "Two models that agree on all inputs up to such a length agree, but for the tolerance, on inputs of "
        "every length. The two are a model that was trained (the median seed at the shortest training length "
        "that suffices, or at the longest measured where none does) and the task's construction; or the "
        "construction, or a trained model whose task has none, and any model with its constants. A certified "
        "length is proved with every constant; a length of this order (paper) has the constant 1 in place of "
        "one that is not known. Both are for the worst input, what was measured is the mean over inputs."
    )
    if len(chosen) < len(limits.settings):
        said += f" {len(chosen)} of {len(limits.settings)} settings are shown."
    tables = [from_printed(theory_table(each)) for _, _, each in beside]
    if len(beside) > 1:
        tables = [_compared(beside)]
    return Section("theory", "Theory beside experiment", (said, *tables, *missing))


def _compared(beside: Sequence[tuple[Setting, AtLength, BesideTheory]]) -> Table:
    """Theory of several settings as one table."""
    rows = []
    for one, at, theory in beside:
        for name, of in (("trained", theory.trained), ("construction", theory.construction)):
            if of is None:
                continue
            rows.append(
                (
                    one.label,
                    f"{name} at {at.training_length}" if name == "trained" else name,
                    number_words(of.margin),
                    number_words(of.complexity),
                    certified_words(of.bound),
                    length_words(of.bound.order.length) if of.bound.order else "-",
                    ("none" if theory.measured is None else str(theory.measured))
                    if name == "trained"
                    else "",
                )
            )
    tolerance = beside[0][2].tolerance
    return Table(
        "what theory says",
        (
            "setting",
            "model",
            "margin",
            "complexity C(f)",
            "certified training length",
            "of this order (paper)",
            "measured",
        ),
        tuple(rows),
        f"bounds for outputs that differ by {tolerance:.2g} (a loss of {tolerance**2:.2g}) at any input of "
        "any length; measured on average",
    )
