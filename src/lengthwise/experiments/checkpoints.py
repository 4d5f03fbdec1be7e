"""Checkpoints of ensembles: files that are complete or absent, and are trusted only if they are what they
should be.

A checkpoint is a safetensors file with the state's tensors; its header says of which runs it is, what made
it, the state's plain data as JSON, and a digest of all of it. In a store it lies, until its ensemble is
finished, at ``.checkpoints/<hash of the run ids>.safetensors``. One that cannot be used is renamed, and the
ensemble starts anew; a disk that takes no checkpoint ends no run.
"""

import contextlib
import hashlib
import json
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from lengthwise._files import sync
from lengthwise._messages import one_line
from lengthwise.experiments.run import Run
from lengthwise.training.checkpoint import State

FORMAT = "lengthwise checkpoint 1"

EVERY = 60.0
"""Seconds between two checkpoints of an ensemble: shorter runs pay nothing."""

SHARE = 0.05
"""No more than this share of the time is spent on checkpoints, however slow the disk is."""


class CheckpointWarning(UserWarning):
    """Something is wrong with checkpoints; training goes on."""


@runtime_checkable
class Kept(Protocol):
    """Where the last checkpoint of every ensemble is kept."""

    every: float
    """Seconds between two checkpoints of an ensemble."""

    def read(self, runs: Sequence[Run]) -> bytes | None:
        """The last one of these runs, if there is one."""
        ...

    def write(self, runs: Sequence[Run], data: bytes) -> None:
        """Keep this one instead of the one before."""
        ...

    def set_aside(self, runs: Sequence[Run], why: str) -> None:
        """The one that was read cannot be used."""
        ...

    def drop(self, runs: Sequence[Run]) -> None:
        """These runs are finished."""
        ...


