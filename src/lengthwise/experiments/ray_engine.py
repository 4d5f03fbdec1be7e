"""The engine of Ray: ensembles become tasks of a cluster, and what they find comes back to the one process
that asked, which alone writes.

Nothing but specifications and checkpoints goes out, and nothing but numbers and bytes comes back: a worker
needs neither the sweep file nor a disk in common. Which runs share an ensemble is decided here, and a task
has as many threads as the local engine would, so that it finds the same numbers. A task that is lost with its
worker or node is started again by us and not by Ray, because it goes on from its last checkpoint.
"""

import contextlib
import importlib
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from safetensors.torch import load

from lengthwise._messages import one_line
from lengthwise.experiments import engine
from lengthwise.experiments.checkpoints import CheckpointsInMemory, Kept
from lengthwise.experiments.ray_worker import (
    TELL_EVERY,
    Answer,
    Attempt,
    Board,
    memory_there,
    versions_here,
    work,
)
from lengthwise.experiments.results import Measured, Result, metrics_frame
from lengthwise.experiments.run import Run
from lengthwise.training import Progress

LOSSES = 3
"""An ensemble may be lost so often in a row; one that was further than before starts a new row."""

PATIENCE = 60.0
"""For so many seconds a cluster may have no node that a task fits: one may be on its way."""

REACH = 10.0
"""Seconds in which an address must answer."""

BUSY = 600.0
"""Seconds in which every GPU must have told how large it is."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""What a client of HTTP/2, and so of Ray, says first; the answer is a frame of the same kind, 4."""


@contextlib.contextmanager
def cluster(address: str | None, device: str | None) -> Iterator["Cluster"]:
    """The cluster at an address ("auto": one that runs on this machine); with none given, the one that this
    process is connected to already, that of the variable RAY_ADDRESS or, if there is neither, one that is
    started here and ends with the block.
    """
    ray = _ray()
    connected = ray.is_initialized()
    if connected and address not in (None, "auto", ray.get_runtime_context().gcs_address):
        raise ValueError(
            f"this process is connected to another Ray cluster than {address}: ray.shutdown() first"
        )
    if not connected:
        _connect(ray, address)
    try:
        yield Cluster(ray, device)
    finally:
        if not connected:
            ray.shutdown()


