"""``lengthwise crasp learn``: targets of each kind, what is said of the result, one line for a mistake."""

import io
import json

import pytest
from rich.console import Console
from test_main import fails

import lengthwise.cli.crasp.learn as command
from lengthwise.cli import main
from lengthwise.crasp import compile_regex, parse

KEYS = {
    "found",
    "known",
    "proved",
    "checked",
    "program",
    "nearest",
    "size",
    "method",
    "errors",
    "counterexamples",
    "examples",
    "rounds",
    "moves",
    "seconds",
    "verdict",
    "files",
}


@pytest.fixture
def told(capsys, tmp_path):
    """Runs the command, and returns the JSON document that is all it prints."""

    def run(*arguments):
        assert main(["crasp", "learn", *arguments, "--output", str(tmp_path / "out"), "--json"]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        found = json.loads(captured.out)
        assert set(found) == KEYS
        return found

    return run


def examples(folder, text):
    path = folder / "examples.tsv"
    path.write_text(text)
    return str(path)


def test_a_regular_expression(told, capsys, tmp_path):
    found = told("--regex", "1*", "--alphabet", "01")
    assert (found["found"], found["known"], found["proved"], found["method"]) == (
        True,
        "proved",
        True,
        "extraction",
    )
    program, dfa = parse(found["program"]), compile_regex("1*", "01")
    for word in ("", "1", "11", "0", "10", "01", "1" * 50, "1" * 50 + "0"):
        assert program(word) == dfa.accepts(word)
    path = tmp_path / "out" / "program.crasp"
    assert found["files"] == {"program": str(path)}
    assert path.read_text() == found["program"]
    assert (
        main(["crasp", "learn", "--regex", "1*", "--alphabet", "01", "--output", str(tmp_path / "out")]) == 0
    )
    out = capsys.readouterr().out
    assert out.startswith("found, and proved to accept exactly the language")
    assert found["program"].rstrip() in out
    assert str(path) in out


def test_a_language_without_a_program(told, capsys, tmp_path):
    found = told("--regex", "b*(ab*ab*)*")
    assert (found["found"], found["proved"], found["program"], found["files"]) == (False, False, None, {})
    assert found["verdict"]["answer"] is False
    assert not (tmp_path / "out" / "program.crasp").exists()
    assert main(["crasp", "learn", "--regex", "b*(ab*ab*)*", "--output", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("there is none (")
    # With positions it is not in the class either; (aa)* is.
    assert told("--regex", "(aa)*")["found"] is False
    assert told("--regex", "(aa)*", "--moduli", "2")["proved"] is True


def test_a_program(told):
    found = told('%alphabet "a"\\naccept = i % 2 == 0', "--moduli", "2", "--slots", "2")
    assert (found["found"], found["method"]) == (True, "search")
    assert found["checked"] == 60
    program = parse(found["program"])
    assert [program("a" * length) for length in (0, 1, 2, 3, 100, 101)] == [True, False] * 3


def test_examples(told, capsys, tmp_path):
    path = examples(tmp_path, "\t0\na\t1\nab\t1\nba\t0\n\nb\t0\nabb\t1\n")
    found = told("--examples", path)
    assert (found["found"], found["known"], found["proved"], found["checked"]) == (True, "fits", False, None)
    assert found["examples"] == 6
    program = parse(found["program"])
    labels = {"": False, "a": True, "ab": True, "ba": False, "b": False, "abb": True}
    assert {word: program(word) for word in labels} == labels
    assert told("--examples", path, "--seed", "5", "--alphabet", "abc")["program"].startswith(
        '%alphabet "a" "b" "c"'
    )
    assert main(["crasp", "learn", "--examples", path, "--output", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("found: fits all examples; no more is known\n")


def test_examples_that_do_not_fit(told, capsys, tmp_path):
    """No program of one rule without positions: b after a, at the end."""
    path = examples(tmp_path, "ab\t1\nb\t0\nba\t0\nbab\t1\nabb\t0\na\t0\naab\t1\nabbb\t0\nbaab\t1\nbb\t0\n")
    flags = ["--examples", path, "--seconds", "0.4", "--slots", "1"]
    found = told(*flags)
    assert (found["found"], found["known"], found["program"], found["files"]) == (
        False,
        "not found",
        None,
        {},
    )
    assert found["seconds"] < 1.5
    nearest = parse(found["nearest"])
    for word in found["errors"]:
        assert nearest(word) != (f"{word}\t1" in (tmp_path / "examples.tsv").read_text().split("\n"))
    assert main(["crasp", "learn", *flags, "--output", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("none found in this time, which does not say that there is none; the nearest is\n")
    assert "\nwrong on: '" in out


def test_progress_is_shown_on_a_terminal(capsys, tmp_path, monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(
        command, "Console", lambda stderr: Console(file=shown, force_terminal=True, width=120)
    )
    path = examples(tmp_path, "ab\t1\nb\t0\nba\t0\nbab\t1\nabb\t0\na\t0\naab\t1\nabbb\t0\nbaab\t1\nbb\t0\n")
    arguments = ["--examples", path, "--seconds", "1", "--slots", "1", "--output", str(tmp_path), "--json"]
    assert main(["crasp", "learn", *arguments]) == 0
    json.loads(capsys.readouterr().out)
    assert "changes tried" in shown.getvalue()
    assert "s left" in shown.getvalue()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give what to learn once"),
        (["dyck-1", "--regex", "a*"], "give what to learn once"),
        (["nosuchname"], "'nosuchname'"),
        (["--regex", "(a"], "column"),
        (["--regex", "ab", "--alphabet", "a"], "'b'"),
        (["--regex", "a*", "--seconds", "0"], "seconds must be positive, got 0"),
        (["--regex", "a*", "--seed", "-1"], "seed must be a whole number of at least 0"),
        (["--regex", "a*", "--slots", "0"], "slots must be from 1 to 100, got 0"),
        (["--regex", "a*", "--distances", "-3"], "distances must be from 0"),
        (["--regex", "a*", "--moduli", "1"], "moduli must be from 2"),
        (['accept = # "a" > 1', "--alphabet", "ab"], "a program has its own alphabet, a"),
        (['NEXT["a"] = "a"'], "predicts symbols"),
        (["--examples", "nofile"], "cannot read nofile"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in fails(capsys, "crasp", "learn", *arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no example but the empty word"),
        ("\t1\n", "no example but the empty word"),
        ("ab\t1\nab 0\n", "line 2: expected a word, a tab, and 1 or 0, got 'ab 0'"),
        ("ab\t1\n\nba\tyes\n", "line 4: expected a word, a tab, and 1 or 0"),
        ("ab\t1\nb\t0\nab\t0\n", "line 3: the word 'ab' has another label on line 1"),
    ],
)
def test_mistakes_in_examples_name_the_line(capsys, tmp_path, text, message):
    path = examples(tmp_path, text.replace("\n\n", "\n\n\n"))
    out = fails(capsys, "crasp", "learn", "--examples", path, "--output", str(tmp_path / "out"))
    assert path in out
    assert message in out


def test_examples_outside_the_alphabet(capsys, tmp_path):
    path = examples(tmp_path, "aa\t1\nab\t0\n")
    message = fails(
        capsys, "crasp", "learn", "--examples", path, "--alphabet", "a", "--output", str(tmp_path)
    )
    assert f"{path}, line 2: letter 'b' is not in the alphabet a\n" in message


def test_an_output_that_is_a_file(capsys, tmp_path):
    (tmp_path / "file").write_text("mine")
    message = fails(capsys, "crasp", "learn", "--regex", "a*", "--output", str(tmp_path / "file"))
    assert "cannot make the folder" in message
    assert (tmp_path / "file").read_text() == "mine"
