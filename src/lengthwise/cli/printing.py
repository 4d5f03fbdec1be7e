"""Where files were written, as every command tells it."""

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from lengthwise._messages import printable


def print_files(console: Console, files: Mapping[str, Path | str]) -> None:
    """A line for each file; a name is shown as it is, whatever a terminal or rich would make of it."""
    width = max((len(name) for name in files), default=0)
    for name, path in files.items():
        line = f"{name:>{width}}: {printable(path)}"
        console.print(line, highlight=False, markup=False, emoji=False, soft_wrap=True)
