"""Door: checkpoints of ensembles, from which training goes on."""

import random
import warnings
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pandas as pd
import torch

import lengthwise as lw
from fuzz_doors import guard
from fuzz_doors.door import Door, require
from fuzz_doors.values import damaged, mutated
from fuzz_doors.weights import CANARY, pickles
from lengthwise.experiments.checkpoints import CheckpointFolder, CheckpointWarning, encode
from lengthwise.experiments.engine import run_ensemble
from lengthwise.training.checkpoint import State

CPU = torch.device("cpu")


@dataclass
class _Kept:
    """Keeps the state after every step."""

    states: list[State] = field(default_factory=list)

    def load(self) -> None:
        return None

    def refuse(self, why: str) -> None:
        raise AssertionError(why)

    def due(self) -> bool:
        return True

    def save(self, state: State) -> None:
        self.states.append(State({name: own.clone() for name, own in state.tensors.items()}, state.about))


def _ensembles() -> list[list[lw.Run]]:
    """Limit transformers, and decoders some of which leave before the end."""
    limit = lw.Run(
        lw.task("simple"),
        lw.LimitModel(width=2, hidden=2),
        lw.Training(length=3, steps=6, batch=2),
        lw.Evaluation(lengths=(4, 8), sequences=2),
    )
    decoder = lw.Run(
        lw.task("binary-majority"),
        lw.DecoderModel(width=8, heads=2),
        lw.DecoderTraining(length=3, steps=12, batch=8),
        lw.DecoderEvaluation(ends=(3, 6), sequences=4, every=3),
    )
    rates = zip(range(24, 28), (0.3, 0.001, 0.1, 0.03), strict=True)
    return [
        lw.vary(limit, seed=range(2)),
        [decoder.but(seed=seed, learning_rate=rate) for seed, rate in rates],
    ]


@cache
def _good() -> list[tuple[list[lw.Run], list[State], pd.DataFrame]]:
    """Each ensemble with all its states and what it leaves undisturbed."""
    found = []
    for runs in _ensembles():
        kept = _Kept()
        run_ensemble(runs, CPU, checkpoints=kept)
        found.append((runs, kept.states, lw.train(runs, device="cpu")))
    return found


def _odd_tensor(source: random.Random, tensor: torch.Tensor) -> torch.Tensor:
    match source.randrange(5):
        case 0:
            return tensor[..., None]
        case 1:
            return tensor.to(source.choice([torch.float16, torch.int64, torch.bool]))
        case 2:
            return torch.zeros([source.choice([0, 1, 2, 5]) for _ in tensor.shape], dtype=tensor.dtype)
        case 3:
            return tensor[:1] if tensor.dim() else tensor[None]
        case _:
            value = source.choice([float("nan"), float("inf"), 1e30])
            return torch.full_like(tensor, value if tensor.is_floating_point() else 255)


def draw(source: random.Random) -> tuple[bytes, int, bool]:
    """The bytes of a file, of which ensemble it is to be, and whether nothing was changed."""
    which = source.randrange(2)
    runs, states, _ = _good()[which]
    state = source.choice(states)
    tensors, about = dict(state.tensors), dict(state.about)
    kind = source.random()
    if kind < 0.1:
        return encode(state, runs, CPU), which, True
    if kind < 0.15:
        return pickles(source), which, False
    if kind < 0.35:
        return mutated(source, encode(state, runs, CPU)), which, False
    for _ in range(source.choice([1, 1, 2])):
        name = source.choice(list(tensors))
        match source.randrange(6):
            case 0:
                del tensors[name]
            case 1:
                tensors[source.choice(["x", "", "models.0.x", "models.9.x", "curve.9"])] = torch.zeros(2)
            case 2 | 3:
                tensors[name] = _odd_tensor(source, tensors[name])
            case _:
                about = damaged(source, about)
        if not tensors:
            break
    owners = source.choice([runs] * 9 + [runs[::-1], runs[:1]])
    return encode(State(tensors, about), owners, CPU), which, False


def enter(given: tuple[bytes, int, bool], folder: Path) -> None:
    """Training goes on from a file that it accepts. One that is refused is set aside as it was, and training
    starts anew; that, or going on from what it had left itself, ends as if undisturbed.
    """
    data, which, whole = given
    runs, _, expected = _good()[which]
    path = CheckpointFolder(folder / "store").path(runs)
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    with guard.no_code(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", CheckpointWarning)
        found = lw.train(runs, output=folder / "store", device="cpu")
    require(not (folder / CANARY).exists(), "code of the file was run")
    require(len(said) <= int(not whole), "warnings:", *(own.message for own in said))
    if said or whole:
        require(found.equals(expected), "rows that are not those of an undisturbed training")
    if said:
        aside = [other.read_bytes() for other in path.parent.glob("*.set-aside-*")]
        require(aside == [data], "a file that was refused is not set aside as it was")
        raise ValueError(str(said[0].message))
    require(not path.exists(), "a checkpoint is left that nobody needs")


def prepare() -> None:
    """Train what inputs are made of."""
    _good()


DOOR = Door(
    name="checkpoints",
    about="checkpoints of training",
    share=4,
    seconds=60.0,
    draw=draw,
    enter=enter,
    prepare=prepare,
)
