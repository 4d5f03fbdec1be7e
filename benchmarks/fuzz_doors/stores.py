"""Door: folders of runs, with their specifications, tables, weights, and what commands left beside them."""

import hashlib
import io
import json
import random
import shutil
import tempfile
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors.torch import save

import lengthwise as lw
from fuzz_doors import guard
from fuzz_doors.door import Door, require
from fuzz_doors.values import damaged, mutated
from lengthwise.experiments.audit import audit, repair, store_in
from lengthwise.experiments.claims import Claim
from lengthwise.experiments.folder import note, read_folder
from lengthwise.experiments.results import COLUMNS
from lengthwise.experiments.run import SPECIFICATION, identity
from lengthwise.experiments.store import CHECKSUMS, FILES, DamagedRunsWarning

Files = dict[str, bytes | None]
"""Paths in a store and what they hold; None is a folder."""

QUESTIONS = ["runs", "table", "metrics", "weights", "transformer", "train", "train", "contains"]
QUESTIONS += ["audit", "repair", "repair", "folder"]


def _runs() -> list[lw.Run]:
    short = lw.Evaluation(lengths=(4, 8, 12, 20, 40, 80), sequences=2)
    small = lw.LimitModel(width=2, hidden=2)
    first = lw.Run(lw.task("simple"), small, lw.Training(length=3, steps=1, batch=2), short)
    bins = lw.DecoderEvaluation(ends=(3,), sequences=2, every=1)
    tiny = lw.DecoderTraining(length=3, steps=1, batch=2)
    return [first, lw.Run(lw.task("tomita-1"), lw.DecoderModel(width=2), tiny, bins)]


@cache
def _good() -> tuple[list[lw.Run], Files]:
    """Two runs, and the files of their store."""
    runs, folder = _runs(), Path(tempfile.mkdtemp())
    lw.train(runs, output=folder, device="cpu")
    found: Files = {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    shutil.rmtree(folder)
    return runs, found


def _about() -> dict[str, Any]:
    """What a command leaves beside its runs: an advice that rests on the first one, and a claim."""
    advice = {"tolerance": 0.1, "predicted_length": 3, "interval": [3, 4], "reason": ""}
    advice |= {"confirmed_length": 3, "longest_test": 80}
    advice["decay"] = {"exponent": 2.0, "intercept": 0.5, "lengths": [3, 4]}
    claim = Claim("a", "levels", "share", 0.5, None, False, {3: 0.5}, {"4": 0.5})
    return {
        "commands": ["lengthwise sweep x.py"],
        "advice": advice,
        "stages": {_runs()[0].id: "pilot"},
        "claims": [{"study": "x", **claim.to_json()}],
    }


def _parquet(source: random.Random, good: bytes) -> bytes:
    """A table: that of a run with something changed, or another."""
    columns: dict[str, Any] = {
        "run": ["x"],
        "step": [1],
        "test_length": [3],
        "metric": ["loss"],
        "value": [0.5],
    }
    if source.random() < 0.7:
        columns = pq.read_table(pa.BufferReader(good)).to_pydict()
    rows = len(columns["run"])
    odd = [None, "x", 1.5, [1], {"a": 1}, b"\xff", 2**62, float("nan"), float("inf"), -1, True]
    for _ in range(source.choice([1, 1, 2])):
        name = source.choice(list(columns))
        match source.randrange(6):
            case 0:
                del columns[name]
            case 1:
                columns[source.choice(["x", "", "run\n", "\x1b[31m"])] = [1] * rows
            case 2:
                columns[name] = [source.choice(odd)] * rows
            case 3:
                keep = source.sample(range(rows), source.randint(0, rows))
                columns = {each: [values[at] for at in keep] for each, values in columns.items()}
                rows = len(keep)
            case _ if rows:
                columns[name][source.randrange(rows)] = source.choice(odd)
        if not columns:
            break
    file = io.BytesIO()
    try:
        pq.write_table(pa.table(columns), file)
    except (pa.ArrowException, ValueError, OverflowError, TypeError):
        return b"PAR1"
    return file.getvalue()


def draw(source: random.Random) -> tuple[Files, str, int]:
    """A store, and what is asked of it: a question about the first or the second run."""
    runs, good = _good()
    files: Files = dict(good)
    which, question = source.randrange(2), source.choice(QUESTIONS)
    run = runs[which].id
    spec, metrics, weights = (f"{run}/{name}" for name in FILES)
    beside = question == "folder" and source.random() < 0.8  # then the runs themselves are whole
    for _ in range(0 if beside else source.choice([1, 1, 1, 2])):
        match source.randrange(13):
            case 0 | 1 | 2 | 3:
                told = json.loads(good[spec] or b"")
                part = (
                    damaged(source, told["specification"]) if source.random() < 0.9 else damaged(source, told)
                )
                told = {**told, "specification": part} if source.random() < 0.9 else part
                files[spec] = json.dumps(told).encode("utf-8", "surrogatepass")
            case 4:
                odd = [b"", b"{", b"null", b"[" * 10**5, b"\xff", b"[]", b'"x"', b'{"specification": 3}']
                files[spec] = source.choice(odd)
            case 5:
                files[metrics] = mutated(source, good[metrics] or b"")
            case 6 | 7:
                files[metrics] = _parquet(source, good[metrics] or b"")
            case 8:
                files[weights] = mutated(source, good[weights] or b"")
            case 9:
                kind = source.choice([torch.float64, torch.int64, torch.complex64, torch.bool])
                names = source.choice([["embedding"], ["x"], ["embedding", "readout", "layers.0.value"]])
                shape = source.choice([(2, 2), (1,), (0,), (2, 2, 2)])
                files[weights] = save({name: torch.ones(shape, dtype=kind) for name in names})
            case 10:
                files.pop(source.choice([spec, metrics, weights]), None)
            case 11:
                gone = source.choice([spec, metrics, weights])
                files.pop(gone, None)
                files[f"{gone}/inside"] = b""
            case _:
                odd_names = ["notes.txt", "folder/x", ".DS_Store", ".written-x/y", ".writing-x", ".lock/x"]
                odd_names += [
                    "a\nb/spec.json",
                    "\x1b[31m/spec.json",
                    f".written-y/{run}/spec.json",
                    ".checkpoints",
                    ".claims",
                    ".claims/x/y",
                    "x" * 200 + "/spec.json",
                    f"{'0' * 16}/spec.json",
                ]
                files[source.choice(odd_names)] = source.choice([b"", None, b"{}"])
    if question == "folder":
        about = json.dumps(damaged(source, _about())).encode("utf-8", "surrogatepass")
        files["about.json"] = source.choice([about] * 9 + [b"[" * 10**5, b"", b"\xff"])
    if source.random() < 0.8:
        _sign(files, run)
    if source.random() < 0.3:
        files = _renamed(files, run, which)
    return files, question, which


def _sign(files: Files, run: str) -> None:
    """Bring the checksums of a run up to its files, as whoever changed these on purpose would: what they hold
    is then looked at.
    """
    contents = {name: files.get(f"{run}/{name}") or b"" for name in FILES}
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents.items()]
    files[f"{run}/{CHECKSUMS}"] = "".join(lines).encode()


