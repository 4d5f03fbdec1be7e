"""Results on disk: one folder a run, complete or absent.

::

    store/
      .lock                     held by the one process that writes
      <run id>/spec.json        the specification, and what made the result
      <run id>/metrics.parquet  its rows
      <run id>/weights.safetensors
      .writing-*/<run id>/...   an ensemble being written: worthless if its writer is gone
      .written-*/<run id>/...   an ensemble completely written, on its way to its places

An ensemble's runs are finished by one rename, of ``.writing-*`` to ``.written-*``, so that a kill at any
moment loses all of them or none. Reading never runs code from a file.
"""

import contextlib
import fcntl
import json
import os
import platform
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from lengthwise._files import make_folder
from lengthwise._messages import one_line
from lengthwise._version import __version__
from lengthwise.experiments.results import COLUMNS, Result, table
from lengthwise.experiments.run import Run, run_from
from lengthwise.limit import LimitTransformer


class Store:
    """The results in a folder, which is made if it does not exist."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        make_folder(self.folder)

    def check(self) -> None:
        """Raise ``OSError``, saying what is wrong, unless this process may write here now."""
        with self.writing():
            pass

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder for writing, and first finish or clear what a killed writer left."""
        try:
            lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise OSError(f"cannot write to the folder {self.folder}: {error.strerror}") from error
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise OSError(f"another process is writing to {self.folder}: wait until it ends") from error
            for abandoned in self.folder.glob(".writing-*"):
                shutil.rmtree(abandoned)
            for written in self.folder.glob(".written-*"):
                self._place(written)
            yield
        finally:
            os.close(lock)

    def __contains__(self, run: Run) -> bool:
        return (self.folder / run.id).is_dir()

    def add(self, results: Sequence[Result], made_by: Mapping[str, object] | None = None) -> None:
        """Write the results of one ensemble: all of them or, if anything fails, none."""
        name = uuid.uuid4().hex[:12]
        writing, written = self.folder / f".writing-{name}", self.folder / f".written-{name}"
        try:
            writing.mkdir()
            for result in results:
                _write(writing / result.run.id, result, made_by or {})
            os.rename(writing, written)
        except OSError as error:
            shutil.rmtree(writing, ignore_errors=True)
            raise OSError(f"cannot write to the folder {self.folder}: {error.strerror or error}") from error
        self._place(written)

    def _place(self, written: Path) -> None:
        for folder in written.iterdir():
            if not (self.folder / folder.name).exists():
                os.rename(folder, self.folder / folder.name)
        shutil.rmtree(written)

    def runs(self) -> list[Run]:
        """Every run in the store, by id."""
        return [
            self._specification(folder)
            for folder in sorted(self.folder.iterdir())
            if folder.is_dir() and not folder.name.startswith(".")
        ]

    def metrics(self, run: Run) -> pd.DataFrame:
        """The rows of one run."""
        path = self.folder / run.id / "metrics.parquet"
        try:
            rows = pq.read_table(path).to_pandas().astype(COLUMNS)
        except (OSError, pa.ArrowException, KeyError, ValueError, TypeError, NotImplementedError) as error:
            raise ValueError(
                f"{one_line(path)} cannot be read as a table of results: {one_line(error)}"
            ) from error
        if not (rows["run"] == run.id).all():
            raise ValueError(f"{one_line(path)} holds rows of other runs than {run.id}")
        return rows

    def weights(self, run: Run) -> dict[str, Tensor]:
        """The weights of one run."""
        path = self.folder / run.id / "weights.safetensors"
        try:
            return load_file(path)
        except (OSError, SafetensorError) as error:
            raise ValueError(f"{one_line(path)} cannot be read as weights: {one_line(error)}") from error

    def transformer(self, folder: str) -> LimitTransformer:
        """The trained model of the run in this folder of the store, its id."""
        run = self._specification(self.folder / folder)
        if run.family != "limit":
            raise ValueError(f"{self.folder / folder} holds a decoder, which is no limit transformer")
        try:
            return run.limit.model.transformer(self.weights(run))
        except ValueError as error:
            raise ValueError(f"{self.folder / folder} holds no trained model: {one_line(error)}") from error

    def table(self, runs: Sequence[Run] | None = None) -> pd.DataFrame:
        """The long table of some runs (all of them if not given), with their specifications."""
        chosen = self.runs() if runs is None else runs
        return table(chosen, (self.metrics(run) for run in chosen))

    def _specification(self, folder: Path) -> Run:
        path = folder / "spec.json"
        try:
            run = run_from(json.loads(path.read_text())["specification"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                f"{one_line(path)} cannot be read as the specification of a run: {one_line(error)}"
            ) from error
        if run.id != folder.name:
            raise ValueError(f"{one_line(path)} is the specification of run {run.id}, not of this folder's")
        return run


def _write(folder: Path, result: Result, made_by: Mapping[str, object]) -> None:
    folder.mkdir()
    about = {
        "specification": result.run.specification(),
        "made_by": {
            "lengthwise": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            **made_by,
        },
    }
    (folder / "spec.json").write_text(json.dumps(about, indent=2) + "\n")
    pq.write_table(pa.Table.from_pandas(result.metrics, preserve_index=False), folder / "metrics.parquet")
    try:
        save_file(dict(result.weights), folder / "weights.safetensors")
    except SafetensorError as error:
        raise OSError(str(error)) from error
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
