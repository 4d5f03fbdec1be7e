"""The local engine: runs of one shape become ensembles, and an ensemble is the unit of work.

Which runs share an ensemble follows from the list of runs and the machine alone, never from what is left
to do: a resumed sweep then computes bit for bit what an undisturbed one would.
"""

import platform
from collections.abc import Hashable, Sequence
from itertools import pairwise
from pathlib import Path

import pandas as pd
import torch

from lengthwise.experiments import decoders, limits
from lengthwise.experiments.results import Measured, Result, table
from lengthwise.experiments.run import Run
from lengthwise.experiments.store import Store
from lengthwise.training import Progress

CPU_MEMORY = 36 * 2**20
"""The working set of an ensemble of limit transformers on a CPU: about a last-level cache. Larger ones are no
faster there and lose more work when they are killed."""

GPU_SHARE = 0.5
"""The share of a GPU's memory that an ensemble may fill."""


def train(
    runs: Sequence[Run],
    *,
    output: Path | str | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Train and measure all runs, and return their rows as one table.

    With ``output``, results are kept in that folder as they come, and an ensemble whose runs are all found
    there is not repeated.
    ``device`` is "cpu" or "cuda"; by default a GPU is used if there is one. ``progress`` is called with
    the number of model-steps done (those of runs found in ``output`` included).
    """
    results = train_all(runs, output=output, device=device, progress=progress)
    return table([result.run for result in results], [result.metrics for result in results])


def train_all(
    runs: Sequence[Run],
    *,
    output: Path | str | None = None,
    device: str | None = None,
    progress: Progress | None = None,
    measured: Measured | None = None,
) -> list[Result]:
    """The same, and the weights of every run beside its rows. ``measured`` is called with a run and its new
    rows as soon as they are known.
    """
    runs = list(dict.fromkeys(runs))
    chosen = choose_device(device)
    ensembles = plan(runs, chosen)
    if output is None:
        results = {r.run: r for group in ensembles for r in run_ensemble(group, chosen, progress, measured)}
        return [results[run] for run in runs]
    store = Store(output)
    with store.writing():
        for group in ensembles:
            if all(run in store for run in group):
                if progress:
                    progress(sum(run.training.steps for run in group))
                continue
            results = run_ensemble(group, chosen, progress, measured)
            store.add(results, made_by=_machine(chosen, len(group)))
    return [Result(run, store.metrics(run), store.weights(run)) for run in runs]


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


def plan(runs: Sequence[Run], device: torch.device) -> list[list[Run]]:
    """Ensembles of runs of one shape, as few as suit the device and then as equal as possible."""
    shapes: dict[Hashable, list[Run]] = {}
    for run in runs:
        shapes.setdefault((run.family, _kind(run).shape_of(run)), []).append(run)
    ensembles = []
    for alike in shapes.values():
        most = _kind(alike[0]).most_together(alike, device, memory_for(device))
        groups = -(-len(alike) // most)
        bounds = [len(alike) * group // groups for group in range(groups + 1)]
        ensembles += [alike[low:high] for low, high in pairwise(bounds)]
    return ensembles


def run_ensemble(
    runs: Sequence[Run],
    device: torch.device,
    progress: Progress | None = None,
    measured: Measured | None = None,
) -> list[Result]:
    """Train and measure runs of one shape together."""
    return _kind(runs[0]).run_together(runs, device, progress, measured)


def _kind(run: Run):
    """The module that knows how runs of this family are trained."""
    return limits if run.family == "limit" else decoders


def machine_words(device: str | None) -> str:
    """The device on which runs are trained, in words."""
    chosen = choose_device(device)
    if chosen.type == "cuda":
        return torch.cuda.get_device_name(chosen)
    return f"{torch.get_num_threads()} threads of a CPU ({platform.machine()})"


def _machine(device: torch.device, models: int) -> dict[str, object]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": f"{device.type} ({name})", "models_in_ensemble": models}
