"""List the runs in a folder, see whether each is whole, and tell what else lies there. Every file is read and
compared with its checksum.

With --repair, what is damaged or does not belong there is moved to .quarantine/TIME in the store, with a note
that says why; nothing is deleted. Sweeps then train again what was moved.

The exit status is 0 if all is well or was repaired, 1 if something is wrong, 2 for a mistake in the command.
"""

import json as json_module
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from lengthwise.experiments.audit import audit, repair, store_in
from lengthwise.reporting.stores import audit_json, audit_notes, fault_lines, runs_tables

WRONG = 1
"""The exit status when something is wrong and was not repaired."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise runs``."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """A store of runs, or the output folder of a command, which has one in it."""
    repair: bool = False
    """Set aside what is wrong; refused while another process trains into the folder."""
    json: bool = False
    """Print one JSON document instead of a table."""
    seed: int = 0
    """Taken by every command that prints a result; a list draws nothing."""


def run(command: Command) -> int:
    """Print what is there; the exit status."""
    store = store_in(command.folder)
    done, found = repair(store) if command.repair else (None, audit(store))
    if command.json:
        print(json_module.dumps(audit_json(store.folder, found, done), indent=2))
    else:
        console = Console(highlight=False, markup=False)
        for table in runs_tables(found.runs):
            console.print(table)
        for line in (*fault_lines(found, done), *audit_notes(store.folder, found, done)):
            console.print(line, soft_wrap=True)
    return WRONG if found.faults else 0
