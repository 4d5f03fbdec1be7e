"""Runs of one shape become ensembles, and an ensemble is the unit of work: of this machine, or of a cluster.

Which runs share an ensemble follows from the list of runs and the machine alone, never from what is left
to do: a resumed sweep then computes bit for bit what an undisturbed one would. An engine trains ensembles in
any order; what is left to do is found, and what was found is written, here.
"""

import contextlib
import platform
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import pandas as pd
import torch

from lengthwise.experiments import decoders, limits
from lengthwise.experiments.checkpoints import EVERY, CheckpointFolder, EnsembleCheckpoints, Kept
from lengthwise.experiments.results import Measured, Result, table
from lengthwise.experiments.run import Run
from lengthwise.experiments.sharing import unfinished
from lengthwise.experiments.store import Store
from lengthwise.training import Progress
from lengthwise.training.checkpoint import Checkpoints

CPU_MEMORY = 36 * 2**20
"""The working set of an ensemble of limit transformers on a CPU: about a last-level cache. Larger ones are no
faster there and lose more work when they are killed."""

GPU_SHARE = 0.5
"""The share of a GPU's memory that an ensemble may fill."""


class Engine(Protocol):
    """Where ensembles are trained."""

    device: torch.device
    memory: int
    """How many bytes an ensemble may fill."""

    def finished(
        self,
        ensembles: Iterable[Sequence[Run]],
        progress: Progress | None,
        measured: Measured | None,
        kept: Kept | None,
    ) -> Iterator[tuple[list[Result], Mapping[str, object]]]:
        """The results of every ensemble, in any order, and what made them. An ensemble that is taken from
        ``ensembles`` is this engine's to train: other processes leave it alone. Checkpoints are ``kept``.
        """
        ...


def train(
    runs: Sequence[Run],
    *,
    output: Path | str | None = None,
    device: str | None = None,
    progress: Progress | None = None,
    engine: str = "local",
    address: str | None = None,
    checkpoint_every: float = EVERY,
) -> pd.DataFrame:
    """Train and measure all runs, and return their rows as one table.

    With ``output``, results are kept in that folder as they come, and an ensemble whose runs are all found
    there is not repeated. Several processes may train into one folder: they share the ensembles, and all
    return the same table.
    ``device`` is "cpu" or "cuda"; by default a GPU is used if there is one. ``progress`` is called with
    the number of model-steps done (those of runs found in ``output`` included).
    ``engine`` is "local" or "ray", which trains on the Ray cluster at ``address`` ("auto": one that runs on
    this machine) or, without an address, on one that is started for this call.
    An ensemble that is trained for longer than ``checkpoint_every`` seconds leaves checkpoints in ``output``,
    from which it goes on exactly if it is stopped.
    """
    results = train_all(
        runs,
        output=output,
        device=device,
        progress=progress,
        engine=engine,
        address=address,
        checkpoint_every=checkpoint_every,
    )
    return table([result.run for result in results], [result.metrics for result in results])


def train_all(
    runs: Sequence[Run],
    *,
    output: Path | str | None = None,
    device: str | None = None,
    progress: Progress | None = None,
    measured: Measured | None = None,
    engine: str = "local",
    address: str | None = None,
    checkpoint_every: float = EVERY,
) -> list[Result]:
    """The same, and the weights of every run beside its rows. ``measured`` is called with a run and its new
    rows as soon as they are known.
    """
    runs = list(dict.fromkeys(runs))
    results: dict[Run, Result] = {}
    with contextlib.ExitStack() as held:
        chosen = held.enter_context(_open(engine, address, device))
        planned = plan(runs, chosen.device, chosen.memory)
        rounds: Iterable[Iterable[Sequence[Run]]] = [planned]
        store = None if output is None else Store(output)
        kept = None if store is None else CheckpointFolder(store.folder, checkpoint_every)
        if store and kept:
            # Read before anything is trained, so that a damaged run costs no time.
            results = {run: store.result(run) for run in runs if run in store}
            for group in planned:
                if all(run in results for run in group):
                    kept.drop(group)  # of who was killed when all was done but this
            rounds = held.enter_context(unfinished(store, planned, progress))
        for ensembles in rounds:
            for found, made_by in chosen.finished(ensembles, progress, measured, kept):
                if store and kept:
                    store.add(found, made_by=made_by)
                    kept.drop([result.run for result in found])
                else:
                    results |= {result.run: result for result in found}
    if store:
        results |= {run: store.result(run) for run in runs if run not in results}
    return [results[run] for run in runs]


