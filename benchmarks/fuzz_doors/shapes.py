"""Door: the data classes of models, trainings, evaluations and runs; constructions; weights in memory."""

import json
import random
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

import lengthwise as lw
from fuzz_doors.door import Door, require
from fuzz_doors.values import mostly
from lengthwise.experiments.run import run_from
from lengthwise.limit.constructions import CONSTRUCTIONS, named

GOOD: dict[str, list[Any]] = {
    "length": [3, 8],
    "lengths": [(4, 8), [9], range(4, 9)],
    "ends": [(8,), [8, 16], (3, 50)],
    "learning_rate": [1e-3, 1],
    "weight_decay": [0, 0.1],
    "regulariser": [0, 1e-4],
    "clip": [0, 1.0],
    "rounding": ["none", "tf32", "bfloat16"],
    "positions": ["none", "learned", "rotary", "alibi", "sinusoidal", "randomised", "relative"],
    "precision": [lw.Infinite(), lw.Finite(8)],
    "locality": [None, 1],
    "local_heads": [None, 1],
    "shortest": [None, 1, 3],
    "log_scaling": [True, False],
    "stop": [True, False],
    "bits": [1, 8, 0.5],
    "task": [lw.task("simple"), lw.task("tomita-1"), lw.task("modp")],
    "model": [lw.LimitModel(), lw.DecoderModel()],
    "training": [lw.Training(length=8), lw.DecoderTraining(length=8)],
    "evaluation": [None, lw.Evaluation(), lw.DecoderEvaluation()],
    "omega": [4.0],
}
KINDS: dict[str, Callable[..., Any]] = {
    "LimitModel": lw.LimitModel,
    "DecoderModel": lw.DecoderModel,
    "Training": lw.Training,
    "DecoderTraining": lw.DecoderTraining,
    "Evaluation": lw.Evaluation,
    "DecoderEvaluation": lw.DecoderEvaluation,
    "Finite": lw.Finite,
    "Run": lw.Run,
}
BASE = lw.Run(lw.task("simple"), lw.LimitModel(), lw.Training(length=8))
NUMBERS = [
    "0",
    "1",
    "2",
    "5",
    "-1",
    "1e9",
    "nan",
    "inf",
    "x",
    "",
    "0.5",
    "1" + "0" * 12,
    "9" * 5000,
    "1_0",
    " 3",
]


def draw(source: random.Random) -> tuple[str, dict[str, Any]]:
    """A kind of thing, and what it is made of."""
    kind = source.random()
    if kind < 0.12:
        name = source.choice([*CONSTRUCTIONS, "smple", ""])
        known = list(CONSTRUCTIONS[name][1]) if name in CONSTRUCTIONS else ["omega"]
        parts = [f"{one}={source.choice(NUMBERS)}" for one in known if source.random() < 0.7]
        if source.random() < 0.2:
            parts.append(source.choice(["x=1", "=", "omega", ",", "\n=1", "knots==2"]))
        return "named", {"text": f"{name}:{','.join(parts)}" if parts or source.random() < 0.1 else name}
    if kind < 0.2:
        name = source.choice([*CONSTRUCTIONS])
        make, known = CONSTRUCTIONS[name]
        asked = {one: mostly(source, [1, 2, good], 0.5) for one, good in known.items()}
        return "construction", {"make": make, "asked": asked}
    if kind < 0.3:
        good = lw.constructions.simple_task(2, 2)
        weights = {name: mostly(source, [one], 0.15) for name, one in good.tensors().items()}
        if source.random() < 0.5:
            name = source.choice(list(weights))
            shape = [source.choice([0, 1, 2, 3]) for _ in range(source.randint(0, 4))]
            weights[name] = torch.ones(shape, dtype=source.choice([torch.float64, torch.float32, torch.long]))
        precision = mostly(source, GOOD["precision"], 0.1)
        return "weights", {
            "tensors": weights,
            "precision": precision,
            "activations": [mostly(source, ["relu", "heaviside"], 0.1)],
        }
    if kind < 0.42:
        changes = source.choices([*GOOD, "seed", "x", "omgea", "width", "period"], k=source.randint(1, 2))
        if source.random() < 0.3:
            return "vary", {
                change: mostly(source, [[1, 2], range(2), GOOD.get(change, [3])], 0.4) for change in changes
            }
        return "but", {change: mostly(source, GOOD.get(change, [1, 3]), 0.5) for change in changes}
    name = source.choice(list(KINDS))
    names = [one.name for one in fields(KINDS[name])]  # pyright: ignore[reportArgumentType]
    needed = {"length", "bits", "task", "model", "training"}
    chance = source.choice([0.1, 0.4])
    asked = {
        one: mostly(source, GOOD.get(one, [1, 2, 4, 8]), chance)
        for one in names
        if one in needed or source.random() < 0.5
    }
    return name, asked


def enter(given: tuple[str, dict[str, Any]], folder: Path) -> None:
    """It is refused, or it is what it says, comes back from JSON, and evaluates."""
    name, asked = given
    match name:
        case "named":
            _check_model(named(asked["text"]))
        case "construction":
            _check_model(asked["make"](**asked["asked"]))
        case "weights":
            _check_model(lw.LimitTransformer.from_tensors(**asked))
        case "but":
            _check_run(BASE.but(**asked))
        case "vary":
            for run in lw.vary(BASE, **asked):
                _check_run(run)
        case "Run":
            _check_run(lw.Run(**asked))
        case _:
            made = KINDS[name](**asked)
            require(made == made and hash(made) is not None and repr(made), "cannot be used", asked)


def _check_model(f: lw.LimitTransformer) -> None:
    output = f([0, 0])
    require(output.shape == (f.outputs,) and torch.isfinite(output).all(), "an output of", output)


def _check_run(run: lw.Run) -> None:
    told = json.loads(json.dumps(run.specification(), allow_nan=False))
    again = run_from(told)
    require(again == run and again.id == run.id, "another run from its specification:", again)
    require(len(run.test_lengths) >= 1, "no test lengths")


DOOR = Door(
    name="shapes",
    about="models, trainings, runs, constructions",
    share=13,
    seconds=60.0,
    draw=draw,
    enter=enter,
)
