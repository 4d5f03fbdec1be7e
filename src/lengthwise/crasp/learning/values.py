"""Slot programs on a sample of words, at every position, only what a change touches computed again.

The words stand one behind the other in flat arrays. A formula is known by the truth values that it has on the
sample: formulas that agree at all positions are one value, numbered when it is first met. What a rule makes
of values is remembered, so that a change that gives a slot the value that it had ends there, and one that was
tried before costs a look into a table.

Axes: N position, all words one behind the other; W word; T position in a word.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int64

from lengthwise.crasp.batch import outputs
from lengthwise.crasp.learning.slots import EVERYWHERE, Join, Rule, Shape, Sum
from lengthwise.crasp.learning.words import Word
from lengthwise.crasp.program import Program

MOST_CELLS, MOST_RULES = 2**26, 2**19
"""So many bytes of truth values and counts, and so many rules with what they make, are remembered at most."""


@dataclass(frozen=True)
class Sample:
    """Words with what is known of their prefixes.

    - ``symbols_N``: the letters; ``starts_W``: where each word, none of them empty, begins;
    - ``labels_N``: whether the prefix that ends here is in the language; ``weights_N``: what an error here
      costs, 0 where the label is not known.
    """

    symbols_N: Int64[np.ndarray, "N"]
    starts_W: Int64[np.ndarray, "W"]
    labels_N: Bool[np.ndarray, "N"]
    weights_N: Float32[np.ndarray, "N"]

    def prefix(self, position: int) -> Word:
        """The word that ends at a position."""
        start = self.starts_W[np.searchsorted(self.starts_W, position, side="right") - 1]
        return tuple(self.symbols_N[start : position + 1].tolist())

    def fits(self, program: Program) -> bool:
        """Whether a program has no error."""
        lengths_W = np.diff(self.starts_W, append=len(self.symbols_N))
        inside_WT = np.arange(lengths_W.max()) < lengths_W[:, None]
        symbols_WT = np.zeros(inside_WT.shape, dtype=np.int64)
        symbols_WT[inside_WT] = self.symbols_N
        held_WT = outputs(program, torch.from_numpy(symbols_WT))["accept"].numpy()
        return not ((held_WT[inside_WT] != self.labels_N) & (self.weights_N > 0)).any()


class Values:
    """The values of formulas on a sample, by number."""

    def __init__(self, sample: Sample, letters: int, shape: Shape) -> None:
        self._sample = sample
        total = len(sample.symbols_N)
        lengths = np.diff(sample.starts_W, append=total)
        start_N = np.repeat(sample.starts_W, lengths)
        self._first_N = start_N
        self._place_N = np.arange(total) - start_N + 1
        self._known: dict[tuple, int] = {}
        self._number: dict[bytes, int] = {}
        self._held: list[np.ndarray] = []
        self._counts: dict[tuple[int, int], np.ndarray] = {}
        self._costs: dict[int, float] = {}
        self._total = total
        symbols = [sample.symbols_N == letter for letter in range(letters)]
        phases = [self._place_N % modulus == residue for modulus, residue in shape.phases]
        self.bases = [self._numbered(held) for held in (*symbols, *phases)]

    @property
    def full(self) -> bool:
        """Whether so much is remembered that it is time to begin anew."""
        cells = (len(self._held) + 4 * len(self._counts)) * self._total
        return cells > MOST_CELLS or len(self._known) > MOST_RULES

    def of(self, slots: Sequence[Rule]) -> list[int]:
        """The values of the base formulas and of all slots."""
        values = list(self.bases)
        for rule in slots:
            values.append(self.made(rule, values))
        return values

    def made(self, rule: Rule, values: Sequence[int]) -> int:
        """What a rule makes of the values of the references."""
        if isinstance(rule, Sum):
            key = (rule.equal, rule.constant, *[(sign, far, values[at]) for sign, far, at in rule.terms])
        else:
            key = (rule.every, *[(negated, once, values[at]) for negated, once, at in rule.literals])
        found = self._known.get(key)
        if found is None:
            held = self._summed(rule, values) if isinstance(rule, Sum) else self._joined(rule, values)
            found = self._known[key] = self._numbered(held)
        return found

    def cost(self, value: int) -> float:
        """The weights of all errors of a formula; 0 only if it has none."""
        found = self._costs.get(value)
        if found is None:
            wrong = self._held[value] != self._sample.labels_N
            found = self._costs[value] = float(self._sample.weights_N.dot(wrong))
        return found

    def held(self, value: int) -> Bool[np.ndarray, "N"]:
        """The truth values."""
        return self._held[value]

    def _numbered(self, held: np.ndarray) -> int:
        key = held.tobytes()
        found = self._number.get(key)
        if found is None:
            found = self._number[key] = len(self._held)
            self._held.append(np.frombuffer(key, dtype=np.bool_))
        return found

    def _counted(self, value: int, distance: int) -> np.ndarray:
        key = value, distance
        found = self._counts.get(key)
        if found is None:
            held = self._held[value]
            found = self._everywhere(held) if distance == EVERYWHERE else self._back(held, distance)
            self._counts[key] = found
        return found

    def _everywhere(self, held: np.ndarray) -> np.ndarray:
        """How many positions of the word up to here: of all words up to here, less those before this word."""
        total = np.empty(len(held) + 1, dtype=np.int32)
        total[0] = 0
        np.cumsum(held, out=total[1:])
        return total[1:] - total[self._first_N]

    def _back(self, held: np.ndarray, distance: int) -> np.ndarray:
        """1 if the word reaches so far back, and the formula holds there."""
        found = np.zeros(len(held), dtype=np.int32)
        found[distance:] = held[: max(0, len(held) - distance)]
        found[self._place_N <= distance] = 0
        return found

    def _summed(self, rule: Sum, values: Sequence[int]) -> np.ndarray:
        total: np.ndarray | None = None
        for sign, distance, place in rule.terms:
            term = self._counted(values[place], distance)
            if total is None:
                total = term if sign > 0 else -term
            else:
                total = total + term if sign > 0 else total - term
        assert total is not None
        return total == -rule.constant if rule.equal else total >= -rule.constant

    def _joined(self, rule: Join, values: Sequence[int]) -> np.ndarray:
        found: np.ndarray | None = None
        for negated, once, place in rule.literals:
            part = self._counted(values[place], EVERYWHERE) > 0 if once else self._held[values[place]]
            if negated:
                part = ~part
            found = part if found is None else found & part if rule.every else found | part
        assert found is not None
        return found