class Local:
    """An engine that is the process itself: one ensemble after the other."""

    def __init__(self, device: str | None) -> None:
        self.device = choose_device(device)
        self.memory = memory_for(self.device)

    def finished(
        self,
        ensembles: Iterable[Sequence[Run]],
        progress: Progress | None,
        measured: Measured | None,
        kept: Kept | None,
    ) -> Iterator[tuple[list[Result], Mapping[str, object]]]:
        """The results of every ensemble in turn."""
        for group in ensembles:
            checkpoints = EnsembleCheckpoints(group, self.device, kept) if kept else None
            found = run_ensemble(group, self.device, progress, measured, checkpoints)
            yield found, made_on(self.device, len(group))


def _open(engine: str, address: str | None, device: str | None) -> contextlib.AbstractContextManager[Engine]:
    if engine == "ray":
        from lengthwise.experiments import ray_engine

        return ray_engine.cluster(address, device)
    if engine != "local":
        raise ValueError(f"the engine must be local or ray, got {engine!r}")
    if address is not None:
        raise ValueError(f"the local engine has no address, got {address!r}: only the engine ray has one")
    return contextlib.nullcontext(Local(device))


def choose_device(name: str | None) -> torch.device:
    """The device of this name, or the best one there is."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise ValueError(f"device must be cpu or cuda, got {name!r}")
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("device cuda: this machine has no GPU that PyTorch can use")
    return torch.device(name)


def memory_for(device: torch.device) -> int:
    """How many bytes an ensemble may fill on a device."""
    if device.type == "cuda":
        return int(GPU_SHARE * torch.cuda.get_device_properties(device).total_memory)
    return CPU_MEMORY


def plan(runs: Sequence[Run], device: torch.device, memory: int | None = None) -> list[list[Run]]:
    """Ensembles of runs of one shape, as few as suit the device and then as equal as possible. An ensemble
    may fill so much ``memory``, by default what there is on this machine.
    """
    memory = memory_for(device) if memory is None else memory
    shapes: dict[Hashable, list[Run]] = {}
    for run in runs:
        shapes.setdefault((run.family, _kind(run).shape_of(run)), []).append(run)
    ensembles = []
    for alike in shapes.values():
        most = _kind(alike[0]).most_together(alike, device, memory)
        groups = -(-len(alike) // most)
        bounds = [len(alike) * group // groups for group in range(groups + 1)]
        ensembles += [alike[low:high] for low, high in pairwise(bounds)]
    return ensembles


def run_ensemble(
    runs: Sequence[Run],
    device: torch.device,
    progress: Progress | None = None,
    measured: Measured | None = None,
    checkpoints: Checkpoints | None = None,
) -> list[Result]:
    """Train and measure runs of one shape together."""
    return _kind(runs[0]).run_together(runs, device, progress, measured, checkpoints)


def _kind(run: Run):
    """The module that knows how runs of this family are trained."""
    return limits if run.family == "limit" else decoders


def machine_words(device: str | None) -> str:
    """The device on which runs are trained, in words."""
    chosen = choose_device(device)
    if chosen.type == "cuda":
        return torch.cuda.get_device_name(chosen)
    return f"{torch.get_num_threads()} threads of a CPU ({platform.machine()})"


def made_on(device: torch.device, models: int) -> dict[str, object]:
    """What is kept beside a result: the device of this machine and the size of the ensemble."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": f"{device.type} ({name})", "models_in_ensemble": models}
