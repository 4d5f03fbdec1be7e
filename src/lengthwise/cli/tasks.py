"""List the tasks, their knobs, and what theory says of each."""

import json as json_module
from dataclasses import dataclass

from rich.console import Console

from lengthwise.reporting.tasks import tasks_table
from lengthwise.tasks import TASKS


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise tasks``."""

    json: bool = False
    """Print one JSON document instead of a table."""
    seed: int = 0
    """Taken by every command that prints a result; a list draws nothing."""


def run(command: Command) -> None:
    """Print the table."""
    tasks = [kind() for kind in TASKS.values()]
    if not command.json:
        Console().print(tasks_table(tasks))
        return
    listed = [
        {
            "name": task.name,
            "knobs": task.knobs,
            "period": task.theory.period,
            "locality": task.theory.locality,
            "in_crasp": task.theory.in_crasp,
            "statement": task.theory.statement,
        }
        for task in tasks
    ]
    print(json_module.dumps(listed, indent=2))
