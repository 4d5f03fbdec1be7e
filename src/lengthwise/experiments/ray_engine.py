"""The engine of Ray: ensembles become tasks of a cluster, and what they find comes back to the one process
that asked, which alone writes.

Nothing but specifications goes out, and nothing but numbers and bytes comes back: a worker needs neither the
sweep file nor a disk in common. Which runs share an ensemble is decided here, and a task runs with as many
threads as the local engine would, so that it finds the same numbers.
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
from safetensors.torch import load, save

from lengthwise._messages import one_line
from lengthwise._version import __version__
from lengthwise.experiments import engine
from lengthwise.experiments.results import Measured, Result, Row, metrics_frame
from lengthwise.experiments.run import Run, run_from
from lengthwise.training import Progress

RETRIES = 2
"""So often Ray itself starts a task again whose worker or node is gone, and so often we repeat the whole."""

TELL_EVERY = 0.5
"""Seconds between two reports of a task, and between two looks at them."""

REACH = 10.0
"""Seconds in which an address must answer."""

Answer = tuple[list[tuple[list[Row], bytes]], dict[str, object]]
"""Rows and weights of each run of an ensemble, and what made them."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""What a client of HTTP/2, and so of Ray, says first; the answer is a frame of the same kind, 4."""


@contextlib.contextmanager
def cluster(address: str | None, device: str | None) -> Iterator["Cluster"]:
    """The cluster at an address ("auto": one that runs on this machine); with none given, the one that this
    process is connected to already or, if it is not, one that is started here and ends with the block.
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
        self, ensembles: Iterable[Sequence[Run]], progress: Progress | None, measured: Measured | None
    ) -> Iterator[tuple[list[Result], Mapping[str, object]]]:
        """What every ensemble leaves, as it comes. One whose worker or node is lost is started again; what a
        task raises is raised here.
        """
        ray, lost, told = self._ray, Counter(), Counter()
        ensembles = list(ensembles)
        board = self._board() if progress and ensembles else None
        if progress:
            progress(0)
        waiting = {self._start(index, group, board): index for index, group in enumerate(ensembles)}
        try:
            while waiting:
                ready, _ = ray.wait(list(waiting), timeout=TELL_EVERY if board else None)
                for index, done in self._read(board).items():
                    _advance(progress, told, index, done)
                for reference in ready:
                    index = waiting.pop(reference)
                    group = ensembles[index]
                    try:
                        answer: Answer = ray.get(reference)
                    except ray.exceptions.RayTaskError as error:
                        raise error.cause from None
                    except _losses(ray) as error:
                        lost[index] += 1
                        if lost[index] > RETRIES:
                            raise OSError(
                                f"an ensemble was lost again and again: {one_line(error)}"
                            ) from error
                        waiting[self._start(index, group, board)] = index
                        continue
                    _advance(progress, told, index, sum(run.training.steps for run in group))
                    yield _results(group, answer, measured)
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)
            if board is not None:
                ray.kill(board)

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
        return min(self._ray.get(asked))

    def _nodes(self, resource: str) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get(resource)]

    def _most(self, resource: str) -> float:
        return max((node["Resources"][resource] for node in self._nodes(resource)), default=0)

    def _at(self, node: str) -> dict[str, Any]:
        """The option that binds a task to a node."""
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        return {"scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(node, soft=False)}

    def _start(self, index: int, group: Sequence[Run], board: Any) -> Any:
        """A task with a GPU, or with as many cores as it has threads if any node has so many."""
        gpu = self.device.type == "cuda"
        cores = 1 if gpu else min(self._threads, max(1, self._most("CPU")))
        task = self._work.options(num_cpus=cores, num_gpus=int(gpu), max_retries=RETRIES)
        specifications = [run.specification() for run in group]
        return task.remote(specifications, self.device.type, self._threads, _versions(), board, index)

    def _board(self) -> Any:
        """Where tasks write how far they are: beside this process, so that no lost node takes it along."""
        here = self._ray.get_runtime_context().get_node_id()
        return self._ray.remote(Board).options(num_cpus=0, **self._at(here)).remote()

    def _read(self, board: Any) -> dict[int, int]:
        try:
            return self._ray.get(board.read.remote(), timeout=TELL_EVERY) if board else {}
        except self._ray.exceptions.RayError:
            return {}


class Board:
    """How many model-steps of each ensemble are done."""

    def __init__(self) -> None:
        self._done: dict[int, int] = {}

    def tell(self, index: int, done: int) -> None:
        """An ensemble is so far."""
        self._done[index] = done

    def read(self) -> dict[int, int]:
        """How far all ensembles are."""
        return self._done


def work(
    specifications: Sequence[Mapping[str, Mapping[str, Any]]],
    device: str,
    threads: int,
    versions: Mapping[str, str],
    board: Any,
    index: int,
) -> Answer:
    """Train and measure an ensemble; this runs on a worker."""
    if versions != _versions():
        raise ValueError(f"a worker has {_words(_versions())}, this process {_words(versions)}")
    torch.set_num_threads(threads)
    chosen = engine.choose_device(device)
    runs = [run_from(specification) for specification in specifications]
    done, last = 0, time.monotonic()

    def tell(steps: int) -> None:
        nonlocal done, last
        done += steps
        if time.monotonic() - last >= TELL_EVERY:
            last = time.monotonic()
            board.tell.remote(index, done)

    results = engine.run_ensemble(runs, chosen, tell if board is not None else None)
    columns = ["step", "test_length", "metric", "value"]
    found = [
        (list(own.metrics[columns].itertuples(index=False, name=None)), save(dict(own.weights)))
        for own in results
    ]
    return found, engine.made_on(chosen, len(runs))


def memory_there() -> int:
    """What an ensemble may fill on the GPU of a worker."""
    return engine.memory_for(torch.device("cuda"))


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


def _advance(progress: Progress | None, told: Counter[int], index: int, done: int) -> None:
    """Tell what is new; an ensemble that starts again says nothing until it has caught up."""
    if progress and done > told[index]:
        progress(done - told[index])
        told[index] = done


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ValueError("the engine ray needs Ray: pip install 'lengthwise[ray]'") from error


def _losses(ray: Any) -> tuple[type[Exception], ...]:
    """What says that a worker, a node or what was kept there is gone."""
    gone = ray.exceptions
    return gone.WorkerCrashedError, gone.NodeDiedError, gone.ObjectLostError, gone.OutOfMemoryError


def _connect(ray: Any, address: str | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    logging.getLogger("ray").setLevel(logging.ERROR)
    if address is None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init("local", include_dashboard=False, **quiet)
        return
    if address != "auto":
        _knock(address)
    try:
        ray.init(address, **quiet)
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError, ImportError) as error:
        raise ValueError(f"cannot connect to a Ray cluster at {address}: {one_line(error)}") from error


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


def _versions() -> dict[str, str]:
    return {"lengthwise": __version__, "torch": torch.__version__.partition("+")[0]}


def _words(versions: Mapping[str, str]) -> str:
    return " and ".join(f"{name} {version}" for name, version in versions.items())