class Cluster:
    """A Ray cluster as an engine."""

    def __init__(self, ray: Any, device: str | None) -> None:
        self._ray, self._work = ray, ray.remote(work)
        self.device = self._choose(device)
        self.memory = self._memory()
        self._threads = torch.get_num_threads()

    def finished(
        self,
        ensembles: Iterable[Sequence[Run]],
        progress: Progress | None,
        measured: Measured | None,
        kept: Kept | None,
    ) -> Iterator[tuple[list[Result], Mapping[str, object]]]:
        """What every ensemble leaves, as it comes. One whose worker or node is lost is started again; what a
        task raises is raised here.
        """
        ensembles = list(ensembles)
        if progress:
            progress(0)
        if not ensembles:
            return
        ray, kept = self._ray, kept or CheckpointsInMemory()
        board = self._board()
        heard = _Heard(ray, board, ensembles, progress, kept)
        waiting = {self._start(heard, index, kept): index for index in range(len(ensembles))}
        name, amount = self._share()
        fits = time.monotonic()
        try:
            while waiting:
                ready, _ = ray.wait(list(waiting), timeout=TELL_EVERY)
                heard.listen()
                for reference in ready:
                    index = waiting.pop(reference)
                    answer = self._answer(reference)
                    if isinstance(answer, Exception):
                        heard.lost(index, answer)
                        waiting[self._start(heard, index, kept)] = index
                    else:
                        heard.finished(index)
                        yield _results(ensembles[index], answer, measured)
                if self._most(name) >= amount:
                    fits = time.monotonic()
                elif time.monotonic() - fits > PATIENCE:
                    needed = "a GPU" if name == "GPU" else f"{amount:g} CPU core{'s' * (amount > 1)}"
                    raise OSError(
                        f"no node with {needed} is left in the Ray cluster: add one, and run the same again"
                    )
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)
            ray.kill(board)

    def _answer(self, reference: Any) -> Answer | Exception:
        """What a task returned, or why it is lost; what it raised is raised."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.RayTaskError as error:
            raise error.cause from error
        except errors.RayError as error:
            return error

    def _choose(self, name: str | None) -> torch.device:
        if name not in (None, "cpu", "cuda"):
            raise ValueError(f"device must be cpu or cuda, got {name!r}")
        if name == "cuda" and not self._most("GPU"):
            raise ValueError("device cuda: no node of the Ray cluster has a GPU")
        return torch.device(name or ("cuda" if self._most("GPU") else "cpu"))

    def _memory(self) -> int:
        """As the local engine has it; without a GPU here, as it would at the smallest one of the cluster."""
        if self.device.type == "cpu" or torch.cuda.is_available():
            return engine.memory_for(self.device)
        ask, nodes = self._ray.remote(memory_there), self._nodes("GPU")
        asked = [ask.options(num_gpus=1, **self._at(node["NodeID"])).remote() for node in nodes]
        try:
            return min(self._ray.get(asked, timeout=BUSY))
        except self._ray.exceptions.RayError as error:
            raise OSError(f"not every GPU of the Ray cluster tells its size: {one_line(error)}") from error

    def _nodes(self, resource: str) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get(resource)]

    def _most(self, resource: str) -> float:
        return max((node["Resources"][resource] for node in self._nodes(resource)), default=0)

    def _at(self, node: str) -> dict[str, Any]:
        """The option that binds a task to a node."""
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        return {"scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(node, soft=False)}

    def _share(self) -> tuple[str, float]:
        """What a task needs: a GPU, or as many cores as it has threads if any node has so many."""
        if self.device.type == "cuda":
            return "GPU", 1
        return "CPU", min(self._threads, max(1, self._most("CPU")))

    def _start(self, heard: "_Heard", index: int, kept: Kept) -> Any:
        """A task for an ensemble, which goes on from its last checkpoint."""
        name, amount = self._share()
        share = {"num_gpus": 1, "num_cpus": 1} if name == "GPU" else {"num_cpus": amount}
        task = self._work.options(**share, max_retries=0)
        group = heard.ensembles[index]
        job = {
            "specifications": [run.specification() for run in group],
            "device": self.device.type,
            "threads": self._threads,
            "checkpoint": kept.read(group),
            "every": kept.every,
            "board": heard.board,
            "attempt": heard.attempt(index),
        }
        return task.remote(versions_here(), job)

    def _board(self) -> Any:
        """Where tasks write how far they are: beside this process, so that no lost node takes it along; if
        its own process is lost, it comes back empty.
        """
        here = self._ray.get_runtime_context().get_node_id()
        options = {"num_cpus": 0, "max_restarts": -1, **self._at(here)}
        return self._ray.remote(Board).options(**options).remote()


class _Heard:
    """What is known here of every ensemble."""

    def __init__(
        self,
        ray: Any,
        board: Any,
        ensembles: Sequence[Sequence[Run]],
        progress: Progress | None,
        kept: Kept,
    ) -> None:
        self.board, self.ensembles = board, ensembles
        self._ray, self._progress, self._kept = ray, progress, kept
        self._attempts, self._losses, self._done = Counter[int](), Counter[int](), Counter[int]()
        self._over: set[int] = set()
        self._count, self._asked, self._at = 0, None, 0.0

    def attempt(self, index: int) -> Attempt:
        """The attempt at an ensemble that counts: words of those before it are not listened to."""
        return index, self._attempts[index]

    def listen(self, wait: float = 0.0) -> None:
        """Take in what the board has answered, and ask again now and then."""
        if self._asked is not None and self._ray.wait([self._asked], timeout=wait)[0]:
            with contextlib.suppress(self._ray.exceptions.RayError):  # the board is on its way back
                self._count, words = self._ray.get(self._asked)
                for attempt, word in words:
                    self._hear(attempt, *word)
            self._asked = None
        if self._asked is None and time.monotonic() - self._at >= TELL_EVERY:
            self._asked, self._at = self.board.read.remote(self._count), time.monotonic()

    def _hear(self, attempt: Attempt, kind: str, said: Any) -> None:
        index = attempt[0]
        if index in self._over or attempt != self.attempt(index):
            return
        if kind == "done":
            self._advance(index, said)
        elif kind == "refused":
            self._kept.set_aside(self.ensembles[index], said)
        else:
            self._losses[index] = 0
            self._kept.write(self.ensembles[index], said)

    def lost(self, index: int, why: Exception) -> None:
        """An attempt is lost: another one may follow, from what it said last, unless too many were."""
        for _ in range(2):  # a question may have been on its way before the last word
            self._at = 0.0
            self.listen(REACH)
        self._attempts[index] += 1
        self._losses[index] += 1
        if self._losses[index] > LOSSES:
            raise OSError(f"an ensemble was lost {self._losses[index]} times: {one_line(why)}") from why

    def finished(self, index: int) -> None:
        """An ensemble is finished."""
        self._over.add(index)
        self._advance(index, sum(run.training.steps for run in self.ensembles[index]))

    def _advance(self, index: int, done: int) -> None:
        """Tell what is new; an ensemble that starts again says nothing until it has caught up."""
        if self._progress and done > self._done[index]:
            self._progress(done - self._done[index])
            self._done[index] = done


def _results(
    group: Sequence[Run], answer: Answer, measured: Measured | None
) -> tuple[list[Result], Mapping[str, object]]:
    found, made_by = answer
    results = []
    for run, (rows, weights) in zip(group, found, strict=True):
        if measured:
            measured(run, rows)
        results.append(Result(run, metrics_frame(run, rows), load(weights)))
    return results, made_by


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ValueError("the engine ray needs Ray: pip install 'lengthwise[ray]'") from error


def _connect(ray: Any, address: str | None) -> None:
    address = address or os.environ.get("RAY_ADDRESS")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    logging.getLogger("ray").setLevel(logging.ERROR)
    if address is None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        quiet["include_dashboard"] = False
    elif address not in ("auto", "local"):
        _knock(address)
    try:
        ray.init(address or "local", **quiet)
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError, ImportError) as error:
        if address is None:
            raise ValueError(f"cannot start Ray here: {one_line(error)}") from error
        raise ValueError(
            f"cannot connect to a Ray cluster at {address}: {one_line(error)} "
            "(RAY_AUTH_MODE=token, if it asks for a token)"
        ) from error


def _knock(address: str) -> None:
    """Raise ``ValueError`` unless something that may be Ray answers: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(
            f"the address of a Ray cluster is auto, HOST:PORT or ray://HOST:PORT, got {address!r}"
        )
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=REACH) as line:
            line.sendall(PREFACE)
            if line.recv(9)[3:4] != b"\4":
                raise ValueError(f"what answers at {address} is no Ray cluster")
    except (OSError, OverflowError) as error:
        raise ValueError(f"no Ray cluster answers at {address}: {one_line(error)}") from error
