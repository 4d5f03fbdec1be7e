"""``lengthwise train`` and sweeps of decoders, in sizes that take seconds."""

import json

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from test_main import fails

import lengthwise as lw
from lengthwise.cli import main, train
from lengthwise.cli.progress import measured_words
from lengthwise.experiments import engine
from lengthwise.experiments.recipes import decoder_run
from lengthwise.tasks import PREDICTION_TASKS

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = (
    "--width 8 --length 4 --steps 40 --batch 8 --every 20 --ends 4 6 9 --sequences 50 --learning-rate 0.01"
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "TASK"),
        ("binary-majorty", "no task 'binary-majorty'; did you mean 'binary-majority'?"),
        ("--json nothing", "there is no task 'nothing'"),
        ("binary-majority --positions absolute", "invalid choice 'absolute' for argument '--positions'"),
        ("binary-majority --length -3", "training length must be a whole number of at least 0, got -3"),
        ("binary-majority --ends 50 40", "the ends of the bins must be given and increase, got [50, 40]"),
        ("binary-majority --ends", "the ends of the bins must be given"),
        ("binary-majority --omega 3", "no flag '--omega'"),
        ("copy-unique --tokns 3", "no flag '--tokns'; did you mean '--tokens'?"),
        ("copy-unique --tokens 20", "has no inputs of a length from 51 to 100"),
        ("tomita-1 --expression 1", "no flag '--expression'"),
        ("language --expression (ab", "this parenthesis is never closed"),
        ("dyck-2 --regulariser 1", "a model with positions 'none' has none"),
        ("dyck-2 --heads 3", "must be a multiple of the 3 heads"),
        ("dyck-2 --seed -1", "seed must be a whole number of at least 0"),
        ("dyck-2 --device tpu", "invalid choice 'tpu'"),
        ("addition --length 3", "no inputs of a length up to 3: the shortest has 4"),
        ("--output sort parity --steps 0", "steps must be a whole number of at least 1"),
        ("modp --layers 2", "no flag '--layers'"),
        ("simple --length 0", "training length must be between 1 and 2^53, got 0"),
        ("kgram --length 1", "in-context k-gram needs strings of at least 3 tokens"),
        ("simple --longest-test 40", "a plateau needs at least 3 test lengths"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in fails(capsys, "train", *arguments.split())
    assert not (tmp_path / "runs").exists()


def test_a_decoder_by_the_name_of_a_task(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [
        "train",
        "copy-unique",
        "--tokens",
        "9",
        "--positions",
        "rotary",
        *SMALL.split(),
        "--seed",
        "3",
    ]
    assert main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert "steps" in captured.err
    assert set(told) == {
        *("run", "task", "model", "training", "evaluation", "steps", "training_loss", "perfect"),
        *("accuracy", "measurements", "files"),
    }
    run = lw.Run(
        lw.task("copy-unique", tokens=9),
        lw.DecoderModel(layers=2, heads=2, width=8, positions="rotary"),
        lw.DecoderTraining(length=4, steps=40, batch=8, learning_rate=0.01, seed=3),
        lw.DecoderEvaluation(ends=(4, 6, 9), sequences=50, every=20),
    )
    assert told["run"] == run.id
    assert {part: told[part] for part in ("task", "model", "training", "evaluation")} == run.specification()
    assert [(bin["shortest"], bin["longest"]) for bin in told["accuracy"]] == [(1, 4), (5, 6), (7, 9)]
    assert [one["step"] for one in told["measurements"]] == [20, 40]
    assert told["measurements"][-1]["accuracy"] == [bin["accuracy"] for bin in told["accuracy"]]
    rows = pd.read_parquet("runs/train-copy-unique/results.parquet")
    expected = lw.train([run], device="cpu")
    if not torch.cuda.is_available():
        pd.testing.assert_frame_equal(rows, expected, check_exact=True)
    last = lw.accuracies(rows).iloc[0]
    assert [last[f"accuracy_{end}"] for end in (4, 6, 9)] == [bin["accuracy"] for bin in told["accuracy"]]
    assert set(load_file(told["files"]["weights"])) >= {"embedding", "layers.1.mlp_in"}
    assert (tmp_path / told["files"]["figure"]).read_bytes().startswith(b"\x89PNG")

    def none(*_):
        raise AssertionError("nothing is left to train")

    monkeypatch.setattr(engine, "run_ensemble", none)
    assert main([*arguments, "--json"]) == 0
    again = capsys.readouterr()
    assert again.out == captured.out
    assert again.err == ""
    assert main(arguments) == 0
    table = capsys.readouterr().out
    for bin in told["accuracy"]:
        assert f"{bin['shortest']} to {bin['longest']} │" in table
        assert f"{bin['accuracy']:.3f}" in table
    assert table.count("longer") == 2


def test_majority_generalises_with_no_flags(capsys, tmp_path, monkeypatch):
    """What a new user types first."""
    monkeypatch.chdir(tmp_path)
    assert main(["train", "binary-majority", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["perfect"]
    assert [bin["longest"] for bin in told["accuracy"]] == [50, 100, 150]
    assert min(bin["accuracy"] for bin in told["accuracy"]) > 0.95


def test_a_limit_transformer_by_the_name_of_a_task(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = "--omega 2 --length 8 --steps 60 --batch 16 --longest-test 1000 --output out"
    assert main(["train", "simple", *flags.split(), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {
        "run",
        "task",
        "model",
        "training",
        "evaluation",
        "plateau",
        "interval",
        "trend",
        "losses",
    } <= set(told)
    assert (told["task"]["omega"], told["training"]["length"], told["steps"]) == (2, 8, 60)
    rows = pd.read_parquet("out/results.parquet")
    (ends,) = lw.plateaus(rows).to_dict("records")
    assert (told["plateau"], told["trend"]) == (ends["plateau"], ends["trend"])
    assert [one["length"] for one in told["losses"]][:: len(told["losses"]) - 1] == [8, 1000]
    assert isinstance(lw.Store("out/runs").transformer(told["run"]), lw.LimitTransformer)
    assert main(["train", "simple", *flags.split()]) == 0
    table = capsys.readouterr().out
    assert "SimpleTask with omega = 2" in " ".join(table.split())
    assert "plateau:" in table


@pytest.mark.parametrize("name", sorted(PREDICTION_TASKS))
def test_every_task_has_a_baseline_and_flags(name):
    """The flags' defaults are those of the baseline, so that no flags train it."""
    task = lw.task(name)
    kind = train.flags([name])
    assert train._chosen(task, kind(task=name)) == decoder_run(task)


def test_flags_before_the_task_and_words_that_are_values():
    for arguments, name in (
        (["--no-stop", "sort"], "sort"),
        (["--output", "parity", "sort"], "sort"),
        (["--seed", "3", "--json", "dyck-2", "--width", "8"], "dyck-2"),
        (["--output=parity", "modp"], "modp"),
    ):
        assert train.named_task(train.DecoderCommand, arguments, train.KINDS) == name


def test_live_words():
    decoder = [(20, 4, "training_loss", 0.25), (20, 4, "accuracy", 1.0), (20, 9, "accuracy", 0.5)]
    assert measured_words(decoder) == "training loss 0.25; accuracy 1.000 to 4, 0.500 to 9"
    limit = [(20, 10, "loss", 0.5), (20, 10, "loss_error", 0.1), (20, 10, "baseline", 1.0)]
    assert measured_words(limit) == "loss 0.5 at length 10"


SWEEP = """
import lengthwise as lw
evaluation = lw.DecoderEvaluation(ends=(4, 6), sequences=50, every=20)
training = lw.DecoderTraining(length=4, steps=40, batch=8, learning_rate=1e-2)
baseline = lw.Run(lw.task("binary-majority"), lw.DecoderModel(width=8), training, evaluation)
runs = lw.vary(baseline, task=[lw.task("binary-majority"), lw.task("tomita-1")], heads=[1, 2], seed=range(3))
"""


def test_a_sweep_of_decoders_tells_every_run(capsys, tmp_path):
    path, output = tmp_path / "mine.py", tmp_path / "out"
    path.write_text(SWEEP)
    assert main(["sweep", str(path), "--output", str(output), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["knobs"] == ["task.name", "model.heads"]
    found = {(row["task.name"], row["model.heads"], row["seed"]) for row in told["runs"]}
    assert found == {
        (name, h, s) for name in ("binary-majority", "tomita-1") for h in (1, 2) for s in range(3)
    }
    table = lw.accuracies(pd.read_parquet(output / "results.parquet")).set_index("run")
    for row in told["runs"]:
        own = table.loc[row["run"]]
        assert row["accuracy"] == {"4": own["accuracy_4"], "6": own["accuracy_6"]}
        assert (row["perfect"], row["steps"]) == (own["perfect"], own["steps"])
    for setting in told["settings"]:
        same = [
            row
            for row in told["runs"]
            if all(row[knob] == setting[knob] for knob in (*told["knobs"], "training_length"))
        ]
        values = sorted(row["accuracy"]["6"] for row in same)
        assert setting["accuracy"]["6"] == dict(zip(("lowest", "median", "highest"), values, strict=True))
        assert (setting["runs"], setting["perfect"]) == (3, sum(row["perfect"] for row in same))
    assert (output / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert main(["sweep", str(path), "--output", str(output)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "/3" in line]
    assert len(rows) == 4
    assert all(
        row[2] == f"{setting['perfect']}/3" for row, setting in zip(rows, told["settings"], strict=True)
    )


def test_a_sweep_has_one_family(capsys, tmp_path):
    path = tmp_path / "both.py"
    path.write_text(SWEEP + "runs.append(lw.Run(lw.SimpleTask(), lw.LimitModel(), lw.Training(length=4)))")
    message = fails(capsys, "sweep", str(path), "--output", str(tmp_path / "out"))
    assert "lists runs of decoders and limit transformers: give each family a file of its own" in message
    assert not (tmp_path / "out").exists()
