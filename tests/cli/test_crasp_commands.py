"""``lengthwise crasp``: answers that are known, as words and as JSON, and one line for every mistake."""

import json

import pytest
from test_main import fails

import lengthwise as lw
from lengthwise.cli import main

DYCK = 'd = # "a" - # "b"\\naccept = # (d < 0) == 0 && d == 0'
MAJORITY = '%alphabet "0" "1"\\naccept = # "1" > # "0"'


def told(capsys, *arguments):
    assert main(["crasp", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_run(capsys, tmp_path):
    assert told(capsys, "run", DYCK, "aabbab") == {
        "word": "aabbab",
        "length": 6,
        "accepted": True,
        "mode": "last",
    }
    assert told(capsys, "run", DYCK, "(ab)^(10^12) b")["accepted"] is False
    path = tmp_path / "dyck.crasp"
    path.write_text(DYCK.replace("\\n", "\n"))
    assert told(capsys, "run", str(path), "a^(10^9) b^1000000000")["accepted"] is True
    assert main(["crasp", "run", str(path), "abb"]) == 0
    assert capsys.readouterr().out == "not accepted (3 letters, last)\n"
    copy = 'NEXT["a"] = "b"\\nNEXT["b"] = "a" || "b"'
    assert told(capsys, "run", copy, "ab")["predicted"] == ["a", "b"]


def test_trace_and_check(capsys, tmp_path):
    found = told(capsys, "trace", DYCK, "abb", "--output", str(tmp_path))
    assert found["letters"] == ["a", "b", "b"]
    rows = dict(zip(found["parts"], found["values"], strict=True))
    assert rows['# "b"'] == [0, 1, 2]
    assert (tmp_path / "trace.png").read_bytes().startswith(b"\x89PNG")
    assert main(["crasp", "trace", DYCK, "abb", "--output", str(tmp_path)]) == 0
    assert '# "b"' in capsys.readouterr().out
    measures = told(capsys, "check", DYCK)
    assert (measures["depth"], measures["period"], measures["locality"]) == (2, 1, 0)
    assert lw.crasp.parse(measures["text"]).root() is lw.crasp.parse(DYCK.replace("\\n", "\n")).root()
    assert main(["crasp", "check", DYCK]) == 0
    assert "how deeply counts are nested" in capsys.readouterr().out


def test_equivalent_and_bound(capsys):
    other = '%alphabet "0" "1"\\naccept = # "1" >= # "0" + 1'
    assert told(capsys, "equivalent", MAJORITY, other)["answer"] is True
    weak = '%alphabet "0" "1"\\n%empty false\\naccept = # "1" >= # "0"'
    verdict = told(capsys, "equivalent", MAJORITY, weak)
    assert (verdict["answer"], len(verdict["witness"])) == (False, 2)  # a tie, and 1 < 2 letters make none
    assert told(capsys, "equivalent", MAJORITY, weak, "--inclusion")["answer"] is True
    found = told(capsys, "bound", MAJORITY, weak)
    assert (found["number"], found["exact"]) == (2, True)
    assert found["by_formula"]["number"] >= 2
    assert main(["crasp", "equivalent", MAJORITY, weak]) == 0
    assert "equivalent: no" in capsys.readouterr().out
    assert main(["crasp", "bound", MAJORITY, weak]) == 0
    assert "differ on a word of length 2" in capsys.readouterr().out


def test_decide(capsys):
    yes = told(capsys, "decide", "(ab)*")
    assert yes["answer"] is True
    program = lw.crasp.parse(yes["witness"])
    assert [program(word) for word in ("", "ab", "abab", "a", "ba", "abb")] == [True] * 3 + [False] * 3
    parity = told(capsys, "decide", "b*(ab*ab*)*")
    assert parity["answer"] is False
    assert {"x", "loops", "w1", "w2", "v"} <= set(parity["witness"])
    assert told(capsys, "decide", "(aa)*", "--positional")["answer"] is True
    assert told(capsys, "decide", "(aa)*")["answer"] is False
    for regex in ("(ab)*", "(aa)*"):
        assert main(["crasp", "decide", regex]) == 0
        assert capsys.readouterr().out.startswith("in C-RASP: ")


def test_compiled_programs_are_models_like_any_other(capsys, tmp_path):
    flags = ["--form", "relu", "--longest", "20"]
    found = told(capsys, "compile", MAJORITY, *flags, "--output", str(tmp_path / "f"))
    assert found["layers"] == 1
    assert found["exact_length"] == 20
    assert found["tokens"] == ["0", "1", "mark"]
    f = lw.LimitTransformer.load(found["files"]["model"])
    assert f([2, 0, 1, 1]).tolist() == pytest.approx([1.0])
    assert f([2, 0, 1, 0]).tolist() == pytest.approx([0.0])
    weak = '%alphabet "0" "1"\\naccept = # "1" >= # "0"'
    other = told(capsys, "compile", weak, *flags, "--output", str(tmp_path / "g"))
    pair = found["files"]["model"], other["files"]["model"]
    assert main(["bound", *pair, "--tolerance", "0.5", "--output", str(tmp_path / "b"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["certified"] is True
    assert main(["crasp", "compile", MAJORITY, "--output", str(tmp_path / "h")]) == 0
    assert "1 layer of width" in capsys.readouterr().out


def test_help(capsys):
    for arguments in (["crasp"], ["crasp", "--help"]):
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert out.startswith("usage: lengthwise crasp COMMAND")
        assert "equivalent" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rn"], "no command 'rn'; did you mean 'run'?"),
        (["run"], "PROGRAM"),
        (["run", "nofile", "ab"], "'nofile' is no file and no program"),
        (["run", 'accept = # "1" > ', "1"], "line 1, column 17: expected a formula or a count"),
        (["run", DYCK, "abc"], "'c'"),
        (["run", DYCK, "(ab"], "the parenthesis at place 1 is not closed"),
        (["trace", DYCK, ""], "1 to 200 letters, got 0"),
        (["trace", DYCK, "axb"], "letter 'x' at position 2"),
        (["decide", "(ab"], "column"),
        (["equivalent", DYCK, MAJORITY], "the alphabets differ"),
        (["compile", MAJORITY, "--longest", "0"], "longest must be between 1 and 2^53, got 0"),
        (["compile", 'NEXT["a"] = "a"'], "predicts symbols"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in fails(capsys, "crasp", *arguments)


def test_a_file_with_a_mistake_is_named(capsys, tmp_path):
    path = tmp_path / "wrong.crasp"
    path.write_text('x = "a"\naccept = # y')
    message = fails(capsys, "crasp", "check", str(path))
    assert f"{path}: line 2, column 12" in message
