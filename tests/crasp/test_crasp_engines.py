"""Each way to decide about programs by itself, against all short words."""

import random

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

from lengthwise.crasp.builder import TRUE, Q, count, exists
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


@settings(max_examples=60)
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


@settings(max_examples=60)
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


def test_random_words_are_accepted_when_they_are_found():
    """Equal numbers, after a surplus of 5: no word of 10 letters, and few of more."""
    surplus = count(count(A) - count(B) >= 6) >= 1
    asked = Program("ab", surplus & (count(A) == count(B)))
    found = positions.mutated(asked, Clock(20.0))
    assert found.blocks is not None
    assert asked(spelled(found.blocks))


@settings(max_examples=40)
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
