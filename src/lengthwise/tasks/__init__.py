"""What is learned: a sampler, a target, a loss, and what theory says of each task."""

import difflib
from dataclasses import fields

from lengthwise.tasks._interface import CountTask, Task, Theory
from lengthwise.tasks.simple import SimpleTask

__all__ = ["TASKS", "CountTask", "SimpleTask", "Task", "Theory", "task"]

TASKS: dict[str, type[Task]] = {kind.name: kind for kind in (SimpleTask,)}
"""Every task by the name that users type."""


def task(name: str, **knobs: object) -> Task:
    """The task of this name, with these knobs: ``task("simple", omega=8)``."""
    if name not in TASKS:
        raise ValueError(f"there is no task {name!r}{_nearest(name, list(TASKS))}")
    known = [field.name for field in fields(TASKS[name])]  # pyright: ignore[reportArgumentType]
    for knob in knobs:
        if knob not in known:
            raise ValueError(f"task {name!r} has no knob {knob!r}{_nearest(knob, known)}")
    return TASKS[name](**knobs)


def _nearest(word: str, choices: list[str]) -> str:
    close = difflib.get_close_matches(word, choices, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(choices)}"
