"""Maximal update parametrisation, by hand: how each kind of parameter starts and how fast it moves.

A role gives the standard deviation of the first values and a factor on Adam's learning rate, as functions
of the sizes that grow, so that every activation changes by an amount of order one in each step whatever
the width (Yang et al., 2022, Table 8). A learning rate tuned at the base sizes then serves at any other.

Adam moves each entry of a gradient that is aligned with its inputs by about the rate, so

- a matrix that sums over n inputs needs a rate of order 1/n;
- the bilinear form of attention sums over n^2 products of coordinates: order 1/n^2;
- embeddings and biases sum over nothing: order 1.

The constants were tuned once, on SimpleTask at the base sizes, for the loss at test length 10^6 (omega
4, 8 and 16), with seeds that no published figure uses.
"""

from dataclasses import dataclass

BASE_WIDTH = 64
BASE_HIDDEN = 256


@dataclass(frozen=True)
class Role:
    """The shape of one model's parameter, the deviation it starts with, its learning-rate factor, and what is
    added at the start where the last two indices are equal.
    """

    shape: tuple[int, ...]
    deviation: float
    rate: float
    diagonal: float = 0.0


def embedding(*shape: int) -> Role:
    """A table whose rows are added to the residual stream."""
    return Role(shape, 1.0, 1.0)


def bias(*shape: int) -> Role:
    """A vector added to pre-activations."""
    return Role(shape, 1.0, 1.0)


def local_logits(*shape: int) -> Role:
    """Logits by distance: they start at none and move like a bias."""
    return Role(shape, 0.0, 1.0)


def shifted_logits(*shape: int) -> Role:
    """Logits by distance that set heads apart: head h starts with a preference for distance h."""
    return Role(shape, 0.1, 1.0, diagonal=1.0)


def bilinear(*shape: int) -> Role:
    """Attention's form (..., width, width): it starts at none, so attention starts uniform."""
    width = shape[-1]
    return Role(shape, 0.0, BASE_WIDTH / 10 / width**2)


def value(*shape: int) -> Role:
    """A map (..., width, width) from the residual stream to itself."""
    width = shape[-1]
    return Role(shape, 8 / width**0.5, 10 * BASE_WIDTH / width)


def mlp_in(hidden: int, width: int) -> Role:
    """From the residual stream to the hidden units."""
    return Role((hidden, width), 1 / width**0.5, 0.3 * BASE_WIDTH / width)


def mlp_out(width: int, hidden: int) -> Role:
    """From the hidden units to the residual stream."""
    return Role((width, hidden), 4 / max(hidden, 1) ** 0.5, BASE_HIDDEN / max(hidden, 1))


def readout(outputs: int, width: int) -> Role:
    """From the residual stream to the output: smaller at the start than a hidden map, by width^-1/2."""
    return Role((outputs, width), 1 / width, BASE_WIDTH / width)
