"""What runs of decoders have shown: who generalises, two charts, every run, prediction against outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lengthwise.experiments.folder import Folder
from lengthwise.experiments.huang import ENOUGH, Cell
from lengthwise.experiments.sweeps import accuracies_by
from lengthwise.experiments.verdicts import agreement, verdicts
from lengthwise.reporting.decoders import PREFIX, accuracies_table, bin_ends, bin_words
from lengthwise.reporting.huang import agreement_words
from lengthwise.reporting.report import decoder_charts
from lengthwise.reporting.report.decoder_charts import by_task, short_label
from lengthwise.reporting.report.parts import Chart, RunsTable, Section, Table, from_printed, several
from lengthwise.reporting.report.settings import SETTING, Setting, settings
from lengthwise.reporting.tasks import PREDICTED, subject

SAID = 8
"""Of more settings than these the answer tells the number alone."""

NOT_BEYOND = "not measured beyond the training length"


@dataclass(frozen=True)
class Decoders:
    """Runs of decoders by setting: accuracies with a row a run, and verdicts with a row a setting."""

    knobs: list[str]
    results: pd.DataFrame
    table: pd.DataFrame
    settings: tuple[Setting, ...]
    verdicts: pd.DataFrame


def measured(folder: Folder) -> Decoders:
    """The runs of decoders in a folder, with what theory predicts of each setting."""
    runs = [run for run in folder.runs if run.family == "decoder"]
    own = folder.results[folder.results["run"].isin({run.id for run in runs})]
    knobs, found, results = settings(runs, own.dropna(axis="columns", how="all"), by_length=True)
    order = [run.id for one in found for run in one.runs]
    table = accuracies_by(results, [*knobs, SETTING]).set_index("run").loc[order].reset_index()
    judged = verdicts([_cell(one) for one in found], results)
    return Decoders(knobs, results, table, tuple(found), judged.assign(setting=[one.label for one in found]))


def _cell(one: Setting) -> Cell:
    task, model, training, evaluation = one.runs[0].decoder
    seeds = tuple(run.training.seed for run in one.runs)
    if evaluation.ends[-1] <= training.length:
        return Cell(task, model.positions, seeds, (), NOT_BEYOND)
    return Cell(task, model.positions, seeds, one.runs)


def answer(decoders: Decoders) -> str:
    """Who generalises, saying no more than was measured."""
    if len(decoders.table) == 1:
        return _alone(decoders)
    outcomes = [_truth(row.get("generalises")) for row in decoders.verdicts.to_dict("records")]
    judged = sum(outcome is not None for outcome in outcomes)
    if not judged:
        return "No setting was measured on inputs longer than those of training."
    rule = f"the median seed is right on {ENOUGH:.0%} of the longest inputs or more"
    if judged > SAID:
        said = f"{outcomes.count(True)} of {judged} settings generalise to longer inputs ({rule})."
        return f"{said} {agreement_words(decoders.verdicts)}"
    yes, no = (_named(decoders.settings, outcomes, which) for which in (True, False))
    if yes:
        said = f"generalise to longer inputs on {yes}" + (f", and do not on {no}" if no else "")
    else:
        said = f"do not generalise to longer inputs on {no}"
    return f"Models {said}. They are said to if {rule}. {agreement_words(decoders.verdicts)}"


def _named(every: Sequence[Setting], outcomes: Sequence[bool | None], which: bool) -> str:
    """Settings with this outcome by their tasks, as a list in a sentence."""
    chosen = {one.label for one, outcome in zip(every, outcomes, strict=True) if outcome is which}
    told = []
    for name, own in by_task(every).items():
        inside = [short_label(one, own) for one in own if one.label in chosen]
        if inside:
            told.append(name if len(own) == 1 else f"{name} ({', '.join(inside)})")
    return several(told)


def _alone(decoders: Decoders) -> str:
    (one,), (row,) = decoders.settings, decoders.table.to_dict("records")
    task, model, training, evaluation = one.runs[0].decoder
    shares = [
        f"{100 * row[f'{PREFIX}{high}']:.1f}% of inputs of length {bin_words(low, high)}"
        for low, high in evaluation.bins(task)
    ]
    scheme = "without positions" if model.positions == "none" else f"with {model.positions} positions"
    return (
        f"On {subject(task)}, a decoder {scheme} trained on inputs up to length {training.length} is right "
        f"on {several(shares)}, after {row['steps']:,} steps."
    )


def found(decoders: Decoders) -> list[dict[str, Any]]:
    """Prediction and outcome of every setting, for scripts."""
    rows = decoders.verdicts.to_dict("records")
    return [
        {
            "setting": one.label,
            "runs": len(one.runs),
            **{name: _truth(row.get(name)) for name in ("generalises", "predicted", "agrees")},
        }
        for one, row in zip(decoders.settings, rows, strict=True)
    ]


def _truth(value: Any) -> bool | None:
    return None if value is None or pd.isna(value) else bool(value)


def figures(decoders: Decoders) -> Section:
    """Accuracy by bin, and in the course of training."""
    every, results, table = decoders.settings, decoders.results, decoders.table
    bins = decoder_charts.bins_chart(every, table)
    learning = decoder_charts.learning_chart(every, results)
    seeds = sorted({int(seed) for seed in table["seed"]})
    thin = any(one["drawn"] < one["runs"] for one in (*bins["panels"], *learning["settings"]))
    note = " Of many seeds only some are drawn; medians, tables and downloads have all." if thin else ""
    marked = any(0 < one["within"] < len(one["bins"]) for one in bins["panels"])
    where = " Left of the dotted line, inputs are as long as in training." if marked else ""
    knobs = [knob for knob in decoders.knobs if knob != "training.length"]  # the table has a column for it
    by_bin = Chart(
        "bins",
        "bins",
        "Accuracy by input length",
        "Share of right sequences by bin of input lengths, a line a setting. The numbers stand in the table.",
        f"A point a seed, lines go through the medians.{where}{note}",
        "Share of right sequences by the longest input of a bin: a point a seed, lines through the medians.",
        {**bins, "seeds": seeds},
        lambda: decoder_charts.bins_figure(every, results),
    )
    in_time = Chart(
        "learning",
        "learning",
        "Accuracy in the course of training",
        "Share of right sequences against training steps, a colour a bin of input lengths. All points are in "
        "the download.",
        "Thick lines are medians over seeds, in which a run that has ended counts with its last accuracy; "
        f"thin lines are single seeds.{note}",
        "Share of right sequences against training steps, by bin, of the median seed of each setting.",
        {**learning, "seeds": seeds},
        lambda: decoder_charts.learning_figure(every, results, table),
    )
    return Section("accuracy", "Accuracy", (by_bin, from_printed(accuracies_table(table, knobs)), in_time))


def every_run(decoders: Decoders) -> RunsTable:
    """One row a run, with the accuracy of every bin."""
    ends = bin_ends(decoders.table)
    named = ["setting"] if decoders.knobs else []
    headings = (*named, "trained to", "seed", *(f"to {end}" for end in ends), "steps", "perfect", "run")
    rows = []
    for row in decoders.table.to_dict("records"):
        shares = [row[f"{PREFIX}{end}"] for end in ends]
        rows.append(
            (
                *([str(row[SETTING])] if decoders.knobs else []),
                (str(row["training_length"]), row["training_length"]),
                (str(row["seed"]), row["seed"]),
                *(("-", None) if pd.isna(share) else (f"{share:.3f}", float(share)) for share in shares),
                (f"{row['steps']:,}", row["steps"]),
                "yes" if row["perfect"] else "no",
                str(row["run"]),
            )
        )
    return RunsTable("decoder-runs", "Runs of decoders", headings, tuple(rows))


def outcome(decoders: Decoders) -> Section:
    """What theory predicts of each setting, and what was found."""
    rows, strong = [], set()
    for place, row in enumerate(decoders.verdicts.to_dict("records")):
        agrees = _truth(row["agrees"])
        strong |= {place} if agrees is False else set()
        rows.append(
            (
                str(row["setting"]),
                PREDICTED[_truth(row["predicted"])],
                str(row["why"]),
                str(row["not_run"]) or PREDICTED[_truth(row["generalises"])],
                PREDICTED[agrees],
                _published(row),
            )
        )
    headings = ("setting", "predicted", "why", "generalises", "agrees", "published (%, by bin)")
    if not any(row[-1] for row in rows):
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    said = (
        "Theory ties what decoders learn at all lengths to programs: without positions to C-RASP, with "
        "learned ones to C-RASP[periodic,local]; of other schemes no theorem speaks. A setting generalises "
        f"if the median seed is right on {ENOUGH:.0%} of the last bin or more. "
        f"{agreement_words(decoders.verdicts)}"
    )
    agree, decided = agreement(decoders.verdicts)
    title = "prediction and outcome" + (f": {agree} of {decided} agree" if decided else "")
    note = "a dash stands where nothing is predicted or decided"
    note += "; strong: prediction and outcome disagree" if strong else ""
    table = Table(title, headings, tuple(rows), note, frozenset(strong))
    return Section("prediction", "Prediction against outcome", (said, table))


def _published(row: Mapping[Any, Any]) -> str:
    shares = [row.get(f"published_{place}", float("nan")) for place in (1, 2, 3)]
    return "" if any(map(pd.isna, shares)) else " / ".join(f"{100 * share:.1f}" for share in shares)
