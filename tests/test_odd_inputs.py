"""What users give by mistake is told in one line that says what is wrong, wherever it comes in.

The cases are what ``benchmarks/fuzz.py`` found, made small.
"""

import json
import pickle
import struct

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import lengthwise as lw
from lengthwise._messages import one_line, printable, shown
from lengthwise.cli import main
from lengthwise.limit.files import FORMAT

F = lw.constructions.simple_task(4, 8)
G = lw.constructions.mod_p(2, 1)
TWO = lw.constructions.k_gram(1, 2, 0.1)
MAJORITY = lw.crasp.parse('accept = # "1" > # "0"')
RUN = lw.Run(lw.task("simple"), lw.LimitModel(), lw.Training(length=8))
CURVE = {"lengths": [1, 2, 4], "losses": [0.1] * 3, "errors": [0.0] * 3}

CASES = {
    "text for tokens": (lambda: F("0101"), "tokens must be an array of whole numbers, got '0101'"),
    "None among tokens": (lambda: F([0, None]), r"array of whole numbers, got \[0, None\]"),
    "a token beyond 64 bits": (lambda: F([0, 10**30]), "tokens must be an array of whole numbers"),
    "a token of uint64": (
        lambda: F(torch.tensor([2**63], dtype=torch.uint64)),
        "tokens must be between 0 and 1",
    ),
    "a method that is a list": (
        lambda: F.evaluate([0], ["fast"]),
        "method must be 'fast' or 'reference', got",
    ),
    "a list of arrays": (lambda: F([np.array([0, 2])]), "tokens must be between 0 and 1"),
    "a tolerance that is text": (
        lambda: lw.simulate(F, G, [0, 1], "x"),
        "tolerance must be a number, got 'x'",
    ),
    "a tolerance without bound": (lambda: lw.bound(F, G, 10**400), r"tolerance must be less than 10\^308"),
    "no draws": (
        lambda: lw.simulate(TWO, TWO, [0, 1], 0.1, draws=0),
        "draws must be a whole number of at least 1",
    ),
    "a length of True": (lambda: lw.divergence(F, G, True), "length must be a whole number, got True"),
    "no concentration": (lambda: lw.average_error(F, G, 3, None), "concentration must be a list, got None"),
    "a tiny concentration": (
        lambda: lw.average_error(F, G, 3, 5e-324),
        "concentration must be at least 1e-300",
    ),
    "a huge concentration": (
        lambda: lw.average_error(F, G, 8, 1e15),
        "cannot be summed in float64: give samples",
    ),
    "lengths that are one": (lambda: lw.evaluate(F, RUN.task, 3), "test lengths must be a list, got 3"),
    "half a sequence": (
        lambda: lw.evaluate(F, RUN.task, [3], sequences=0.5),
        "sequences must be a whole number",
    ),
    "a seed beyond 64 bits": (lambda: lw.Training(length=8, seed=2**63), "seed must be at most 9,223,372"),
    "strings beyond memory": (
        lambda: lw.evaluate(TWO, lw.task("kgram", k=1, vocabulary=2), [2**50], sequences=2),
        "too many to be made at once",
    ),
    "words beyond counting": (
        lambda: lw.evaluate(F, lw.task("tomita-1"), [10**6]),
        "words of up to 20,000 letters are counted, got 1,000,000",
    ),
    "an empty curve": (lambda: lw.plateau([], [], []), "at least one, got 0, 0 and 0"),
    "a curve that goes back": (
        lambda: lw.plateau(**{**CURVE, "lengths": [4, 2, 1]}),
        "must be finite and increase",
    ),
    "losses of another curve": (
        lambda: lw.plateau(**{**CURVE, "losses": [0.1]}),
        "as many losses and errors",
    ),
    "a symbol that is none": (lambda: MAJORITY([0, None]), "symbol None at position 2 is no whole number"),
    "a word that is a number": (lambda: MAJORITY(3), "a word must be a list, got 3"),
    "an expression that is a number": (
        lambda: lw.crasp.decide(3),
        "a regular expression must be text, got 3",
    ),
    "letters that are numbers": (
        lambda: lw.crasp.decide("a", [1]),
        "a letter of a regular expression is one char",
    ),
    "a period that is text": (
        lambda: lw.crasp.decide("a", positional=True, most_period="x"),
        "most_period must be a whole number of at least 1, got 'x'",
    ),
    "a weight that is too large": (
        lambda: lw.crasp.compile(lw.crasp.parse(f'accept = # "a" > {"9" * 400}')),
        "too large to be a weight in float64",
    ),
    "a task without a name": (lambda: lw.task(None), "there is no task None; there are: simple, modp"),
    "a language without a name": (lambda: lw.language(None, "a"), "a name has small letters, .* got None"),
    "contexts without end": (
        lambda: lw.task("kgram", k=64, vocabulary=3),
        r"there are 3\^64 contexts, more than",
    ),
    "a period without end": (lambda: lw.task("modp", period=10**30), "period must be at most 65,536"),
    "a locality of True": (
        lambda: lw.LimitModel(locality=True),
        "locality, unless it is None, must be a whole",
    ),
    "a precision that is a number": (
        lambda: lw.LimitModel(precision=8),
        r"precision must be Finite\(bits\) or",
    ),
    "positions that are a list": (
        lambda: lw.DecoderModel(positions=["none"]),
        "positions must be one of none",
    ),
    "ends that are one": (
        lambda: lw.DecoderEvaluation(ends=50),
        "the ends of the bins must be a list, got 50",
    ),
    "test lengths that are one": (lambda: lw.Evaluation(lengths=50), "test lengths must be a list, got 50"),
    "a batch without end": (lambda: lw.Training(length=8, batch=10**12), "batch must be at most 16,777,216"),
    "a model that is a number": (lambda: RUN.but(model=3), "the model of a run must be one, got 3"),
    "choices that are one": (lambda: lw.vary(RUN, omega=4), "the choices of omega must be a list, got 4"),
    "knots without end": (
        lambda: lw.constructions.simple_task(2, 10**12),
        "knots must be at most 16,777,216",
    ),
    "weights without end": (
        lambda: lw.constructions.k_gram(2**31, 3, 0.1),
        "this model would have 45097156650 weig",
    ),
    "knots that are halves": (lambda: lw.constructions.simple_task(2, 1.5), "knots must be a whole number"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_one_line(case):
    call, message = CASES[case]
    with pytest.raises(ValueError, match=message) as refused:
        call()
    assert str(refused.value).isprintable()


def test_values_are_shown_in_a_few_words():
    assert shown(torch.tensor([[0, 1], [1, 0]])) == "tensor([[0, 1], [1, 0]])"
    assert shown("x" * 5000).startswith("'xxx") and len(shown("x" * 5000)) <= 80
    assert shown(10**5000) == f"a number of {(10**5000).bit_length()} bits"
    assert one_line("a\x1b[31m\nb\x00") == r"a\x1b[31m b\x00"
    assert printable("a  b\tc\udcff") == r"a  b\tc\udcff"
    assert len(one_line("y" * 10_000)) < 1100


def test_weights_that_overflow_are_refused_when_they_do():
    large = lw.LimitTransformer(F.embedding * 1e200, F.positions, F.layers, F.readout * 1e200, F.precision)
    with pytest.raises(ValueError, match="the output is not finite: .* float64 overflows"):
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
    store.metrics(RUN).assign(run="another").to_parquet(path, index=False)
    with pytest.raises(ValueError, match=f"holds rows of other runs than {RUN.id}"):
        store.metrics(RUN)


def test_a_specification_nested_without_end(store):
    (store.folder / RUN.id / "spec.json").write_text("[" * 100_000)
    with pytest.raises(
        ValueError, match=r"spec.json cannot be read as the specification of a run: maximum rec"
    ):
        store.runs()


def test_a_folder_with_a_line_break(store):
    (store.folder / "a\nb").mkdir()
    with pytest.raises(ValueError, match="cannot be read as the specification of a run") as refused:
        store.runs()
    assert str(refused.value).isprintable()


def told(capsys, *arguments):
    assert main(arguments) == 2
    out, line = capsys.readouterr()
    assert out == "" and line.startswith("lengthwise: ") and line.endswith("\n") and line[:-1].isprintable()
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
    assert "[i - j == 1]" in shown_there and "[/red]" in shown_there
    assert (tmp_path / "out" / "trace.png").is_file()
