"""The figures of Izzo, Nichani and Lee, for ``lengthwise reproduce``: train, draw, test the claims, print."""

import json as json_module
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console

from lengthwise._files import make_folder, replacing
from lengthwise.cli import typed
from lengthwise.cli.printing import print_files
from lengthwise.cli.progress import progress_bars
from lengthwise.experiments import Result, Store, izzo
from lengthwise.experiments.claims import Claim, attention_claim, claims
from lengthwise.experiments.engine import machine_words, train_all
from lengthwise.experiments.folder import note
from lengthwise.experiments.hardmax import hardness
from lengthwise.experiments.izzo import Study, studies
from lengthwise.experiments.results import table
from lengthwise.experiments.sweeps import plateaus_by
from lengthwise.reporting.canvas import save_figure
from lengthwise.reporting.izzo import attention_evidence, studies_figure
from lengthwise.reporting.reproductions import Made, reproduction_page
from lengthwise.reporting.sweeps import claims_table, sweep_table
from lengthwise.tasks import ModPTask


def reproduce_figure(
    name: izzo.Figure, scale: izzo.Scale, output: Path, device: str | None, seed: int, json: bool
) -> None:
    """Train, draw, test, print."""
    chosen = studies(name, scale, seed)
    runs = list(dict.fromkeys(run for study in chosen for run in study.runs))
    store = Store(output / "runs")
    new = [run for run in runs if run not in store]
    begun = time.perf_counter()
    with progress_bars() as stage:
        steps = stage(f"{name}, {len(runs)} runs", sum(run.training.steps for run in runs))
        results = train_all(runs, output=output / "runs", device=device, progress=steps)
    seconds = time.perf_counter() - begun
    by_run = {result.run: result for result in results}
    tables = [table(study.runs, [by_run[run].metrics for run in study.runs]) for study in chosen]
    if name == "figure3":
        figure, found, evidence = _hardmax(chosen[0], by_run)
    else:
        figure, found, evidence = studies_figure(chosen, tables), _claims(chosen, tables), None
    files = _write(output, name, figure, tables, found, evidence)
    note(output, typed(), claims=found)
    made = Made(
        f"lengthwise reproduce {name} --scale {scale} --seed {seed}",
        machine_words(device),
        len(new),
        seconds,
        sum(run.training.steps for run in new),
    )
    page = output / f"{name}.md"
    with replacing(page) as temporary:
        temporary.write_text(reproduction_page(name, chosen, tables, found, made, evidence))
    files["page"] = str(page)
    if json:
        told = [{"study": title, **claim.to_json()} for title, claim in found]
        print(json_module.dumps({"figure": name, "claims": told, "files": files}, indent=2))
        return
    console = Console()
    for study, rows in zip(chosen, tables, strict=True):
        console.print(sweep_table(plateaus_by(rows, [study.knob]), [study.knob]))
    console.print(claims_table(found))
    print_files(console, files)


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
        f = run.limit.model.transformer(by_run[run].weights)
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
