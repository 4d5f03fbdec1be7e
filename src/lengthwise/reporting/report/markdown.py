"""A report as Markdown for a repository, with its figures and tables beside it."""

import re
from pathlib import Path

from lengthwise._files import make_folder, replacing
from lengthwise.reporting.canvas import save_figure
from lengthwise.reporting.report.html import csv_text
from lengthwise.reporting.report.parts import Block, Chart, Code, Facts, Report, RunsTable, Table

MOST_ROWS = 400
"""A table of runs with more rows is not written out; the CSV beside it has them."""


def write_markdown(report: Report, folder: Path, name: str = "report") -> list[Path]:
    """Write NAME.md, and beside it a PNG a figure and a CSV a table; the paths, the page first."""
    make_folder(folder)
    written = []
    for file, table in report.files.items():
        path = folder / f"{name}-{file}"
        with replacing(path) as temporary:
            temporary.write_text(csv_text(table), encoding="utf-8")
        written.append(path)
    for chart in report.blocks(Chart):
        if chart.figure is not None:
            path = folder / f"{name}-{chart.name}.png"
            save_figure(chart.figure(), path)
            written.append(path)
    page = folder / f"{name}.md"
    with replacing(page) as temporary:
        temporary.write_text(markdown_text(report, name), encoding="utf-8")
    return [page, *written]


def markdown_text(report: Report, name: str) -> str:
    """The page."""
    lines = [f"# {plain(report.title)}", "", f"**{plain(report.answer)}**", "", f"{plain(report.under)}.", ""]
    for section in report.sections:
        lines += [f"## {plain(section.heading)}", ""]
        for block in section.blocks:
            said = _block(block, report, name)
            lines += [*said, ""] if said else []
    files = ", ".join(f"[{file}]({name}-{file})" for file in report.files)
    return "\n".join([*lines, f"Every row of every run: {files}.", ""])


def plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~$#])", r"\\\1", text)


def _block(block: Block, report: Report, name: str) -> list[str]:
    if isinstance(block, str):
        return [plain(block)]
    if isinstance(block, Facts):
        return [f"- *{plain(key)}*: {plain(told)}" for key, told in block.entries]
    if isinstance(block, Code):
        return [f"    {' '.join(line.split())}" for line in block.lines]
    if isinstance(block, Chart):
        if block.figure is None:
            return []
        return [f"![{plain(block.title)}]({name}-{block.name}.png)", "", plain(block.printed)]
    if isinstance(block, Table):
        strong = [
            tuple(f"**{plain(cell)}**" if cell else "" for cell in row)
            if place in block.strong
            else tuple(map(plain, row))
            for place, row in enumerate(block.rows)
        ]
        note = ["", f"{plain(block.note[:1].upper() + block.note[1:])}."] if block.note else []
        return [f"*{plain(block.title)}*", "", *_rows(block.headings, strong), *note]
    return _runs(block, report, name)


def _runs(table: RunsTable, report: Report, name: str) -> list[str]:
    if len(table.rows) > MOST_ROWS:
        file = next(file for file in report.files if file != "measurements.csv")
        return [f"{len(table.rows):,} runs, one row each: [{file}]({name}-{file})."]
    return _rows(table.headings, [tuple(map(plain, row)) for row in table.texts()])


def _rows(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    told = [tuple(map(plain, headings)), ("---",) * len(headings), *rows]
    return [f"| {' | '.join(row)} |" for row in told]
