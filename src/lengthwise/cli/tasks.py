"""List the tasks, their knobs, and what theory says of each; and the library of C-RASP programs."""

import json as json_module
from dataclasses import dataclass

from rich.console import Console

from lengthwise.crasp import library
from lengthwise.reporting.library import entry_data, library_notes, library_table
from lengthwise.reporting.tasks import (
    decoder_task_data,
    decoder_tasks_notes,
    decoder_tasks_table,
    task_data,
    tasks_table,
)
from lengthwise.tasks import PREDICTION_TASKS, TASKS


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise tasks``."""

    json: bool = False
    """Print one JSON document instead of tables."""
    seed: int = 0
    """Taken by every command that prints a result; a list draws nothing."""


def run(command: Command) -> None:
    """Print the tables."""
    tasks = [kind() for kind in TASKS.values()]
    of_decoders = [kind() for kind in PREDICTION_TASKS.values()]
    entries = [library.named(name) for name in library.names()]
    if command.json:
        trained = [*map(task_data, tasks), *map(decoder_task_data, of_decoders)]
        untrained = [entry_data(entry) for entry in entries if entry.name not in PREDICTION_TASKS]
        print(json_module.dumps([*trained, *untrained], indent=2))
        return
    console = Console(highlight=False)
    console.print(tasks_table(tasks))
    console.print(decoder_tasks_table(of_decoders))
    for note in decoder_tasks_notes(of_decoders):
        console.print(note)
    console.print()
    console.print(library_table(entries))
    for note in library_notes(entries, library.FAMILIES):
        console.print(note)
