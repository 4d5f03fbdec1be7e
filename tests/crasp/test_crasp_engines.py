"""Each way to decide about programs by itself, against all short words."""

import random

import numpy as np
import pytest
from crasp_fragments import (
    LETTERS,
    REACH,
    accepted,
    all_words,
    of_any_sign,
    of_letters,
    of_one_sign,
    program,
    recipes,
    shortest,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.crasp.builder import TRUE, Q, count, exists, ind
from lengthwise.crasp.nodes import Ge
from lengthwise.crasp.program import Program
from lengthwise.crasp.programs import counts, induction, phases, positions, runs
from lengthwise.crasp.programs.outcome import Clock, length, spelled
from lengthwise.crasp.syntax import parse

pytest.importorskip("z3")
pytestmark = pytest.mark.usefixtures("one_thread")

A, B, C = map(Q, LETTERS)


def numbers(blocks):
    return [[LETTERS.index(letter) for letter in spelled(blocks)]]


def check_exact(engine, letters, mode, recipe):
    """What an exact engine finds is what all short words say."""
    asked = program(recipe, letters, mode)
    assert engine.applies(asked)
    found = engine.search(asked, Clock(30.0))
    least = shortest(recipe, letters, mode)
    if found.blocks is None:
        assert found.none
        assert least is None
        return
    assert found.shortest
    assert not found.none
    assert accepted(recipe, mode, numbers(found.blocks)).all()
    assert length(found.blocks) > REACH[letters] if least is None else length(found.blocks) == least
    bound = engine.length_bound(asked)
    assert bound is None or length(found.blocks) <= bound


@settings(max_examples=150)
@given(recipes(of_letters))
def test_counts_of_letters_find_a_shortest_word_or_none(drawn):
    check_exact(counts, *drawn)
    assert counts.length_bound(program(drawn[2], *drawn[:2])) is not None


@settings(max_examples=100)
@given(recipes(of_letters, positions=True))
def test_counts_of_letters_with_positions_find_a_shortest_word_or_none(drawn):
    check_exact(counts, *drawn)


@settings(max_examples=150)
@given(recipes(of_one_sign))
def test_phases_find_a_shortest_word_or_none(drawn):
    check_exact(phases, *drawn)
    assert phases.length_bound(program(drawn[2], *drawn[:2])) is not None


@settings(max_examples=100)
@given(recipes(of_one_sign, strict=True, mixed=True))
def test_phases_with_strict_counts_and_any_signs_on_top(drawn):
    check_exact(phases, *drawn)


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(-4, 4)), min_size=2, max_size=2), st.integers(-2, 2)
)
def test_sums_that_are_said_never_to_fall_or_rise_do_not(pairs, constant):
    """alpha #P + beta ind(P), summed over P = a and P = b, along all words of 5 letters a, b, c."""
    total = constant + sum(
        alpha * count(formula) + beta * ind(formula)
        for (alpha, beta), formula in zip(pairs, (A, B), strict=True)
    )
    node = (total >= 0).node
    if not isinstance(node, Ge):
        return
    words = all_words(3, 5)
    held = [words == 0, words == 1]
    sums = sum(a * one.cumsum(1) + b * one for (a, b), one in zip(pairs, held, strict=True))
    steps = np.diff(sums, axis=1)
    assert phases.direction(node) == (1 if (steps >= 0).all() else -1 if (steps <= 0).all() else 0)


def test_length_bounds_are_reached():
    """As many b as needed and then an a; under "eos" as many letters as needed."""
    last = Program("ab", A & (count(B) >= 3))
    found = phases.search(last, Clock(10.0)).blocks
    assert found is not None
    assert phases.length_bound(last) == length(found) == 4
    eos = Program("ab", (count(B) >= 3) & (count(A & (count(B) >= 3)) >= 2), mode="eos")
    found = phases.search(eos, Clock(10.0)).blocks
    assert found is not None
    # Two comparisons, with 3 and 2, one of them used twice.
    assert phases.length_bound(eos) == length(found) == 5


