"""Lemma 1: a share of the vectors in a list, chosen so that every prefix has its share of their sum.

Axes: M vector, d coordinate, r rank.
"""

import math

import numpy as np
from jaxtyping import Bool, Float

NEGLIGIBLE = 1e-8
"""Coefficients below this count as zero when blocks are balanced, whose vectors are of size 1 or so."""

ARRIVED = 1e-12
"""How close to 0 or 1 a value counts as there."""


def prefix_rounding(vectors: Float[np.ndarray, "M d"], chosen: int) -> Bool[np.ndarray, "M"]:
    """Which of the vectors to choose, with rho = ``chosen``/M, so that for every prefix and every seminorm

        |sum over b <= B of (x_b - rho) v_b| <= d max |v_b|,  x_b in {0, 1}.

    If some linear functional is 1 on all vectors, exactly ``chosen`` are chosen. d may be the dimension of
    their span.

    Proof (Barany and Grinberg's argument). Keep a list of vectors that are linearly independent, so at most
    d, with values strictly between 0 and 1; all others are frozen at 0 or 1. A new vector comes with value
    rho. If it is independent of the list, it joins; otherwise move its value and theirs along the relation
    between them until one is 0 or 1, and freeze it: sums of values times vectors do not change. So after
    every step B the values' sum is rho times that of the prefix, and in the end x differs from them only on
    the list of that time, by less than 1 each. The last values are rounded so that their sum is kept.

    The list is held as a basis with its inverse, filled up with vectors that cannot move.
    """
    total, share = len(vectors), chosen / len(vectors)
    coordinates = _independent(vectors)
    rank = coordinates.shape[1]
    if rank == 0:  # all are zero
        return np.arange(total) < chosen
    basis, inverse = np.eye(rank), np.eye(rank)
    value = np.full(rank, 0.5)
    member = np.full(rank, -1)  # which vector is in each place; -1 for one that cannot move
    moves = np.zeros(rank)  # 1.0 in places that can move
    result = np.zeros(total, dtype=bool)
    exchanges = 0
    for index in range(total):
        vector = coordinates[index]
        relation = inverse @ vector
        size = np.abs(relation)
        movable = size * moves
        place, own = int((size - movable).argmax()), share
        if size[place] - movable[place] <= NEGLIGIBLE:
            # The new vector is the sum of relation times the list: if its value moves by s, theirs by
            # -s relation.
            speed = np.where(movable > NEGLIGIBLE, size, 1e-300)
            toward = np.where(relation > 0, value, 1 - value)
            ahead = min(float(np.minimum.reduce(toward / speed)), 1 - share)
            back = min(float(np.minimum.reduce((1 - toward) / speed)), share)
            step = ahead if ahead <= back else -back
            own = share + step
            value -= step * moves * relation
            stopped = np.abs(value - 0.5) >= 0.5 - ARRIVED
            place = int((size * stopped).argmax())
            if stopped[place]:
                for where in np.flatnonzero(stopped):
                    result[member[where]] = value[where] > 0.5
                    member[where], moves[where], value[where] = -1, 0.0, 0.5
            if not ARRIVED < own < 1 - ARRIVED:
                result[index] = own > 0.5
                continue
            assert stopped[place]
        row = inverse[place] / relation[place]
        inverse -= relation[:, None] * row
        inverse[place] = row
        basis[:, place] = vector
        member[place], moves[place], value[place] = index, 1.0, own
        exchanges += 1
        if exchanges % 64 == 0:
            inverse = np.linalg.inv(basis)
    left = np.flatnonzero(member >= 0)
    up = round(float(value[left].sum()))
    result[member[left[np.argsort(-value[left], kind="stable")[:up]]]] = True
    return result


def _independent(vectors: Float[np.ndarray, "M d"]) -> Float[np.ndarray, "M r"]:
    """The vectors in coordinates of their span, of mean square 1 each: linear relations are the same."""
    largest = np.abs(vectors).max(0)
    scaled = vectors[:, largest > 0] / largest[largest > 0]
    left, sizes, _ = np.linalg.svd(scaled, full_matrices=False)
    rank = int((sizes > 1e-12 * sizes.max(initial=0.0)).sum())
    return left[:, :rank] * math.sqrt(len(vectors))
