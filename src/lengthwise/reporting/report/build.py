"""A report from a folder of runs."""

from typing import Any

import pandas as pd
import plotly

from lengthwise._version import __version__
from lengthwise.experiments.advice import Stage
from lengthwise.experiments.folder import Folder
from lengthwise.reporting.report import decoders, limits
from lengthwise.reporting.report.parts import (
    Block,
    Code,
    Facts,
    Report,
    Section,
    Table,
    from_printed,
    several,
)
from lengthwise.reporting.report.settings import asked
from lengthwise.reporting.sweeps import claims_table
from lengthwise.reporting.tasks import subject

TOLERANCE = 0.01
"""The loss that must not be passed, where neither the user nor an advice says which."""

SHOWN = {"lengthwise": "lengthwise", "torch": "PyTorch", "python": "Python", "device": "device"}
"""Of what made a result, what is told first, and how it is called."""


def build(
    folder: Folder,
    *,
    tolerance: float | None = None,
    title: str | None = None,
    theory: int = 6,
    stage: Stage | None = None,
    command: str | None = None,
) -> Report:
    """All that a report of these runs says.

    - ``tolerance``: the loss that must not be passed; by default that of the advice, or 0.01;
    - ``theory``: of how many settings, at most, theory stands beside;
    - ``stage``: called when something begins that takes long;
    - ``command``: what was typed for this report.
    """
    check(tolerance, theory)
    advice = folder.advice
    if advice is not None and tolerance not in (None, advice.tolerance):
        raise ValueError(
            f"{folder.path} holds an advice for the tolerance {advice.tolerance:g}: for another one, give "
            f"the command again with --tolerance {tolerance:g}; its finished runs are kept"
        )
    tolerance = tolerance or (advice.tolerance if advice else TOLERANCE)
    families = {run.family for run in folder.runs}
    trained = limits.measured(folder, tolerance) if "limit" in families else None
    decoded = decoders.measured(folder) if "decoder" in families else None
    said, sections, runs = [], [_asked(folder, tolerance if trained else None)], []
    files: dict[str, pd.DataFrame] = {"measurements.csv": folder.results}
    found: dict[str, Any] = {}
    if trained:
        said.append(limits.answer(trained))
        sections.append(limits.figures(trained))
        runs.append(limits.every_run(trained))
        files["plateaus.csv"] = trained.table
        found["limit"] = limits.found(trained)
    if decoded:
        said.append(decoders.answer(decoded))
        sections.append(decoders.figures(decoded))
        runs.append(decoders.every_run(decoded))
        files["accuracies.csv"] = decoded.table
        found["decoder"] = decoders.found(decoded)
    sections.append(Section("runs", "Every run", tuple(runs)))
    if trained and (beside := limits.theory(trained, folder, theory, stage)):
        sections.append(beside)
    if decoded:
        sections.append(decoders.outcome(decoded))
    if folder.claims:
        sections.append(_claims(folder))
    sections.append(_made(folder, command))
    settings = sum(len(one.settings) for one in (trained, decoded) if one)
    seeds = len({run.training.seed for run in folder.runs})
    under = [_count(len(folder.runs), "run"), _count(settings, "setting"), _count(seeds, "seed")]
    return Report(
        title or _title(folder),
        " ".join(said),
        ", ".join(under),
        tuple(sections),
        files,
        {
            "runs": len(folder.runs),
            "seeds": seeds,
            "tolerance": tolerance if trained else None,
            "rows": len(folder.results),
            "settings": found,
        },
    )


def check(tolerance: float | None, theory: int) -> None:
    """Raise ``ValueError`` unless a report can be asked for with these."""
    if tolerance is not None and not 0 < tolerance < float("inf"):
        raise ValueError(f"tolerance must be positive and finite, got {tolerance!r}")
    if theory < 0:
        raise ValueError(f"theory must be a number of settings, 0 for none, got {theory}")


def _count(count: int, name: str) -> str:
    return f"{count:,} {name}{'s' * (count != 1)}"


def _title(folder: Folder) -> str:
    if folder.advice is not None:
        return f"How long must training sequences be for {subject(folder.advice.task)}?"
    tasks = list(dict.fromkeys(run.task.title for run in folder.runs))
    if len(tasks) > 3:
        return f"Beyond the training length: {len(tasks)} tasks"
    return f"Beyond the training length: {several(tasks)}"


def _asked(folder: Folder, tolerance: float | None) -> Section:
    blocks: list[Block] = []
    if folder.advice is not None:
        blocks.append(
            "How long must the training sequences be, so that the loss stays within "
            f"{folder.advice.tolerance:g} at every length? A pilot at short training lengths predicts it, "
            "and training around the prediction shows whether it comes true."
        )
    elif tolerance is not None:
        blocks.append(
            "How does a model trained at short lengths do on longer inputs, and from which training length "
            f"on does its loss stay within {tolerance:g}?"
        )
    else:
        blocks.append("How do models trained on short inputs do on longer ones?")
    for family in ("limit", "decoder"):
        runs = [run for run in folder.runs if run.family == family]
        if runs:
            blocks.append(Facts(tuple(asked(runs))))
    return Section("asked", "What was asked", tuple(blocks))


def _claims(folder: Folder) -> Section:
    held = sum(claim.holds for _, claim in folder.claims)
    return Section(
        "claims",
        "Claims",
        (
            f"{held} of {len(folder.claims)} claims hold, each by the test that was stated before.",
            from_printed(claims_table(folder.claims)),
            Facts(tuple(dict.fromkeys((f"({claim.name})", claim.test) for _, claim in folder.claims))),
        ),
    )


def _made(folder: Folder, command: str | None) -> Section:
    """The commands, the versions, and the machine."""
    blocks: list[Block] = []
    if folder.commands or command:
        blocks += ["The commands:", Code((*folder.commands, *([command] if command else [])))]
    keys = list(dict.fromkeys([*SHOWN, *(key for made, _ in folder.made_by for key in made)]))
    ensemble = "models_in_ensemble"
    keys = [key for key in keys if key != ensemble and any(key in made for made, _ in folder.made_by)]
    counted: dict[tuple[str, ...], int] = {}
    for made, count in folder.made_by:
        row = tuple(_told(made.get(key)) for key in keys)
        counted[row] = counted.get(row, 0) + count
    headings = (*(SHOWN.get(key, key.replace("_", " ")) for key in keys), "runs")
    rows = tuple((*row, f"{count:,}") for row, count in counted.items())
    blocks.append(Table("what made the results", headings, rows))
    blocks.append(
        f"This report was written by lengthwise {__version__}; its figures are drawn by plotly "
        f"{plotly.__version__}. A run is named by the hash of its specification; the downloads hold every "
        "row of every run."
    )
    return Section("made", "How it was made", tuple(blocks))


def _told(value: object) -> str:
    return "-" if value is None else " ".join(str(value).split())
