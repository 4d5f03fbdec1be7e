"""Door: files of weights."""

import io
import json
import os
import pickle
import random
import struct
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from fuzz_doors import guard
from fuzz_doors.door import Door, require
from fuzz_doors.values import damaged, mutated, plain
from lengthwise import Finite, LimitTransformer, constructions
from lengthwise.limit.files import FORMAT

CANARY = "canary"
"""A file that would lie in the folder if code of a file had run."""


@cache
def _good() -> list[tuple[dict[str, str], dict[str, torch.Tensor]]]:
    """Good files, as header and tensors."""
    models = [
        constructions.simple_task(4, 3),
        constructions.mod_p(3, 1),
        constructions.k_gram(1, 2, 0.1),
        constructions.constant(2),
    ]
    found = []
    for f in models:
        finite = {"bits": f.precision.bits} if isinstance(f.precision, Finite) else None
        about = {"activations": [layer.activation for layer in f.layers], "finite": finite}
        found.append(({"format": FORMAT, "model": json.dumps(about)}, f.tensors()))
    return found


class _Malicious:
    def __reduce__(self) -> Any:
        return os.system, (f"touch {CANARY}",)


class _Opens:
    def __reduce__(self) -> Any:
        return open, (CANARY, "w")


def pickles(source: random.Random) -> bytes:
    """What would run code if it were loaded as Python objects."""
    payload: Any = source.choice([_Malicious(), _Opens(), [_Opens()], {"embedding": _Malicious()}])
    if source.random() < 0.5:
        return pickle.dumps(payload, protocol=source.randint(0, 5))
    file = io.BytesIO()
    torch.save(payload, file, _use_new_zipfile_serialization=source.random() < 0.5)
    return file.getvalue()


def _packed(header: Any, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(text)) + text + data


def _odd_tensors(source: random.Random) -> bytes:
    """A well-formed file of tensors that make no model, or an odd one."""
    header, tensors = source.choice(_good())
    tensors = dict(tensors)
    for _ in range(source.choice([1, 1, 2])):
        name = source.choice(list(tensors))
        tensor = tensors[name]
        match source.randrange(8):
            case 0:
                del tensors[name]
            case 1:
                extra = source.choice(["x", "layers.7.value", "", "\n", "\x1b[31m", "a" * 300])
                tensors[extra] = torch.zeros(2)
            case 2:
                kind = source.choice(
                    [torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.complex64]
                )
                tensors[name] = tensor if tensor.is_complex() else tensor.to(kind)
            case 3:
                tensors[name] = tensor.unsqueeze(source.randint(0, tensor.dim()))
            case 4:
                tensors[name] = torch.zeros([source.choice([0, 1, 2, 5, 40]) for _ in tensor.shape]).double()
            case 5 | 6:
                value = source.choice([float("nan"), float("inf"), 1e308, -1e308, 1e155, 5e-324, 1e30])
                filled = tensor.clone()
                if filled.numel() and filled.dtype == torch.float64:
                    filled.view(-1)[source.randrange(filled.numel())] = value
                tensors[name] = filled
            case _:
                tensors[name] = torch.randn(tensor.shape).double() * source.choice([1.0, 1e3, 1e160])
        if not tensors:
            break
    about = dict(header)
    if source.random() < 0.3:
        about["model"] = json.dumps(damaged(source, json.loads(about["model"])))
    about = {name: value.encode("utf-8", "replace").decode() for name, value in about.items()}
    return save({name: tensor.contiguous() for name, tensor in tensors.items()}, about)


def _odd_headers(source: random.Random) -> bytes:
    """A file whose header says what is not so."""
    header, tensors = source.choice(_good())
    data = save({name: tensor.contiguous() for name, tensor in tensors.items()}, header)
    size = struct.unpack("<Q", data[:8])[0]
    told, rest = json.loads(data[8 : 8 + size]), data[8 + size :]
    match source.randrange(6):
        case 0:
            told = damaged(source, told)
        case 1:
            name = source.choice([name for name in told if name != "__metadata__"])
            told[name]["shape"] = source.choice([[2**40, 2**20], [2**62], [-1, 3], [1e3], "x", [2**64], []])
        case 2:
            name = source.choice([name for name in told if name != "__metadata__"])
            told[name]["data_offsets"] = source.choice([[0, 2**60], [8, 0], [0, 8], [-8, 8], [], ["a", 1]])
        case 3:
            told["__metadata__"] = source.choice([{}, [], "x", {"format": FORMAT}, {"model": "{}"}, None])
        case 4:
            odd = [
                "[" * 100_000,
                "{" * 100_000,
                '{"a":' * 5000,
                "NaN",
                "1e999",
                '"\\ud800"',
                json.dumps(plain(source)),
            ]
            told["__metadata__"]["model"] = source.choice(odd)
        case _:
            about = damaged(source, json.loads(told["__metadata__"]["model"]))
            told["__metadata__"]["model"] = json.dumps(about)
    written = _packed(told, rest)
    if source.random() < 0.1:
        length = source.choice([0, 1, 2**31, 2**62, 2**64 - 1, size + 1])
        written = struct.pack("<Q", length) + written[8:]
    return written


def draw(source: random.Random) -> bytes:
    """The bytes of a file."""
    kind = source.random()
    if kind < 0.1:
        return pickles(source)
    if kind < 0.45:
        return _odd_tensors(source)
    if kind < 0.75:
        return _odd_headers(source)
    if kind < 0.97:
        header, tensors = source.choice(_good())
        return mutated(source, save({name: one.contiguous() for name, one in tensors.items()}, header))
    return source.choice(
        [b"", b"\x00", b"\x08" + bytes(7) + b"{}      ", source.randbytes(100), bytes(10**5)]
    )


def enter(given: bytes, folder: Path) -> None:
    """A file is refused, or is a model with finite outputs that comes back from its own file."""
    path = folder / "model.safetensors"
    path.write_bytes(given)
    with guard.no_code():
        try:
            f = LimitTransformer.load(path)
        finally:
            require(not (folder / CANARY).exists(), "code of the file was run")
    f.save(folder / "again.safetensors")
    again = LimitTransformer.load(folder / "again.safetensors")
    same = all(torch.equal(again.tensors()[name], tensor) for name, tensor in f.tensors().items())
    require(same and again.precision == f.precision, "other weights after saving and loading")
    for tokens in ([0], [0] * 5, [f.vocabulary - 1, 0]):
        output = f(tokens)
        require(output.shape == (f.outputs,), "an output of shape", output.shape)
        require(torch.isfinite(output).all(), "an output that is not finite:", output)


def prepare() -> None:
    """Load what loading loads."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        constructions.simple_task(4, 3).save(path)
        LimitTransformer.load(path)(torch.tensor([0, 1]))


DOOR = Door(
    name="weights",
    about="files of weights",
    share=14,
    seconds=60.0,
    draw=draw,
    enter=enter,
    prepare=prepare,
)
