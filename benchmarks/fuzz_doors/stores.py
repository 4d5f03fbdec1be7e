"""Door: folders of runs, with their specifications, tables and weights."""

import io
import json
import random
import shutil
import tempfile
import warnings
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
from lengthwise.experiments import Result
from lengthwise.experiments.results import COLUMNS, metrics_frame
from lengthwise.experiments.store import DamagedRunsWarning

Files = dict[str, bytes | None]
"""Paths in a store and what they hold; None is a folder."""

QUESTIONS = ["runs", "table", "metrics", "weights", "transformer", "train", "train", "contains"]


def _runs() -> list[lw.Run]:
    short = lw.Evaluation(lengths=(4, 8), sequences=2)
    small = lw.LimitModel(width=2, hidden=2)
    first = lw.Run(lw.task("simple"), small, lw.Training(length=3, steps=1, batch=2), short)
    bins = lw.DecoderEvaluation(ends=(3,), sequences=2, every=1)
    tiny = lw.DecoderTraining(length=3, steps=1, batch=2)
    return [first, lw.Run(lw.task("tomita-1"), lw.DecoderModel(width=2), tiny, bins)]


@cache
def _good() -> tuple[list[lw.Run], Files]:
    """Two runs, and the files of their store."""
    runs, folder = _runs(), Path(tempfile.mkdtemp())
    rows = [(1, 3, "loss", 0.5), (1, 3, "loss_error", 0.1), (1, 3, "baseline", 0.5)]
    model = lw.LimitModel(width=2, hidden=2)
    weights = {name: torch.zeros(role.shape) for name, role in model.roles(2, 1).items()}
    lw.Store(folder).add([Result(run, metrics_frame(run, rows), weights) for run in runs])
    found: Files = {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    shutil.rmtree(folder)
    return runs, found


def _parquet(source: random.Random) -> bytes:
    """A table, but not of results."""
    columns: dict[str, Any] = {
        "run": ["x"],
        "step": [1],
        "test_length": [3],
        "metric": ["loss"],
        "value": [0.5],
    }
    odd = [[None], ["x"], [1.5], [[1]], [{"a": 1}], [b"\xff"], [2**62], [float("nan")], [True]]
    for _ in range(source.choice([1, 1, 2])):
        name = source.choice(list(columns))
        match source.randrange(4):
            case 0:
                del columns[name]
            case 1:
                columns[source.choice(["x", "", "run\n", "\x1b[31m"])] = [1]
            case _:
                columns[name] = source.choice(odd)
    file = io.BytesIO()
    try:
        pq.write_table(pa.table(columns), file)
    except (pa.ArrowException, ValueError):
        return b"PAR1"
    return file.getvalue()


def draw(source: random.Random) -> tuple[Files, str, int]:
    """A store, and what is asked of it: a question about the first or the second run."""
    runs, good = _good()
    files: Files = dict(good)
    which = source.randrange(2)
    for _ in range(source.choice([1, 1, 1, 2])):
        run = runs[which].id
        spec, metrics, weights = (
            f"{run}/{name}" for name in ("spec.json", "metrics.parquet", "weights.safetensors")
        )
        match source.randrange(12):
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
            case 6:
                files[metrics] = _parquet(source)
            case 7:
                files[weights] = mutated(source, good[weights] or b"")
            case 8:
                kind = source.choice([torch.float64, torch.int64, torch.complex64, torch.bool])
                names = source.choice([["embedding"], ["x"], ["embedding", "readout", "layers.0.value"]])
                shape = source.choice([(2, 2), (1,), (0,), (2, 2, 2)])
                files[weights] = save({name: torch.ones(shape, dtype=kind) for name in names})
            case 9:
                files.pop(source.choice([spec, metrics, weights]), None)
            case 10:
                gone = source.choice([spec, metrics, weights])
                files.pop(gone, None)
                files[f"{gone}/inside"] = b""
            case _:
                odd_names = ["notes.txt", "folder/x", ".DS_Store", ".written-x/y", ".writing-x", ".lock/x"]
                odd_names += [
                    "a\nb/spec.json",
                    "\x1b[31m/spec.json",
                    ".written-x/../../z",
                    "x" * 200 + "/spec.json",
                ]
                files[source.choice(odd_names)] = source.choice([b"", None, b"{}"])
    return files, source.choice(QUESTIONS), which


def _lay(files: Files, folder: Path) -> None:
    for name, data in files.items():
        path = folder / name
        if data is None:
            path.mkdir(parents=True, exist_ok=True)
        elif ".." not in name and not path.parent.is_file():
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
            case _:
                table = lw.train([run], output=folder / "store", device="cpu")
                require(set(COLUMNS) <= set(table.columns), "columns are missing", list(table.columns))
                require((table["run"] == run.id).all(), "rows of another run")


DOOR = Door(
    name="stores",
    about="folders of runs: specifications, tables, weights",
    share=8,
    seconds=60.0,
    draw=draw,
    enter=enter,
    prepare=lambda: draw(random.Random(0)) and None,
)
