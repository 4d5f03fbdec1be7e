"""Random streams that depend on a seed and a purpose, and on nothing else."""

import hashlib
from collections.abc import Sequence

import torch
from jaxtyping import UInt8
from torch import Tensor


def generator(seed: int, purpose: str, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator of its own for each (seed, purpose)."""
    digest = hashlib.sha256(f"{purpose}:{seed}".encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:7], "big"))


def states_of(generators: Sequence[torch.Generator]) -> UInt8[Tensor, "N bytes"]:
    """Where these generators are."""
    return torch.stack([own.get_state() for own in generators])


def check_states(states: UInt8[Tensor, "N bytes"], device: torch.device) -> None:
    """Raise ``ValueError`` unless generators of this device can be set so."""
    try:
        for state in states:
            torch.Generator(device).set_state(
                state.clone()
            )  # of a view, PyTorch 2.13 reads what is not there
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"no state of a generator: {error}") from error


def set_states(generators: Sequence[torch.Generator], states: UInt8[Tensor, "N bytes"]) -> None:
    """Put these generators where others, or they themselves, were."""
    for own, state in zip(generators, states, strict=True):
        own.set_state(state.clone())
