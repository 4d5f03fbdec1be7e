"""What a command leaves in its folder, and how it is read again.

::

    folder/
      runs/         the store
      about.json    the commands that wrote here, and the advice or the claims of the last one

A store alone is such a folder too.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from lengthwise._files import make_folder, replacing
from lengthwise._messages import one_line
from lengthwise.experiments.advice import Advice, Stage, at_lengths
from lengthwise.experiments.claims import Claim
from lengthwise.experiments.decay import Decay, Prediction
from lengthwise.experiments.results import curves, table
from lengthwise.experiments.run import Run
from lengthwise.experiments.store import Store

ABOUT = "about.json"
RUNS = "runs"

FAULTS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What understanding JSON raises that tells something else."""

MANY = 100
"""To read so many runs takes long enough to tell how far it is."""


@dataclass(frozen=True)
class Folder:
    """All that a folder holds of runs.

    - ``results``: the long table of all runs of the store;
    - ``made_by``: what made their results, with the number of runs that it made;
    - ``commands``: those that wrote to the folder, the last one last; none where nothing tells;
    - ``advice``, ``claims``: of the last command, if it gave any; claims with the studies they are about.
    """

    path: Path
    store: Store
    runs: tuple[Run, ...]
    results: pd.DataFrame
    made_by: tuple[tuple[dict[str, Any], int], ...]
    commands: tuple[str, ...] = ()
    advice: Advice | None = None
    claims: tuple[tuple[str, Claim], ...] = ()


def note(
    folder: Path,
    command: str | None,
    advice: Advice | None = None,
    claims: Sequence[tuple[str, Claim]] = (),
) -> None:
    """Keep beside the runs how they were asked for, and what the command found beside them."""
    make_folder(folder)
    path = folder / ABOUT
    try:
        before = _strings(json.loads(path.read_text()).get("commands", []))
    except (OSError, *FAULTS):
        before = ()
    about: dict[str, Any] = {"commands": [*(one for one in before if one != command)]}
    about["commands"] += [command] if command else []
    if advice is not None:
        about["advice"] = advice.to_json()
        about["stages"] = {curve.run: at.stage for at in advice.lengths for curve in at.curves}
    if claims:
        about["claims"] = [{"study": study, **claim.to_json()} for study, claim in claims]
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(about, indent=2) + "\n")


def read_folder(path: Path, stage: Stage | None = None) -> Folder:
    """What a command left in a folder, or a store of runs; ``ValueError`` if there is nothing to read, or a
    file cannot be understood. ``stage`` is called with the number of runs that are read.
    """
    if not path.is_dir():
        raise ValueError(f"there is no folder {path}: give one that a command of lengthwise wrote to")
    inside = path / RUNS if (path / RUNS).is_dir() else path
    if not any((one / "spec.json").is_file() for one in inside.iterdir()):
        raise ValueError(
            f"{path} holds no runs: give the output folder of lengthwise demo, advise, sweep, train or "
            "reproduce, or a store of runs"
        )
    store = Store(inside)
    runs = [store.specification(one) for one in store.run_folders()]  # what cannot be read is not left out
    told = stage if len(runs) >= MANY else None
    progress = told(f"reading {len(runs)} runs", len(runs)) if told else lambda _: None
    frames, made_by = [], {}
    for run in runs:
        frames.append(store.metrics(run))
        made = store.made_by(run)
        key = json.dumps(made, sort_keys=True, default=str)
        made_by[key] = (made, made_by.get(key, (made, 0))[1] + 1)
        progress(1)
    about, by_id = _about(path / ABOUT), {run.id: rows for run, rows in zip(runs, frames, strict=True)}
    try:
        commands = _strings(about.get("commands", []))
        advice = _advice(about["advice"], about["stages"], store, runs, by_id) if "advice" in about else None
        claims = tuple(_claim(one) for one in about.get("claims", []))
    except FAULTS as error:
        raise ValueError(
            f"{path / ABOUT} does not tell what was found ({one_line(error)}): give the command again, or "
            "remove the file"
        ) from error
    return Folder(
        path, store, tuple(runs), table(runs, frames), tuple(made_by.values()), commands, advice, claims
    )


def _about(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        about = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {one_line(error)}") from error
    if not isinstance(about, dict):
        raise ValueError(f"{path} does not tell of commands: it must hold a JSON object")
    return about


def _strings(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise ValueError("commands must be a list of texts")
    return tuple(given)


def _advice(
    told: Mapping[str, Any],
    stages: Mapping[str, str],
    store: Store,
    runs: Sequence[Run],
    frames: Mapping[str, pd.DataFrame],
) -> Advice:
    """The advice that was told of, on the runs that it rests on."""
    own = [run for run in runs if run.id in stages]
    if missing := set(stages) - {run.id for run in own}:
        raise ValueError(f"the advice rests on run {min(missing)}, which is not there")
    rows = table(own, [frames[run.id] for run in own])
    lengths = at_lengths(curves(rows), stages)
    decay, interval, confirmed = told["decay"], told["interval"], told["confirmed_length"]
    prediction = Prediction(
        _whole(told["predicted_length"]),
        None if interval is None else (int(interval[0]), int(interval[1])),
        None if decay is None else Decay(**{**decay, "lengths": tuple(decay["lengths"])}),
        str(told["reason"]),
    )
    answer = next((at for at in lengths if at.training_length == confirmed), None)
    return Advice(
        own[0].limit.task,
        float(told["tolerance"]),
        prediction,
        _whole(confirmed),
        lengths,
        rows.assign(stage=rows["run"].map(dict(stages))),
        int(told["longest_test"]),
        store.transformer(answer.median.run) if answer else None,
    )


def _whole(given: Any) -> int | None:
    return None if given is None else int(given)


def _claim(told: Mapping[str, Any]) -> tuple[str, Claim]:
    entries = dict(told)
    study = str(entries.pop("study"))
    by_seed = {int(seed): effect for seed, effect in entries.pop("by_seed").items()}
    return study, Claim(**entries, by_seed=by_seed)