def test_phases_that_are_not_used_say_nothing():
    """No word of b alone ends in a, whether there are five b or fewer."""
    asked = Program("ab", A & (count(A) == 0) & (count(B & (count(B) >= 5)) == 0))
    assert phases.search(asked, Clock(10.0)).none


def test_a_shorter_word_of_more_phases_is_found():
    """Seven letters b in one phase, or five letters a, each of which is a phase."""
    steps = sum(count(A & (count(A) >= k)) for k in range(1, 6))
    asked = Program("ab", ((count(B) >= 7) & (count(A) == 0)) | (steps >= 1 + 2 + 3 + 4 + 5))
    found = phases.search(asked, Clock(10.0))
    assert found.blocks == ((("a",), 5),)
    assert found.shortest


def test_phases_that_were_not_tried_for_lack_of_time_leave_the_answer_open():
    class OneQuery(Clock):
        queries = 0

        def over(self):
            return self.queries > 0

        def left(self):
            self.queries += 1
            return 10.0

    # The first b is one phase, the second b and the a are another.
    asked = Program("ab", count(A & (count(B) >= 2)) >= 1)
    found = phases.search(asked, OneQuery(10.0))
    assert (found.blocks, found.none) == (None, False)
    assert phases.search(asked, Clock(10.0)).blocks == ((("b",), 2), (("a",), 1))


@settings(max_examples=40)
@given(recipes(of_letters))
def test_phases_and_counts_agree_on_letters(drawn):
    asked = program(drawn[2], *drawn[:2])
    one, other = (engine.search(asked, Clock(30.0)) for engine in (counts, phases))
    assert one.none == other.none
    assert one.blocks is None or length(one.blocks) == length(other.blocks or ())


@settings(max_examples=60)
@given(recipes(of_any_sign))
def test_runs_find_every_word_of_few_letters(drawn):
    """A word of n letters has at most n runs; what is found is accepted, and not within reach if none is."""
    letters, mode, recipe = drawn
    reach = 4
    least = shortest(recipe, letters, mode, reach)
    found = runs.search(program(recipe, letters, mode), Clock(20.0), reach)
    assert found.blocks is not None or least is None
    if found.blocks is not None:
        assert found.details["runs"] < (reach if least is None else least)
        if length(found.blocks) < 10**4:
            assert accepted(recipe, mode, numbers(found.blocks)).all()
            assert least is None or length(found.blocks) >= least
    else:
        assert found.details["runs"] == reach


def test_runs_find_very_long_words():
    late = (A & exists(B | C)) | (B & exists(C))
    equal = (count(A) == count(B)) & (count(B) == count(C)) & (count(A) > 1000)
    found = runs.search(Program("abc", (count(late) == 0) & equal), Clock(10.0))
    assert found.blocks == ((("a",), 1001), (("b",), 1001), (("c",), 1001))


@settings(max_examples=100)
@given(recipes(of_any_sign, positions=True))
def test_letter_by_letter_finds_a_shortest_word(drawn):
    letters, mode, recipe = drawn
    reach = 4
    least = shortest(recipe, letters, mode, reach)
    asked = program(recipe, letters, mode)
    if mode == "eos" and least == 0:
        return
    found = positions.unrolled(asked, Clock(20.0), 0, reach)
    assert (found.blocks is None) == (least is None)
    if found.blocks is not None:
        assert length(found.blocks) == least
        assert accepted(recipe, mode, numbers(found.blocks)).all()


