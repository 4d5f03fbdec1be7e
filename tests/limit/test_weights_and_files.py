"""What is not a limit transformer is refused, in memory and on disk, in one clear line."""

import contextlib
import dataclasses
import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import RECIPES, build
from safetensors.torch import load_file, save_file

import lengthwise as lw

RECIPE = {
    "precision": lw.Finite(8),
    "activation": "relu",
    "vocabulary": 3,
    "width": 4,
    "period": 2,
    "localities": [1, 2],
    "heads": 2,
    "hidden": 5,
    "outputs": 1,
    "weights": "normal",
    "length": 6,
    "one_token": False,
    "seed": 0,
}


def model():
    return build(RECIPE)[0]


def test_sizes_are_derived():
    f = model()
    assert (f.vocabulary, f.period, f.locality, f.outputs) == (3, 2, 2, 1)
    assert [layer.locality for layer in f.layers] == [1, 2]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("embedding", torch.zeros(0, 4).double(), "the vocabulary must not be empty"),
        ("embedding", torch.zeros(3, 4), "embedding must be float64, got float32"),
        ("embedding", torch.full((3, 4), float("nan")).double(), "embedding must be finite"),
        ("embedding", torch.zeros(3, 5).double(), r"positions has shape \(2, 4\), expected \(2, 5\)"),
        ("positions", torch.zeros(2, 3).double(), r"positions has shape \(2, 3\), expected \(2, 4\)"),
        ("positions", torch.zeros(0, 4).double(), "the period must be at least 1"),
        ("positions", torch.zeros(4).double(), r"positions must have 2 axes, got shape \(4,\)"),
        ("readout", torch.zeros(1, 3).double(), r"readout has shape \(1, 3\), expected \(1, 4\)"),
        ("layers", (), "at least one layer"),
    ],
)
def test_bad_models(field, value, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(model(), **{field: value})


@pytest.mark.parametrize(
    ("field", "shape", "message"),
    [
        ("key_query", (2, 4, 3), r"key_query has shape \(2, 4, 3\), expected \(2, 3, 3\)"),
        ("value", (1, 4, 4), r"value has shape \(1, 4, 4\), expected \(2, 4, 4\)"),
        ("local", (3, 2), r"local has shape \(3, 2\), expected \(2, 2\)"),
        ("local", (2, 0), r"local has shape \(2, 0\), expected \(2, 1\)"),
        ("mlp_in", (4, 4), r"mlp_in has shape \(4, 4\), expected \(5, 4\)"),
        ("mlp_bias", (6,), r"mlp_in has shape \(5, 4\), expected \(6, 4\)"),
        ("mlp_out", (5, 4), r"mlp_out has shape \(5, 4\), expected \(4, 5\)"),
    ],
)
def test_bad_layers(field, shape, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(model().layers[0], **{field: torch.zeros(shape, dtype=torch.float64)})


def test_a_layer_of_another_width():
    f, other = model(), build({**RECIPE, "width": 3})[0]
    with pytest.raises(ValueError, match=r"layers\[1\].key_query has shape \(2, 3, 3\), expected"):
        dataclasses.replace(f, layers=(f.layers[0], other.layers[0]))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([0, 3], "between 0 and 2"),
        ([-1], "between 0 and 2"),
        (torch.zeros(0, dtype=torch.long), "at least one token"),
        (torch.zeros(2, dtype=torch.float64), "whole numbers"),
        (torch.zeros((1, 1, 1), dtype=torch.long), "one or two axes"),
    ],
)
def test_bad_tokens(tokens, message):
    with pytest.raises(ValueError, match=message):
        model()(tokens)


def test_weights_cannot_be_changed_from_outside():
    embedding = torch.ones(3, 4, dtype=torch.float64)
    f = dataclasses.replace(model(), embedding=embedding)
    embedding.zero_()
    assert (f.embedding == 1).all()
    with pytest.raises(dataclasses.FrozenInstanceError):
        f.embedding = embedding


@settings(max_examples=30)
@given(RECIPES)
def test_a_file_gives_back_the_same_model(tmp_path_factory, recipe):
    f, tokens = build(recipe)
    path = tmp_path_factory.mktemp("models") / "f.safetensors"
    f.save(path)
    g = lw.LimitTransformer.load(path)
    assert g.precision == f.precision
    assert [layer.activation for layer in g.layers] == [layer.activation for layer in f.layers]
    for name, tensor in f.tensors().items():
        assert torch.equal(g.tensors()[name], tensor)
    assert torch.equal(g(tokens), f(tokens))
    assert [file.name for file in path.parent.iterdir()] == ["f.safetensors"]


@settings(max_examples=150)
@given(st.data())
def test_truncated_and_flipped_files_give_one_clear_error_or_a_valid_model(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("models") / "f.safetensors"
    model().save(path)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 5))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with contextlib.suppress(ValueError):
        assert isinstance(lw.LimitTransformer.load(path), lw.LimitTransformer)
        return
    with pytest.raises(ValueError, match=r"^\S+ cannot be read as a limit transformer: [^\n]+$"):
        lw.LimitTransformer.load(path)


def test_files_of_other_kinds(tmp_path):
    path = tmp_path / "f.safetensors"
    f = model()
    for damage, message in (
        (lambda tensors, header: header.update(format="other"), "its format is 'other'"),
        (lambda tensors, header: tensors.pop("readout"), "missing or surplus: readout"),
        (lambda tensors, header: tensors.update(extra=torch.zeros(1)), "missing or surplus: extra"),
        (lambda tensors, header: tensors.update(readout=torch.zeros(1, 9).double()), r"readout has shape"),
        (lambda tensors, header: header.update(model="{"), "cannot be read"),
        (
            lambda tensors, header: header.update(model=json.dumps({"activations": ["relu", "relu"]})),
            "finite",
        ),
    ):
        f.save(path)
        tensors = load_file(path)
        about = {"activations": ["relu", "relu"], "finite": {"bits": 8}}
        header = {"format": "lengthwise limit transformer 1", "model": json.dumps(about)}
        damage(tensors, header)
        save_file(tensors, path, header)
        with pytest.raises(ValueError, match=message):
            lw.LimitTransformer.load(path)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match="cannot be read as a limit transformer"):
        lw.LimitTransformer.load(tmp_path / "text")
    with pytest.raises(ValueError, match="cannot be read as a limit transformer"):
        lw.LimitTransformer.load(tmp_path / "absent")
    with pytest.raises(OSError, match="cannot write"):
        f.save(tmp_path / "no" / "folder" / "f")
