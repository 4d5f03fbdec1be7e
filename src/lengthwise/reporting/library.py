"""The library of C-RASP programs in words and as a table."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.table import Table

from lengthwise.crasp import Program, text_of
from lengthwise.crasp.library import Entry, Family

ANSWERS = {True: "yes", False: "no", None: "unknown"}
SUITES = {"algorithmic": "algorithmic suite", "formal": "formal-language suite", None: "others"}


def plain_table(title: str) -> Table:
    """An empty table without frames, for long lists."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )


def library_table(entries: Iterable[Entry]) -> Table:
    """A row an entry, a section a suite: what it is, where it stands, and how deep its program is."""
    table = plain_table("Library of C-RASP programs: for languages, and for functions of words")
    table.add_column("name", no_wrap=True)
    table.add_column("what it is", ratio=1)
    for heading in ("C-RASP", "with\npositions"):
        table.add_column(heading, no_wrap=True)
    table.add_column("depth", justify="right")
    last = ""
    for entry in entries:
        # Parity, which is in both suites, stands with its neighbours.
        if entry.suite not in (last, "both"):
            last = entry.suite
            table.add_section()
            table.add_row(f"[italic]{SUITES[last]}")
        depth = "-" if entry.depth is None else str(entry.depth)
        table.add_row(entry.name, entry.says, ANSWERS[entry.in_crasp.answer], _with_positions(entry), depth)
    return table


def _with_positions(entry: Entry) -> str:
    """Whether a program does it that may use positions; if its program does, which it uses."""
    told = [] if entry.program is None else uses(entry.program)
    return "\n".join(told) or ANSWERS[entry.in_positional.answer]


def uses(program: Program) -> list[str]:
    """Which positions a program uses, in words."""
    used = [("period", program.period, 1), ("distance", program.locality, 0)]
    return [f"{what} {value}" for what, value, none in used if value > none]


def library_notes(entries: Sequence[Entry], families: Iterable[Family]) -> list[str]:
    """What a reader of the table must know beside it."""
    only_last = [
        entry.name
        for entry in entries
        if entry.in_crasp_eos is not None and entry.in_crasp.answer != entry.in_crasp_eos.answer
    ]
    told = ", ".join(f"{family.name}-N ({family.about})" for family in families)
    return [
        "Words are accepted at their last letter. Accepted at an end mark, these are not in C-RASP: "
        f"{', '.join(only_last)}.",
        "Of finitely many inputs, so that C-RASP has them in any case: "
        f"{', '.join(entry.name for entry in entries if entry.finite)}.",
        f"With other numbers: {told}.",
        "A name whose program has a depth stands for it in lengthwise crasp: lengthwise crasp check dyck-2",
    ]


def standing(entry: Entry) -> str:
    """Where an entry stands, with what shows it, as one line."""
    without, positional = (
        f"{ANSWERS[one.answer]} ({one.method})" for one in (entry.in_crasp, entry.in_positional)
    )
    if without == positional:
        return f"C-RASP and C-RASP[periodic,local]: {without}"
    return f"C-RASP: {without}; C-RASP[periodic,local]: {positional}"


def entry_data(entry: Entry) -> dict[str, Any]:
    """An entry as plain data, with the keys that scripts rely on."""
    at_end = entry.in_crasp_eos
    return {
        "name": entry.name,
        "knobs": {},
        "period": entry.period,
        "locality": entry.locality,
        "in_crasp": entry.in_crasp.answer,
        "in_crasp_eos": None if at_end is None else at_end.answer,
        "in_crasp_positional": entry.in_positional.answer,
        "statement": standing(entry),
        "trainable": False,
        "title": entry.title,
        "says": entry.says,
        "suite": entry.suite,
        "alphabet": entry.alphabet,
        "regex": entry.regex,
        "finite": entry.finite,
        "depth": entry.depth,
        "fragment": entry.fragment,
        "program": None if entry.program is None else text_of(entry.program),
    }
