"""All that lies in a store's folder: what is sound, what is not and why, and setting the latter aside."""

import contextlib
import datetime
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from lengthwise._files import sync, write_file
from lengthwise._messages import one_line
from lengthwise.experiments.results import accuracies, plateaus, table
from lengthwise.experiments.run import SPECIFICATION, Run, identity, run_from
from lengthwise.experiments.store import CHECKSUMS, FILES, WRITTEN, DamagedRun, Store, is_id

QUARANTINE, REASONS = ".quarantine", "reasons.json"
CHECKPOINTS, SET_ASIDE = ".checkpoints", ".set-aside-"
VERSIONS = range(1, 100)
"""Of the rules by which runs get their ids: those that were, and those that may come."""


@dataclass(frozen=True)
class Kept:
    """A run that is sound: what made it, when, and where it ends (``plateaus`` or ``accuracies``)."""

    run: Run
    made_by: Mapping[str, object]
    made_at: datetime.datetime
    outcome: Mapping[str, Any]


@dataclass(frozen=True)
class Fault:
    """Something that does not belong in the store: its path there, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Audit:
    """What was found in a store.

    - ``runs``: those that are sound;
    - ``faults``: what is damaged or foreign;
    - ``other_versions``: runs that are whole, but not of this version's rules: other ids stand for the same;
    - ``leftovers``: what killed writers left, which the next sweep finishes or clears;
    - ``claimed``: what live processes train or write, each with host, process and runs;
    - ``checkpoints``: files of ensembles that were begun;
    - ``quarantined``: what was set aside at any time.
    """

    runs: list[Kept] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    other_versions: list[Fault] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    claimed: list[dict[str, Any]] = field(default_factory=list)
    checkpoints: list[str] = field(default_factory=list)
    quarantined: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Repair:
    """What was done: where faults and leftovers were put (None if there were none), and which runs, of those
    that a killed writer had completely written, were brought to their places.
    """

    quarantine: Path | None
    moved: list[Fault]
    finished: list[str]


def store_in(folder: Path) -> Store:
    """The store in a folder: the folder itself or, of a command's output, its ``runs``; ``ValueError`` if
    there is none. Nothing is made.
    """
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}")
    for chosen in (folder, folder / "runs"):
        if _is_store(chosen):
            return Store(chosen)
    raise ValueError(f"{folder} is no store of runs, and has none in {folder / 'runs'}")


def _is_store(folder: Path) -> bool:
    """Only what looks like one is a store, so that nobody's own files are ever set aside."""
    if not folder.is_dir():
        return False
    if (folder / ".lock").is_file() and (folder / ".lock").stat().st_size == 0:
        return True
    return any(is_id(path.name) and (path / FILES[0]).is_file() for path in folder.iterdir())


def audit(store: Store) -> Audit:
    """Read everything in a store. Nothing is written, and nobody who writes is kept waiting."""
    found = Audit()
    held = store.claims.held()
    for path in sorted(store.folder.iterdir()):
        if is_id(path.name):
            _look_at_run(store, path, found)
        elif not path.name.startswith("."):
            kind = "a link" if path.is_symlink() else "a folder" if path.is_dir() else "a file"
            found.faults.append(Fault(path.name, f"{kind} that is no run"))
    for name in (store.claims.folder.name, CHECKPOINTS):
        if os.path.lexists(store.folder / name) and not (store.folder / name).is_dir():
            found.faults.append(Fault(name, "not the folder that has this name in a store"))
    for path in store.leftovers():
        if path.name.partition("-")[2] not in held:
            found.leftovers.append(path.name)
    found.claimed.extend(about for about in held.values() if about.get("runs"))
    found.checkpoints.extend(name for name in _names(store.folder / CHECKPOINTS) if SET_ASIDE not in name)
    found.quarantined.extend(_quarantined(store.folder))
    return found


def _look_at_run(store: Store, folder: Path, found: Audit) -> None:
    try:
        result = store.result(store.specification(folder))
        about = store.about(folder)
    except DamagedRun as error:
        other = _other_version(store, folder)
        if other:
            found.other_versions.append(Fault(folder.name, other))
        elif os.path.lexists(folder):  # else it was set aside meanwhile
            found.faults.append(Fault(folder.name, error.reason))
        return
    found.runs.append(
        Kept(result.run, _made_by(about), _made_at(folder, about), _outcome(result.run, result.metrics))
    )
    for path in sorted(folder.iterdir()):
        if path.name not in (*FILES, CHECKSUMS) and not path.name.startswith("."):
            found.faults.append(Fault(f"{folder.name}/{path.name}", "not of the run in whose folder it is"))


