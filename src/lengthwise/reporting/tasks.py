"""Tasks in words and as a table."""

from collections.abc import Iterable
from typing import Any

from rich.table import Table

from lengthwise.crasp import library
from lengthwise.reporting.library import entry_data, plain_table
from lengthwise.tasks import Task


def tasks_table(tasks: Iterable[Task]) -> Table:
    """The tasks that can be trained, with their knobs and what theory says of each."""
    table = plain_table("Tasks to train on")
    table.add_column("name", no_wrap=True)
    table.add_column("knobs (default)", no_wrap=True)
    table.add_column("what theory says", ratio=1)
    for task in tasks:
        theory = task.theory
        knobs = "\n".join(f"--{name} ({knob(value)})" for name, value in task.knobs.items())
        member = {True: ", in C-RASP", False: ", not in C-RASP", None: ""}[theory.in_crasp]
        form = f"period {theory.period}, locality {theory.locality}{member}"
        table.add_row(task.name, knobs, f"{form}; {theory.statement}", end_section=True)
    return table


def task_data(task: Task) -> dict[str, Any]:
    """A task as plain data, with the keys that scripts rely on; with what the library knows of it, if it has
    an entry of this name.
    """
    known = entry_data(library.named(task.name)) if task.name in library.names() else {"program": None}
    return known | {
        "name": task.name,
        "knobs": task.knobs,
        "period": task.theory.period,
        "locality": task.theory.locality,
        "in_crasp": task.theory.in_crasp,
        "statement": task.theory.statement,
        "trainable": True,
    }


def subject(task: Task) -> str:
    """The task and its knobs, as the subject of a sentence; knobs at their default are left out, but for
    the first.
    """
    first, *others = task.knobs.items()
    default = type(task)().knobs
    told = [first, *((name, value) for name, value in others if value != default[name])]
    return f"{task.title} with " + " and ".join(f"{name} = {knob(value)}" for name, value in told)


def knob(value: object) -> str:
    """A knob's value as a person would write it."""
    return f"{value:g}" if isinstance(value, float) else str(value)
