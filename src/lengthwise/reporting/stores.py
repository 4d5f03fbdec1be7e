"""What lies in a store, as a table, lines and plain data."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from lengthwise._messages import one_line, printable
from lengthwise.experiments.audit import Audit, Fault, Kept, Repair
from lengthwise.experiments.run import FAMILIES, Run
from lengthwise.reporting.library import plain_table
from lengthwise.reporting.tasks import knob


def runs_tables(runs: Sequence[Kept]) -> Iterator[Table]:
    """For each task and model a table, with a row a run."""
    for (task, model), alike in groupby(sorted(runs, key=_order), key=lambda kept: _order(kept)[:2]):
        table = plain_table(escape(f"{task}: {model}"))
        table.add_column("run", no_wrap=True)
        for heading in ("trained at", "seed"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column(OUTCOMES["decoder" if model.startswith("decoder") else "limit"], min_width=16)
        table.add_column("made (UTC)", no_wrap=True)
        for kept in alike:
            run = kept.run
            made = f"{kept.made_at:%Y-%m-%d %H:%M}"
            table.add_row(run.id, str(run.training.length), str(run.training.seed), outcome_words(kept), made)
        yield table


OUTCOMES = {"limit": "plateau", "decoder": "accuracy by bin"}


def outcome_words(kept: Kept) -> str:
    """Where a run ends, in a few words."""
    found = kept.outcome
    if kept.run.family == "decoder":
        rights = [value for name, value in found.items() if name.startswith("accuracy_")]
        return ", ".join("-" if value is None else f"{value:.3f}" for value in rights)
    if not found:
        return "-"
    if found["plateau"] is None:
        return str(found["trend"])
    return f"{found['plateau']:.2g} ({found['trend']})"


def fault_lines(found: Audit, done: Repair | None) -> Iterator[str]:
    """One line for each thing that is wrong, or was until it was set aside."""
    for fault in done.moved if done else ():
        yield one_line(f"set aside: {printable(fault.path)}: {fault.reason}")
    for fault in found.faults:
        yield one_line(f"wrong: {printable(fault.path)}: {fault.reason}")
    for fault in found.other_versions:
        yield one_line(f"unused: {printable(fault.path)}: {fault.reason}")


def audit_notes(folder: Path, found: Audit, done: Repair | None) -> Iterator[str]:
    """What else there is to say."""
    for claim in found.claimed:
        who = f"process {claim.get('process', '?')} on {claim.get('host', '?')}"
        yield f"in progress: {_many(len(claim['runs']), 'run')} by {who}"
    if found.checkpoints:
        yield f"in progress: {_many(len(found.checkpoints), 'file')} of ensembles that were begun"
    for name in found.leftovers:
        yield f"left by a writer that was killed: {name} (the next sweep finishes or clears it)"
    if done and done.finished:
        yield f"finished: {_many(len(done.finished), 'run')} that a killed writer had completely written"
    if done and done.quarantine:
        yield f"set aside in {done.quarantine}: {_many(len(done.moved), 'thing')}, with reasons.json"
    elif found.quarantined:
        things = _many(len(found.quarantined), "thing")
        places = sorted({name.partition("/")[0] for name in found.quarantined}, reverse=True)
        yield f"set aside earlier, in {' and '.join(str(folder / place) for place in places)}: {things}"
    for words, count in Counter(map(made_words, found.runs)).most_common():
        yield f"made with {words}: {_many(count, 'run')}"
    if found.faults:
        told = _many(len(found.faults), "thing")
        yield f"{told} wrong: lengthwise runs {shlex.quote(str(folder))} --repair sets aside what is"
    else:
        yield (
            f"{_many(len(found.runs), 'run')} in {folder}, all whole"
            if found.runs
            else f"no runs in {folder}"
        )


def made_words(kept: Kept) -> str:
    """With what a run was made."""
    told = [
        f"{name} {kept.made_by[name]}" for name in ("lengthwise", "torch", "python") if name in kept.made_by
    ]
    return (
        ", ".join([*told, *(str(kept.made_by[name]) for name in ("device",) if name in kept.made_by)]) or "?"
    )


def audit_json(folder: Path, found: Audit, done: Repair | None) -> dict[str, Any]:
    """All of it as plain data."""
    return {
        "folder": str(folder),
        "runs": [
            {
                "run": kept.run.id,
                "family": kept.run.family,
                "task": {"name": kept.run.task.name, **kept.run.task.knobs},
                "model": kept.run.specification()["model"],
                "training_length": kept.run.training.length,
                "seed": kept.run.training.seed,
                "made_at": kept.made_at.isoformat(),
                "made_by": dict(kept.made_by),
                "outcome": dict(kept.outcome),
            }
            for kept in sorted(found.runs, key=_order)
        ],
        "wrong": _plain(found.faults),
        "other_versions": _plain(found.other_versions),
        "leftovers": found.leftovers,
        "in_progress": {"claimed": found.claimed, "checkpoints": found.checkpoints},
        "quarantined": found.quarantined,
        "repair": done
        and {
            "quarantine": str(done.quarantine) if done.quarantine else None,
            "moved": _plain(done.moved),
            "finished": done.finished,
        },
    }


def _plain(faults: Sequence[Fault]) -> list[dict[str, str]]:
    return [{"path": fault.path, "reason": fault.reason} for fault in faults]


def _order(kept: Kept) -> tuple[str, str, int, int, str]:
    run = kept.run
    return _task(run), _model(run), run.training.length, run.training.seed, run.id


def _task(run: Run) -> str:
    return ", ".join([run.task.name, *(f"{name} {knob(value)}" for name, value in run.task.knobs.items())])


def _model(run: Run) -> str:
    """The family, and the sizes that tell models apart."""
    told = {name: value for name, value in run.specification()["model"].items() if name in SIZES}
    plain = [f"{name} {value}" for name, value in told.items() if value not in SIZES[name]]
    positions = [f"positions {run.decoder.model.positions}"] if run.family == "decoder" else []
    return ", ".join([FAMILIES[run.family].removesuffix("s"), *plain, *positions])


SIZES: dict[str, tuple[object, ...]] = {
    "layers": (1,),
    "heads": (1,),
    "width": (),
    "hidden": (),
    "period": (1,),
    "locality": (None,),
}
"""What is told of a model, unless it is one of these."""


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
