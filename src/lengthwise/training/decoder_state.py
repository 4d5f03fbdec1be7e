"""Where the training of decoders is: what is known of each model, and all of it as a state to go on from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.models.stack import Stack
from lengthwise.training.adam import StackAdam
from lengthwise.training.checkpoint import Shape, State, check_tensors, whole_number
from lengthwise.training.decoder_config import DecoderEvaluation
from lengthwise.training.decoder_data import FreshData


@dataclass(frozen=True)
class Place:
    """How many steps were done and after how many models were measured last; the losses summed since then."""

    step: int = 0
    measured: int = 0
    total: Tensor | None = None


class Record:
    """What is known so far of one model: when it was measured, its accuracy by bin and its mean training loss
    then, and its weights once it has left.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.steps: list[int] = []
        self.accuracy: list[Tensor] = []
        self.loss: list[Tensor] = []
        self.weights: dict[str, Tensor] = {}

    def add(self, step: int, accuracy: Tensor, loss: Tensor) -> None:
        """It was measured once more."""
        self.steps.append(step)
        self.accuracy.append(accuracy)
        self.loss.append(loss)

    def measurements(self) -> tuple[Float[Tensor, "measurements bins"], Float[Tensor, " measurements"]]:
        """Accuracy and loss after each of its steps."""
        return torch.stack(self.accuracy), torch.stack(self.loss)

    def tensors(self) -> dict[str, Tensor]:
        """All but the steps, under names of its own."""
        found = {self._name(name): weight for name, weight in self.weights.items()}
        if self.steps:
            accuracy, loss = self.measurements()
            found |= {self._name(ACCURACY): accuracy, self._name(LOSS): loss}
        return found

    def shapes(self, stack: Stack, measurements: int, bins: int, left: bool) -> dict[str, Shape]:
        """What ``tensors`` gives after so many measurements, of a model that has left or not."""
        found: dict[str, Shape] = {}
        if measurements:
            found[self._name(ACCURACY)] = (measurements, bins), torch.float64
            found[self._name(LOSS)] = (measurements,), stack.values.dtype
        for name, stacked in stack.parameters.items() if left else ():
            found[self._name(name)] = stack.shape(name, self.index), stacked.dtype
        return found

    def load(self, tensors: Mapping[str, Tensor], steps: Sequence[int]) -> None:
        """Take back what ``tensors`` gave, which was measured after these steps."""
        if steps:
            accuracy, loss = tensors[self._name(ACCURACY)], tensors[self._name(LOSS)]
            for row in zip(steps, accuracy.unbind(), loss.unbind(), strict=True):
                self.add(*row)
        own = self._name("")
        known = (ACCURACY, LOSS)
        named = {name.removeprefix(own): value for name, value in tensors.items() if name.startswith(own)}
        self.weights = {name: value for name, value in named.items() if name not in known}

    def _name(self, name: str) -> str:
        return f"models.{self.index}.{name}"


ACCURACY, LOSS = "measured accuracy", "measured loss"
"""No parameter is named so."""


def state_of(place: Place, records: Sequence[Record], adam: StackAdam, data: FreshData) -> State:
    """All that ``restored`` needs."""
    assert place.total is not None
    before, drawn = data.state()
    tensors = {**adam.state(), "generators": before, "total": place.total}
    for record in records:
        tensors |= record.tensors()
    about = {
        "step": place.step,
        "staying": [record.index for record in records if not record.weights],
        "measurements": [len(record.steps) for record in records],
    }
    return State(tensors, about | drawn)


def restored(
    state: State,
    records: Sequence[Record],
    adam: StackAdam,
    data: FreshData,
    steps: int,
    evaluation: DecoderEvaluation,
) -> Place:
    """Put all of a training that is at its start where it was. ``ValueError``, and nothing is changed, if the
    state is not of this training.
    """
    step = whole_number(state, "step", 1, steps)
    measured = (step - 1) // evaluation.every  # a state is taken before models are measured at a step
    staying, counts = _staying(state, len(records), measured)
    if whole_number(state, "taken", 0, steps) != step % data.steps_at_once:
        raise ValueError(f"after {step} steps, {state.about['taken']} are taken of what was drawn last")
    before = data.state()[0]
    expected = adam.shapes(len(staying)) | {
        "generators": ((len(staying), *before.shape[1:]), before.dtype),
        "total": ((len(staying),), adam.stack.values.dtype),
    }
    for record, count in zip(records, counts, strict=True):
        left = record.index not in staying
        expected |= record.shapes(adam.stack, count, len(evaluation.ends), left)
    check_tensors(state, expected)
    data.check(state.tensors["generators"], state.about)
    if len(staying) < len(records):
        adam.keep(staying)
        data.keep(staying)
    adam.load(state.tensors)
    data.load(state.tensors["generators"], state.about)
    for record, count in zip(records, counts, strict=True):
        record.load(state.tensors, range(evaluation.every, count * evaluation.every + 1, evaluation.every))
    return Place(step, measured * evaluation.every, state.tensors["total"])


def _staying(state: State, models: int, measured: int) -> tuple[list[int], list[int]]:
    """The models that are still trained, and how often each one was measured: all those as often as anything
    was, and who left at least once.
    """
    staying, counts = state.about.get("staying"), state.about.get("measurements")
    if not isinstance(staying, list) or not staying or staying != [m for m in range(models) if m in staying]:
        raise ValueError(f"of {models} models, these stay: {staying!r}")
    if not isinstance(counts, list) or len(counts) != models:
        raise ValueError(f"{models} models were measured so often: {counts!r}")
    for model, count in enumerate(counts):
        if count not in range(measured if model in staying else 1, measured + 1):
            raise ValueError(f"model {model} was measured {count!r} times of {measured}")
    return staying, counts
