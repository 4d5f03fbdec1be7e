"""Exact decisions about programs, and searches that cannot always decide, against all short words."""

import time

import pytest
from crasp_fragments import (
    LETTERS,
    REACH,
    accepted,
    of_any_sign,
    of_letters,
    of_one_sign,
    program,
    recipes,
    shortest,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.crasp.builder import TRUE, Q, count, exists, mod, prev
from lengthwise.crasp.program import Program
from lengthwise.crasp.programs import empty, equivalent, included

pytest.importorskip("z3")
pytestmark = pytest.mark.usefixtures("one_thread")

A, B, C = map(Q, LETTERS)
HEIGHT = count(A) - count(B)


def words(verdict):
    """The witness of a verdict as a list of one word in letter numbers."""
    word = verdict.witness
    if word and isinstance(word, list) and isinstance(word[0], tuple):
        word = [letter for letters, times in word for letter in list(letters) * times]
    return [[LETTERS.index(letter) for letter in word]]


def dyck(mode="last"):
    return Program("ab", (count(HEIGHT < 0) == 0) & (HEIGHT == 0), mode=mode, accepts_empty=True)


def bounded_dyck(height, mode="last"):
    bad = (HEIGHT < 0) | (height < HEIGHT)
    return Program("ab", (count(bad) == 0) & (HEIGHT == 0), mode=mode, accepts_empty=True)


def learned_bounded_dyck():
    """D_2 again, by the number of visits to height 1; true by hand, but with a parity that nothing finds."""
    return Program("ab", (HEIGHT == 0) & (count(HEIGHT == 1) >= count(A)), accepts_empty=True)


@settings(max_examples=40)
@given(recipes(of_any_sign), recipes(of_any_sign))
def test_inclusion_is_what_short_words_say(one, other):
    """Never wrong about words within reach, whatever the fragment."""
    letters, mode, first = one
    second = other[2] if other[0] <= letters else ("true",)
    p, q = program(first, letters, mode, True), program(second, letters, mode, False)
    difference = ("and", first, ("not", second))
    verdict = included(p, q, time_limit=1.0)
    least = 0 if mode == "last" else shortest(difference, letters, mode)
    check(verdict, difference, letters, mode, least)


def check(verdict, difference, letters, mode, least):
    if verdict.answer is False:
        length = verdict.details["length"]
        assert length == len(words(verdict)[0])
        assert length == 0 or accepted(difference, mode, words(verdict)).all()
        assert length > REACH[letters] if least is None else length >= least
        assert length == least or least is None or not verdict.details["shortest"]
    else:
        assert least is None or least > verdict.details.get("checked", -1)
        assert least is None or verdict.answer is None


@settings(max_examples=25)
@given(recipes(of_any_sign, positions=True), recipes(of_any_sign, positions=True))
def test_equivalence_is_what_short_words_say(one, other):
    letters, mode, first = one
    second = other[2] if other[0] <= letters else ("not", ("true",))
    p, q = program(first, letters, mode), program(second, letters, mode)
    difference = ("or", ("and", first, ("not", second)), ("and", ("not", first), second))
    verdict = equivalent(p, q, time_limit=1.0)
    check(verdict, difference, letters, mode, shortest(difference, letters, mode))
    if verdict.answer is False:
        by_first = accepted(first, mode, words(verdict)).all()
        assert verdict.details["accepted_by"] == ("first" if by_first else "second")


@settings(max_examples=40)
@given(st.sampled_from([of_letters, of_one_sign]).flatmap(recipes))
def test_emptiness_of_decidable_fragments_is_always_answered(drawn):
    letters, mode, recipe = drawn
    least = shortest(recipe, letters, mode)
    verdict = empty(program(recipe, letters, mode), time_limit=30.0)
    if least is not None:
        assert verdict.answer is False
        assert verdict.details["shortest"]
        assert verdict.details["length"] == least
    else:
        assert verdict.answer is not None
        assert verdict.answer or verdict.details["length"] > REACH[letters]


@pytest.mark.parametrize("mode", ["last", "eos"])
def test_dyck_written_in_three_ways(mode):
    never_low = (count(HEIGHT >= 0) >= count(TRUE)) & (count(A) == count(B))
    falls = (count(B & (count(A) < count(B))) == 0) & (count(A) == count(B))
    for formula in (never_low, falls):
        verdict = equivalent(dyck(mode), Program("ab", formula, mode=mode, accepts_empty=True))
        assert verdict.answer is True
        assert verdict.method == "k-induction"


@pytest.mark.parametrize("mode", ["last", "eos"])
def test_bounded_dyck_languages_are_ordered(mode):
    assert included(bounded_dyck(2, mode), bounded_dyck(3, mode)).answer is True
    assert included(bounded_dyck(3, mode), dyck(mode)).answer is True
    verdict = included(bounded_dyck(3, mode), bounded_dyck(2, mode))
    assert verdict.answer is False
    assert verdict.witness == "aaabbb"
    assert verdict.details["shortest"]


def test_a_word_is_shortest_only_where_that_is_known():
    verdict = included(bounded_dyck(12), bounded_dyck(11))
    heights = [sum(1 if letter == "a" else -1 for letter in verdict.witness[:n]) for n in range(1, 200)]
    assert (min(heights), max(heights), heights[-1]) == (0, 12, 0)
    by_length = verdict.method in ("all short words", "letter by letter")
    assert verdict.details["shortest"] == (by_length or verdict.details["checked"] == 23)


def test_the_position_after_the_end_is_no_letter():
    verdict = empty(Program("ab", ~A & ~B & (count(A) >= 2), mode="eos"))
    assert (verdict.answer, verdict.witness, verdict.details["shortest"]) == (False, "aa", True)
    assert empty(Program("ab", ~A & ~B & (count(A) >= 2), mode="last")).answer is True


def test_the_empty_word_is_compared_first():
    p, q = (Program("ab", A, accepts_empty=e) for e in (True, False))
    verdict = equivalent(p, q)
    assert (verdict.answer, verdict.witness) == (False, "")
    assert included(q, p).answer is True
    assert included(p, q).witness == ""
    eos = [Program("ab", count(A) >= 1, mode="eos", accepts_empty=e) for e in (True, False)]
    assert equivalent(*eos).answer is True


def test_very_long_words_come_in_blocks():
    late = (A & exists(B | C)) | (B & exists(C))
    ordered = (count(late) == 0) & (count(A) == count(B)) & (count(B) == count(C))
    p, q = Program("abc", ordered), Program("abc", ordered & (count(A) <= 1000))
    verdict = included(p, q)
    assert verdict.witness == [("a", 1001), ("b", 1001), ("c", 1001)]
    assert verdict.details["length"] == 3003
    assert verdict.details["shortest"]
    verdict = empty(Program("ab", (10**12 * count(A) - 7 * count(B) == 1) & A))
    # 10^12 is 1 modulo 7.
    assert verdict.witness == [("b", (10**12 - 1) // 7), ("a", 1)]


def test_letters_of_several_characters_come_as_lists():
    x, y = Q("up"), Q("down")
    program = Program(["up", "down"], (count(x) >= 2) & (count(y) == 1) & x)
    verdict = empty(program)
    assert sorted(verdict.witness) == ["down", "up", "up"]
    assert verdict.witness[-1] == "up"
    long = empty(Program(["up", "down"], (count(x) >= 500) & y))
    assert long.witness == [(["up"], 500), (["down"], 1)]


def test_positions_are_understood():
    even = Program("ab", (count((A & mod(2, 0)) | (B & mod(2, 1))) == 0) & mod(2, 0), accepts_empty=True)
    assert equivalent(even, bounded_dyck(1)).answer is True
    near = Program("ab", count(A & prev(A & prev(A))) == 0)
    window = Program("ab", count(A & (count(A, at=[1, 2]) == 2)) == 0)
    assert equivalent(near, window).answer is True
    assert equivalent(near, Program("ab", count(A & prev(A)) == 0)).witness == "aa"
    # Every fifth letter is the first 30 times: only a solver finds that, letter by letter or by numbers.
    verdict = empty(Program("ab", (count(A & mod(5, 0)) >= 30) & (count(A & ~mod(5, 0)) == 0) & B))
    assert verdict.details["length"] == 151
    assert verdict.details["shortest"]


def test_what_cannot_be_decided_is_not_answered_and_ends_in_time():
    start = time.monotonic()
    verdict = equivalent(bounded_dyck(2), learned_bounded_dyck(), time_limit=2.0)
    assert time.monotonic() - start < 5.0
    assert verdict.answer is None
    assert verdict.witness is None
    assert verdict.details["checked"] >= 8
    assert verdict.details["runs"] >= 4


@pytest.mark.parametrize("limit", [0.001, 0.3])
def test_time_limits_are_kept(limit):
    hard = [
        (bounded_dyck(9), bounded_dyck(10)),
        (Program("ab", count(count(A) * 2 == count(B) * 3) >= 40), Program("ab", ~TRUE)),
        (Program("ab", count(prev(A) & (count(A) == count(B))) >= 30), Program("ab", ~TRUE)),
    ]
    for p, q in hard:
        start = time.monotonic()
        verdict = equivalent(p, q, time_limit=limit)
        assert time.monotonic() - start < limit + 3.0
        assert verdict.answer is not True


def test_mistakes_are_named():
    p = dyck()
    with pytest.raises(ValueError, match="alphabets differ"):
        equivalent(p, Program("abc", A))
    with pytest.raises(ValueError, match="modes differ"):
        included(p, dyck("eos"))
    with pytest.raises(ValueError, match="predicts symbols"):
        empty(Program("ab", next={"a": A}))
    with pytest.raises(ValueError, match="time_limit"):
        empty(p, time_limit=0.0)
    assert equivalent(p, Program("ba", p.accept, accepts_empty=True)).answer is True
