"""The reference of the documentation is complete: every public name, every command, every flag."""

import importlib
import re

import command_reference
import fetches
import pytest
from run_blocks import ROOT, run_command

import lengthwise as lw
from lengthwise import cli

DIRECTIVE = re.compile(r"^\.\. auto\w+:: (\S+)$", re.MULTILINE)


def _documented(page: str) -> set[str]:
    return set(DIRECTIVE.findall((ROOT / "docs/reference" / page).read_text()))


def test_every_public_name_is_in_the_reference():
    told = {name.removeprefix("lengthwise.").removeprefix("limit.") for name in _documented("api.md")}
    assert told == set(lw.__all__) - {"__version__", "crasp"}
    assert "`lengthwise.__version__`" in (ROOT / "docs/reference/api.md").read_text()


def test_every_public_name_of_crasp_is_in_the_reference():
    told = {name.removeprefix("lengthwise.crasp.") for name in _documented("crasp-api.md")}
    assert told == set(lw.crasp.__all__)


@pytest.mark.parametrize("name", [name for name in lw.__all__ if not name.startswith("_")])
def test_every_public_name_says_what_it_is(name):
    assert (getattr(lw, name).__doc__ or "").strip()


def _words():
    """Every command line that has a help of its own."""
    for name in cli.COMMANDS:
        group = importlib.import_module(f"lengthwise.cli.{name}")
        for word in getattr(group, "COMMANDS", ()):
            yield f"{name} {word}"
        if not hasattr(group, "COMMANDS"):
            yield name
    yield from (
        "advise simple",
        "advise modp",
        "advise kgram",
        "train modp",
        "train parity",
        "train language",
    )


def test_every_flag_that_help_tells_is_in_the_reference():
    reference = command_reference.reference()
    sections = dict(
        re.findall(r"^## `lengthwise (.*?)`$(.*?)(?=^## |\Z)", reference, re.MULTILINE | re.DOTALL)
    )
    assert set(sections) >= set(cli.COMMANDS)
    for words in _words():
        told = run_command(["lengthwise", *words.split(), "--help"], words)
        flags = set(re.findall(r"^[│ ] {1,2}(--[\w-]+)", told, re.MULTILINE))
        section = sections[words if words in sections else words.split()[0]]
        assert flags == flags & set(re.findall(r"--[\w-]+", section)), words
        assert flags or "[OPTIONS]" not in told, words


def test_what_a_page_would_fetch_is_found(tmp_path):
    """The build of the site fails on it; see docs/extensions/offline.py."""
    page = """<link rel="stylesheet" href="_static/a.css"><link rel="canonical" href="https://a.example/">
    <a href="https://b.example/">a link</a><img src="figure.png"><script src="_static/c.js"></script>"""
    assert fetches.fetched(page) == []
    worse = page + '<script async src="https://d.example/mathjax.js"></script><img src="//e.example/f.png">'
    assert fetches.fetched(worse) == ["https://d.example/mathjax.js", "//e.example/f.png"]
    (tmp_path / "a.css").write_text("a { background: url('figure.png'); } /* https://b.example */")
    (tmp_path / "index.html").write_text(page)
    assert fetches.of_site(tmp_path) == []
    (tmp_path / "in").mkdir()
    (tmp_path / "in/b.css").write_text(
        "a { background: url( '//c.example/f.png' ) } @import 'http://d.example/d.css';"
    )
    (tmp_path / "in/b.html").write_text(worse)
    assert fetches.of_site(tmp_path) == [
        "in/b.html fetches https://d.example/mathjax.js",
        "in/b.html fetches //e.example/f.png",
        "in/b.css fetches //c.example/f.png",
        "in/b.css fetches http://d.example/d.css",
    ]
