"""Results on disk: one folder a run, complete or absent.

::

    store/
      .lock                     held by everyone who writes; alone by who repairs
      .claims/<name>            held by the process that trains an ensemble, or writes its results
      <run id>/spec.json        the specification, and what made the result
      <run id>/metrics.parquet  its rows
      <run id>/weights.safetensors
      <run id>/SHA256SUMS       checksums of these three
      .writing-<name>/<run id>/...   an ensemble being written: worthless if nobody holds the claim
      .written-<name>/<run id>/...   an ensemble completely written, on its way to its places

An ensemble's runs are finished by one rename, of ``.writing-*`` to ``.written-*``, so that a kill at any
moment loses all of them or none. Reading never runs code from a file, needs no right to write, and never
gives what was not written: a file that differs from its checksum, or does not hold what its specification
asks for, is an error of its own run alone.
"""

import contextlib
import datetime
import errno
import fcntl
import hashlib
import io
import json
import os
import platform
import re
import shlex
import shutil
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from lengthwise._files import make_folder, sync, write_file
from lengthwise._locks import locked
from lengthwise._messages import one_line
from lengthwise._version import __version__
from lengthwise.experiments.results import COLUMNS, Result, table
from lengthwise.experiments.run import Run, run_from
from lengthwise.experiments.sharing import Claims, claim_of
from lengthwise.experiments.soundness import check_rows, check_weights
from lengthwise.limit import LimitTransformer

SPECIFICATION, METRICS, WEIGHTS = FILES = ("spec.json", "metrics.parquet", "weights.safetensors")
CHECKSUMS = "SHA256SUMS"
WRITING, WRITTEN = ".writing-", ".written-"

Read = TypeVar("Read")


class DamagedRun(ValueError):
    """A run's folder does not hold what a run leaves."""

    def __init__(self, folder: Path, reason: str) -> None:
        self.reason = reason
        store = shlex.quote(str(folder.parent))
        super().__init__(f"{folder}: {reason}; lengthwise runs {store} --repair sets it aside")


class DamagedRunsWarning(UserWarning):
    """Some runs of a store are left out of what is read."""


