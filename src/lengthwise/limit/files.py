"""Limit transformers as files: safetensors with a JSON header, so that loading runs no code."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from lengthwise._files import replacing
from lengthwise._messages import one_line
from lengthwise.limit.precision import Finite, Infinite, Precision
from lengthwise.limit.transformer import LAYER_TENSORS, TENSORS, LimitTransformer

FORMAT = "lengthwise limit transformer 1"


def save(f: LimitTransformer, path: Path | str) -> None:
    """Write a model; the file is complete or absent."""
    path = Path(path)
    precision = {"bits": f.precision.bits} if isinstance(f.precision, Finite) else None
    about = {"activations": [layer.activation for layer in f.layers], "finite": precision}
    tensors = {name: tensor.cpu().contiguous() for name, tensor in f.tensors().items()}
    with replacing(path) as temporary:
        try:
            save_file(tensors, temporary, {"format": FORMAT, "model": json.dumps(about)})
        except SafetensorError as error:
            raise OSError(one_line(error)) from error


def load(path: Path | str) -> LimitTransformer:
    """Read a model; ``ValueError`` says what is wrong with a file that holds none."""
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                raise ValueError(f"its format is {header.get('format')!r}, expected {FORMAT!r}")
            about = json.loads(header["model"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        return _build(about, tensors)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{one_line(path)} cannot be read as a limit transformer: {one_line(error)}"
        ) from error


def _build(about: dict[str, Any], tensors: dict[str, Any]) -> LimitTransformer:
    activations = about["activations"]
    expected = {*TENSORS, *(f"layers.{i}.{name}" for i in range(len(activations)) for name in LAYER_TENSORS)}
    if set(tensors) != expected:
        wrong = sorted(set(tensors) ^ expected)
        raise ValueError(f"tensors missing or surplus: {', '.join(wrong)}")
    precision: Precision = Finite(**about["finite"]) if about["finite"] is not None else Infinite()
    return LimitTransformer.from_tensors(tensors, precision, activations)
