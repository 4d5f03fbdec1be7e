"""``advise``, ``sweep`` and ``reproduce`` as commands, in sizes that take seconds."""

import json

import pandas as pd
import pytest
from test_main import fails

import lengthwise as lw
from lengthwise.cli import figures, main
from lengthwise.experiments.izzo import Study

SMALL = lw.Evaluation(lengths=(20, 40, 80, 160, 320, 640), sequences=32)

SWEEP = """
import lengthwise as lw
evaluation = lw.Evaluation(lengths=(10, 30, 100, 300, 1000), sequences=64)
training = lw.Training(length=4, steps=20, batch=8)
baseline = lw.Run(lw.SimpleTask(), lw.LimitModel(width=4, hidden=8), training, evaluation)
runs = lw.vary(baseline, omega=[2, 4], length=[4, 6, 8], seed=[0, 1])
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("advise", "TASK"),
        ("advise smple", "no task 'smple'; did you mean 'simple'?"),
        ("advise simple --period 3", "no flag '--period'"),
        ("advise modp --residue 9", "residue must be a whole number from 0 to 2, got 9"),
        ("advise --tolerance 0 kgram --k 1", "tolerance must be positive"),
        ("advise kgram --data words", "invalid choice 'words'"),
        ("advise kgram --longest-test 300", "at most a 100th of the longest test length 300"),
        ("sweep", "FILE.py"),
        ("sweep none.py", "there is no file none.py"),
        ("reproduce figure9", "invalid choice 'figure9'"),
        ("reproduce figure1 --scale large", "invalid choice 'large'"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in fails(capsys, *arguments.split())
    assert not (tmp_path / "runs").exists()


def test_a_sweep_whose_curves_would_have_no_end_is_refused_before_training(capsys, tmp_path):
    path = tmp_path / "sweep.py"
    path.write_text(SWEEP.replace("(10, 30, 100, 300, 1000)", "(10, 1000)"))
    message = fails(capsys, "sweep", str(path), "--output", str(tmp_path / "out"))
    assert "a plateau needs at least 3 test lengths" in message
    assert not (tmp_path / "out").exists()


def test_a_sweep_tells_every_run(capsys, tmp_path):
    path, output = tmp_path / "mine.py", tmp_path / "out"
    path.write_text(SWEEP)
    assert main(["sweep", str(path), "--output", str(output), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["knobs"] == ["task.omega"]
    found = {(row["task.omega"], row["training_length"], row["seed"]) for row in told["runs"]}
    assert found == {(w, n, s) for w in (2, 4) for n in (4, 6, 8) for s in (0, 1)}
    results = pd.read_parquet(output / "results.parquet")
    measured = lw.plateaus(results).set_index("run")["plateau"]
    for row in told["runs"]:
        assert row["plateau"] == measured[row["run"]]
    assert (output / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert main(["sweep", str(path), "--output", str(output)]) == 0
    table = capsys.readouterr().out
    assert table.count("\n│") == 6  # one row a setting, over its seeds
    assert "omega" in table


def test_a_sweep_of_unlike_runs_shows_all_of_them(capsys, tmp_path):
    """Two tasks, models and sets of test lengths: a run is not dropped for a knob that it has not."""
    path, output = tmp_path / "unlike.py", tmp_path / "out"
    path.write_text(
        SWEEP
        + """
other = lw.Evaluation(lengths=(20, 60, 200, 600, 2000), sequences=64)
runs += [run.but(evaluation=other, seed=7) for run in runs[:6]]
modp = lw.Run(lw.ModPTask(period=2), lw.LimitModel(width=4, hidden=0, period=2), training, evaluation)
runs += lw.vary(modp, length=[4, 6], seed=[0, 1])
"""
    )
    assert main(["sweep", str(path), "--output", str(output), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["runs"]) == 12 + 3 + 4
    assert main(["sweep", str(path), "--output", str(output)]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if "modp" in line]
    assert len(rows) == 2


def test_advice_by_the_name_of_a_task(capsys, tmp_path):
    flags = "--period 2 --residue 1 --tolerance 0.01 --seeds 2 --steps 400"
    arguments = ["advise", "modp", *flags.split(), "--output", str(tmp_path)]
    assert main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["task"] == {"name": "modp", "period": 2, "residue": 1, "concentration": 1.0}
    keys = {"tolerance", "predicted_length", "interval", "confirmed_length", "confirmed", "theory"}
    assert keys <= set(told)
    if told["confirmed_length"]:
        assert told["theory"]["trained"]["bound"]["tolerance"] == pytest.approx(0.1)
        assert told["theory"]["construction"]["bound"]["certified"] is True
    assert main(arguments) == 0
    assert "ModPTask with period = 2" in " ".join(capsys.readouterr().out.split())


def small_study(task, model, knob, values, shown, **training):
    baseline = lw.Run(task, model, lw.Training(length=8, steps=20, batch=8, **training), SMALL)
    runs = lw.vary(baseline, **{knob: values}, length=[8, 12, 16], seed=[0, 1])
    return Study(task.title, f"task.{knob}", shown, tuple(runs))


STUDIES = {
    "figure1": [
        small_study(lw.SimpleTask(), lw.LimitModel(width=4, hidden=8), "omega", [2.0, 4.0, 8.0], 4.0)
    ],
    "figure3": [
        small_study(
            lw.ModPTask(period=3, residue=1),
            lw.LimitModel(width=4, hidden=0, period=3),
            "period",
            [3],
            3,
            shortest=1,
        )
    ],
    "figure4": [
        small_study(
            lw.KGramTask(k=1, vocabulary=2),
            lw.LimitModel(width=4, hidden=0, heads=2, layers=2, locality=1),
            knob,
            values,
            values[0],
        )
        for knob, values in (("vocabulary", [2, 3, 4]), ("k", [1, 2, 3]))
    ],
}


@pytest.mark.parametrize(
    ("figure", "names"), [("figure1", "abcc"), ("figure3", "d"), ("figure4", "abccabcc")]
)
def test_reproductions_test_their_claims(capsys, tmp_path, monkeypatch, figure, names):
    monkeypatch.setattr(figures, "studies", lambda name, scale, seed: STUDIES[name])
    assert main(["reproduce", figure, "--output", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "".join(claim["name"] for claim in told["claims"]) == names
    for claim in told["claims"]:
        assert set(claim["by_seed"]) == {"0", "1"}
        assert isinstance(claim["holds"], bool)
    assert json.loads((tmp_path / "claims.json").read_text()) == told["claims"]
    page = (tmp_path / f"{figure}.md").read_text()
    assert page.count("\n| ") >= len(names) + len({run.training.length for run in STUDIES[figure][0].runs})
    assert (tmp_path / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    runs = {run.id for study in STUDIES[figure] for run in study.runs}
    assert set(pd.read_parquet(tmp_path / "results.parquet")["run"]) == runs
    if figure == "figure3":
        evidence = pd.read_parquet(tmp_path / "attention.parquet")
        assert len(evidence) == 6
        assert evidence["off"].between(0, 1).all()
    assert main(["reproduce", figure, "--output", str(tmp_path)]) == 0
    assert "claims" in capsys.readouterr().out
