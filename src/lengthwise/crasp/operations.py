"""What the operators of the text syntax make of formulas and counts, and what they refuse."""

from collections.abc import Iterable
from dataclasses import dataclass

from lengthwise.crasp import builder, nodes
from lengthwise.crasp.builder import MOST_CASES, Formula, Number, formula, number
from lengthwise.crasp.guards import Guard
from lengthwise.crasp.tokens import LARGEST, MOST_DIGITS, Token

Value = Formula | Number

_WORDS = {"prev": builder.prev, "exists": builder.exists, "forall": builder.forall}
# The builder counts combinations only when all of them are made: refuse before memory is gone.
_MOST_PAIRS = 16 * MOST_CASES
# A comparison of indicators alone is expanded by one call inside another for each of them.
_MOST_INDICATORS = 128


@dataclass(frozen=True, slots=True)
class Operand:
    """A value, and the word where its text begins."""

    value: Value
    start: Token

    @property
    def formula(self) -> Formula:
        """The value, which must be a formula."""
        try:
            return formula(self.value)
        except ValueError as mistake:
            self.start.wrong(str(mistake))

    @property
    def number(self) -> Number:
        """The value, which must be a count."""
        try:
            return number(self.value)
        except ValueError as mistake:
            self.start.wrong(str(mistake))


def applied(kind: str, operands: list[Operand], counted: Guard = builder.count) -> Value:
    """What an operator makes of its operands, in the order of the text; ``#`` counts as ``counted`` does."""
    match kind:
        case "&&":
            return Formula(nodes.conjunction(one.formula.node for one in operands))
        case "||":
            return Formula(nodes.disjunction(one.formula.node for one in operands))
        case "!":
            return ~operands[0].formula
        case "#":
            return counted(operands[0].formula)
        case "prev" | "exists" | "forall":
            return _WORDS[kind](operands[0].formula)
        case "else":
            return operands[1].formula.ite(operands[0].number, operands[2].number)
        case ":":
            return operands[0].formula.ite(operands[1].number, operands[2].number)
    if len(operands) == 1:
        return -operands[0].number
    one, other = (operand.number for operand in operands)
    if len(one.cases) * len(other.cases) > _MOST_PAIRS:
        raise ValueError(f"a count depends on more than {MOST_CASES} combinations of conditions")
    return _arithmetic(kind, one, other)


def _arithmetic(kind: str, one: Number, other: Number) -> Value:
    match kind:
        case "+":
            return _bounded(one + other)
        case "-":
            return _bounded(one - other)
        case "*":
            return _bounded(_product(one, other))
        case "min":
            return _compared("<=", one, other).ite(one, other)
        case "max":
            return _compared(">=", one, other).ite(one, other)
        case _:
            return _compared(kind, one, other)


def _product(one: Number, other: Number) -> Number:
    for factor, count in ((one, other), (other, one)):
        (guard, terms, constant), *more = factor.cases
        if guard is nodes.TRUE and not terms and not more:
            return count * constant
    raise ValueError("expected an integer on one side of '*', got a product of two counts")


def _bounded(value: Number) -> Number:
    for _, terms, constant in value.cases:
        _check_size((*terms.values(), constant), LARGEST)
    return value


def _check_size(values: Iterable[int], limit: int) -> None:
    if any(abs(value) >= limit for value in values):
        raise ValueError(f"a number here has more than {MOST_DIGITS} digits")


def _compared(comparison: str, one: Number, other: Number) -> Formula:
    shift = -1 if comparison in ("<", ">", "!=") else 0
    match comparison:
        case ">" | ">=":
            return _at_least(one - other, shift)
        case "<" | "<=":
            return _at_least(other - one, shift)
        case "==":
            return _at_least(one - other, shift) & _at_least(other - one, shift)
        case _:
            return _at_least(one - other, shift) | _at_least(other - one, shift)


def _at_least(value: Number, shift: int) -> Formula:
    """Whether value + shift >= 0."""
    found = []
    for guard, terms, constant in value.cases:
        indicators = all(one.distances == (0,) and one.depth == 0 for one in terms)
        if indicators and len(terms) > _MOST_INDICATORS:
            raise ValueError(f"a comparison of {len(terms)} indicators has too many cases")
        case = nodes.at_least(terms, constant + shift)
        if isinstance(case, nodes.Ge):
            # Smaller than what is read, so that the comparison can be printed on either side of its sign.
            _check_size(case.data, LARGEST - 1)
        found.append(nodes.conjunction((guard, case)))
    return Formula(nodes.disjunction(found))
