"""The reference of the documentation is complete: every public name, every command, every flag."""

import fnmatch
import importlib
import re

import command_reference
import fetches
import pandas as pd
import pytest
from run_blocks import ROOT, run_command

import lengthwise as lw
from lengthwise import cli
from lengthwise.experiments import audit, store

SCHEMA = (ROOT / "docs/reference/schema.md").read_text()
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
    assert "None" not in reference  # which nobody types
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


def test_every_command_with_json_has_its_keys_in_the_schema():
    told = set(re.findall(r"`lengthwise ([\w ]+)`", " ".join(re.findall(r"^### .*$", SCHEMA, re.MULTILINE))))
    with_json = {
        words
        for words in _words()
        if any(flag.startswith("--json") for flag, _ in command_reference.flags(f"lengthwise {words}"))
    }
    assert told == {words for words in with_json if words.split()[0] == "crasp" or " " not in words}


def _rows(heading):
    """The first two columns of the tables of a section of the schema, but for their headings."""
    section = SCHEMA.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [row.strip("|").split("|") for row in section.splitlines() if row.startswith("| `")]
    return [(re.findall(r"`([^`]+)`", row[0]), row[1].strip()) for row in rows]


@pytest.fixture(scope="module")
def left(tmp_path_factory, one_thread):
    """A folder with all that commands leave of a limit transformer, and one of a decoder."""
    folder = tmp_path_factory.mktemp("left")
    small = ["--steps", "3", "--output"]
    run_command(["lengthwise", "train", "simple", "--omega", "2", *small, str(folder / "limit")], "")
    decoder = ["lengthwise", "train", "parity", "--sequences", "20", *small, str(folder / "decoder")]
    run_command(decoder, "")
    report = ["lengthwise", "report", str(folder / "limit"), "--format", "both", "--theory", "0"]
    run_command(report, "")
    return folder


def test_the_columns_of_the_table_are_those_of_the_schema(left):
    rows = _rows("The table of results")
    plain = [(name, kind) for names, kind in rows for name in names if "*" not in name and name != "stage"]
    parts = [name for names, _ in rows for name in names if "*" in name]
    metrics = re.search(r"^\| `metric` .*$", SCHEMA, re.MULTILINE)[0]
    for folder in ("limit", "decoder"):
        table = pd.read_parquet(left / folder / "results.parquet")
        kinds = {"string": "str", "int64": "int64", "float64": "float64"}
        assert list(table.columns[:5]) == [name for name, _ in plain]
        assert [str(kind) for kind in table.dtypes.iloc[:5]] == [kinds[kind] for _, kind in plain]
        for name in table.columns[5:]:
            assert any(fnmatch.fnmatch(name, part) for part in parts), name
        for name in set(table["metric"]):
            assert f"`{name}`" in metrics


def test_the_files_of_folders_and_stores_are_those_of_the_schema(left):
    known = [name.rstrip("/") for names, _ in _rows("Folders") for name in names]
    own = {name.rstrip("/") for names, _ in _rows("A store") for name in names}
    for folder in ("limit", "decoder"):
        for path in (left / folder).iterdir():
            assert any(fnmatch.fnmatch(path.name, name) for name in known), path.name
        for path in (left / folder / "runs").iterdir():
            if path.name.startswith("."):
                assert path.name in own, path.name
            else:
                assert {file.name for file in path.iterdir()} == {n for n in own if n[0] != "."} - {
                    "reasons.json"
                }
    begun = {f"{start}*" for start in (store.WRITING, store.WRITTEN)}
    assert {audit.CHECKPOINTS, audit.QUARANTINE, ".claims", ".lock"} | begun == {
        name for name in own if name.startswith(".")
    }