class Store:
    """The results in a folder, which is made if it does not exist."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        make_folder(self.folder)
        self.claims = Claims(self.folder / ".claims")

    def check(self) -> None:
        """Raise ``OSError``, saying what is wrong, unless this process may write here now."""
        with self.writing():
            pass

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder for writing, beside others that do, and first finish or clear what killed ones
        left. Claims that were taken end with it.
        """
        with self._holding(fcntl.LOCK_SH, "is being repaired by another process"):
            self.recover()
            try:
                yield
            finally:
                self.claims.drop_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the folder so that nobody else writes."""
        with self._holding(fcntl.LOCK_EX, "is being written to by another process"):
            yield

    @contextlib.contextmanager
    def _holding(self, kind: int, otherwise: str) -> Iterator[None]:
        with self.explained():
            lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            with self.explained():
                got = locked(lock, self.folder / ".lock", kind | fcntl.LOCK_NB)
            if not got:
                raise OSError(f"{self.folder} {otherwise}: wait until it ends")
            yield
        finally:
            os.close(lock)

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Says of which folder an error of the file system is."""
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            if isinstance(error, FileExistsError | NotADirectoryError | IsADirectoryError):
                why = f"{error.filename} is in the way ({why})"
            raise OSError(f"cannot write to the folder {self.folder}: {why}") from error

    def recover(self) -> None:
        """Finish or clear what killed writers left; what live ones write is theirs."""
        with self.explained():
            for left in self.leftovers():
                name = left.name.removeprefix(WRITING).removeprefix(WRITTEN)
                if not left.is_dir() or left.is_symlink() or not self.claims.take(name):
                    continue
                try:
                    if not left.exists():  # its writer was done before the claim was taken
                        continue
                    if left.name.startswith(WRITTEN):
                        self.place(left)
                    shutil.rmtree(left)
                finally:
                    self.claims.drop(name)
            self.claims.clear()

    def leftovers(self) -> list[Path]:
        """What is being written, or was when its writer was killed."""
        return sorted(path for path in self.folder.iterdir() if path.name.startswith((WRITING, WRITTEN)))

    def __contains__(self, run: Run) -> bool:
        return os.path.lexists(self.folder / run.id)

    def add(self, results: Sequence[Result], made_by: Mapping[str, object] | None = None) -> None:
        """Write the results of one ensemble: all of them or, if anything fails, none. A run that is there
        already is left as it is.
        """
        runs = [result.run for result in results]
        name = uuid.uuid4().hex[:16]
        writing, written = self.folder / f"{WRITING}{name}", self.folder / f"{WRITTEN}{name}"
        with self.explained():
            self.claims.take(name, wait=True)
            try:
                try:
                    writing.mkdir()
                    for result in results:
                        _write(writing / result.run.id, result, made_by or {})
                    sync(writing)
                    os.rename(writing, written)
                except OSError:
                    shutil.rmtree(writing, ignore_errors=True)
                    raise
                sync(self.folder)
                self.place(written)
                shutil.rmtree(written)
            finally:
                self.claims.drop(name)
                self.claims.drop(claim_of(runs))

    def place(self, written: Path) -> None:
        """Bring runs that are completely written to their places; one that is there already stays behind."""
        for folder in sorted(written.iterdir()):
            if not is_id(folder.name):
                continue
            try:
                os.rename(folder, self.folder / folder.name)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise
        sync(self.folder)

    def runs(self) -> list[Run]:
        """Every run in the store, by id. If the specifications of some cannot be read, a warning tells so."""
        return self._each(self.specification)

    def table(self, runs: Sequence[Run] | None = None) -> pd.DataFrame:
        """The long table of some runs, with their specifications: all of them if not given, without those
        that cannot be read, of which a warning tells.
        """
        if runs is not None:
            return table(runs, (self.metrics(run) for run in runs))

        def rows_of(folder: Path) -> tuple[Run, pd.DataFrame]:
            run = self.specification(folder)
            return run, self.metrics(run)

        found = self._each(rows_of)
        return table([run for run, _ in found], [rows for _, rows in found])

    def result(self, run: Run) -> Result:
        """All that is kept of one run, whose task need not be one that has a name."""
        folder = self.folder / run.id
        if not run.is_told_by(self.about(folder).get("specification")):
            raise DamagedRun(folder, f"{SPECIFICATION} cannot be used: it is that of another run")
        return Result(run, self.metrics(run), self.weights(run))

    def made_by(self, run: Run) -> dict[str, Any]:
        """The versions and the machine that made the result of one run, as far as they are told."""
        told = self.about(self.folder / run.id).get("made_by", {})
        return told if isinstance(told, dict) else {}

    def metrics(self, run: Run) -> pd.DataFrame:
        """The rows of one run."""

        def parsed(content: bytes) -> pd.DataFrame:
            rows = pq.read_table(pa.BufferReader(content)).to_pandas()
            check_rows(run, rows)
            return rows.astype(COLUMNS)

        return self._parsed(self.folder / run.id, METRICS, "a table of results", parsed)

    def weights(self, run: Run) -> dict[str, Tensor]:
        """The weights of one run."""

        def parsed(content: bytes) -> dict[str, Tensor]:
            weights = load(content)
            check_weights(run, weights)
            return weights

        return self._parsed(self.folder / run.id, WEIGHTS, "weights", parsed)

    def transformer(self, folder: str) -> LimitTransformer:
        """The trained model of the run in this folder of the store, its id."""
        try:
            run = self.specification(self.folder / folder)
            if run.family != "limit":
                raise ValueError(f"{self.folder / folder} holds a decoder, which is no limit transformer")
            return run.limit.model.transformer(self.weights(run))
        except DamagedRun as error:
            raise ValueError(f"{self.folder / folder}: {error.reason}") from error

    def specification(self, folder: Path) -> Run:
        """The run whose folder this is."""

        def parsed(content: bytes) -> Run:
            run = run_from(_about(folder, content)["specification"])
            if run.id != folder.name:
                raise ValueError(f"it is that of run {run.id}, not of {folder.name}")
            return run

        return self._parsed(folder, SPECIFICATION, "the specification of a run", parsed)

    def about(self, folder: Path) -> dict[str, Any]:
        """What stands in the specification's file, whichever version wrote it."""
        return self._parsed(
            folder, SPECIFICATION, "the specification of a run", lambda content: _about(folder, content)
        )

    def run_folders(self) -> list[Path]:
        """Everything that has the name of a run."""
        return sorted(path for path in self.folder.iterdir() if is_id(path.name))

    def _each(self, read: Callable[[Path], Read]) -> list[Read]:
        found, folders = [], self.run_folders()
        for folder in folders:
            with contextlib.suppress(DamagedRun):
                found.append(read(folder))
        if len(found) < len(folders):
            warnings.warn(
                f"{len(folders) - len(found)} of {len(folders)} runs in {self.folder} cannot be read and are "
                f"left out: lengthwise runs {shlex.quote(str(self.folder))} tells why",
                DamagedRunsWarning,
                stacklevel=3,
            )
        return found

    def _parsed(self, folder: Path, name: str, what: str, parse: Callable[[bytes], Read]) -> Read:
        """A file of a run, if it is the one that was written."""
        if not folder.is_dir():
            raise DamagedRun(folder, "it is no folder, which a run is")
        try:
            if not (folder / name).is_file():
                raise ValueError("there is no such file")
            content = (folder / name).read_bytes()
            if _checksums(folder).get(name, _checksum(content)) != _checksum(content):
                raise ValueError(f"it differs from what was written, by {CHECKSUMS}")
            return parse(content)
        except FAULTS as error:
            raise DamagedRun(folder, f"{name} cannot be read as {what}: {one_line(error)}") from error


