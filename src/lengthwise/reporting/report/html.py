"""A report as one HTML page that holds everything: styles, scripts, data; it asks nothing of any network."""

import base64
import gzip
import hashlib
import json
import re
from html import escape
from importlib.resources import files
from typing import Any

import pandas as pd
from plotly.offline import get_plotlyjs

from lengthwise.reporting.report.parts import Block, Chart, Code, Facts, Report, RunsTable, Section, Table

SCRIPTS = ("theme.js", "plots.js", "limits.js", "decoders.js", "tables.js", "main.js")
"""The page's own scripts, in the order in which they are run, after plotly's."""

NUMBER = re.compile(r"[-+]?[\d.,]+(e[-+]?\d+)?%?|-|infinite")
"""Cells that begin with a number are kept on one line."""


def html_page(report: Report) -> str:
    """The whole page."""
    style = _file("style.css")
    scripts = [get_plotlyjs(), *map(_file, SCRIPTS)]
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            "style-src 'unsafe-inline'",  # plotly writes styles into the page
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return _filled(
        _file("index.html"),
        {
            "policy": policy,
            "title": escape(report.title),
            "answer": escape(report.answer),
            "under": escape(report.under),
            "style": style,
            "contents": "".join(_link(section) for section in report.sections),
            "sections": "\n".join(map(_section, report.sections)),
            "downloads": "".join(_download(name, table) for name, table in report.files.items()),
            "data": _json(_data(report)),
            "packed": "\n".join(_packed(name, table) for name, table in report.files.items()),
            "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
        },
    )


def _file(name: str) -> str:
    return (files("lengthwise.reporting.report") / "page" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _filled(template: str, parts: dict[str, str]) -> str:
    """The template with its parts, in one go: what a part says is never taken for another part's name."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def _json(data: Any) -> str:
    """Data that no script or comment can be read out of."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), default=lambda value: value.item())
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(report: Report) -> dict[str, Any]:
    charts = {chart.name: {"kind": chart.kind, **chart.data} for chart in report.blocks(Chart)}
    tables = {
        table.name: {"headings": table.headings, "rows": table.rows} for table in report.blocks(RunsTable)
    }
    return {"charts": charts, "tables": tables}


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV, every number to its last digit; a value that is not finite is told as such."""
    told = {
        name: table[name].map(repr)
        for name in ("value", "plateau", "low", "high", "worst_loss")
        if name in table
    }
    return table.assign(**told).to_csv(index=False)


def _packed(name: str, table: pd.DataFrame) -> str:
    """A file inside the page: compressed, so that the repeated specifications cost little."""
    packed = base64.b64encode(gzip.compress(csv_text(table).encode(), mtime=0)).decode()
    return f'<script type="application/gzip" data-file="{escape(name)}">{packed}</script>'


def _download(name: str, table: pd.DataFrame) -> str:
    rows = f"{len(table):,} row{'s' * (len(table) != 1)}"
    return (
        f'<button type="button" data-download="{escape(name)}">{escape(name)} <small>{rows}</small></button>'
    )


def _link(section: Section) -> str:
    return f'<li><a href="#{escape(section.name)}">{escape(section.heading)}</a></li>'


def _section(section: Section) -> str:
    name = escape(section.name)
    blocks = "\n".join(map(_block, section.blocks))
    return (
        f'<section id="{name}" aria-labelledby="{name}-heading">\n'
        f'<h2 id="{name}-heading">{escape(section.heading)}</h2>\n{blocks}\n</section>'
    )


def _block(block: Block) -> str:
    if isinstance(block, str):
        return f"<p>{escape(block)}</p>"
    if isinstance(block, Facts):
        entries = "".join(f"<dt>{escape(name)}</dt><dd>{escape(told)}</dd>" for name, told in block.entries)
        return f"<dl>{entries}</dl>"
    if isinstance(block, Code):
        lines = "\n".join(map(escape, block.lines))
        return f'<pre tabindex="0" role="region" aria-label="commands"><code>{lines}</code></pre>'
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Chart):
        return _chart(block)
    return _runs(block)


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(one)}</th>' if one else "<td></td>" for one in table.headings)
    rows = []
    for place, row in enumerate(table.rows):
        first, *others = row
        cells = "".join(
            f'<td class="number">{escape(cell)}</td>' if NUMBER.match(cell) else f"<td>{escape(cell)}</td>"
            for cell in others
        )
        strong = ' class="strong"' if place in table.strong else ""
        rows.append(f'<tr{strong}><th scope="row">{escape(first)}</th>{cells}</tr>')
    note = f'<p class="quiet">{escape(table.note[:1].upper() + table.note[1:])}.</p>' if table.note else ""
    title = escape(table.title)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">'
        f"<table><caption><span>{title}</span></caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{note}"
    )


def _chart(chart: Chart) -> str:
    name = escape(chart.name)
    return (
        f'<figure class="chart" data-chart="{name}" aria-labelledby="{name}-title">\n'
        f'<div class="bar"><h3 id="{name}-title">{escape(chart.title)}</h3>'
        f'<button type="button" data-png="{name}" aria-describedby="{name}-title">Save as PNG</button>'
        "</div>\n"
        f'<div class="controls"></div>\n'
        f'<div class="plot" role="img" aria-label="{escape(chart.alternative)}"></div>\n'
        f"<figcaption>{escape(chart.caption)}</figcaption>\n</figure>"
    )


def _runs(table: RunsTable) -> str:
    name, title = escape(table.name), escape(table.title)
    return (
        f'<div class="runs" data-table="{name}">\n'
        f'<div class="filter"><label for="{name}-filter">filter {title[:1].lower()}{title[1:]}</label>'
        f'<input id="{name}-filter" type="search" autocomplete="off" spellcheck="false" '
        f'aria-describedby="{name}-help">'
        f'<p id="{name}-help" class="quiet">Words that a row must have, or a name and its value, as in '
        f"<code>seed=3</code>. Headings sort.</p></div>\n"
        f'<p class="status" role="status"></p>\n'
        f'<div class="scroll tall" tabindex="0" role="region" aria-label="{title}">'
        f"<table><caption><span>{title}</span></caption><thead></thead><tbody></tbody></table></div>\n"
        f'<button type="button" class="more" hidden>Show more rows</button>\n</div>'
    )