def _renamed(files: Files, run: str, which: int) -> Files:
    """With a run in the folder that its specification asks for, whatever that is."""
    try:
        told = json.loads(files[f"{run}/{FILES[0]}"] or b"")["specification"]
        own = identity(list(SPECIFICATION.values())[which], told)
    except (KeyError, ValueError, TypeError, RecursionError):
        return files
    return {name.replace(run, own): data for name, data in files.items()}


def _lay(files: Files, folder: Path) -> None:
    for name, data in files.items():
        path = folder / name
        if any(parent.is_file() for parent in path.parents):
            continue
        if data is None:
            if not path.is_file():
                path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_dir():
                path.write_bytes(data)


def enter(given: tuple[Files, str, int], folder: Path) -> None:
    """A store is refused, or what it says is a run, a table, weights."""
    files, question, which = given
    _lay(files, folder / "store")
    run = _good()[0][which]
    with guard.no_code():
        store = lw.Store(folder / "store")
        warnings.simplefilter("ignore", DamagedRunsWarning)  # what reading tells of runs that it leaves out
        match question:
            case "runs":
                names = {path.name for path in (folder / "store").iterdir()}
                require({one.id for one in store.runs()} <= names, "runs that are not there")
            case "table":
                table = store.table()
                require(set(COLUMNS) <= set(table.columns), "columns are missing", list(table.columns))
            case "metrics":
                metrics = store.metrics(run)
                require(metrics["value"].dtype == "float64", "values of kind", metrics["value"].dtype)
            case "weights":
                require(
                    all(isinstance(one, torch.Tensor) for one in store.weights(run).values()), "no tensors"
                )
            case "transformer":
                f = store.transformer(run.id)
                require(torch.isfinite(f([0, 1, 1])).all(), "an output that is not finite")
            case "contains":
                require((run in store) in (True, False), "neither in nor out")
            case "audit":
                before = _contents(store.folder)
                audit(store_in(store.folder))
                require(_contents(store.folder) == before, "files changed by reading")
            case "repair":
                _repaired(store, run)
            case "folder":
                read = read_folder(store.folder)
                require(set(COLUMNS) <= set(read.results.columns), "columns are missing")
                note(store.folder, "lengthwise sweep y.py")
                require(read_folder(store.folder).commands[-1] == "lengthwise sweep y.py", "no note")
            case _:
                table = lw.train([run], output=folder / "store", device="cpu")
                require(set(COLUMNS) <= set(table.columns), "columns are missing", list(table.columns))
                require((table["run"] == run.id).all(), "rows of another run")


def _contents(folder: Path) -> Counter[bytes]:
    """What all files hold, but for the notes of why things were set aside and whose claims are whose."""
    return Counter(
        path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("reasons") and path.parent.name != ".claims"
    )


def _repaired(store: lw.Store, run: lw.Run) -> None:
    """Nothing is deleted, nothing is wrong any longer, and what was set aside is trained again."""
    before = _contents(store.folder)
    _, found = repair(store_in(store.folder))
    after = _contents(store.folder)
    require(before <= after, "files deleted by a repair")
    require(not found.faults, "faults after a repair", found.faults)
    again = audit(store)
    require(not again.faults and not again.leftovers, "faults after a repair", again.faults, again.leftovers)
    rows = lw.train([run], output=store.folder, device="cpu")
    require((rows["run"] == run.id).all(), "rows of another run")


def prepare() -> None:
    """Load what reading and training load."""
    runs, good = _good()
    with tempfile.TemporaryDirectory() as folder:
        _lay(good, Path(folder))
        lw.Store(folder).transformer(runs[0].id)([0, 1])
        read_folder(Path(folder))


DOOR = Door(
    name="stores",
    about="folders of runs: specifications, tables, weights",
    share=8,
    seconds=60.0,
    draw=draw,
    enter=enter,
    prepare=prepare,
)
