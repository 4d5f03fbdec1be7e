"""C-RASP programs, traces and verdicts, as tables, pictures and sentences."""

from dataclasses import asdict, is_dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from rich.table import Table
from rich.text import Text

from lengthwise._messages import printable
from lengthwise.crasp import Family, Program, Trace, Verdict, text_of
from lengthwise.reporting.canvas import GREY, STYLE, new_figure

WIDEST = 40
"""Up to so many positions are shown side by side in a terminal."""

LONGEST_TITLE = 60


def program_measures(program: Program) -> dict[str, Any]:
    """What a program is, as plain data."""
    return {
        "alphabet": list(program.alphabet),
        "mode": program.mode,
        "outputs": list(program.outputs),
        "depth": program.depth,
        "rank": program.rank,
        "size": program.size,
        "counts": len(program.counts),
        "period": program.period,
        "locality": program.locality,
        "precision": program.precision,
        "fragment": program.fragment,
    }


def program_table(program: Program) -> Table:
    """The same as a table."""
    meanings = {
        "alphabet": "letters",
        "mode": "where a word is accepted: at its last letter, or at an end mark",
        "outputs": "what is computed",
        "depth": "how deeply counts are nested",
        "rank": "how deeply comparisons are nested",
        "size": "nodes, bits of numbers, distances",
        "counts": "counts over positions",
        "period": "after how many positions it repeats",
        "locality": "how far it looks back by itself",
        "precision": "the largest coefficient or constant",
        "fragment": "the smallest class that its form shows",
    }
    table = Table("measure", "value", "what it is")
    for name, value in program_measures(program).items():
        told = " ".join(value) if isinstance(value, list) else str(value)
        table.add_row(name, Text(told), meanings[name])
    return table


def trace_table(found: Trace) -> Table:
    """A row a part, a column a position (the last ones, if there are many)."""
    shown = slice(max(0, len(found.letters) - WIDEST), None)
    table = Table(
        title=f"last {WIDEST} positions" if shown.start else None, title_justify="left", padding=(0, 0)
    )
    table.add_column("", overflow="fold")
    for letter in found.letters[shown]:
        table.add_column(Text(printable(letter or "$")), justify="right")
    for part, counts, values in zip(found.parts, found.counts, found.values, strict=True):
        cells = [str(value) if counts else ("+" if value else ".") for value in values[shown]]
        table.add_row(Text(_short(part)), *cells)
    return table


def _unread(text: str) -> str:
    """A text that matplotlib shows as it is: between two $ it would read mathematics."""
    return printable(text).replace("$", r"\$")


def trace_figure(found: Trace) -> Figure:
    """Truth values as cells, counts as numbers in them."""
    rows, columns = len(found.parts), len(found.letters)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(min(18.0, 3.5 + 0.28 * columns), 0.8 + 0.3 * rows)
        axes = figure.subplots()
        shade = np.full((rows, columns), np.nan)
        for row, (counts, values) in enumerate(zip(found.counts, found.values, strict=True)):
            if not counts:
                shade[row] = values
            for column, value in enumerate(values):
                if counts and columns <= 60:
                    axes.text(column, row, str(value), ha="center", va="center", fontsize=7, color=GREY)
        axes.imshow(shade, cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
        axes.set_yticks(
            range(rows), [_unread(_short(part)) for part in found.parts], fontsize=7, family="monospace"
        )
        axes.set_xticks(range(columns), [_unread(letter or "$") for letter in found.letters], fontsize=7)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    return figure


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TITLE else f"{text[: LONGEST_TITLE - 3]}..."


def plain(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain data, with the keys that scripts rely on."""
    return {
        "answer": verdict.answer,
        "witness": _plain(verdict.witness),
        "method": verdict.method,
        "details": _plain(verdict.details),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Program):
        return text_of(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def verdict_words(verdict: Verdict, asked: str) -> str:
    """A verdict in words, with its witness."""
    answer = {True: "yes", False: "no", None: "unknown"}[verdict.answer]
    lines = [f"{asked}: {answer} ({verdict.method})"]
    witness = verdict.witness
    if isinstance(witness, Program):
        lines.append(text_of(witness).rstrip())
    elif isinstance(witness, Family):
        count = len(witness.loops)
        lines.append(
            f"pairs x u^N w1 v and x u^N w2 v, u = u_1^(c^{count - 1}) ... u_{count}: "
            f"x = {witness.x!r}, u_1.. = {', '.join(map(repr, witness.loops))}, w1 = {witness.w1!r}, "
            f"w2 = {witness.w2!r}, v = {witness.v!r}; one of each pair is in the language, and every program "
            "gives both the same answer once c, and then N, are large enough"
        )
    elif witness is not None:
        lines.append(f"word: {word_text(witness)}")
    told = {name: value for name, value in verdict.details.items() if isinstance(value, str | int | float)}
    if told:
        lines.append(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in told.items()))
    return "\n".join(lines)


def word_text(witness: Any) -> str:
    """A word in quotes; one that has letters of several characters, or repetitions, in pieces."""
    if isinstance(witness, str):
        return repr(witness)
    parts = []
    for block in witness:
        letters, repetitions = block if isinstance(block, tuple) else (block, 1)
        text = letters if isinstance(letters, str) else "".join(map(str, letters))
        parts.append(text if repetitions == 1 else f"({text})^{repetitions}")
    return " ".join(parts)
