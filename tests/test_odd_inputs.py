"""What users give by mistake is told in one line that says what is wrong, wherever it comes in.

The cases are what ``benchmarks/fuzz.py`` found, made small.
"""

import hashlib
import json
import os
import pickle
import re
import struct
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

import lengthwise as lw
import odd_calls
from lengthwise._messages import one_line, printable, shown
from lengthwise.cli import main
from lengthwise.limit.files import FORMAT

F = lw.constructions.simple_task(4, 8)
TWO = lw.constructions.k_gram(1, 2, 0.1)
RUN = lw.Run(lw.task("simple"), lw.LimitModel(), lw.Training(length=8))


@pytest.fixture(scope="module")
def said():
    """What every call says, where shapes are not checked."""
    script = Path(odd_calls.__file__)
    source = str(script.parents[1] / "src")
    environment = {**os.environ, "PYTHONPATH": source, "PYTHONWARNINGS": "error::UserWarning"}
    told = subprocess.run([sys.executable, script], capture_output=True, check=True, env=environment)
    return json.loads(told.stdout)


@pytest.mark.parametrize("case", odd_calls.CASES)
def test_a_mistake_is_one_line(said, case):
    kind, message = said[case]
    assert kind == "ValueError", message
    assert re.search(odd_calls.CASES[case][1], message), message
    assert message.isprintable()


def test_values_are_shown_in_a_few_words():
    assert shown(torch.tensor([[0, 1], [1, 0]])) == "tensor([[0, 1], [1, 0]])"
    assert shown("x" * 5000).startswith("'xxx")
    assert len(shown("x" * 5000)) <= 80
    assert shown(10**5000) == f"a number of {(10**5000).bit_length()} bits"
    assert one_line("a\x1b[31m\nb\x00") == r"a\x1b[31m b\x00"
    assert printable("a  b\tc\udcff") == r"a  b\tc\udcff"
    assert len(one_line("y" * 10_000)) < 1100


def test_weights_that_overflow_are_refused_when_they_do():
    large = lw.LimitTransformer(F.embedding * 1e200, F.positions, F.layers, F.readout * 1e200, F.precision)
    with pytest.raises(ValueError, match=r"the output is not finite: .* float64 overflows"):
        large([0, 0])
    with pytest.raises(ValueError, match="the output is not finite"):
        large.evaluate_counts(lw.summarize(torch.tensor([0, 0, 0]), 2))


def test_an_empty_batch_has_no_outputs():
    assert TWO(torch.zeros(0, 3, dtype=torch.long)).shape == (0, 2)


def header(path, model):
    tensors = {name: tensor.contiguous() for name, tensor in F.tensors().items()}
    save_file(tensors, path, {"format": FORMAT, "model": model})


def test_a_header_nested_without_end(tmp_path):
    header(tmp_path / "deep", "[" * 100_000)
    with pytest.raises(ValueError, match="cannot be read as a limit transformer: maximum recursion depth"):
        lw.LimitTransformer.load(tmp_path / "deep")


def test_names_in_a_file_do_not_reach_the_terminal(tmp_path):
    tensors = {**F.tensors(), "\x1b[31mred": torch.zeros(1)}
    about = json.dumps({"activations": ["relu"], "finite": {"bits": 16}})
    save_file(
        {name: one.contiguous() for name, one in tensors.items()},
        tmp_path / "f",
        {"format": FORMAT, "model": about},
    )
    with pytest.raises(ValueError, match=r"surplus: \\x1b\[31mred"):
        lw.LimitTransformer.load(tmp_path / "f")


class Payload:
    def __reduce__(self):
        return open, ("ran", "w")


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_is_not_run(tmp_path, monkeypatch, protocol):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").write_bytes(pickle.dumps(Payload(), protocol=protocol))
    torch.save(Payload(), tmp_path / "zipped")
    for name in ("model", "zipped"):
        with pytest.raises(ValueError, match="cannot be read as a limit transformer"):
            lw.LimitTransformer.load(name)
    assert not (tmp_path / "ran").exists()


def test_a_header_that_claims_terabytes(tmp_path):
    F.save(tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    told = json.loads(data[8 : 8 + size])
    told["embedding"]["shape"] = [2**40, 2**20]
    text = json.dumps(told).encode()
    (tmp_path / "model").write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])
    with pytest.raises(ValueError, match="cannot be read as a limit transformer"):
        lw.LimitTransformer.load(tmp_path / "model")


