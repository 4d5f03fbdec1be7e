"""Comparisons of sums of counts as text.

A node keeps the order of its counts, and reading ``L >= R`` puts those of L before those of R, reading
``L <= R`` those of R before those of L. The texts here are the plainest ones that keep the order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lengthwise.crasp.nodes import Bool, Count, Ge, Node
from lengthwise.crasp.tokens import LARGEST

_Terms = tuple[tuple[Count, int], ...]
Texts = Mapping[Node, tuple[str, int]]
"""The text of each node, and how tightly it holds together."""


@dataclass(frozen=True)
class Pair:
    """Two opposite comparisons, which together are one equation or its negation.

    The first is that ``left`` - ``right`` + ``constant`` is at least 0 where the sign is ``==``, and greater
    than 0 where it is ``!=``; the second is the opposite.
    """

    left: _Terms
    right: _Terms
    constant: int
    sign: Literal["==", "!="]

    @property
    def counts(self) -> list[Count]:
        """What is counted on both sides."""
        return [count for count, _ in self.left + self.right]


def paired(one: Bool, other: Bool, sign: Literal["==", "!="]) -> Pair | None:
    """Two comparisons as one, if reading the equation gives these two in this order."""
    if not isinstance(one, Ge) or not isinstance(other, Ge):
        return None
    shift = 1 if sign == "!=" else 0
    constant = one.constant + shift
    if other.constant + shift != -constant or len(one.children) != len(other.children):
        return None
    terms, opposite = one.terms, _negated(other.terms)
    if terms == opposite:
        return Pair(terms, (), constant, sign)
    # Reading L == R gives the counts of R before those of L in the second comparison.
    split = next((place for place, term in enumerate(terms) if term == opposite[0]), 0)
    left, right = terms[:split], _negated(terms[split:])
    if opposite == terms[split:] + left and left and left[0][1] > 0 and right[0][1] > 0:
        return Pair(left, right, constant, sign)
    return None


def _negated(terms: _Terms) -> _Terms:
    return tuple((count, -alpha) for count, alpha in terms)


def equated(pair: Pair, texts: Texts) -> str:
    """The text of an equation or its negation."""
    if pair.right:
        right = _summed(pair.right, texts) + _added(-pair.constant)
        return f"{_summed(pair.left, texts)} {pair.sign} {right}"
    if pair.left[0][1] > 0:
        return f"{_summed(pair.left, texts)} {pair.sign} {integer(-pair.constant)}"
    return f"{integer(pair.constant)} {pair.sign} {_summed(_negated(pair.left), texts)}"


def compared(node: Ge, texts: Texts) -> str:
    """The text of a comparison."""
    terms, constant = node.terms, node.constant
    if terms[0][1] < 0:
        right = "< 0" if constant == -1 else f"<= {integer(constant)}"
        return f"{_summed(_negated(terms), texts)} {right}"
    split = next((place for place, (_, alpha) in enumerate(terms) if alpha < 0), len(terms))
    left, right = terms[:split], _negated(terms[split:])
    if right and constant in (0, -1) and all(alpha > 0 for _, alpha in right):
        return f"{_summed(left, texts)} {'>' if constant else '>='} {_summed(right, texts)}"
    return f"{_summed(terms, texts)} >= {integer(-constant)}"


def integer(value: int) -> str:
    """An integer in decimal, or ``...`` where the text syntax does not hold it."""
    return str(value) if abs(value) < LARGEST else "..."


def _added(value: int) -> str:
    return "" if value == 0 else f" {'+' if value > 0 else '-'} {integer(abs(value))}"


def _summed(terms: _Terms, texts: Texts) -> str:
    """A sum of counts; the first coefficient is positive."""
    written = ""
    for count, alpha in terms:
        factor = "" if abs(alpha) == 1 else f"{integer(abs(alpha))} * "
        joint = "" if not written else " + " if alpha > 0 else " - "
        written += joint + factor + texts[count][0]
    return written
