"""Nodes are shared and simplified without changing what they mean; programs say what is wrong with them."""

import pytest

from lengthwise.crasp import nodes
from lengthwise.crasp.builder import MOST_CASES, TRUE, Q, count, formula, ind, mod, number
from lengthwise.crasp.program import Program

A, B = Q("a"), Q("b")


def test_the_same_formula_is_the_same_node():
    assert ((A & B) | mod(3, 1)).node is ((A & B) | mod(3, 4)).node
    assert (~~A).node is A.node
    assert (count(A) - count(B) >= 1).node is (2 * count(A) - 2 * count(B) >= 1).node  # 2 d >= 1 iff d >= 1
    assert (A & ~A).node is nodes.FALSE
    assert (A | ~A | B).node is nodes.TRUE
    assert (count(A & ~A) >= 1).node is nodes.FALSE


def test_comparisons_of_indicators_are_formulas():
    """So that nothing of depth 0 is hidden under a comparison."""
    assert (ind(A) + ind(B) >= 2).node is (A & B).node
    assert (count(ind(A) >= 1) >= 3).node is (count(A) >= 3).node
    with pytest.raises(ValueError, match="at most 256 indicators"):
        _ = sum((ind(Q(str(n))) for n in range(300)), ind(A)) >= 150


def test_cases_are_bounded():
    total = ind(A)
    for n in range(12):
        total = (count(Q(str(n))) >= 1).ite(total, total + 1)
    assert len(total.cases) == MOST_CASES
    with pytest.raises(ValueError, match="more than 4096 combinations"):
        _ = total + total


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alphabet": "", "accept": TRUE}, "the alphabet is empty"),
        ({"alphabet": "aa", "accept": TRUE}, "names a letter twice"),
        ({"alphabet": ["a", ""], "accept": TRUE}, "not empty"),
        ({"alphabet": "a"}, "either accepts"),
        ({"alphabet": "a", "accept": TRUE, "next": {"a": TRUE}}, "either accepts"),
        ({"alphabet": "a", "next": {"": TRUE}}, "a symbol to predict"),
        ({"alphabet": "a", "accept": B}, "letter 'b' is not in the alphabet a"),
    ],
)
def test_programs_say_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        Program(**arguments)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: bool(A), "true or false at each|truth value at each"),
        (lambda: A == B, "compared by equivalence"),
        (lambda: 0 < count(A) < 3, "truth value at each"),
        (lambda: bool(count(A)), "a count has a value at each position"),
        (lambda: formula(count(A)), "expected a formula, got a count"),
        (lambda: number(A), "expected a count, got a formula"),
        (lambda: number(0.5), "expected a whole number"),
        (lambda: count(A, strict=True, at_least=2), "takes one of"),
        (lambda: count(A, at_least=-1), "at_least must be from 0 to 10000, got -1"),
        (lambda: count(A, at_least=10**30), "at_least must be from 0 to 10000"),
        (lambda: mod(0, 1), "a modulus must be at least 1"),
        (lambda: count(A, at=[-1, 5]), "distances must be from 0 to 10000, got -1"),
        (lambda: count(A, at=[3, 10**30]), "distances must be from 0 to 10000, got 10{30}"),
    ],
)
def test_formulas_and_counts_are_not_mixed_up(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
