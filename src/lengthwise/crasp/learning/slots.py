"""Slot programs: what the search changes one piece at a time.

A slot program is a list of rules. Rule k makes slot k, a formula, out of the base formulas (the letters and,
if the shape has moduli, the phases) and of the slots before it; what is accepted is the last slot. References
number the base formulas first and the slots after them. With every formula its count is there too, so that
counts and Booleans alternate. A rule is

- ``Sum(equal, constant, terms)``: the sum of the terms, plus the constant, is at least 0, or is equal to 0;
  a term (sign, distance, reference) is a count with coefficient 1 or -1, over all positions up to here where
  the distance is ``EVERYWHERE`` and at this one distance back otherwise;
- ``Join(every, literals)``: every literal holds, or some literal holds; a literal (negated, once, reference)
  is the formula here or, if ``once``, at some position up to here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lengthwise.crasp import builder
from lengthwise.crasp.builder import Formula, Number
from lengthwise.crasp.nodes import FARTHEST
from lengthwise.crasp.program import Program

EVERYWHERE = -1
"""The distance of a count over all positions."""

MOST_SLOTS = 100
"""A program that is searched for may have at most so many rules."""

MOST_MODULUS = 100
"""Positions may be known modulo at most this number: every residue is a base formula."""

Term = tuple[int, int, int]
"""Sign, distance, reference."""

Literal = tuple[bool, bool, int]
"""Negated, once, reference."""


class Sum(NamedTuple):
    """A comparison of a sum of counts with 0."""

    equal: bool
    constant: int
    terms: tuple[Term, ...]


class Join(NamedTuple):
    """A conjunction or a disjunction of literals."""

    every: bool
    literals: tuple[Literal, ...]


Rule = Sum | Join
Slots = tuple[Rule, ...]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a program that is searched for may have.

    - ``slots``: how many rules at most; ``terms``: of a sum; ``literals``: of a conjunction or disjunction;
    - ``constant``: the largest constant, in absolute value;
    - ``distances``: how far back local counts may look; none without positions;
    - ``moduli``: of positions; none without positions.
    """

    slots: int = 7
    terms: int = 3
    literals: int = 4
    constant: int = 5
    distances: tuple[int, ...] = ()
    moduli: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.slots <= MOST_SLOTS:
            raise ValueError(f"slots must be from 1 to {MOST_SLOTS}, got {self.slots}")
        if min(self.terms, self.literals) < 1 or self.constant < 0:
            raise ValueError("a shape needs at least one term and literal, and a constant of at least 0")
        for distance in self.distances:
            if not 0 <= distance <= FARTHEST:
                raise ValueError(f"distances must be from 0 to {FARTHEST}, got {distance}")
        for modulus in self.moduli:
            if not 2 <= modulus <= MOST_MODULUS:
                raise ValueError(f"moduli must be from 2 to {MOST_MODULUS}, got {modulus}")

    @property
    def positional(self) -> bool:
        """Whether programs may use positions."""
        return bool(self.moduli) or any(self.distances)

    @property
    def phases(self) -> tuple[tuple[int, int], ...]:
        """Moduli with their residues, one for each base formula that is not a letter."""
        return tuple((modulus, residue) for modulus in self.moduli for residue in range(modulus))

    def bases(self, letters: int) -> int:
        """How many base formulas there are over an alphabet of so many letters."""
        return letters + len(self.phases)


def weight(rule: Rule) -> int:
    """What a rule adds to the size of a program: itself, its terms and literals, and its constant."""
    if isinstance(rule, Sum):
        return 1 + len(rule.terms) + abs(rule.constant) + 2 * rule.equal
    return 1 + sum(1 + once for _, once, _ in rule.literals)


def mentioned(rule: Rule, bases: int) -> int:
    """The slots that a rule mentions, as the bits of a number."""
    found = 0
    for part in rule.terms if isinstance(rule, Sum) else rule.literals:
        if part[2] >= bases:
            found |= 1 << (part[2] - bases)
    return found


def reached(mentions: Sequence[int]) -> int:
    """The slots that the last one depends on, itself among them, as the bits of a number."""
    found = 1 << (len(mentions) - 1)
    for place in range(len(mentions) - 1, -1, -1):
        if found >> place & 1:
            found |= mentions[place]
    return found


def denoted(
    slots: Sequence[Rule], alphabet: Sequence[str], shape: Shape, accepts_empty: bool | None
) -> Program:
    """The program that a slot program is."""
    made = [builder.Q(letter) for letter in alphabet]
    made += [builder.mod(modulus, residue) for modulus, residue in shape.phases]
    needed = reached([mentioned(rule, len(made)) for rule in slots])
    for place, rule in enumerate(slots):
        made.append(_formula(rule, made) if needed >> place & 1 else builder.TRUE)
    return Program(alphabet, accept=made[-1], accepts_empty=accepts_empty)


def _formula(rule: Rule, made: Sequence[Formula]) -> Formula:
    if isinstance(rule, Sum):
        total = builder.number(rule.constant)
        for sign, distance, place in rule.terms:
            total = total + sign * _count(made[place], distance)
        return total == 0 if rule.equal else total >= 0
    parts = [_literal(literal, made) for literal in rule.literals]
    found = parts[0]
    for part in parts[1:]:
        found = found & part if rule.every else found | part
    return found


def _count(operand: Formula, distance: int) -> Number:
    return builder.count(operand) if distance == EVERYWHERE else builder.count(operand, at=[distance])


def _literal(literal: Literal, made: Sequence[Formula]) -> Formula:
    negated, once, place = literal
    if once:
        return builder.count(made[place]) <= 0 if negated else builder.exists(made[place])
    return ~made[place] if negated else made[place]
