"""Door: tasks by name, with their knobs, and languages of one's own."""

import json
import random
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

import lengthwise as lw
from fuzz_doors.door import Door, require
from fuzz_doors.values import TEXTS, mostly
from lengthwise.tasks import PREDICTION_TASKS, TASKS, Task

KINDS = {**TASKS, **PREDICTION_TASKS}
WITH_KNOBS = [name for name, kind in KINDS.items() if fields(kind)]  # pyright: ignore[reportArgumentType]
SMALL = 64
"""Tasks with at most so many symbols, and strings of at most so many, are drawn from."""


def draw(source: random.Random) -> tuple[str, Any, dict[str, Any]]:
    """What is asked for, a name, and knobs."""
    if source.random() < 0.2:
        name = mostly(source, ["mine", "my-own", "Mine", "a--b", "simple", "tomita-1", *TEXTS], 0.1)
        expression = mostly(source, ["(ab)*", "a*b", "(a", "", "a|b", "()"], 0.3)
        letters = (
            {"letters": mostly(source, ["ab", "abc", "", "aa", "("], 0.3)} if source.random() < 0.5 else {}
        )
        return "language", name, {"expression": expression, **letters}
    name = source.choice([*WITH_KNOBS * 3, *KINDS])
    if source.random() < 0.1:
        name = source.choice([name[:-1], name.upper(), *TEXTS, None, 3, ["simple"]])
    known = (
        [one.name for one in fields(KINDS[name])] if isinstance(name, str) and name in KINDS else ["omega"]
    )  # pyright: ignore
    good = [1, 2, 3, 0.5, 8, "markov", "uniform", "ab", "(ab)*"]
    knobs = {one: mostly(source, good, 0.6) for one in known if source.random() < 0.6}
    if source.random() < 0.1:
        knobs[source.choice(["x", "omga", "perod", "", "a b"])] = 1
    return "task", name, knobs


def enter(given: tuple[str, Any, dict[str, Any]], folder: Path) -> None:
    """A task is refused, or strings can be drawn from it."""
    kind, name, knobs = given
    if kind == "language":
        before = dict(PREDICTION_TASKS)
        try:
            task = lw.language(name, **knobs)
        finally:
            PREDICTION_TASKS.clear()
            PREDICTION_TASKS.update(before)
    else:
        task = lw.task(name, **knobs)
    require(len(task.alphabet) == task.vocabulary >= 1, "an alphabet of", task.vocabulary)
    require(isinstance(task.theory.statement, str) and hash(task) is not None, "no theory")
    require(json.loads(json.dumps(task.knobs)) == task.knobs, "knobs that are no JSON", task.knobs)
    length, random_numbers = task.shortest, torch.Generator().manual_seed(0)
    if length > SMALL or task.vocabulary > SMALL:
        return
    if isinstance(task, Task):
        strings = task.sample(2, length, random_numbers)
        require(
            strings.shape == (2, length) and int(strings.max()) < task.vocabulary, "strings", strings.shape
        )
        require(task.target(strings).shape == (2, task.outputs), "targets", task.target(strings).shape)
    else:
        examples = task.sample(2, length, length, random_numbers)
        require(int(examples.tokens.max()) < task.vocabulary, "tokens beyond the vocabulary")


DOOR = Door(
    name="knobs", about="tasks by name, with their knobs", share=8, seconds=60.0, draw=draw, enter=enter
)