def _other_version(store: Store, folder: Path) -> str | None:
    """Why a run whose specification is whole is none of this version's, if it is not: its id follows from the
    specification by other rules, or by ours but with parts that this version does not know.
    """
    try:
        about = store.about(folder)
    except DamagedRun:
        return None
    told: Any = about.get("specification")
    version = next((number for number in VERSIONS if identity(number, told) == folder.name), None)
    if version is None:
        return None
    maker = _made_by(about).get("lengthwise", "?")
    try:
        run = run_from(told)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"made by lengthwise {maker}, which this version cannot read: {one_line(error)}"
    if version == SPECIFICATION[run.family]:
        return None
    return f"made by lengthwise {maker}, whose results this version does not reuse"


def _made_by(about: Mapping[str, Any]) -> dict[str, object]:
    made_by = about.get("made_by")
    return made_by if isinstance(made_by, dict) else {}


def _made_at(folder: Path, about: Mapping[str, Any]) -> datetime.datetime:
    """When the run was finished, as it was written or, where that was not, by the time of its file."""
    with contextlib.suppress(ValueError, TypeError):
        return datetime.datetime.fromisoformat(about["made_at"]) if "made_at" in about else _time_of(folder)
    return _time_of(folder)


def _time_of(folder: Path) -> datetime.datetime:
    seconds = (folder / FILES[0]).stat().st_mtime
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).replace(microsecond=0)


def _outcome(run: Run, metrics: pd.DataFrame) -> dict[str, Any]:
    """The row of ``plateaus`` or ``accuracies``; None stands for what is not finite."""
    try:
        rows = (plateaus if run.family == "limit" else accuracies)(table([run], [metrics]))
    except ValueError:  # too few test lengths for a plateau
        return {}
    row = {str(name): value for name, value in rows.iloc[0].items()}
    plain = {name: value.item() if hasattr(value, "item") else value for name, value in row.items()}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in plain.items()
    }


def _quarantined(folder: Path) -> list[str]:
    """What was set aside: things in the quarantine, and checkpoints that could not be used."""
    things = [
        f"{QUARANTINE}/{time}/{name}"
        for time in _names(folder / QUARANTINE)
        for name in _names(folder / QUARANTINE / time)
        if not (name.startswith("reasons") and name.endswith(".json"))
    ]
    return things + [f"{CHECKPOINTS}/{name}" for name in _names(folder / CHECKPOINTS) if SET_ASIDE in name]


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def repair(store: Store) -> tuple[Repair, Audit]:
    """Move all that is damaged or foreign, and what killed writers left half written, to a new folder of the
    quarantine, and finish what they had completely written; then say what is in the store. Nothing is deleted
    or overwritten. ``OSError`` if another process writes.
    """
    with store.alone(), store.explained():
        found = audit(store)
        moved = list(found.faults)
        quarantine = _set_aside(store.folder, moved, None) if moved else None
        before = set(store.run_folders())
        found.faults.clear()
        for left in map(store.folder.__truediv__, found.leftovers):
            if left.name.startswith(WRITTEN) and left.is_dir() and not left.is_symlink():
                store.place(left)
                if not _names(left):
                    left.rmdir()
        finished = sorted(set(store.run_folders()) - before)
        for folder in finished:
            _look_at_run(store, folder, found)
        left_over = [Fault(path.name, "left by a writer that was killed") for path in store.leftovers()]
        left_over += found.faults  # of what was brought to its place just now
        found.faults.clear()
        quarantine = _set_aside(store.folder, left_over, quarantine) if left_over else quarantine
        store.claims.clear()
        found.leftovers.clear()
        moved += left_over
        found.quarantined[:] = _quarantined(store.folder)
        return Repair(quarantine, moved, [folder.name for folder in finished if folder.exists()]), found


def _set_aside(folder: Path, moved: list[Fault], quarantine: Path | None) -> Path:
    """Move things to a quarantine, a new one if none is given, with a note that says why."""
    quarantine = quarantine or _new_folder(folder / QUARANTINE)
    note = json.dumps([{"path": fault.path, "reason": fault.reason} for fault in moved], indent=2)
    # First, so that nothing lies there unexplained.
    write_file(_unused(quarantine / REASONS), (note + "\n").encode())
    sync(quarantine)
    for fault in moved:
        place = quarantine / fault.path
        place.parent.mkdir(exist_ok=True)
        os.rename(folder / fault.path, _unused(place))
        sync(place.parent)
    sync(folder)
    return quarantine


def _unused(path: Path) -> Path:
    """The path, or one like it where something is already."""
    number, chosen = 1, path
    while os.path.lexists(chosen):
        number += 1
        chosen = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return chosen


def _new_folder(parent: Path) -> Path:
    """A folder named by the time, and by a number where there is one of this second already."""
    parent.mkdir(exist_ok=True)
    time = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    number = 1
    while True:
        chosen = parent / (time if number == 1 else f"{time}-{number}")
        try:
            chosen.mkdir()
        except FileExistsError:
            number += 1
        else:
            sync(parent)
            return chosen
