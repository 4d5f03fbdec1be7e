"""``lengthwise tasks``, and the names that it lists as programs of ``lengthwise crasp``."""

import contextlib
import io
import json

import pytest
from test_main import fails

from lengthwise.cli import main
from lengthwise.crasp import library, parse
from lengthwise.experiments.predictions import predict
from lengthwise.tasks import PREDICTION_TASKS, TASKS, task

CONTRACT = {"name", "knobs", "period", "locality", "in_crasp"}


@pytest.fixture(scope="module")
def listed():
    """The document of ``lengthwise tasks --json``, by name."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["tasks", "--json"]) == 0
    found = json.loads(printed.getvalue())
    assert len({one["name"] for one in found}) == len(found)
    return {one["name"]: one for one in found}


def test_everything_has_the_keys_that_scripts_rely_on(listed):
    assert all(set(one) >= CONTRACT for one in listed.values())
    assert set(listed) == {*TASKS, *PREDICTION_TASKS, *library.names()}
    assert {name for name, one in listed.items() if one["trainable"]} == {*TASKS, *PREDICTION_TASKS}
    for name, one in listed.items():
        if one["trainable"]:
            assert task(name, **one["knobs"]).name == name


def test_entries_tell_their_programs_and_where_they_stand(listed):
    for name in library.names():
        one = listed[name]
        if one["program"] is None:
            assert (one["period"], one["locality"], one["in_crasp_positional"]) == (None, None, False)
            continue
        if len(one["program"]) > 100_000:
            continue  # sort: parsing that takes seconds
        program = parse(one["program"])
        if name not in PREDICTION_TASKS:
            assert (program.period, program.locality) == (one["period"], one["locality"])
        # The same formulas: nodes are shared.
        known = library.named(name).program
        assert {symbol: made.node for symbol, made in program.outputs.items()} == {
            symbol: made.node for symbol, made in known.outputs.items()
        }
    chosen = {
        name: (listed[name]["in_crasp"], listed[name]["in_crasp_eos"]) for name in ("ends-in-a", "dyck")
    }
    assert chosen == {"ends-in-a": (True, False), "dyck": (True, True)}
    assert listed["aa-star"]["in_crasp"] is False
    assert listed["aa-star"]["in_crasp_positional"] is True
    assert listed["sort"]["in_crasp_eos"] is None
    assert "proved: " in listed["addition"]["statement"]


def test_tasks_of_decoders_tell_what_theory_predicts_of_them(listed):
    assert {name for name, one in listed.items() if one.get("model") == "decoder"} == set(PREDICTION_TASKS)
    for name in PREDICTION_TASKS:
        one = listed[name]
        for scheme, member in (("none", one["in_crasp"]), ("learned", one["in_crasp_positional"])):
            told = one["predictions"][scheme]
            assert told["answer"] is (None if one["finite"] else member)
            assert told["why"]
        program = predict(task(name), "learned").program
        assert (one["period"], one["locality"]) == (program and program.period, program and program.locality)
    assert {name for name, one in listed.items() if one.get("finite")} >= {"copy-unique", "sort"}
    # To tell what may follow takes one letter back, to tell the language two.
    assert (listed["tomita-4"]["locality"], parse(listed["tomita-4"]["program"]).locality) == (1, 2)
    answer, language = listed["parity"], listed["parity-language"]
    assert (answer["asks"], answer["suite"]) == ("whether the number of 1 is even or odd", "algorithmic")
    assert (language["asks"], language["suite"]) == ("the number of 1 is even", "formal")
    assert listed["language"]["knobs"] == {"expression": "(ab)*", "letters": "ab"}
    assert listed["tomita-1"]["knobs"] == {}


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_the_tables_fit_the_terminal_and_names_are_whole(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["tasks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    # Only what stands in the first column; what is wrapped, and notes, do not.
    first = [line.split()[0] for line in lines if line[:1] == " " and line[1:2].strip()]
    for name in {*TASKS, *PREDICTION_TASKS, *library.names()}:
        assert first.count(name) == sum(
            name in listed for listed in (TASKS, PREDICTION_TASKS, library.names())
        )
    (end,) = [at for at, line in enumerate(lines) if line.startswith("Library")]
    asked = {line.split()[0]: line.split() for line in lines[:end] if line.strip()}
    assert asked["tomita-4"][-3:] == ["no", "distance", "1"]
    assert asked["dyck-12"][-2:] == ["yes", "yes"]
    assert asked["copy-unique"][-2:] == ["-", "-"]
    assert asked["aa-star"][-3:] == ["no", "period", "2"]
    assert asked["parity-language"][-2:] == ["no", "no"]
    rows = {line.split()[0]: line.split() for line in lines[end:] if line.strip()}
    assert rows["tomita-4"][-4:] == ["no", "distance", "2", "2"]
    assert rows["parity"][-3:] == ["no", "no", "-"]
    assert rows["dyck-12"][-3:] == ["yes", "yes", "2"]
    assert "ends-in-a, a-to-b." in " ".join(" ".join(lines).split())


def test_names_are_programs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def told(*arguments):
        assert main(["crasp", *arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert told("run", "dyck-2", "aabb")["accepted"] is True
    assert told("run", "D_2", "aaabbb")["accepted"] is False
    assert told("run", "copy-unique", "<bos>12 7 149<sep>12")["predicted"] == ["7"]
    assert told("run", "sort-200", "<bos>199 31<sep>31 199")["predicted"] == ["<eos>"]
    assert told("check", "tomita-4")["locality"] == 2
    assert told("trace", "sort-3", "<bos>2 0<sep>0")["letters"] == ["<bos>", "2", "0", "<sep>", "0"]
    assert told("trace", "tomita-2", "1010")["letters"] == list("1010")
    assert told("equivalent", "dyck-2", "dyck-3")["answer"] is False
    assert told("bound", "dyck-2", "dyck-3")["number"] == 6  # aaabbb
    assert told("compile", "tomita-1")["layers"] >= 1
    (tmp_path / "dyck-2").write_text('%alphabet "a" "b"\naccept = true')
    assert told("run", "dyck-2", "b")["accepted"] is True  # a file of this name comes first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "dyck2", "ab"], "the library has no 'dyck2'; did you mean 'dyck-2'?"),
        (["check", "tomita-8"], "did you mean 'tomita-7'? (lengthwise tasks lists its names)"),
        (["check", "zzz"], "'zzz' is no file and no program, and the library has no 'zzz' (lengthwise tasks"),
        (["check", "dyck-0"], "the programs dyck-N go from dyck-1 to dyck-1000, got dyck-0"),
        (["check", "sort-99999999999999999999"], "the programs sort-N go from sort-1 to sort-200"),
        (["run", "parity", "011"], "there is no program for 'parity': C-RASP: no (decided"),
        (["equivalent", "dyck-2", "addition"], "there is no program for 'addition': C-RASP and"),
        (["compile", "majority-3"], "predicts symbols"),
        (["equivalent", "sort-3", "sort-3"], "predicts symbols"),
        (["bound", "sort-3", "sort-3"], "predicts symbols"),
        (["trace", "sort-3", "<bos>9"], "letter '9' at place 6 is not in the alphabet <bos> 0 1 2 <sep>"),
        (["trace", "sort-3", "0^(10^12)"], "1 to 200 letters, got 1000000000000"),
        (["trace", "sort-3", ""], "1 to 200 letters, got 0"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in fails(capsys, "crasp", *arguments)
