"""Tasks in words and as a table."""

from collections.abc import Iterable

from rich.table import Table

from lengthwise.tasks import Task


def tasks_table(tasks: Iterable[Task]) -> Table:
    """The tasks, with their knobs and what theory says of each."""
    table = Table(show_lines=True)
    for heading in ("task", "knobs (default)", "period", "locality", "C-RASP"):
        table.add_column(heading, no_wrap=True)
    table.add_column("what theory says", ratio=1)
    for task in tasks:
        theory = task.theory
        knobs = "\n".join(f"--{name} ({knob(value)})" for name, value in task.knobs.items())
        answer = {True: "yes", False: "no", None: "-"}[theory.in_crasp]
        table.add_row(task.name, knobs, str(theory.period), str(theory.locality), answer, theory.statement)
    return table


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
