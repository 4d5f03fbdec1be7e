"""What commands leave beside their runs is read again as it was."""

import json
import math

import pandas as pd
import pytest

import lengthwise as lw
from laws import advice_of
from lengthwise.experiments.claims import Claim
from lengthwise.experiments.folder import note, read_folder
from report_runs import decoder_rows, decoder_run, keep, limit_rows, limit_run, write


def test_an_advice_is_read_as_it_was_given(tmp_path):
    advice = advice_of(lambda length, seed: 0.05 * (7 / length) ** 3.5 * (1 + 0.02 * seed))
    folder = keep(tmp_path, advice)
    note(folder, "lengthwise demo", advice)
    read = read_folder(folder).advice
    assert read is not None
    assert read.to_json() == advice.to_json()
    assert read.prediction == advice.prediction
    assert read.trained is not None
    stages = read.results.groupby("training.length")["stage"].unique()
    assert [list(stages[length]) for length in (6, 14)] == [["pilot"], ["confirmation"]]


def test_an_advice_without_a_length_is_read_too(tmp_path):
    advice = advice_of(lambda length, seed: 0.4, confirmed=None)
    assert advice.predicted_length is None
    folder = keep(tmp_path, advice)
    note(folder, None, advice)
    read = read_folder(folder)
    assert read.advice is not None
    assert read.advice.to_json() == advice.to_json()
    assert read.commands == ()


def test_commands_gather_and_what_was_found_is_the_last_ones(tmp_path):
    advice = advice_of(lambda length, seed: 0.4, confirmed=None)
    folder = keep(tmp_path, advice)
    claim = Claim("a", "levels", "share", 0.5, None, False, {3: 0.5}, {"4": 0.5})
    note(folder, "one", advice)
    note(folder, "two", claims=[("study", claim)])
    note(folder, "one")
    assert read_folder(folder).commands == ("two", "one")
    assert read_folder(folder).advice is None
    note(folder, "two", claims=[("study", claim)])
    assert read_folder(folder).claims == (("study", claim),)


def test_a_bare_store_of_both_families(tmp_path):
    decoder, limit = decoder_run(lw.task("parity"), "none", 0), limit_run(4, 0)
    write(tmp_path, [(limit, limit_rows(limit, 0.1))], {"device": "one"})
    write(tmp_path, [(decoder, decoder_rows(decoder, 1.0, 0.5, 0.25))], {"device": "two"})
    read = read_folder(tmp_path)
    assert set(read.runs) == {decoder, limit}
    assert {made["device"]: count for made, count in read.made_by} == {"one": 1, "two": 1}
    assert (read.commands, read.advice, read.claims) == ((), None, ())
    pd.testing.assert_frame_equal(read.results, lw.Store(tmp_path).table())


INFINITE = json.dumps(
    {
        "advice": {"tolerance": 0.1, "predicted_length": math.inf, "interval": None, "reason": ""}
        | {"confirmed_length": 4, "longest_test": 300, "decay": None},
        "stages": {limit_run(4, 0).id: "pilot"},
    }
)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "must hold a JSON object"),
        ('{"commands": 3}', "must be a list of texts"),
        ('{"advice": {}, "stages": {}}', "does not tell what was found"),
        ('{"advice": {}, "stages": {"0123": "pilot"}}', "rests on run 0123, which is not there"),
        ('{"claims": [{"study": "x"}]}', "does not tell what was found"),
        ("[" * 10**5, "cannot be read"),
        (INFINITE, "does not tell what was found"),
    ],
)
def test_an_about_that_is_none(tmp_path, about, message):
    run = limit_run(4, 0)
    write(tmp_path / "runs", [(run, limit_rows(run, 0.1))])
    (tmp_path / "about.json").write_text(about)
    with pytest.raises(ValueError, match=message):
        read_folder(tmp_path)
    note(tmp_path, "lengthwise sweep x.py")  # the next command begins anew
    assert read_folder(tmp_path).commands == ("lengthwise sweep x.py",)


def test_a_run_without_all_its_rows_is_not_lost_silently(tmp_path):
    run = limit_run(4, 0)
    rows = [row for row in limit_rows(run, 0.1) if row[1:3] != (300, "loss")]
    write(tmp_path, [(run, rows)])
    with pytest.raises(ValueError, match="it lacks the loss at step 5000 and length 300"):
        read_folder(tmp_path)


def test_nothing_to_read(tmp_path):
    with pytest.raises(ValueError, match="there is no folder"):
        read_folder(tmp_path / "none")
    (tmp_path / "some").mkdir()
    with pytest.raises(ValueError, match="holds no runs"):
        read_folder(tmp_path)
    assert not (tmp_path / ".lock").exists()


def test_what_is_noted_is_json(tmp_path):
    note(tmp_path / "new", "lengthwise sweep 'a b.py'")
    assert json.loads((tmp_path / "new/about.json").read_text()) == {
        "commands": ["lengthwise sweep 'a b.py'"]
    }
