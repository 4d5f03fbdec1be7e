"""Maximal update parametrisation, by hand: how each kind of parameter starts and how fast it moves.

A role gives the standard deviation of the first values and a factor on Adam's learning rate, as functions
of the sizes that grow, so that every activation changes by an amount of order one in each step whatever
the width (Yang et al., 2022, Table 8). A learning rate tuned at the base sizes then serves at any other.

Adam moves each entry of a gradient that is aligned with its inputs by about the rate, so

- a matrix that sums over n inputs needs a rate of order 1/n;
- the bilinear form of attention sums over n^2 products of coordinates: order 1/n^2;
- embeddings and biases sum over nothing: order 1.

The constants were tuned once at the base sizes, for the loss at test length 10^6, with seeds that no
published figure uses: with an MLP, on SimpleTask (omega 4, 8 and 16); without, on ModPTask (period 5, lengths
from 2 up to 8, 16 and 32).
"""

from dataclasses import dataclass

BASE_WIDTH = 64
BASE_HIDDEN = 256


@dataclass(frozen=True)
class Role:
    """The shape of one model's parameter, the deviation it starts with, its learning-rate factor, what is
    added at the start where the last index is the one before it plus 1, what is added everywhere, a factor on
    the optimiser's weight decay, and how many of its rows there are to learn (None: all; the others stay 0).
    """

    shape: tuple[int, ...]
    deviation: float
    rate: float
    diagonal: float = 0.0
    constant: float = 0.0
    decay: float = 0.0
    rows: int | None = None


def embedding(*shape: int) -> Role:
    """A table whose rows are added to the residual stream."""
    return Role(shape, 1.0, 1.0)


def bias(*shape: int) -> Role:
    """A vector added to pre-activations."""
    return Role(shape, 1.0, 1.0)


def local_logits(*shape: int, rows: int | None = None) -> Role:
    """Logits by distance, of the first heads alone or of all: they start at none and move like a bias."""
    return Role(shape, 0.0, 1.0, rows=rows)


def bilinear(*shape: int, mlp: bool = True) -> Role:
    """Attention's form (..., width, width): it starts at none, so attention starts uniform. Without an MLP
    attention has all there is to learn, and learns faster.
    """
    width = shape[-1]
    return Role(shape, 0.0, (1 if mlp else 30) * BASE_WIDTH / 10 / width**2)


def value(*shape: int, mlp: bool = True) -> Role:
    """A map (..., width, width) from the residual stream to itself; without an MLP that has to see its
    outputs well, it starts small.
    """
    width = shape[-1]
    if not mlp:
        return Role(shape, 0.3 / width**0.5, BASE_WIDTH / width)
    return Role(shape, 8 / width**0.5, 10 * BASE_WIDTH / width)


def mlp_in(hidden: int, width: int) -> Role:
    """From the residual stream to the hidden units."""
    return Role((hidden, width), 1 / width**0.5, 0.3 * BASE_WIDTH / width)


def mlp_out(width: int, hidden: int) -> Role:
    """From the hidden units to the residual stream."""
    return Role((width, hidden), 4 / max(hidden, 1) ** 0.5, BASE_HIDDEN / max(hidden, 1))


def two_layers(
    vocabulary: int,
    outputs: int,
    *,
    period: int,
    heads: int,
    width: int,
    hidden: int,
    window: int | None,
    local_heads: int | None,
) -> dict[str, Role]:
    """All parameters of a two-layer model, by the names of ``LimitTransformer``.

    The constants were tuned on the in-context 2-gram over three tokens at training length 32, for the loss at
    test length 2048, with seeds that no published figure uses. What brought the seeds close together: first
    heads that start by looking back 1, 2, .. positions, with a local logit of 2, where the limit no longer
    depends on the tokens; second-layer attention without local logits that learns a hundred times as fast as
    the first layer's; values that start small.
    """
    rate = 3.0  # of everything here, against one layer, for the same learning rate
    attention = rate * BASE_WIDTH / 10 / width**2
    roles = {"embedding": Role((vocabulary, width), 1.0, rate)}
    if period > 1:
        roles["positions"] = Role((period, width), 1.0, rate)
    for layer in (0, 1):
        square = (heads, width, width)
        roles |= {
            f"layers.{layer}.key_query": Role(square, 0.0, (attention, 100 * attention)[layer]),
            f"layers.{layer}.value": Role(square, (0.0, 0.3 / width**0.5)[layer], rate * BASE_WIDTH / width),
            f"layers.{layer}.mlp_in": mlp_in(hidden, width),
            f"layers.{layer}.mlp_bias": bias(hidden),
            f"layers.{layer}.mlp_out": mlp_out(width, hidden),
        }
    if window is not None:
        roles["layers.0.local"] = Role((heads, window), 0.1, 3 * rate, diagonal=2.0, rows=local_heads)
    return roles | {"readout": Role((outputs, width), 1 / width, rate * BASE_WIDTH / width)}


def readout(outputs: int, width: int) -> Role:
    """From the residual stream to the output: smaller at the start than a hidden map, by width^-1/2."""
    return Role((outputs, width), 1 / width, BASE_WIDTH / width)
