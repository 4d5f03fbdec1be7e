"""What runs on the machines of a Ray cluster: the training of one ensemble, and the board on which all of
them tell the process that asked how far they are.
"""

import importlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from safetensors.torch import save

from lengthwise._version import __version__
from lengthwise.experiments import engine
from lengthwise.experiments.checkpoints import EnsembleCheckpoints
from lengthwise.experiments.results import Row
from lengthwise.experiments.run import Run, run_from

TELL_EVERY = 0.5
"""Seconds between two reports of a task, and between two looks at them."""

Answer = tuple[list[tuple[list[Row], bytes]], dict[str, object]]
"""Rows and weights of each run of an ensemble, and what made them."""

Attempt = tuple[int, int]
"""The number of an ensemble, and how often it was lost before."""

Word = tuple[str, Any]
"""What a task says: "done", a number of model-steps; "checkpoint", its bytes; "refused", why the checkpoint
that it was given is none."""


class Board:
    """The last words of each kind that every attempt has said."""

    def __init__(self) -> None:
        self._said: dict[tuple[Attempt, str], tuple[int, Any]] = {}
        self._count = time.time_ns()  # greater than the numbers of a board that this one takes the place of

    def say(self, attempt: Attempt, word: Word) -> None:
        """An attempt says something, which takes the place of what it said of that kind before."""
        kind, said = word
        self._count += 1
        self._said[attempt, kind] = self._count, said

    def read(self, heard: int) -> tuple[int, list[tuple[Attempt, Word]]]:
        """What was said after the word of this number, and the number of the last one. What was heard before
        is forgotten.
        """
        self._said = {key: said for key, said in self._said.items() if said[0] > heard}
        ordered = sorted(self._said.items(), key=lambda entry: entry[1][0])
        return self._count, [(attempt, (kind, said)) for (attempt, kind), (_, said) in ordered]


class Sent:
    """Checkpoints of one attempt: the one that it was given, and those that it sends."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self.every: float = job["every"]
        self._given, self._board, self._attempt = job["checkpoint"], job["board"], job["attempt"]
        self._sending: Any = None

    def read(self, runs: Sequence[Run]) -> bytes | None:
        """The one that was given."""
        return self._given

    def write(self, runs: Sequence[Run], data: bytes) -> None:
        """Send one, unless the last one is still on its way."""
        ray = importlib.import_module("ray")
        if self._sending is None or ray.wait([self._sending], timeout=0)[0]:
            self._sending = self._board.say.remote(self._attempt, ("checkpoint", data))

    def set_aside(self, runs: Sequence[Run], why: str) -> None:
        """Say that the given one cannot be used."""
        self._board.say.remote(self._attempt, ("refused", why))

    def drop(self, runs: Sequence[Run]) -> None:
        """Whoever keeps them knows when."""


def work(versions: Mapping[str, str], job: Mapping[str, Any]) -> Answer:
    """Train and measure an ensemble. Versions are told apart, so that other ones can say that they differ."""
    if versions != versions_here():
        raise ValueError(
            f"a node of the Ray cluster has {_words(versions_here())}, this process {_words(versions)}: "
            "install the same versions everywhere"
        )
    torch.set_num_threads(job["threads"])
    device = engine.choose_device(job["device"])
    runs = [run_from(specification) for specification in job["specifications"]]
    done, last = 0, time.monotonic()

    def tell(steps: int) -> None:
        nonlocal done, last
        done += steps
        if time.monotonic() - last >= TELL_EVERY:
            last = time.monotonic()
            job["board"].say.remote(job["attempt"], ("done", done))

    checkpoints = EnsembleCheckpoints(runs, device, Sent(job))
    results = engine.run_ensemble(runs, device, tell, None, checkpoints)
    columns = ["step", "test_length", "metric", "value"]
    found = [
        (list(own.metrics[columns].itertuples(index=False, name=None)), save(dict(own.weights)))
        for own in results
    ]
    return found, engine.made_on(device, len(runs))


def memory_there() -> int:
    """What an ensemble may fill on the GPU of this machine."""
    return engine.memory_for(torch.device("cuda"))


def versions_here() -> dict[str, str]:
    """What must be the same everywhere."""
    return {"lengthwise": __version__, "torch": torch.__version__.partition("+")[0]}


def _words(versions: Mapping[str, str]) -> str:
    return " and ".join(f"{name} {version}" for name, version in versions.items())
