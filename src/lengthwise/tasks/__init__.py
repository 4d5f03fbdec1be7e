"""What is learned: a sampler, a target, a loss, and what theory says of each task."""

from dataclasses import fields

from lengthwise._messages import nearest
from lengthwise.tasks._interface import CountTask, SequentialTask, Task, Theory
from lengthwise.tasks.kgram import KGramTask
from lengthwise.tasks.modp import ModPTask
from lengthwise.tasks.simple import SimpleTask

__all__ = [
    "TASKS",
    "CountTask",
    "KGramTask",
    "ModPTask",
    "SequentialTask",
    "SimpleTask",
    "Task",
    "Theory",
    "task",
]

TASKS: dict[str, type[Task]] = {kind.name: kind for kind in (SimpleTask, ModPTask, KGramTask)}
"""Every task by the name that users type."""


def task(name: str, **knobs: object) -> Task:
    """The task of this name, with these knobs: ``task("simple", omega=8)``."""
    if name not in TASKS:
        raise ValueError(f"there is no task {name!r}{nearest(name, list(TASKS))}")
    known = [field.name for field in fields(TASKS[name])]  # pyright: ignore[reportArgumentType]
    for knob in knobs:
        if knob not in known:
            raise ValueError(f"task {name!r} has no knob {knob!r}{nearest(knob, known)}")
    return TASKS[name](**knobs)