@pytest.fixture
def store(tmp_path):
    from lengthwise.experiments import Result
    from lengthwise.experiments.results import metrics_frame

    found = lw.Store(tmp_path / "store")
    rows = metrics_frame(RUN, [(1, 8, "loss", 0.5)])
    found.add([Result(RUN, rows, {"embedding": torch.zeros(2, 2)})])
    return found


def test_rows_of_another_run_are_not_taken(store):
    path = store.folder / RUN.id / "metrics.parquet"
    rows = pd.read_parquet(path).assign(run="another")
    rows.to_parquet(path, index=False)
    (store.folder / RUN.id / "SHA256SUMS").write_text(sums_of(store.folder / RUN.id))
    with pytest.raises(ValueError, match="it has rows of another run"):
        store.metrics(RUN)


def test_a_specification_nested_without_end(store):
    (store.folder / RUN.id / "spec.json").write_text("[" * 100_000)
    (store.folder / RUN.id / "SHA256SUMS").write_text(sums_of(store.folder / RUN.id))
    with pytest.raises(
        ValueError, match=r"spec.json cannot be read as the specification of a run: maximum rec"
    ):
        store.specification(store.folder / RUN.id)
    with pytest.warns(UserWarning, match="1 of 1 runs in .* cannot be read"):
        assert store.runs() == []


def sums_of(folder):
    files = ("spec.json", "metrics.parquet", "weights.safetensors")
    return "".join(f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in files)


def test_a_folder_with_a_line_break(store, capsys):
    (store.folder / "a\nb").mkdir()
    assert main(["runs", str(store.folder), "--json"]) == 1
    assert "a\nb" in [one["path"] for one in json.loads(capsys.readouterr()[0])["wrong"]]
    assert main(["runs", str(store.folder)]) == 1
    assert "wrong: a\\nb: a folder that is no run" in capsys.readouterr()[0].splitlines()


def told(capsys, *arguments):
    assert main(arguments) == 2
    out, line = capsys.readouterr()
    assert out == ""
    assert line.startswith("lengthwise: ")
    assert line.removesuffix("\n").isprintable()
    return line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inspect", "a\x1b[31mb\nc"), r"'a\x1b[31mb\nc' is no file"),
        (("inspect", "a\x00b"), "a name has no NUL character"),
        (("inspect", "zero:vocabulary=10000000000"), "more than 134,217,728"),
        (
            ("simulate", "zero", "--input-file", "/dev/zero"),
            "cannot read /dev/zero: it has more than 268,435,456",
        ),
        (("train", "simple", "--batch", "1000000000000"), "batch must be at most 16,777,216"),
        (("train", "tomita-1", "--width", "1000000000", "--heads", "1"), "the model would have"),
        (("train", "kgram", "--k", "50"), "take a smaller k or vocabulary"),
        (("train", "kgram", "--seed", "1" + "0" * 30), "seed must be at most"),
    ],
)
def test_mistakes_on_the_command_line(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in told(capsys, *arguments)


@pytest.mark.parametrize("folder", ["[/red]", "[bold]x", "a\x1b[31mb", "a  b"])
def test_folders_are_printed_as_they_are(capsys, tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    assert main(["inspect", "zero", "--output", folder]) == 0
    assert f"figure: {printable(folder)}/attention.png" in capsys.readouterr().out
    assert (tmp_path / folder / "attention.png").is_file()


def test_letters_that_look_like_markup_and_mathematics(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = r'%alphabet "a" "[/red]" "$\\frac$"\naccept = # "[/red]" > # [i - j == 1] "a"'
    assert main(["crasp", "trace", program, r"a[/red]$\frac$", "--output", "out"]) == 0
    shown_there = capsys.readouterr().out
    assert "[i - j == 1]" in shown_there
    assert "[/red]" in shown_there
    assert (tmp_path / "out" / "trace.png").is_file()


@pytest.mark.parametrize(
    "arguments",
    [
        "train kgram --vocabulary 1 --steps 2 --longest-test 1000",  # the best constant answer has no loss
        "bound zero --tolerance 0",  # no tolerance can be drawn on a logarithmic axis
    ],
)
def test_what_cannot_be_drawn_is_left_out(capsys, tmp_path, monkeypatch, arguments):
    """Warnings are errors in tests; the command does all the rest."""
    monkeypatch.chdir(tmp_path)
    assert main([*arguments.split(), "--json"]) == 0
    printed = capsys.readouterr()
    assert "lengthwise:" not in printed.err
    assert isinstance(json.loads(printed.out), dict)
