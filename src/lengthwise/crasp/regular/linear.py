"""Sparse linear relations over a prime field or over the rationals, kept solved."""

from collections.abc import Mapping
from fractions import Fraction
from math import gcd, lcm

PRIME = 2**61 - 1

Row = Mapping[int, int | Fraction]
"""A sum of variables, which are integers, with coefficients."""


class Relations:
    """Sums of variables that are 0. Each added relation binds one variable: ``bound`` gives it as a sum of
    free ones. Coefficients are residues modulo ``prime``, or rational numbers where it is None.
    """

    def __init__(self, prime: int | None) -> None:
        self.prime = prime
        self.bound: dict[int, dict[int, int | Fraction]] = {}
        self._users: dict[int, set[int]] = {}

    def reduced(self, row: Row) -> dict[int, int | Fraction]:
        """The same sum in free variables alone; equal for two sums if and only if the relations make them
        so.
        """
        total: dict[int, int | Fraction] = {}
        for variable, factor in row.items():
            _add(total, self.bound.get(variable, {variable: 1}), factor, self.prime)
        return total

    def add(self, row: Row) -> bool:
        """Add a relation; whether it was new."""
        rest = self.reduced(row)
        if not rest:
            return False
        # A variable with few users is cheap to replace.
        variable = min(rest, key=lambda one: len(self._users.get(one, ())))
        inverse = self._inverse(rest.pop(variable))
        solved: dict[int, int | Fraction] = {}
        _add(solved, rest, -inverse, self.prime)
        users = self._users.pop(variable, set())
        for user in users:
            expression = self.bound[user]
            factor = expression.pop(variable)
            before = solved.keys() & expression.keys()
            _add(expression, solved, factor, self.prime)
            for one in before - expression.keys():
                self._users[one].discard(user)
        for one in solved:
            mine = self._users.setdefault(one, set())
            mine.update(user for user in users if one in self.bound[user])
            mine.add(variable)
        self.bound[variable] = solved
        return True

    def _inverse(self, value: int | Fraction) -> int | Fraction:
        return Fraction(1) / value if self.prime is None else pow(int(value), -1, self.prime)


def _add(total: dict[int, int | Fraction], row: Row, factor: int | Fraction, prime: int | None) -> None:
    """Add a multiple of a row in place, without zeros."""
    for variable, value in row.items():
        sum_ = total.get(variable, 0) + factor * value
        if prime is not None:
            sum_ %= prime
        if sum_:
            total[variable] = sum_
        else:
            total.pop(variable, None)


def primitive(values: Mapping[int, int | Fraction]) -> dict[int, int]:
    """The smallest integers in the same proportions; the first that is not 0 is positive."""
    scale = lcm(*(Fraction(value).denominator for value in values.values()))
    whole = {key: int(value * scale) for key, value in values.items()}
    divisor = gcd(*whole.values()) or 1
    sign = next((1 if value > 0 else -1 for value in whole.values() if value), 1)
    return {key: sign * value // divisor for key, value in whole.items()}
