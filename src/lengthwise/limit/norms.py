"""Norms, diameters and Lipschitz constants of the parts of a model.

Axes: K key type, Q query type, m hidden unit, d width, o output.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.limit.transformer import LimitLayer, LimitTransformer


def operator_norm(matrix: Float[Tensor, "m n"]) -> float:
    """The largest factor by which the matrix lengthens a vector."""
    return float(torch.linalg.matrix_norm(matrix, 2)) if matrix.numel() else 0.0


def diameter(points: Float[Tensor, "K d"]) -> float:
    """The largest Euclidean distance between two of the points."""
    return float((points.unsqueeze(0) - points.unsqueeze(1)).norm(dim=-1).max())


@dataclass(frozen=True)
class HeadNorms:
    """Of one head: |key_query|, |value|, the diameter of its values (what moving its attention changes), and
    the oscillation of its token logits (largest difference between two keys, for one query).

    The last two are exact over the types of the model in the first layer, bounds over every string in the
    second (``Parts``), and None beyond.
    """

    key_query: float
    value: float
    diameter: float | None
    oscillation: float | None


@dataclass(frozen=True)
class LayerNorms:
    """Of one layer: |mlp_in|, |mlp_out|, and a Lipschitz constant of y -> y + MLP(y)."""

    heads: tuple[HeadNorms, ...]
    mlp_in: float
    mlp_out: float
    lipschitz: float


def layer_norms(f: LimitTransformer) -> tuple[LayerNorms, ...]:
    """The norms of every layer."""
    result, parts = [], Parts.after_first_layer(f)
    for index, layer in enumerate(f.layers):
        heads = []
        for key_query, value in zip(layer.key_query, layer.value, strict=True):
            spread = None, None
            if index == 0:
                spread = _spread(f.types(), key_query, value)
            elif index == 1:
                spread = parts.diameter(value), parts.oscillation(key_query)
            heads.append(HeadNorms(operator_norm(key_query), operator_norm(value), *spread))
        eye = torch.eye(layer.width, dtype=torch.float64, device=layer.value.device)
        norms = operator_norm(layer.mlp_in), operator_norm(layer.mlp_out)
        result.append(LayerNorms(tuple(heads), *norms, mlp_lipschitz(layer, eye)))
    return tuple(result)


def _spread(types: Tensor, key_query: Tensor, value: Tensor) -> tuple[float, float]:
    logits_KQ = types @ key_query @ types.mT
    return diameter(types @ value.mT), float((logits_KQ.amax(0) - logits_KQ.amin(0)).max())


def mlp_lipschitz(layer: LimitLayer, readout: Float[Tensor, "o d"]) -> float:
    """A Lipschitz constant of Y -> U (Y + B act(A Y + b)), for U = ``readout``.

    For relu, the smaller of |U| + |UB| |A| and |U + UBA/2| + sum over units k of |(UB)_k| |A_k| / 2, since
    the derivative of relu is 1/2 plus something in [-1/2, 1/2]. A step has none: infinite, unless the units
    are not read.
    """
    into, out = layer.mlp_in, readout @ layer.mlp_out
    if layer.activation == "heaviside":
        steps = bool((out.norm(dim=0) * into.norm(dim=1) > 0).any())
        return math.inf if steps else operator_norm(readout)
    apart = operator_norm(readout) + operator_norm(out) * operator_norm(into)
    halves = operator_norm(readout + out @ into / 2) + float((out.norm(dim=0) * into.norm(dim=1)).sum()) / 2
    return min(apart, halves)


def lipschitz(f: LimitTransformer) -> float:
    """L_f: a Lipschitz constant of the last MLP and readout together, Y -> U (Y + B act(A Y + b))."""
    return mlp_lipschitz(f.layers[-1], f.readout)


@dataclass(frozen=True)
class Parts:
    """A set that holds the stream after the first layer: sums of one point from the hull of each part.

    The parts are the types, the values of each head, and for each hidden unit the segment from its smallest
    to its largest activation along its output direction. Whatever is convex in each point is largest at the
    ``points``: first those of types and heads, then the two ends of each unit.
    """

    points: tuple[Float[Tensor, "K d"], ...]
    ends: Float[Tensor, "m 2 d"]

    @staticmethod
    def after_first_layer(f: LimitTransformer) -> "Parts":
        """The parts of a model's stream after its first layer."""
        layer, types = f.layers[0], f.types()
        points = (types, *(types @ layer.value.mT))
        before = torch.stack([part @ layer.mlp_in.mT for part in points])
        range_m2 = layer.mlp_bias + torch.stack([before.amin(1).sum(0), before.amax(1).sum(0)])
        active = range_m2.relu() if layer.activation == "relu" else (range_m2 >= 0).double()
        return Parts(points, active.mT.unsqueeze(-1) * layer.mlp_out.mT.unsqueeze(1))

    def norm(self) -> float:
        """A bound on the norm of a point of the set."""
        units = self.ends.norm(dim=-1).amax(-1).sum()
        return float(sum(part.norm(dim=-1).max() for part in self.points) + units)

    def diameter(self, matrix: Tensor | None = None) -> float:
        """A bound on the diameter of the set, or of its image under a matrix."""
        sides = self.ends[:, 1] - self.ends[:, 0]
        points = self.points
        if matrix is not None:
            sides, points = sides @ matrix.mT, tuple(part @ matrix.mT for part in points)
        return sum(diameter(part) for part in points) + float(sides.norm(dim=-1).sum())

    def oscillation(self, key_query: Float[Tensor, "d d"]) -> float:
        """A bound on (y - y')^T ``key_query`` q over y, y', q in the set: the sum over pairs of
        parts, since the largest difference is subadditive in the parts of q and adds over those of y.
        """
        sides = self.ends[:, 1] - self.ends[:, 0]

        def spread(queries: Tensor) -> Tensor:
            """For each part of y, its range against each of the query points (..., d)."""
            seen = key_query @ queries.reshape(-1, queries.shape[-1]).mT
            ranges = [(part @ seen).amax(0) - (part @ seen).amin(0) for part in self.points]
            return torch.cat([torch.stack(ranges), (sides @ seen).abs()]).unflatten(1, queries.shape[:-1])

        total = sum(spread(part).amax(1).sum() for part in self.points)
        return float(total + spread(self.ends).amax(2).sum())


def times(*factors: float) -> float:
    """The product, where nothing times infinity is nothing."""
    return 0.0 if 0.0 in factors else math.prod(factors)


def exp(number: float) -> float:
    """e^number, infinite where a double cannot hold it."""
    return math.exp(number) if number < 709 else math.inf