FAULTS = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
    NotImplementedError,
    pa.ArrowException,
    SafetensorError,
)
"""What reading a file raises that holds something else."""


def is_id(name: str) -> bool:
    """Whether a name can be that of a run."""
    return re.fullmatch("[0-9a-f]{16}", name) is not None


def _about(folder: Path, content: bytes) -> dict[str, Any]:
    about = read_json(content)
    if "checksums" in about and not (folder / CHECKSUMS).is_file():
        raise ValueError(f"its checksums, {CHECKSUMS}, are gone")
    return about


def read_json(content: bytes) -> dict[str, Any]:
    """An object of JSON, in which every number is one."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no number")

    found = json.loads(content, parse_constant=refuse)
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    return found


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
        "made_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "checksums": CHECKSUMS,
    }
    rows = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(result.metrics, preserve_index=False), rows)
    contents = {
        SPECIFICATION: (json.dumps(about, indent=2) + "\n").encode(),
        METRICS: rows.getvalue(),
        WEIGHTS: save(dict(result.weights)),
    }
    sums = "".join(f"{_checksum(content)}  {name}\n" for name, content in contents.items())
    for name, content in {**contents, CHECKSUMS: sums.encode()}.items():
        write_file(folder / name, content)
    sync(folder)


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _checksums(folder: Path) -> dict[str, str]:
    """The checksums of a run's files, by name; of a folder from before there were any, none."""
    path = folder / CHECKSUMS
    if not os.path.lexists(path):
        return {}
    lines = path.read_text().splitlines() if path.is_file() else []
    found = dict(line.split("  ", 1)[::-1] for line in lines if line.count("  ") == 1)
    if set(found) != set(FILES):
        raise ValueError(f"{CHECKSUMS} is damaged")
    return found
