"""Repeat the published experiments: train every run of a figure, draw it, and test the claims that it stands
for, all seeds included. Every finished run is kept: the same command goes on where it was stopped.

figure1: SimpleTask; figure2: ModPTask; figure3: attention on ModPTask; figure4: in-context k-gram
(Izzo, Nichani and Lee, ICLR 2026).
"""

import json as json_module
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import tyro
from matplotlib.figure import Figure
from rich.console import Console

from lengthwise._files import make_folder, replacing
from lengthwise.cli.progress import progress_bars
from lengthwise.experiments import Result, Store
from lengthwise.experiments.claims import Claim, attention_claim, claims
from lengthwise.experiments.engine import machine_words, train_all
from lengthwise.experiments.hardmax import hardness
from lengthwise.experiments.izzo import FIRST_SEED, Study, studies
from lengthwise.experiments.results import table
from lengthwise.experiments.sweeps import plateaus_by
from lengthwise.reporting.canvas import save_figure
from lengthwise.reporting.izzo import attention_evidence, studies_figure
from lengthwise.reporting.reproductions import Made, reproduction_page
from lengthwise.reporting.sweeps import claims_table, sweep_table
from lengthwise.tasks import ModPTask


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise reproduce``."""

    figure: Annotated[
        Literal["figure1", "figure2", "figure3", "figure4"],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="FIGURE"),
    ]
    """Which figure: figure1, figure2, figure3 or figure4."""
    scale: Literal["quick", "paper"] = "quick"
    """quick: minutes on two CPU cores; paper: the whole grid, minutes on a GPU."""
    output: Path | None = None
    """Folder for the runs, the table of results, the figure and the claims (None: runs/FIGURE-SCALE)."""
    device: Literal["cpu", "cuda"] | None = None
    """Where to train (None: on a GPU if there is one)."""
    seed: int = FIRST_SEED
    """The first seed; the others follow it."""
    json: bool = False
    """Print one JSON document instead of tables."""


def run(command: Command) -> None:
    """Train, draw, test, print."""
    chosen = studies(command.figure, command.scale, command.seed)
    output = command.output or Path(f"runs/{command.figure}-{command.scale}")
    runs = list(dict.fromkeys(run for study in chosen for run in study.runs))
    store = Store(output / "runs")
    new = [run for run in runs if run not in store]
    begun = time.perf_counter()
    with progress_bars() as stage:
        steps = stage(f"{command.figure}, {len(runs)} runs", sum(run.training.steps for run in runs))
        results = train_all(runs, output=output / "runs", device=command.device, progress=steps)
    seconds = time.perf_counter() - begun
    by_run = {result.run: result for result in results}
    tables = [table(study.runs, [by_run[run].metrics for run in study.runs]) for study in chosen]
    if command.figure == "figure3":
        figure, found, evidence = _hardmax(chosen[0], by_run)
    else:
        figure, found, evidence = studies_figure(chosen, tables), _claims(chosen, tables), None
    files = _write(output, command.figure, figure, tables, found, evidence)
    made = Made(
        f"lengthwise reproduce {command.figure} --scale {command.scale} --seed {command.seed}",
        machine_words(command.device),
        len(new),
        seconds,
        sum(run.training.steps for run in new),
    )
    page = output / f"{command.figure}.md"
    with replacing(page) as temporary:
        temporary.write_text(reproduction_page(command.figure, chosen, tables, found, made, evidence))
    files["page"] = str(page)
    if command.json:
        told = [{"study": title, **claim.to_json()} for title, claim in found]
        print(json_module.dumps({"figure": command.figure, "claims": told, "files": files}, indent=2))
        return
    console = Console()
    for study, rows in zip(chosen, tables, strict=True):
        console.print(sweep_table(plateaus_by(rows, [study.knob]), [study.knob]))
    console.print(claims_table(found))
    for name, path in files.items():
        console.print(f"{name:>8}: {path}", highlight=False, soft_wrap=True)


def _claims(chosen: list[Study], tables: list[pd.DataFrame]) -> list[tuple[str, Claim]]:
    found: list[tuple[str, Claim]] = []
    for study, rows in zip(chosen, tables, strict=True):
        measured = plateaus_by(rows, [study.knob])
        found += [(study.title, claim) for claim in claims(measured, study.knob)]
        found.append((study.title, claims(measured, study.knob, "relative")[-1]))
    return found


def _hardmax(study: Study, by_run: dict[Any, Result]) -> tuple[Figure, list[tuple[str, Claim]], pd.DataFrame]:
    rows, models = [], {}
    for run in study.runs:
        assert isinstance(run.task, ModPTask)
        f = run.model.transformer(by_run[run].weights)
        seed, length = run.training.seed, run.training.length
        models[length, seed] = f
        rows.append({"training_length": length, "seed": seed, **asdict(hardness(f, run.task))})
    evidence = pd.DataFrame(rows)
    lengths = sorted(evidence["training_length"].unique().tolist())
    shown = []
    for length in (lengths[0], lengths[len(lengths) // 2], lengths[-1]):
        at = evidence[evidence["training_length"] == length].sort_values("off")
        shown.append((length, models[length, int(at["seed"].iloc[len(at) // 2])]))
    task = study.runs[0].task
    assert isinstance(task, ModPTask)
    figure = attention_evidence(shown, task, evidence)
    return figure, [(study.title, attention_claim(evidence, task.period))], evidence


def _write(
    output: Path,
    name: str,
    figure: Figure,
    tables: list[pd.DataFrame],
    found: list[tuple[str, Claim]],
    evidence: pd.DataFrame | None,
) -> dict[str, str]:
    make_folder(output)
    files = {"figure": output / f"{name}.png", "results": output / "results.parquet"}
    save_figure(figure, files["figure"])
    rows = pd.concat(tables, ignore_index=True).drop_duplicates(ignore_index=True)
    with replacing(files["results"]) as temporary:
        rows.to_parquet(temporary, index=False)
    files["claims"] = output / "claims.json"
    told = [{"study": title, **claim.to_json()} for title, claim in found]
    with replacing(files["claims"]) as temporary:
        temporary.write_text(json_module.dumps(told, indent=2) + "\n")
    if evidence is not None:
        files["evidence"] = output / "attention.parquet"
        with replacing(files["evidence"]) as temporary:
            evidence.to_parquet(temporary, index=False)
    files["runs"] = output / "runs"
    return {name: str(path) for name, path in files.items()}
