"""A reproduction as a page of Markdown: what was run, the figure, the claims, and every seed."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from lengthwise.experiments import Run
from lengthwise.experiments.claims import Claim
from lengthwise.experiments.izzo import Study
from lengthwise.experiments.sweeps import near_median, plateaus_by
from lengthwise.limit import Finite
from lengthwise.reporting.sweeps import agrees
from lengthwise.reporting.tasks import knob as knob_words


@dataclass(frozen=True)
class Made:
    """How a reproduction was made: the command, the machine, and how long training and measuring took for
    those of the runs that were not there before.
    """

    command: str
    machine: str
    runs: int
    seconds: float
    model_steps: int

    def words(self) -> str:
        """In a sentence."""
        if not self.runs:
            return f"Command: `{self.command}`. Machine: {self.machine}. All runs were there already."
        rate = self.model_steps / max(self.seconds, 1e-9)
        return (
            f"Command: `{self.command}`. Machine: {self.machine}. {self.runs} runs of "
            f"{self.model_steps // self.runs:,} steps, trained and measured in {self.seconds:.0f} s "
            f"({rate:,.0f} model-steps per second)."
        )


def reproduction_page(
    figure: str,
    studies: Sequence[Study],
    tables: Sequence[pd.DataFrame],
    claims: Sequence[tuple[str, Claim]],
    made: Made,
    evidence: pd.DataFrame | None = None,
) -> str:
    """The whole page."""
    lines = [
        f"# Figure {figure.removeprefix('figure')}: {' and '.join(study.title for study in studies)}",
        "",
        made.words(),
        "",
        *(f"- {_recipe(study)}" for study in studies),
        "",
        f"![{figure}]({figure}.png)",
        "",
        "## Claims",
        "",
        "Each test was stated before these seeds were trained (`lengthwise.experiments.claims`).",
        "",
        *_claims(claims),
    ]
    if evidence is not None:
        lines += ["", "## Attention", "", *_evidence(evidence)]
    for study, rows in zip(studies, tables, strict=True):
        lines += ["", f"## Plateaus: {study.title}", "", *_plateaus(study, rows)]
    return "\n".join(lines) + "\n"


def _recipe(study: Study) -> str:
    run = study.runs[0]
    _, model, training, evaluation = run.limit
    precision = model.precision
    told = f"{precision.bits:g} bits" if isinstance(precision, Finite) else "infinite precision"
    lengths = sorted({run.training.length for run in study.runs})
    seeds = sorted({run.training.seed for run in study.runs})
    shortest = "" if training.shortest is None else f" (each batch of lengths from {training.shortest} up)"
    return (
        f"{study.title}: {model.layers} layer{'s' if model.layers > 1 else ''}, width {model.width}, "
        f"{_heads(study.runs)}, {model.hidden or 'no'} hidden units, {told}; batch {training.batch}, "
        f"{training.steps:,} steps of Adam at {training.learning_rate:g} (half cosine), training lengths "
        f"{', '.join(map(str, lengths))}{shortest}, seeds {seeds[0]} to {seeds[-1]}; measured up to length "
        f"{evaluation.lengths[-1]:,} on {evaluation.sequences:,} strings."
    )


def _heads(runs: Sequence[Run]) -> str:
    heads = sorted({run.model.heads for run in runs})
    return f"{heads[0]} to {heads[-1]} heads" if len(heads) > 1 else f"{heads[0]} head{'s'[: heads[0] - 1]}"


def _claims(claims: Sequence[tuple[str, Claim]]) -> list[str]:
    rows = [
        "| study | claim | test | holds | effect | p | seeds that agree |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, claim in claims:
        agree = sum(agrees(claim, effect) for effect in claim.by_seed.values())
        p, holds = "" if claim.p is None else f"{claim.p:.1e}", "yes" if claim.holds else "**no**"
        rows.append(
            f"| {title} | ({claim.name}) {claim.statement} | {claim.test} | {holds} | {claim.effect:.2g} | "
            f"{p} | {agree}/{len(claim.by_seed)} |"
        )
    return rows


def _plateaus(study: Study, rows: pd.DataFrame) -> list[str]:
    table = plateaus_by(rows, [study.knob])
    name = study.knob.rpartition(".")[2]
    seeds = sorted(table["seed"].unique())
    lines = [
        f"| {name} | trained at | median | {' | '.join(f'seed {seed}' for seed in seeds)} |",
        "|---" * (3 + len(seeds)) + "|",
    ]
    marks = {"level": "", "falling": " ↓", "rising": " ↑", "diverged": " diverged"}
    for (value, length), group in table.groupby([study.knob, "training_length"]):
        of_seed = group.set_index("seed")
        cells = [
            f"{of_seed.loc[seed, 'plateau']:.2g}{marks[str(of_seed.loc[seed, 'trend'])]}" for seed in seeds
        ]
        middle = group["plateau"].median()
        lines.append(f"| {knob_words(value)} | {length} | {middle:.2g} | {' | '.join(cells)} |")
    near = near_median(table, [study.knob])
    lines += [
        "",
        f"{near} of {len(table)} runs ({near / len(table):.1%}) are at most 3 times the median of their row. "
        + (
            "Plateaus are exact limits; ↓ and ↑ mark runs whose loss has not arrived at the longest length."
            if table["exact"].all()
            else "↓ and ↑ mark runs whose loss is still falling or rising at the longest test lengths."
        ),
    ]
    return lines


def _evidence(evidence: pd.DataFrame) -> list[str]:
    lines = [
        "Median over seeds (largest): attention off the class; distance from uniform on it; the gap between "
        "logits on and off the class; the logit margin, and log2 of the hardmax length that it gives with 16 "
        "bits.",
        "",
        "| trained at | off the class | spread on it | gap | margin | log2 hardmax length |",
        "|---|---|---|---|---|---|",
    ]
    for length, rows in evidence.groupby("training_length"):
        cells = [
            f"{rows[name].median():.2g} ({rows[name].max():.2g})"
            for name in ("off", "spread", "gap", "margin", "log2_hardmax_length")
        ]
        lines.append(f"| {length} | {' | '.join(cells)} |")
    return lines
