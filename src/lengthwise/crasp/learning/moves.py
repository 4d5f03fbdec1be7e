"""Small random changes of rules."""

from collections.abc import Callable
from random import Random

from lengthwise.crasp.learning.slots import EVERYWHERE, Join, Literal, Rule, Shape, Sum, Term


class Moves:
    """Draws rules, and changes of rules, within a shape; ``bases`` is how many base formulas there are."""

    def __init__(self, shape: Shape, bases: int, source: Random) -> None:
        self._shape, self._bases, self._random = shape, bases, source.random
        self._distances = (EVERYWHERE, *shape.distances)

    def rule(self, place: int) -> Rule:
        """A new rule for a slot."""
        if self._random() < 0.5:
            terms = tuple(self._term(place) for _ in range(1 + self._below(min(3, self._shape.terms))))
            return Sum(self._random() < 0.4, self._small(), terms)
        literals = tuple(self._literal(place) for _ in range(1 + self._below(min(3, self._shape.literals))))
        return Join(self._random() < 0.6, literals)

    def changed(self, rule: Rule, place: int) -> Rule:
        """A rule that differs a little; sometimes the same one."""
        if self._random() < 0.1:
            return self.rule(place)
        return self._sum(rule, place) if isinstance(rule, Sum) else self._join(rule, place)

    def _sum(self, rule: Sum, place: int) -> Sum:
        equal, constant, terms = rule
        kind = self._random()
        if kind < 0.3:
            constant += 1 if self._random() < 0.5 else -1
            return Sum(equal, constant, terms) if abs(constant) <= self._shape.constant else rule
        if kind < 0.4:
            return Sum(not equal, constant, terms)
        if kind < 0.5:
            return Sum(equal, -constant, tuple((-sign, distance, at) for sign, distance, at in terms))
        changed = self._parts(terms, self._shape.terms, place, self._term, self._other_term)
        return Sum(equal, constant, changed)

    def _join(self, rule: Join, place: int) -> Join:
        every, literals = rule
        if self._random() < 0.1:
            return Join(not every, literals)
        changed = self._parts(literals, self._shape.literals, place, self._literal, self._other_literal)
        return Join(every, changed)

    def _parts(
        self,
        parts: tuple[tuple, ...],
        most: int,
        place: int,
        new: Callable[[int], tuple],
        other: Callable[[tuple, int], tuple],
    ) -> tuple:
        """Terms or literals with one more, one less, or one changed."""
        kind = self._random()
        if kind < 0.25:
            return (*parts, new(place)) if len(parts) < most else parts
        at = self._below(len(parts))
        if kind < 0.5:
            return parts[:at] + parts[at + 1 :] if len(parts) > 1 else parts
        return (*parts[:at], other(parts[at], place), *parts[at + 1 :])

    def _term(self, place: int) -> Term:
        return 1 if self._random() < 0.5 else -1, self._distance(), self._reference(place)

    def _other_term(self, term: Term, place: int) -> Term:
        sign, distance, at = term
        kind = self._random()
        if kind < 0.3:
            return -sign, distance, at
        if kind < 0.4:
            return sign, self._distance(), at
        return sign, distance, self._reference(place)

    def _literal(self, place: int) -> Literal:
        return self._random() < 0.4, self._random() < 0.5, self._reference(place)

    def _other_literal(self, literal: Literal, place: int) -> Literal:
        negated, once, at = literal
        kind = self._random()
        if kind < 0.25:
            return not negated, once, at
        if kind < 0.5:
            return negated, not once, at
        return negated, once, self._reference(place)

    def _reference(self, place: int) -> int:
        """A base formula or a slot before this place, either with the same chance."""
        if place and self._random() < 0.5:
            return self._bases + self._below(place)
        return self._below(self._bases)

    def _distance(self) -> int:
        return self._distances[self._below(len(self._distances))]

    def _small(self) -> int:
        most = min(2, self._shape.constant)
        return self._below(2 * most + 1) - most

    def _below(self, number: int) -> int:
        return int(self._random() * number)
