"""``lengthwise bound`` and ``lengthwise simulate``: the library's answers, for files, runs, constructions."""

import json

import pytest
import torch
from matplotlib.image import imread
from test_main import fails

import lengthwise as lw
from lengthwise.cli import main


def told(capsys, tmp_path, *arguments):
    assert main([*arguments, "--json", "--output", str(tmp_path / "out")]) == 0
    return json.loads(capsys.readouterr().out)


def test_bound_of_constructions(capsys, tmp_path):
    found = told(capsys, tmp_path, "bound", "simple:omega=8", "simple:omega=4", "--tolerance", "0.2")
    expected = lw.bound(
        lw.constructions.named("simple:omega=8"), lw.constructions.named("simple:omega=4"), 0.2
    )
    assert (found["length"], found["certified"], found["theorem"]) == (expected.length, True, "Theorem C")
    assert found["terms"] == expected.terms
    assert found["order"]["length"] == expected.order.length
    assert imread(found["files"]["figure"]).shape[0] > 300
    assert main(["bound", "simple:omega=8", "simple:omega=4", "--output", str(tmp_path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "If f and g agree to within e on every input of at most 723 tokens" in printed
    assert "It would grow most if twice as many far sets compete." in printed
    assert main(["bound", "kgram", "induction", "--output", str(tmp_path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "error from windows │ 0.06" in printed
    assert "Certified (Theorem E). It would grow most if the second layer's logits" in printed


def test_bound_that_is_infinite_or_trivial(capsys, tmp_path):
    found = told(capsys, tmp_path, "bound", "simple", "simple:omega=4", "--tolerance", "0")
    assert found["length"] is None
    assert "tolerance 0" in found["words"]
    same = told(capsys, tmp_path, "bound", "modp", "modp")
    assert (same["length"], same["theorem"]) == (1, "equality")
    assert main(["bound", "modp", "modp", "--output", str(tmp_path)]) == 0
    assert "agree at every length" in capsys.readouterr().out


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two trained models, in a store."""
    folder = tmp_path_factory.mktemp("runs")
    trained = [
        lw.Run(
            lw.SimpleTask(omega=2),
            lw.LimitModel(width=4, hidden=4),
            lw.Training(length=6, steps=5, seed=seed),
        )
        for seed in (0, 1)
    ]
    lw.train(trained, output=folder)
    return [folder / run.id for run in trained]


def test_trained_runs_and_files(capsys, tmp_path, runs):
    found = told(capsys, tmp_path, "bound", *map(str, runs), "--tolerance", "1")
    assert (found["theorem"], found["certified"]) == ("Theorem E", True)
    assert found["length"] > 1
    store = lw.Store(runs[0].parent)
    f = store.transformer(runs[0].name)
    f.save(tmp_path / "f.safetensors")
    word = torch.tensor([0, 1, 1, 0, 1])
    ensemble_output = f(word)
    assert torch.equal(lw.LimitTransformer.load(tmp_path / "f.safetensors")(word), ensemble_output)
    again = told(capsys, tmp_path, "bound", str(tmp_path / "f.safetensors"), str(runs[1]), "--tolerance", "1")
    assert again["length"] == found["length"]


@pytest.mark.parametrize("method", ["counts", "shortest"])
def test_simulate_tells_what_the_library_finds(capsys, tmp_path, method):
    models = ("modp:period=2,residue=1", "simple:omega=3,knots=16")
    found = told(capsys, tmp_path, "simulate", *models, "--length", "5000", "--method", method)
    f, g = map(lw.constructions.named, models)
    word = torch.randint(2, (5000,), generator=torch.Generator().manual_seed(0))
    z = torch.tensor(found["tokens"])
    assert len(z) == found["length"] < 5000
    assert found["error_f"] == pytest.approx(float((f(z) - f(word)).norm()), abs=1e-12)
    assert found["error_g"] == pytest.approx(float((g(z) - g(word)).norm()), abs=1e-12)
    assert max(found["error_f"], found["error_g"]) <= 0.1
    assert (found["method"], found["input_length"]) == (method, 5000)
    assert imread(found["files"]["figure"]).shape[0] > 300


def test_simulate_from_counts_at_ten_to_the_twelve(capsys, tmp_path):
    found = told(capsys, tmp_path, "simulate", "modp:period=2,residue=1", "modp", "--length", str(10**12))
    assert found["input_length"] == 10**12
    assert found["length"] < 10**5
    assert found["error_f"] <= found["guaranteed_f"] <= 0.1


def test_simulate_a_file_and_a_spelled_input(capsys, tmp_path):
    (tmp_path / "long.txt").write_text("0 1 1 0\n" * 300)
    words = ("simulate", "simple", "simple:omega=4", "--tolerance", "0.5")
    from_file = told(capsys, tmp_path, *words, "--input-file", str(tmp_path / "long.txt"))
    spelled = told(capsys, tmp_path, *words, "--input", "0110" * 300)
    assert from_file["tokens"] == spelled["tokens"]
    assert main([*words, "--input", "0110" * 300, "--output", str(tmp_path)]) == 0
    assert "1,200 tokens imitated by" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("method", ["markov", "stratified", "balanced"])
def test_simulate_two_layers(capsys, tmp_path, method):
    models = ("induction:vocabulary=3,tolerance=0.5", "kgram:k=2,vocabulary=3,tolerance=0.5")
    words = ("simulate", *models, "--length", "3000", "--method", method, "--tolerance", "0.2")
    found = told(capsys, tmp_path, *words)
    f, g = map(lw.constructions.named, models)
    x = torch.randint(3, (3000,), generator=torch.Generator().manual_seed(0))
    z = torch.tensor(found["tokens"])
    for model, error in ((f, found["error_f"]), (g, found["error_g"])):
        assert error == pytest.approx(float((model(z) - model(x)).norm()), abs=1e-9)
        assert error <= 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("bound", "F"),
        ("bound simple nothing", "'nothing' is no file, no run's folder, no construction"),
        ("bound simple kgram", "f and g must have one vocabulary, got 2 and 3 tokens"),
        ("bound simple simple --tolerance -1", "tolerance must be a finite number of at least 0"),
        ("bound simple modp --tolerance inf", "tolerance must be a finite number of at least 0"),
        ("simulate simple modp --time-limit nan --length 50", "time_limit must be a positive number"),
        ("bound simple simple:omega=4 --output /proc/none", "cannot make the folder /proc/none"),
        ("simulate kgram:k=1,vocabulary=2 --output /proc/none", "cannot make the folder /proc/none"),
        ("simulate simple modp --method balanced", "method must be one of counts, shortest"),
        ("simulate simple modp --method best", "invalid choice 'best'"),
        ("simulate simple modp --length 0", "length must be between 1 and 2^53, got 0"),
        ("simulate simple modp --length -3", "length must be between 1 and 2^53, got -3"),
        ("simulate simple modp --seed -3", "seed must be a whole number of at least 0"),
        ("simulate simple modp --input 01 --input-file x", "by --input or by --input-file, not by both"),
        ("simulate simple modp --input-file nowhere", "cannot read nowhere: No such file"),
        ("simulate kgram induction --length 1000000000000", "a string must be given by its tokens"),
    ],
)
def test_mistakes(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in fails(capsys, *arguments.split())


def test_broken_runs(capsys, tmp_path, monkeypatch, runs):
    """A run's folder whose weights are missing or foreign is one clear line."""
    import shutil

    monkeypatch.chdir(tmp_path)
    for spoil in ("", "not weights"):
        folder = tmp_path / "store" / runs[0].name
        shutil.rmtree(tmp_path / "store", ignore_errors=True)
        shutil.copytree(runs[0], folder)
        (folder / "weights.safetensors").unlink()
        if spoil:
            (folder / "weights.safetensors").write_text(spoil)
        assert "cannot be read as weights" in fails(capsys, "inspect", str(folder))
    (folder / "spec.json").write_text("{}")
    assert "cannot be read as the specification" in fails(capsys, "inspect", str(folder))


MAJORITY = "crasp:binary-majority,form=relu,longest=40"


def test_a_compiled_program_is_a_model(capsys, tmp_path):
    """Bound and simulation of majority, by one command."""
    word = "(0110)^3000 (1)^20"
    found = told(capsys, tmp_path, "simulate", MAJORITY, "--input", word, "--tolerance", "0.2")
    majority = lw.crasp.library.named("binary-majority").program
    f = lw.crasp.compile(majority, "relu", longest=40)
    x = torch.tensor(lw.crasp.encode(majority, "0110" * 3000 + "1" * 20))
    assert found["input_length"] == len(x)
    assert found["length"] < len(x)
    z = torch.tensor(found["tokens"])
    assert abs(float(f(z)) - float(f(x))) == pytest.approx(found["error_f"], abs=1e-12)
    assert found["error_f"] <= 0.2
    expected = lw.bound(f, None, 0.2)
    assert (found["bound"]["length"], found["bound"]["certified"]) == (expected.length, True)
    assert found["length"] <= expected.length
    assert main(["simulate", MAJORITY, "--length", "50", "--output", str(tmp_path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "counts: 51 tokens imitated by" in printed
    assert "If f and any g with its constants agree to within e on every input of at most" in printed


def test_a_bound_for_one_model_alone(capsys, tmp_path):
    alone = told(capsys, tmp_path, "bound", MAJORITY, "--tolerance", "0.3")
    f = lw.crasp.compile(lw.crasp.library.named("binary-majority").program, "relu", longest=40)
    assert alone["length"] == lw.bound(f, None, 0.3).length
    assert alone["g"] is None
    both = told(capsys, tmp_path, "bound", MAJORITY, "zero:vocabulary=3", "--tolerance", "0.3")
    assert both["length"] == lw.bound(f, lw.constructions.constant(3), 0.3).length < alone["length"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bound", "crasp:binary-majorty"], "did you mean"),
        (
            ["bound", "crasp:binary-majority,for=relu"],
            "expected crasp:PROGRAM,form=relu,longest=100, got 'for=relu'",
        ),
        (["bound", "crasp:binary-majority,form=step"], "form must be"),
        (["bound", "crasp:binary-majority,longest=-3"], "longest must be a whole number, got '-3'"),
        (["simulate", MAJORITY, "--input", "(01)^(10^12)"], "at most 10,000,000 letters"),
        (["simulate", MAJORITY, "--input", "0102"], "'2'"),
        (["bound", "crasp:parity"], "no program for 'parity'"),
    ],
)
def test_mistakes_about_programs(capsys, tmp_path, arguments, message):
    assert message in fails(capsys, *arguments, "--output", str(tmp_path))