class CheckpointFolder:
    """In a folder of a store, which only its one writer touches. Nothing here raises: what fails is said."""

    def __init__(self, store: Path, every: float = EVERY) -> None:
        self._folder, self.every = store / ".checkpoints", check_every(every)
        self._said = False

    def path(self, runs: Sequence[Run]) -> Path:
        """Where the checkpoint of an ensemble lies."""
        named = hashlib.sha256("\n".join(run.id for run in runs).encode()).hexdigest()[:16]
        return self._folder / f"{named}.safetensors"

    def read(self, runs: Sequence[Run]) -> bytes | None:
        """The last one of these runs, if there is one."""
        try:
            return self.path(runs).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self.set_aside(runs, error.strerror or one_line(error))
            return None

    def write(self, runs: Sequence[Run], data: bytes) -> None:
        """Write, make sure that it is on the disk, and put it in the place of the one before."""
        path = self.path(runs)
        temporary = path.with_suffix(".tmp")
        try:
            self._folder.mkdir(exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync(self._folder)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            if not self._said:
                why = error.strerror or one_line(error)
                _say(f"no checkpoint can be written to {self._folder}: {why}; training goes on without")
                self._said = True

    def set_aside(self, runs: Sequence[Run], why: str) -> None:
        """Rename a checkpoint, which somebody may want to look at."""
        path = self.path(runs)
        others = (path.with_suffix(f".set-aside-{number}") for number in range(1, 10**6))
        try:
            free = next(other for other in others if not other.exists())
            os.rename(path, free)
            done = f"it is now {free.name}"
        except OSError as error:
            done = f"it cannot be renamed: {error.strerror}"
        _say(f"the checkpoint {path} cannot be used, {done}, and its runs start anew: {one_line(why)}")

    def drop(self, runs: Sequence[Run]) -> None:
        """Remove what finished runs no longer need."""
        path = self.path(runs)
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
            path.with_suffix(".tmp").unlink(missing_ok=True)
            self._folder.rmdir()  # if it is empty


class CheckpointsInMemory:
    """For as long as a process lives, which may then lose others that work for it."""

    def __init__(self, every: float = EVERY) -> None:
        self.every = check_every(every)
        self._last: dict[tuple[Run, ...], bytes] = {}

    def read(self, runs: Sequence[Run]) -> bytes | None:
        """The last one of these runs, if there is one."""
        return self._last.get(tuple(runs))

    def write(self, runs: Sequence[Run], data: bytes) -> None:
        """Keep this one instead of the one before."""
        self._last[tuple(runs)] = data

    def set_aside(self, runs: Sequence[Run], why: str) -> None:
        """Forget it: it was made by this process, so this is a mistake of ours."""
        self.drop(runs)
        _say(f"a checkpoint cannot be used, and its runs start anew: {one_line(why)}")

    def drop(self, runs: Sequence[Run]) -> None:
        """Forget what finished runs no longer need."""
        self._last.pop(tuple(runs), None)


class EnsembleCheckpoints:
    """The checkpoints of one ensemble, as its training asks for them."""

    def __init__(self, runs: Sequence[Run], device: torch.device, kept: Kept) -> None:
        self._runs, self._device, self._kept = runs, device, kept
        self._next = time.monotonic() + kept.every

    def load(self) -> State | None:
        """The last state, if there is one that can be trusted."""
        data = self._kept.read(self._runs)
        if data is None:
            return None
        try:
            return decode(data, self._runs, self._device)
        except ValueError as error:
            self.refuse(one_line(error))
            return None

    def refuse(self, why: str) -> None:
        """It is no state of this training."""
        self._kept.set_aside(self._runs, why)

    def due(self) -> bool:
        """Whether it is time for another one."""
        return time.monotonic() >= self._next

    def save(self, state: State) -> None:
        """Keep this state."""
        began = time.monotonic()
        self._kept.write(self._runs, encode(state, self._runs, self._device))
        ended = time.monotonic()
        self._next = ended + max(self._kept.every, (ended - began) / SHARE)


def encode(state: State, runs: Sequence[Run], device: torch.device) -> bytes:
    """A state of these runs as a file."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.tensors.items()}
    header = _header(runs, device) | {"state": json.dumps(state.about)}
    return save(tensors, header | {"digest": _digest(header, tensors)})


def decode(data: bytes, runs: Sequence[Run], device: torch.device) -> State:
    """The state in a file; ``ValueError`` says why there is none of these runs. No code of the file runs."""
    try:
        start = 8 + int.from_bytes(data[:8], "little")
        found: dict[str, Any] = dict(json.loads(data[8:start])["__metadata__"])
        for name, wanted in _header(runs, device).items():
            if found.get(name) != wanted:
                said = "other runs" if name == "runs" else f"{name} {found.get(name)!r}, expected {wanted!r}"
                raise ValueError(f"it is of {said}")
        digest = found.pop("digest")
        tensors = load(data)
        if digest != _digest(found, tensors):
            raise ValueError("it is damaged")
        return State(tensors, dict(json.loads(found["state"])))
    except (ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
        raise ValueError(one_line(error)) from error


def check_every(seconds: float) -> float:
    """Seconds between checkpoints, if they are that."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < float("inf"):
        raise ValueError(f"checkpoint_every must be a finite number of seconds from 0, got {seconds!r}")
    return float(seconds)


def _header(runs: Sequence[Run], device: torch.device) -> dict[str, str]:
    """What must be the same, so that what follows from a state is what would have followed."""
    ids = json.dumps([run.id for run in runs])
    return {"format": FORMAT, "runs": ids, "torch": torch.__version__, "device": device.type}


def _digest(header: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    found = hashlib.sha256(json.dumps(dict(header), sort_keys=True).encode())
    for name in sorted(tensors):
        own = tensors[name]
        found.update(f"{name} {own.dtype} {tuple(own.shape)}".encode())
        found.update(own.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def _say(message: str) -> None:
    warnings.warn(message, CheckpointWarning, stacklevel=2)
