"""All that training needs to go on exactly where it was stopped, and whoever keeps it.

A loop gives its whole state as tensors and plain data, and can start from such a state; it then goes on, bit
for bit, as if it had never been interrupted. Where states are kept, and how often, it does not know.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

Found = TypeVar("Found")

Shape = tuple[tuple[int, ...], torch.dtype]


@dataclass(frozen=True)
class State:
    """Tensors by name, and plain JSON data. The tensors are those in use: keep copies of them."""

    tensors: Mapping[str, Tensor]
    about: Mapping[str, Any]


@runtime_checkable
class Checkpoints(Protocol):
    """Keeps the last state of one training."""

    def load(self) -> State | None:
        """What was kept, if anything."""
        ...

    def refuse(self, why: str) -> None:
        """What was loaded is no state of this training."""
        ...

    def due(self) -> bool:
        """Whether it is time to keep another one; asked after every step."""
        ...

    def save(self, state: State) -> None:
        """Keep this one."""
        ...


def resumed(checkpoints: Checkpoints | None, restore: Callable[[State], Found], otherwise: Found) -> Found:
    """What ``restore`` makes of the state that was kept; ``otherwise`` if there is none, or it does not fit:
    then ``restore`` must raise ``ValueError`` before it changes anything.
    """
    state = checkpoints.load() if checkpoints else None
    if checkpoints is None or state is None:
        return otherwise
    try:
        return restore(state)
    except ValueError as error:
        checkpoints.refuse(str(error))
        return otherwise


def shape(tensor: Tensor) -> Shape:
    """What ``check_tensors`` compares."""
    return tuple(tensor.shape), tensor.dtype


def check_tensors(state: State, expected: Mapping[str, Shape]) -> None:
    """Raise ``ValueError`` unless a state has these tensors and no others."""
    if set(state.tensors) != set(expected):
        wrong = sorted(set(state.tensors) ^ set(expected))
        raise ValueError(f"tensors missing or surplus: {', '.join(wrong[:5])}")
    for name, wanted in expected.items():
        if shape(state.tensors[name]) != wanted:
            raise ValueError(f"{name} is {shape(state.tensors[name])}, expected {wanted}")


def whole_number(state: State, name: str, low: int, high: int) -> int:
    """A number of the plain data; ``ValueError`` unless it is a whole one in this range."""
    value = state.about.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}, expected a whole number from {low} to {high}")
    return value
