"""Whether what is read of a run is what a run of its specification leaves."""

import pandas as pd
import torch
from torch import Tensor

from lengthwise.experiments import decoders, limits
from lengthwise.experiments.results import COLUMNS, NO_LENGTH
from lengthwise.experiments.run import Run

AT_EVERY_LENGTH = ("loss", "loss_error", "baseline")
AT_NO_LENGTH = ("limit", "limit_error")


def check_rows(run: Run, rows: pd.DataFrame) -> None:
    """Raise ``ValueError`` unless every row that is asked for is there, once, and no other."""
    if list(rows.columns) != list(COLUMNS):
        raise ValueError(
            f"its columns are {', '.join(map(str, rows.columns))}, expected {', '.join(COLUMNS)}"
        )
    if not (rows["run"] == run.id).all():
        raise ValueError("it has rows of another run")
    found = list(rows[["step", "test_length", "metric"]].itertuples(index=False, name=None))
    if len(set(found)) < len(found):
        raise ValueError("it has a row twice")
    training = {(step, length) for step, length, metric in found if metric == "training_loss"}
    steps = {step for step, _ in training}
    if not steps or max(steps) > run.training.steps or min(steps) < 1:
        raise ValueError(f"its steps are not those of a training of {run.training.steps} steps")
    expected = {(step, run.training.length, "training_loss") for step in steps}
    if run.family == "limit":
        last = run.training.steps
        expected |= {(last, at, metric) for at in run.test_lengths for metric in AT_EVERY_LENGTH}
        if any(metric in AT_NO_LENGTH for _, _, metric in found):
            expected |= {(last, NO_LENGTH, metric) for metric in AT_NO_LENGTH}
    else:
        expected |= {(step, at, "accuracy") for step in steps for at in run.test_lengths}
    for step, length, metric in sorted(expected.symmetric_difference(found)):
        said = "lacks" if (step, length, metric) in expected else "has"
        raise ValueError(f"it {said} the {metric} at step {step} and length {length}")


def check_weights(run: Run, weights: dict[str, Tensor]) -> None:
    """Raise ``ValueError`` unless names, shapes and type are those of the model."""
    roles = limits.roles_of(run) if run.family == "limit" else decoders.roles_of(run)
    if set(weights) != set(roles):
        raise ValueError(f"it has {', '.join(sorted(weights))}, expected {', '.join(sorted(roles))}")
    for name, role in roles.items():
        if weights[name].shape != torch.Size(role.shape) or weights[name].dtype != torch.float32:
            shape, kind = tuple(weights[name].shape), str(weights[name].dtype).removeprefix("torch.")
            raise ValueError(f"{name} is {kind} of shape {shape}, expected float32 of {tuple(role.shape)}")