@settings(max_examples=60)
@given(recipes(of_any_sign, positions=True))
def test_all_short_words_are_tried_in_order(drawn):
    letters, mode, recipe = drawn
    found = positions.exhaustive(program(recipe, letters, mode), Clock(20.0), 200)
    reach = max(n for n in range(12) if letters**n <= 200)
    least = shortest(recipe, letters, mode, reach)
    if found.blocks is None:
        assert least is None
        assert letters == 1 or found.details["checked"] == reach
    elif length(found.blocks) <= reach:
        first = all_words(letters, least)[accepted(recipe, mode, all_words(letters, least)).argmax()]
        assert numbers(found.blocks) == [first.tolist()]


def test_the_first_word_in_order_is_found():
    asked = Program("ab", (count(A) == 1) & (count(B) == 2))
    assert positions.exhaustive(asked, Clock(20.0)).blocks == ((("a", "b", "b"), 1),)


def test_random_words_are_accepted_when_they_are_found():
    """Equal numbers, after a surplus of 5: no word of 10 letters, and few of more."""
    surplus = count(count(A) - count(B) >= 6) >= 1
    asked = Program("ab", surplus & (count(A) == count(B)))
    found = positions.mutated(asked, Clock(20.0))
    assert found.blocks is not None
    assert asked(spelled(found.blocks))


@settings(max_examples=25)
@given(recipes(of_any_sign, positions=True))
def test_proofs_by_induction_are_never_wrong_and_invariants_hold(drawn):
    letters, mode, recipe = drawn
    asked = program(recipe, letters, mode)
    tried = positions.exhaustive(asked, Clock(20.0), 64)
    if tried.blocks is not None:
        return
    found = induction.prove(asked, Clock(20.0), tried.details["checked"], most=3)
    if found.none:
        assert shortest(recipe, letters, mode) is None
    source = random.Random(0)
    alphabet = "%alphabet " + " ".join(f'"{letter}"' for letter in asked.alphabet)
    for said in source.sample(found.details["invariants"], min(10, len(found.details["invariants"]))):
        invariant = parse(f"{alphabet}\naccept = {said}\n")
        for _ in range(5):
            assert invariant([source.randrange(letters) for _ in range(source.randint(1, 30))]), said


def test_what_is_true_of_all_short_words_is_no_invariant():
    """That there are at most 100 letters a is never seen to be wrong on the words that are tried."""
    asked = Program("ab", count(count(A) - count(B) >= 101) >= 1)
    found = induction.prove(asked, Clock(10.0), 5)
    assert not found.none
    assert runs.search(asked, Clock(10.0)).blocks == ((("a",), 101),)


def test_induction_needs_short_words_to_be_checked():
    """At position 3 alone the formula holds: k = 3 steps prove all else, so the base must not be skipped."""
    asked = Program("a", count(TRUE) == 3)
    assert positions.exhaustive(asked, Clock(5.0)).blocks == ((("a", "a", "a"), 1),)
    assert not induction.prove(asked, Clock(5.0), 2).none


@pytest.mark.parametrize("mode", ["last", "eos"])
def test_numbers_beyond_64_bits_are_exact(mode):
    """Words are not evaluated in batches then; all else is."""
    large = 2**70
    nested = count(large * count(A) - (large + 1) * count(B) >= 2 * large) >= 1
    asked = Program("ab", nested & (count(A) == count(B)), mode=mode)
    assert positions.exhaustive(asked, Clock(5.0)).details["checked"] <= 0
    for found in (runs.search(asked, Clock(20.0)), positions.unrolled(asked, Clock(20.0), -1)):
        assert found.blocks is not None
        assert asked(spelled(found.blocks))
        assert length(found.blocks) == 4
    # The empty word is looked at too, and k = 0 needs no short words.
    never = Program("ab", nested & (count(A) == 0), mode=mode)
    assert positions.unrolled(never, Clock(20.0), -1, 3).details["checked"] == 3
    assert induction.prove(never, Clock(20.0), -1 if mode == "eos" else 0).none
    empty_word = Program("ab", (count(A | B) == 0) & ~nested, mode="eos")
    assert positions.unrolled(empty_word, Clock(20.0), -1).blocks == ()
