"""What a report is made of, whatever it is written as: sections of sentences, tables and charts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table as Printed
from rich.text import Text


@dataclass(frozen=True)
class Table:
    """A small table, all of which is shown; ``strong`` are the rows that stand out, ``note`` stands below."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    strong: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Facts:
    """Names with what they stand for."""

    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Code:
    """Lines that were typed."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Chart:
    """A picture: plain ``data`` that the page draws and moves, and the same as a figure.

    - ``kind``: which of the page's drawings;
    - ``alternative``: what it shows, for those who do not see it;
    - ``caption``: what stands below it on the page, ``printed`` below the figure;
    - ``figure``: the matplotlib figure, made when it is asked for; None if that of another chart has it.
    """

    name: str
    kind: str
    title: str
    alternative: str
    caption: str
    printed: str
    data: Mapping[str, Any]
    figure: Callable[[], Figure] | None


Cell = str | tuple[str, float | None]
"""A text, or a number as a text with the number itself; None is larger than every number."""


@dataclass(frozen=True)
class RunsTable:
    """Every run, one row each: the page sorts and filters it."""

    name: str
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The rows as they are read."""
        return tuple(tuple(cell if isinstance(cell, str) else cell[0] for cell in row) for row in self.rows)


Block = str | Table | Facts | Code | Chart | RunsTable
"""A text is a paragraph."""


@dataclass(frozen=True)
class Section:
    """A part of the report under a heading; ``name`` is its anchor."""

    name: str
    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Report:
    """A whole report.

    - ``answer``: what the runs have shown, in a sentence or a few;
    - ``under``: how many runs, seeds and settings it rests on;
    - ``files``: tables to be downloaded, by name;
    - ``found``: the same for scripts.
    """

    title: str
    answer: str
    under: str
    sections: tuple[Section, ...]
    files: Mapping[str, pd.DataFrame]
    found: Mapping[str, Any] = field(default_factory=dict)

    def blocks(self, kind: type[Any]) -> list[Any]:
        """All blocks of one kind, in order."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, kind)]


def from_printed(printed: Printed) -> Table:
    """A table that was made for a terminal."""
    columns = [[_cell(cell) for cell in column.cells] for column in printed.columns]
    return Table(
        _plain(printed.title or ""),
        tuple(_plain(column.header) for column in printed.columns),
        tuple(zip(*columns, strict=True)),
        _plain(printed.caption or ""),
        frozenset(place for place, row in enumerate(printed.rows) if row.style),
    )


def _cell(cell: object) -> str:
    """A cell of one line; a second line of its stands in parentheses."""
    first, _, second = _text(cell).partition("\n")
    joined = f"{first} ({second})" if second else first
    return " ".join(joined.split())


def _plain(cell: object) -> str:
    return " ".join(_text(cell).split())


def _text(cell: object) -> str:
    return (cell if isinstance(cell, Text) else Text.from_markup(str(cell))).plain


def several(words: Sequence[str]) -> str:
    """Words as a list in a sentence."""
    return " and ".join([*([", ".join(words[:-1])] if len(words) > 1 else []), *words[-1:]])
