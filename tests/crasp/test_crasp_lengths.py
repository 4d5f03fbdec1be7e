"""Lengths that tell programs apart, against all short words and all small automata."""

from itertools import pairwise, product

import pytest
from crasp_fragments import (
    REACH,
    of_letters,
    of_one_sign,
    program,
    recipes,
    shortest,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.crasp.builder import Q, count
from lengthwise.crasp.program import Program
from lengthwise.crasp.programs import (
    automaton_length,
    closed_length,
    distinguishing_length,
    hypotheses_length,
    size_length,
)

pytest.importorskip("z3")
pytestmark = pytest.mark.usefixtures("one_thread")

A, B = map(Q, "ab")
HEIGHT = count(A) - count(B)
PAIRS = st.sampled_from([of_letters, of_one_sign]).flatmap(lambda kind: st.tuples(*[recipes(kind)] * 2))


@settings(max_examples=40)
@given(PAIRS)
def test_the_least_length_that_tells_two_programs_apart(pair):
    (letters, mode, one), (most, _, other) = pair
    other = other if most <= letters else ("true",)
    p, q = program(one, letters, mode), program(other, letters, mode)
    differ = ("or", ("and", one, ("not", other)), ("and", ("not", one), other))
    least = shortest(differ, letters, mode)
    found, closed = distinguishing_length(p, q), closed_length(p, q)
    assert found.exact
    assert closed.number is not None
    assert not closed.exact
    if least is not None:
        assert found.number == least
        assert least <= closed.number
    elif found.number is not None:
        assert REACH[letters] < found.number <= closed.number


@settings(max_examples=60)
@given(recipes(of_one_sign), recipes(of_one_sign))
def test_the_length_by_size_is_never_below_the_closed_one(one, other):
    letters = max(one[0], other[0])
    p, q = (program(recipe, letters, one[1]) for recipe in (one[2], other[2]))
    closed = closed_length(p, q).number
    assert closed is not None
    assert closed <= (size_length(max(p.size, q.size)).number or 0)


@pytest.mark.parametrize(("states", "letters"), [(1, 1), (2, 1), (3, 1), (4, 1), (1, 2), (2, 2)])
def test_twice_the_states_less_two_tells_automata_apart_and_no_less_does(states, letters):
    """All automata, as what they accept of all words up to twice as long: the first differences."""
    longest = 4 * states if letters == 1 else 2 * states
    words = [word for n in range(longest + 1) for word in product(range(letters), repeat=n)]
    languages = set()
    for steps in product(range(states), repeat=states * letters):
        reached = []
        for word in words:
            state = 0
            for letter in word:
                state = steps[state * letters + letter]
            reached.append(state)
        for accepting in product([False, True], repeat=states):
            languages.add(tuple(accepting[state] for state in reached))
    # In the order of words two neighbours share the longest part, so the last first difference is theirs.
    ordered = sorted(languages)
    most = max(
        len(next(word for word, x, y in zip(words, one, other, strict=True) if x != y))
        for one, other in pairwise(ordered)
    )
    found = automaton_length(states)
    assert found.exact
    assert found.number == most


def test_no_number_is_given_where_none_can_be_computed():
    bad = (HEIGHT < 0) | (HEIGHT > 2)
    reference = Program("ab", (count(bad) == 0) & (HEIGHT == 0))
    learned = Program("ab", (HEIGHT == 0) & (count(HEIGHT == 1) >= count(A)))
    assert closed_length(reference, learned).number is None
    found = distinguishing_length(reference, learned, time_limit=1.0)
    assert (found.number, found.exact) == (None, False)
    assert "None" in found.words
    # But two such programs that differ on a short word are told apart by it, and equal ones by nothing.
    other = Program("ab", (count((HEIGHT < 0) | (HEIGHT > 3)) == 0) & (HEIGHT == 0))
    found = distinguishing_length(reference, other)
    assert (found.number, found.exact) == (6, True)
    found = distinguishing_length(reference, reference)
    assert (found.number, found.exact) == (None, True)


def test_the_length_for_a_list_is_the_largest_of_its_members():
    """At least 3 letters a, against at least k: they differ on a^min(k, 3) first."""
    programs = [Program("ab", count(A) >= k) for k in range(1, 6)]
    found = hypotheses_length(programs[2], programs)
    assert (found.number, found.exact) == (3, True)
    assert hypotheses_length(programs[2], programs[:2]).number == 2
    assert hypotheses_length(programs[2], programs[2:3]).number is None


def test_numbers_come_with_their_caveat():
    for found in (automaton_length(5), size_length(3), closed_length(*[Program("ab", A)] * 2)):
        assert "not for gradient descent" in found.words
        assert str(found.number) in found.words
    assert size_length(3).number == 2**4 + 6 + 2
    with pytest.raises(ValueError, match="at least one state"):
        automaton_length(0)
    with pytest.raises(ValueError, match="at least size 1"):
        size_length(0)
