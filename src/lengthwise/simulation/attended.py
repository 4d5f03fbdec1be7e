"""Which atoms each head of a pair attends to on a string, under hard attention.

An atom is a far type, with the number of its far positions, or a single position of the suffix. A head's
attention is uniform over the positions of its atoms with the largest logit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lengthwise.limit.hard import HardAttention
from lengthwise.limit.norms import diameter
from lengthwise.sequences import Summary
from lengthwise.simulation.pair import Pair


@dataclass(frozen=True)
class Attended:
    """What one head attends to: ``far`` types with the largest rank (present or not), ``near`` the number
    of suffix positions with it, and the far types whose rank is larger still (so: that must not occur).

    ``varied``: whether keys of one rank have different values, for this query; otherwise the largest rank
    decides the head's output, and the counts do not matter.
    """

    far: frozenset[int]
    near: int
    above: frozenset[int]
    varied: bool = True

    def attention(self, counts: Sequence[int]) -> dict[int | str, Fraction]:
        """The share of each far type, and of one suffix atom under the key "near", for these counts."""
        total = self.near + sum(counts[kind] for kind in self.far)
        shares: dict[int | str, Fraction] = {kind: Fraction(counts[kind], total) for kind in self.far}
        return shares | {"near": Fraction(1, total)}

    def distance(self, one: Sequence[int], other: Sequence[int]) -> Fraction:
        """The total variation between the attentions under two counts, as far as it matters."""
        if not self.varied:
            return Fraction(0)
        p, q = self.attention(one), self.attention(other)
        far = sum((abs(p[kind] - q[kind]) for kind in self.far), Fraction(0))
        return (far + self.near * abs(p["near"] - q["near"])) / 2


def attended(pair: Pair, summary: Summary) -> list[Attended]:
    """For each head of f, then of g, whose values differ at all: what it attends to on a string (its summary,
    without batch axes).
    """
    kinds = pair.vocabulary * pair.period
    length, suffix = int(summary.length), summary.suffix.tolist()
    query = suffix[0] * pair.period + length % pair.period
    present = summary.counts.flatten().tolist()
    near = [(distance, token) for distance, token in enumerate(suffix) if token >= 0]
    found = []
    for model in pair.models:
        hard = HardAttention.of(model)
        tables = (table[:, query].tolist() for table in (hard.far, hard.near, hard.varied))
        for head, (far_K, near_WS, varied) in enumerate(zip(*tables, strict=True)):
            if diameter(model.types() @ model.layers[0].value[head].mT) == 0:
                continue
            ranks = [near_WS[distance][token] for distance, token in near]
            largest = max([*ranks, *(far_K[kind] for kind in range(kinds) if present[kind])])
            found.append(
                Attended(
                    frozenset(kind for kind in range(kinds) if far_K[kind] == largest),
                    ranks.count(largest),
                    frozenset(kind for kind in range(kinds) if far_K[kind] > largest),
                    varied,
                )
            )
    return found
