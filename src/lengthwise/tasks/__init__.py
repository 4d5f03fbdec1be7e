"""What is learned: a sampler, a target, a loss, and what theory says of each task."""

from dataclasses import fields
from typing import Any

from lengthwise._messages import nearest, shown
from lengthwise.tasks._interface import CountTask, SequentialTask, StationaryTask, Task, Theory
from lengthwise.tasks._prediction import Examples, PredictionTask
from lengthwise.tasks.algorithmic import ALGORITHMIC
from lengthwise.tasks.formal import FORMAL, LanguageTask, define
from lengthwise.tasks.kgram import KGramTask
from lengthwise.tasks.modp import ModPTask
from lengthwise.tasks.simple import SimpleTask

__all__ = [
    "ALGORITHMIC",
    "FORMAL",
    "PREDICTION_TASKS",
    "TASKS",
    "CountTask",
    "Examples",
    "KGramTask",
    "LanguageTask",
    "ModPTask",
    "PredictionTask",
    "SequentialTask",
    "SimpleTask",
    "StationaryTask",
    "Task",
    "Theory",
    "language",
    "task",
]

TASKS: dict[str, type[Task]] = {kind.name: kind for kind in (SimpleTask, ModPTask, KGramTask)}
"""The tasks of limit transformers, by the names that users type."""

PREDICTION_TASKS: dict[str, type[PredictionTask]] = {
    **ALGORITHMIC,
    **FORMAL,
    LanguageTask.name: LanguageTask,
}
"""The tasks of decoders, likewise: two suites, any regular language, and what ``language`` has added."""


def task(name: str, **knobs: object) -> Any:
    """The task of this name, with these knobs: ``task("simple", omega=8)``, ``task("copy-unique")``.

    A ``Task`` or a ``PredictionTask``, as the name says.
    """
    kind = (TASKS.get(name) or PREDICTION_TASKS.get(name)) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"there is no task {shown(name)}{nearest(name, [*TASKS, *PREDICTION_TASKS])}")
    known = [field.name for field in fields(kind)]  # pyright: ignore[reportArgumentType]
    for knob in knobs:
        if knob not in known:
            raise ValueError(f"task {name!r} has no knob {shown(knob)}{nearest(knob, known)}")
    return kind(**knobs)


def language(name: str, expression: str, letters: str = "") -> LanguageTask:
    """Add a regular language to the tasks: after ``language("my-language", "(ab)*c", "abc")`` its name works
    wherever that of a task does. Its alphabet is that of the expression, unless ``letters`` has more.
    """
    kind = define(name, expression, letters)
    if name in TASKS or PREDICTION_TASKS.setdefault(name, kind) is not kind:
        raise ValueError(f"there is already a task named {name!r}: take another name")
    return kind()
