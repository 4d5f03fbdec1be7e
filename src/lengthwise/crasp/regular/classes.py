"""The transition monoid of an automaton, and the classes of languages that it decides.

- R: every R-class of the monoid is one element; equally, every strongly connected component of the minimal
  automaton is one state.
- A, the aperiodic or star-free languages: for every x some power of x equals the next one.
- R o G: every R-class of the monoid has at most one idempotent.
- R^omega: R o G and A.

In this order R, C-RASP under "eos", R^omega and A contain each other, each strictly (arXiv 2608.13433,
Theorems 13 and 14; of C-RASP its regular languages).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from lengthwise.automata.automaton import DFA, strong_components
from lengthwise.crasp.regular.membership import inseparable_tagged

MOST_ELEMENTS = 20_000
"""Larger monoids are not computed."""

MOST_LENGTHS = 20_000
"""The stability index is looked for up to this length."""


@dataclass(frozen=True, eq=False)
class Monoid:
    """The maps of states to states that words are: row x of ``maps`` is element x, row 0 the identity;
    ``right[x, s]`` is the element x followed by letter s.
    """

    maps: Int64[np.ndarray, "elements states"]
    right: Int64[np.ndarray, "elements letters"]

    def __len__(self) -> int:
        return len(self.maps)

    @property
    def idempotents(self) -> Bool[np.ndarray, " elements"]:
        """Which elements are their own squares."""
        return (_then(self.maps, self.maps) == self.maps).all(axis=1)


@dataclass(frozen=True, eq=False)
class Stable:
    """The least ``index`` s >= 1 such that words of length s and words of length 2s are the same
    ``elements``, which then form a semigroup.
    """

    index: int
    elements: Bool[np.ndarray, " elements"]


def transition_monoid(dfa: DFA, most: int = MOST_ELEMENTS) -> Monoid | None:
    """The transition monoid, which for a minimal automaton is the syntactic one; None if it is too large."""
    letters = [tuple(row[letter] for row in dfa.transitions) for letter in range(len(dfa.alphabet))]
    number = {tuple(dfa.states): 0}
    found, right = list(number), []
    for element in found:
        row = []
        for letter in letters:
            after = tuple(map(letter.__getitem__, element))
            if after not in number:
                if len(found) >= most:
                    return None
                number[after] = len(found)
                found.append(after)
            row.append(number[after])
        right.append(row)
    return Monoid(np.array(found, dtype=np.int64), np.array(right, dtype=np.int64))


def is_r_trivial(dfa: DFA) -> bool:
    """Whether the language of a minimal automaton is in R."""
    return all(len(component) == 1 for component in strong_components(dfa.transitions))


def is_aperiodic(monoid: Monoid) -> bool:
    """Whether the language of the monoid is in A: no map has a cycle of two or more states."""
    power = monoid.maps
    for _ in range(monoid.maps.shape[1].bit_length()):
        power = _then(power, power)
    return bool((_then(monoid.maps, power) == power).all())


def is_r_o_g(monoid: Monoid) -> bool:
    """Whether the language of the monoid is in R o G."""
    idempotent = monoid.idempotents
    return all(idempotent[list(one)].sum() <= 1 for one in strong_components(monoid.right.tolist()))


def stability(monoid: Monoid, most: int = MOST_LENGTHS) -> Stable | None:
    """The stability index; None if it is too large."""
    elements = np.zeros(len(monoid), dtype=bool)
    elements[0] = True
    seen: dict[bytes, int] = {}
    lengths = []
    for length in range(1, most + 1):
        before, elements = elements, np.zeros(len(monoid), dtype=bool)
        elements[monoid.right[before].ravel()] = True
        lengths.append(np.packbits(elements).tobytes())
        start = seen.setdefault(lengths[-1], length)
        if start < length:
            # From length ``start`` on the elements repeat; 2s - s must be a multiple of that period.
            period = length - start
            index = -(-start // period) * period
            chosen = np.frombuffer(lengths[index - 1], dtype=np.uint8)
            return Stable(index, np.unpackbits(chosen, count=len(monoid)).astype(bool))
    return None


def local_failure(monoid: Monoid, stable: Stable) -> int | None:
    """An idempotent e of the stable semigroup S whose local monoid e S e is not one of C-RASP; None if all
    are.

    Then the language is not in C-RASP[periodic,local], whatever the period and the distances. For each
    element x of e S e there is a block of letters p y p' with y for x, where p and p' are fixed words for e
    longer than all distances, and all blocks have one length, a multiple of the period. Inside a block all
    that a program sees without counting depends on x and the offset, so that a program without positions,
    over blocks as letters, could do the same. (Derived for this project, not published.)

    The monoid e S e is tested where it acts on the states that e leads to. This decides it: an element is
    given by what it does there, and what it does to one state is read off from any program for the element.
    """
    inside = monoid.maps[stable.elements]
    tested: set[bytes] = set()
    for element in np.flatnonzero(stable.elements & monoid.idempotents):
        onto = monoid.maps[element]
        image = np.unique(onto)
        # Idempotents with one image have isomorphic local monoids.
        if len(image) == 1 or image.tobytes() in tested:
            continue
        tested.add(image.tobytes())
        acting = np.unique(np.searchsorted(image, onto[inside[:, image]]), axis=0)
        generators = _generators(map(tuple, acting.tolist()))
        transitions = list(zip(*generators, strict=True))
        if inseparable_tagged(transitions, [0] * len(image)) is not None:
            return int(element)
    return None


def _then(
    first: Int64[np.ndarray, "elements states"], second: Int64[np.ndarray, "elements states"]
) -> Int64[np.ndarray, "elements states"]:
    """One map after another, row by row."""
    return np.take_along_axis(second, first, axis=1)


def _generators(maps: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Some of the maps of a semigroup, of which all others are products."""
    chosen: list[tuple[int, ...]] = []
    known: set[tuple[int, ...]] = set()
    for one in maps:
        if one in known:
            continue
        chosen.append(one)
        fresh = [one, *(tuple(map(one.__getitem__, product)) for product in known)]
        while fresh:
            product = fresh.pop()
            if product not in known:
                known.add(product)
                fresh.extend(tuple(map(each.__getitem__, product)) for each in chosen)
    return chosen
