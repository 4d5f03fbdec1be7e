"""``lengthwise inspect``: it tells what the model says of itself, and the picture is its attention."""

import json

import numpy as np
import pytest
import torch
from matplotlib.image import imread
from test_main import fails

import lengthwise as lw
from lengthwise.cli import main
from lengthwise.limit.norms import lipschitz
from lengthwise.reporting.inspection import attention_figure


def inspected(capsys, tmp_path, *arguments):
    assert main(["inspect", *arguments, "--json", "--output", str(tmp_path / "out")]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_file_and_the_construction_it_holds(capsys, tmp_path):
    f = lw.constructions.mod_p(5, 2, bits=3)
    f.save(tmp_path / "model.safetensors")
    found = inspected(capsys, tmp_path, str(tmp_path / "model.safetensors"), "--input", "0110100")
    assert (found["period"], found["locality"], found["vocabulary"], found["bits"]) == (5, 0, 2, 3)
    assert (
        (found["logit_margin"], found["hardmax_length"]) == (f.logit_margin(), f.hardmax_length()) == (3, 2)
    )
    assert found["output"] == [0.5]  # positions 2 and 7 hold 1 and 0
    assert (found["lipschitz"], found["complexity"]) == (lipschitz(f), f.complexity())
    assert imread(found["files"]["figure"]).shape[0] > 300


def test_two_layers_in_infinite_precision(capsys, tmp_path):
    found = inspected(capsys, tmp_path, "kgram:k=2,vocabulary=3,tolerance=0.1")
    assert found["regimes"] == [["position", "position"], ["token"]]
    assert (found["positional_margin"], found["hardmax_length"], found["bits"]) == (1, None, None)
    assert len(found["input"]) == 24
    again = inspected(capsys, tmp_path, "kgram:k=2,vocabulary=3,tolerance=0.1", "--seed", "1")
    assert again["input"] != found["input"]


def test_a_hardmax_length_too_long_to_write(capsys, tmp_path):
    f = lw.constructions.mod_p(2, 1, bits=1)
    layer = f.layers[0]
    weak = lw.LimitLayer(layer.key_query / 5000, *(getattr(layer, name) for name in NAMES))
    lw.LimitTransformer(f.embedding, f.positions, (weak,), f.readout, lw.Finite(1)).save(tmp_path / "weak")
    found = inspected(capsys, tmp_path, str(tmp_path / "weak"))
    assert found["hardmax_length"] is None
    assert found["log2_hardmax_length"] == pytest.approx(5000)
    assert main(["inspect", str(tmp_path / "weak"), "--output", str(tmp_path)]) == 0
    assert "2^5000" in capsys.readouterr().out


NAMES = ("value", "local", "mlp_in", "mlp_bias", "mlp_out")


def test_tables_tell_margins_and_regimes(capsys, tmp_path):
    for model, told in (
        ("simple", ("16 bits", "hardmax length", "sensitivity", "15.96")),
        ("induction", ("infinite", "positional margin", "position", "token")),
    ):
        assert main(["inspect", model, "--output", str(tmp_path)]) == 0
        printed = capsys.readouterr().out
        assert all(word in printed for word in told)


def test_the_picture_is_the_attention():
    """ModPTask: the query at 7 attends evenly to positions 2 and 7, and to nothing else."""
    figure = attention_figure(lw.constructions.mod_p(5, 2), torch.tensor([0, 1, 1, 0, 1, 0, 0]))
    (image,) = figure.axes[0].get_images()
    shown = np.asarray(image.get_array())
    np.testing.assert_allclose(shown[6], [0, 0.5, 0, 0, 0, 0, 0.5])
    assert np.ma.getmaskarray(image.get_array())[0, 1:].all()  # the future is left blank
    panels = attention_figure(lw.constructions.k_gram(3, 2, 0.1), torch.zeros(60, dtype=torch.long)).axes
    assert [axes.get_title("left") for axes in panels[:4]] == [
        "layer 1, head 1 (position)",
        "layer 1, head 2 (position)",
        "layer 1, head 3 (position)",
        "layer 2, head 1 (token)",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nothing", "'nothing' is no file, no run's folder, no construction (simple, modp, kgram, induction"),
        ("simple:omega=-1", "omega must be positive"),
        ("simple --input 012", "tokens must be between 0 and 1 (vocabulary 2), got 0 to 2"),
        ("simple --input 0x1", "an input is digits (01101) or numbers with commas, got '0x1'"),
        ("simple --input 0,x,1", "an input is digits"),
        ("simple --input 99999999999999999999,0", "an input is digits"),
        ("simple --seed -1", "seed must be a whole number"),
        (f"simple --input {'01' * 300}", "a picture of attention takes at most 512 tokens, got 600"),
        ("simple --output /proc/none", "cannot make the folder /proc/none"),
        ("/dev/null", "cannot be read as a limit transformer"),
        (".", "cannot be read as a limit transformer"),
    ],
)
def test_mistakes(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in fails(capsys, "inspect", *arguments.split())


def test_empty_input(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "the input is empty" in fails(capsys, "inspect", "simple", "--input", "")
