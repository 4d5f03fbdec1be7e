"""Theorem B: a short string with nearly the attention of a long one, from counts alone.

Setting: one layer, hard attention, x of length T. Types i = (token, residue), n_i of them among the far
positions 1 .. T - tau - 1. A string z with the same last tau + 1 tokens, the same length modulo the period D
and the same far types has the same largest logits, head by head; only its far counts m_i differ, and they are
those of a string if and only if each residue loses the same number of positions. A head whose far types with
the largest logit are the set S_h attends to type i with weight proportional to m_i; only the distinct sets
with at least two atoms matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lengthwise.simulation.attended import Attended


def theorem_b_length(
    vocabulary: int, period: int, locality: int, sets: int, eta: Fraction, hardmax_length: int
) -> int:
    """N_cert: every x longer than this has a z of at most this length (and at least the hardmax length) with
    the same suffix, residue and far types, whose attention differs from that on x by at most eta <= 1/2 in
    total variation, for each head of the pair, if at most ``sets`` different far sets are relevant at once.

    N_cert = tau + 1 + max(N_hard + 2 D, D (H R B^(H-1) + S + 1)), with K = S D + max(D, tau + 1),
    R = H K / eta, B = max(H / eta, 4 (H - 1) D, 1), and H R B^(H-1) = 0 for H = 0. Proof: docs/theorems.md.
    """
    assert 0 < eta <= Fraction(1, 2)
    reserve, ratio = _constants(vocabulary, period, locality, sets, eta)
    shared = sets * reserve * ratio ** (sets - 1) if sets else Fraction(0)
    simulated = period * (shared + vocabulary + 1)
    return locality + 1 + max(hardmax_length + 2 * period, -(-simulated.numerator // simulated.denominator))


def _constants(
    vocabulary: int, period: int, locality: int, sets: int, eta: Fraction
) -> tuple[Fraction, Fraction]:
    """R and B."""
    atoms = vocabulary * period + max(period, locality + 1)
    return sets * atoms / eta, max(sets / eta, Fraction(4 * (sets - 1) * period), Fraction(1))


def relevant_sets(heads: Sequence[Attended], counts: Sequence[int]) -> list[frozenset[int]]:
    """The distinct sets of present far types that some head attends to together with another atom, and with
    values that differ.
    """
    found = []
    for head in heads:
        present = frozenset(kind for kind in head.far if counts[kind])
        several = present and len(present) + head.near >= 2
        if head.varied and several and present not in found:
            found.append(present)
    return found


def shortened(
    counts: Sequence[int],
    sets: Sequence[frozenset[int]],
    *,
    period: int,
    locality: int,
    eta: Fraction,
    hardmax_length: int,
) -> list[int]:
    """The far counts of z, for the far counts of x (type token * period + residue) and the relevant sets.

    Every set S_h gets a scale lambda_h, smaller for larger sets, such that a set that is shrunk keeps at
    least R positions, and such that what a smaller scale sees of types with a larger one is at most a
    fraction 1/B of its own. Types in no set are free to fill the residues up; where a residue has none, the
    types of the smallest scale are rounded so that all residues shrink alike.
    """
    vocabulary = len(counts) // period
    columns = [range(residue, len(counts), period) for residue in range(period)]
    sizes = [sum(counts[kind] for kind in column) for column in columns]
    if min(sizes) == 0:
        return list(counts)
    ordered = sorted(sets, key=lambda kinds: sum(counts[kind] for kind in kinds))
    scales = _scales(
        [sum(counts[kind] for kind in kinds) for kinds in ordered],
        *_constants(vocabulary, period, locality, len(sets), eta),
    )
    first = {kind: index for index in reversed(range(len(ordered))) for kind in ordered[index]}
    free = [kind for kind, count in enumerate(counts) if count and kind not in first]
    least = min(min(sizes), -(-hardmax_length // period))
    problem = _Shrinking(counts, columns, sizes, scales, first, free, least)
    if all(any(kind in free for kind in column) for column in columns):
        return problem.with_free_types()
    return problem.without_them()


def _scales(totals: Sequence[int], reserve: Fraction, ratio: Fraction) -> list[Fraction]:
    """lambda_1 >= lambda_2 >= ... for sets of increasing size."""
    scales: list[Fraction] = []
    weight = Fraction(0)
    for index, total in enumerate(totals):
        if index == 0:
            weight = min(Fraction(total), reserve)
        else:
            weight = min(scales[-1] * total, max(ratio * weight, reserve))
        scales.append(weight / total)
    return scales


@dataclass(frozen=True)
class _Shrinking:
    """Far ``counts`` to be shrunk: types by residue (``columns``), their numbers (``sizes``), the ``scales``
    of the sets, which scale is a type's ``first``, which types are ``free``, and the ``least`` number of
    positions that the scarcest residue must keep.
    """

    counts: Sequence[int]
    columns: Sequence[Sequence[int]]
    sizes: Sequence[int]
    scales: Sequence[Fraction]
    first: dict[int, int]
    free: Sequence[int]
    least: int

    def with_free_types(self) -> list[int]:
        """Every residue has a type that no relevant set holds: scale the others, and fill up with it."""
        kept = [
            _ceil(self.scales[self.first[kind]] * count) if kind in self.first else 0
            for kind, count in enumerate(self.counts)
        ]
        for kind in self.free:
            kept[kind] = 1
        fewest = min(self.sizes)
        sums = [sum(kept[kind] for kind in column) for column in self.columns]
        size = max(self.least, *(total - (had - fewest) for total, had in zip(sums, self.sizes, strict=True)))
        for column, total, had in zip(self.columns, sums, self.sizes, strict=True):
            filler = next(kind for kind in column if kind in self.free)
            kept[filler] += size + (had - fewest) - total
        return kept

    def without_them(self) -> list[int]:
        """Some residue has no free type: all residues shrink by the smallest scale."""
        fewest = min(self.sizes)
        floor = min(Fraction(1), Fraction(self.least, fewest))
        scales = [max(scale, floor) for scale in self.scales]
        smallest = scales[-1]
        if smallest == 1:
            return list(self.counts)
        size = int(smallest * fewest)
        larger = {kind for kind, index in self.first.items() if scales[index] > smallest}
        top = {kind for kind, count in enumerate(self.counts) if count} - larger
        kept = [
            _ceil((smallest if kind in top else scales[self.first[kind]]) * count) if count else 0
            for kind, count in enumerate(self.counts)
        ]
        for column, had in zip(self.columns, self.sizes, strict=True):
            extra = size + (had - fewest) - sum(kept[kind] for kind in column)
            pool = [kind for kind in column if kind in top]
            pool.sort(key=lambda kind: (kind not in self.free, -kept[kind]))
            assert pool
            if extra >= 0:
                kept[pool[0]] += extra
            for kind in pool:
                taken = min(kept[kind] - 1, max(0, -extra))
                kept[kind] -= taken
                extra += taken
            assert extra >= 0
        return kept


def _ceil(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)
