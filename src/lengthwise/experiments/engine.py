"""The local engine: runs of one shape become ensembles, and an ensemble is the unit of work.

Which runs share an ensemble follows from the list of runs and the machine alone, never from what is left
to do: a resumed sweep then computes bit for bit what an undisturbed one would.
"""

import platform
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pandas as pd
import torch

from lengthwise.experiments.results import NO_LENGTH, Result, metrics_frame, table
from lengthwise.experiments.run import Run
from lengthwise.experiments.store import Store
from lengthwise.tasks import CountTask
from lengthwise.training import (
    Progress,
    loss_at_infinity,
    loss_at_length,
    start_ensemble,
    train_on_counts,
    train_on_tokens,
)
from lengthwise.training.data import steps_at_once

CPU_MEMORY = 36 * 2**20
"""The working set of an ensemble on a CPU: about a last-level cache. Larger ones are no faster there and
lose more work when they are killed."""

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
) -> list[Result]:
    """The same, and the weights of every run beside its rows."""
    runs = list(dict.fromkeys(runs))
    chosen = choose_device(device)
    ensembles = plan(runs, memory_for(chosen))
    if output is None:
        results = {r.run: r for group in ensembles for r in run_ensemble(group, chosen, progress)}
        return [results[run] for run in runs]
    store = Store(output)
    with store.writing():
        for group in ensembles:
            if all(run in store for run in group):
                if progress:
                    progress(sum(run.training.steps for run in group))
                continue
            store.add(run_ensemble(group, chosen, progress), made_by=_machine(chosen, len(group)))
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


def plan(runs: Sequence[Run], memory: int) -> list[list[Run]]:
    """Ensembles of runs of one shape, as few as fit in the memory and then as equal as possible."""
    shapes: dict[object, list[Run]] = {}
    for run in runs:
        training = run.training
        shape = (type(run.task), run.task.vocabulary, run.task.outputs, run.model, run.evaluation)
        counted = isinstance(run.task, CountTask) and run.model.layers == 1
        length = None if counted else training.length
        shapes.setdefault((*shape, training.steps, training.batch, length), []).append(run)
    ensembles = []
    for alike in shapes.values():
        most = max(1, memory // max(map(bytes_of, alike)))
        groups = -(-len(alike) // most)
        bounds = [len(alike) * group // groups for group in range(groups + 1)]
        ensembles += [alike[low:high] for low, high in pairwise(bounds)]
    return ensembles


def bytes_of(run: Run) -> int:
    """About what one model adds to the working set of its ensemble, in float32."""
    model, batch = run.model, run.training.batch
    roles = model.roles(run.task.vocabulary, run.task.outputs).values()
    parameters = sum(torch.Size(role.shape).numel() for role in roles)
    kinds = run.task.vocabulary * model.period
    activations = batch * (3 * model.hidden + 6 * kinds * (model.heads + 1) * model.window)
    made = 1 if isinstance(run.task, CountTask) and model.layers == 1 else run.training.length
    if model.layers > 1:
        activations = 8 * batch * made * (kinds * (model.heads + 1) + model.hidden)
    drawn = steps_at_once(batch, made) * batch * (kinds + model.window + run.task.outputs + made - 1)
    return 4 * (6 * parameters + activations) + 8 * drawn


def run_ensemble(runs: Sequence[Run], device: torch.device, progress: Progress | None) -> list[Result]:
    """Train and measure runs of one shape together."""
    tasks, trainings = [run.task for run in runs], [run.training for run in runs]
    ensemble = start_ensemble(runs[0].model, tasks[0], [t.seed for t in trainings], device)
    train_all = train_on_counts if runs[0].model.layers == 1 else train_on_tokens
    curve = train_all(ensemble, tasks, trainings, progress)
    rows: list[list[tuple[int, int, str, float]]] = [
        [
            (step, run.training.length, "training_loss", value)
            for step, value in zip(curve.steps, losses.tolist(), strict=True)
        ]
        for run, losses in zip(runs, curve.loss, strict=True)
    ]
    for length in sorted({length for run in runs for length in run.test_lengths}):
        measured = loss_at_length(ensemble, tasks, length, runs[0].evaluation)
        for model, run in enumerate(runs):
            if length in run.test_lengths:
                steps = run.training.steps
                rows[model] += [
                    (steps, length, "loss", float(measured.loss[model])),
                    (steps, length, "loss_error", float(measured.error[model])),
                    (steps, length, "baseline", float(measured.baseline[model])),
                ]
    limit = loss_at_infinity(ensemble, tasks, runs[0].evaluation)
    if limit is not None:
        for model, run in enumerate(runs):
            rows[model] += [
                (run.training.steps, NO_LENGTH, "limit", float(limit.loss[model])),
                (run.training.steps, NO_LENGTH, "limit_error", float(limit.error[model])),
            ]
    return [
        Result(run, metrics_frame(run, rows[model]), ensemble.stack.weights(model))
        for model, run in enumerate(runs)
    ]


def machine_words(device: str | None) -> str:
    """The device on which runs are trained, in words."""
    chosen = choose_device(device)
    if chosen.type == "cuda":
        return torch.cuda.get_device_name(chosen)
    return f"{torch.get_num_threads()} threads of a CPU ({platform.machine()})"


def _machine(device: torch.device, models: int) -> dict[str, object]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": f"{device.type} ({name})", "models_in_ensemble": models}
