"""Streams of C-RASP programs against the definitions, and against languages in plain Python."""

import gc
import itertools
import random
import re
import sys
import weakref
from pathlib import Path

import pytest
from hypothesis import given, settings

try:
    from crasp_programs import RECIPES, WORDS, build_program, plain_values, recipe_truth, values_at, word_for
except ModuleNotFoundError:
    sys.path.insert(0, str(Path(__file__).parent))
    from crasp_programs import RECIPES, WORDS, build_program, plain_values, recipe_truth, values_at, word_for

from lengthwise.crasp.builder import TRUE, Q, count, exists, forall, ind, mod, prev
from lengthwise.crasp.nodes import Bool, Mod, sym
from lengthwise.crasp.program import Program
from lengthwise.crasp.stream import MOST_TABLE, Stream


def read(program, word):
    stream = Stream(program)
    for symbol in program.symbols(word):
        stream.step(symbol)
    return stream


@settings(max_examples=150)
@given(RECIPES, WORDS)
def test_every_node_has_its_value_at_every_position(recipe, word):
    program = build_program(recipe)
    word = word_for(program, word)
    table = plain_values(program, word)
    stream = Stream(program)
    for position, symbol in enumerate(word, start=1):
        stream.step(symbol)
        expected = values_at(table, position)
        found = stream.values
        assert found == expected
        assert all(type(value) is (bool if isinstance(node, Bool) else int) for node, value in found.items())
        assert stream.position == position
        # Asking for the end must leave the stream as it is; the next positions would show it.
        if position % 7 == 0:
            stream.end_values()
    if program.mode == "eos":
        assert stream.end_values() == values_at(table, len(word) + 1)
        assert stream.accepted() == table[program.root()][-1]
    elif word:
        assert stream.accepted() == table[program.root()][-1]


@settings(max_examples=60)
@given(RECIPES, WORDS)
def test_values_do_not_depend_on_when_they_are_asked_for(recipe, word):
    program = build_program(recipe)
    word = word_for(program, word)
    asked, silent = Stream(program), Stream(program)
    for symbol in word:
        asked.step(symbol)
        asked.accepted()
        assert asked.margins() == asked.margins()
        silent.step(symbol)
    assert silent.end_values() == asked.end_values()
    assert silent.values == asked.values


@settings(max_examples=100)
@given(RECIPES, WORDS)
def test_the_program_means_what_its_recipe_says(recipe, word):
    program = build_program(recipe)
    word = word_for(program, word)
    truth = recipe_truth(recipe, word)
    stream = Stream(program)
    for symbol, expected in zip(word, truth, strict=False):
        stream.step(symbol)
        assert stream.value(program.root()) == expected
    if truth:
        assert stream.accepted() == program(word) == truth[-1]


@pytest.mark.parametrize("mode", ["last", "eos"])
def test_every_prefix_is_a_word(mode):
    random_ = random.Random(1)
    d = count(Q("a")) - count(Q("b"))
    deep = count((d >= 2) & prev(Q("b")), strict=True) - count(ind(d == 0) + d >= 1, at=[0, 2, 3, 9]) >= 1
    program = Program("ab", accept=deep | (mod(3, 1) & ~prev(deep)), mode=mode)
    word = [random_.randrange(2) for _ in range(120)]
    stream = Stream(program)
    for n in range(1, len(word) + 1):
        stream.step(word[n - 1])
        assert stream.accepted() == plain_values(program, word[:n])[program.root()][-1]


def majority(mode):
    return Program("01", accept=count(Q("1")) > count(Q("0")), mode=mode)


def bounded_dyck(mode, height=None):
    d = count(Q("a")) - count(Q("b"))
    bad = d < 0 if height is None else (d < 0) | (d > height)
    return Program("ab", accept=(count(bad) == 0) & (d == 0), mode=mode)


def anbncn(mode):
    late = (Q("a") & exists(Q("b") | Q("c"))) | (Q("b") & exists(Q("c")))
    a, b, c = (count(Q(letter)) for letter in "abc")
    return Program("abc", accept=(count(late) == 0) & (a == b) & (b == c), mode=mode)


def abab(mode):
    bad = (Q("a") & mod(2, 0)) | (Q("b") & mod(2, 1))
    return Program("ab", accept=(count(bad) == 0) & mod(4, 0 if mode == "last" else 1), mode=mode)


def tomita4(mode):
    third = Q("0") & (count(Q("0"), at=[1, 2]) == 2)
    return Program("01", accept=count(third) == 0, mode=mode)


def tomita7(mode):
    first = Q("0") & exists(Q("1"))
    second = Q("1") & exists(first)
    third = Q("0") & exists(second)
    return Program("01", accept=count(third) == 0, mode=mode)


def is_dyck(word, height=10**9):
    heights = list(itertools.accumulate(1 if letter == "a" else -1 for letter in word))
    return all(0 <= h <= height for h in heights) and (not heights or heights[-1] == 0)


LANGUAGES = {
    "majority": (majority, lambda w: 2 * w.count("1") > len(w)),
    "Dyck-1": (bounded_dyck, is_dyck),
    "D_3": (lambda mode: bounded_dyck(mode, 3), lambda w: is_dyck(w, 3)),
    "anbncn": (anbncn, lambda w: w == "".join(letter * (len(w) // 3) for letter in "abc")),
    "(abab)*": (abab, lambda w: w == "abab" * (len(w) // 4)),
    "Tomita 4": (tomita4, lambda w: "000" not in w),
    "Tomita 7": (tomita7, lambda w: re.fullmatch("0*1*0*1*", w) is not None),
}


@pytest.mark.parametrize("mode", ["last", "eos"])
@pytest.mark.parametrize("name", LANGUAGES)
def test_programs_accept_their_languages(name, mode):
    made, belongs = LANGUAGES[name]
    program = made(mode)
    longest = 6 if len(program.alphabet) == 3 else 9
    for n in range(longest + 1):
        for letters in itertools.product(program.alphabet, repeat=n):
            word = "".join(letters)
            assert read(program, word).accepted() == program(word) == belongs(word), word


@pytest.mark.parametrize("mode", ["last", "eos"])
def test_long_words(mode):
    random_ = random.Random(2)
    dyck, zeros = bounded_dyck(mode), tomita4(mode)
    for half in (500, 4000):
        balanced = "a" * half + "ab" * 7 + "b" * half
        assert read(dyck, balanced).accepted()
        assert not read(dyck, balanced + "b").accepted()
        assert not read(dyck, "b" + balanced + "a").accepted()
        word = "".join(random_.choice(["1", "01", "001"]) for _ in range(half))
        assert read(zeros, word).accepted()
        assert not read(zeros, word + "000" + word).accepted()


def test_wide_and_ragged_windows():
    random_ = random.Random(3)
    ranges = [range(40), range(1, 41), [0, 1, 2, 7, 8, 30], [5], [0], [63], [0, 2, 4, 6], range(10, 20)]
    sums = [count(Q("a"), at=distances) for distances in ranges]
    accept = sums[0] >= 20
    for one in sums[1:]:
        accept = accept | (one + count(Q("b")) >= 10**6) | (count(one >= 3, at=[1, 2, 5]) >= 2)
    program = Program("ab", accept=accept)
    word = [random_.randrange(2) for _ in range(400)]
    stream = Stream(program)
    for i, symbol in enumerate(word):
        stream.step(symbol)
        for distances in ranges:
            if list(distances) == [0]:
                continue
            node = next(iter(count(Q("a"), at=distances).cases[0][1]))
            assert stream.value(node) == sum(word[i - d] == 0 for d in distances if i - d >= 0)


@pytest.mark.parametrize("mode", ["last", "eos"])
def test_a_period_too_long_for_tables(mode):
    odd = mod(997, 3) | (mod(991, 5) & Q("a"))
    accept = (count(odd | mod(2, 0)) - count(Q("b") & ~mod(3, 1)) >= 2) & ~(odd & prev(mod(4, 2)))
    program = Program("ab", accept=accept, mode=mode)
    assert program.period > MOST_TABLE
    random_ = random.Random(4)
    word = [random_.randrange(2) for _ in range(60)]
    table = plain_values(program, word)
    stream = Stream(program)
    for position, symbol in enumerate(word, start=1):
        stream.step(symbol)
        assert stream.values == values_at(table, position)
    assert stream.accepted() == table[program.root()][-1]
    while stream.position < 991 + 5:
        stream.step(0)
    residues = {
        (node.modulus, node.residue): stream.value(node) for node in program.nodes if isinstance(node, Mod)
    }
    # 996 = 991 + 5 = 997 - 1, even, divisible by 3 and by 4.
    assert residues == {(997, 3): False, (991, 5): True, (2, 0): True, (3, 1): False, (4, 2): False}


def test_coefficients_beyond_machine_words():
    big = 10**30
    program = Program("ab", accept=big * count(Q("a")) - (big + 1) * count(Q("b")) + (big - 7) >= 0)
    for n in range(12):
        word = "a" * n + "b" * (n + 1)
        assert read(program, word).accepted() == (big * n - (big + 1) * (n + 1) + big - 7 >= 0)
        assert read(program, word[:-1]).accepted() == (big * n - (big + 1) * n + big - 7 >= 0)


def test_deep_programs_need_no_recursion():
    formula = Q("a")
    for _ in range(1500):
        formula = ~exists(formula)
    # On words that begin with a: exists a holds, so its negation never does, so the next holds everywhere.
    for accept, expected in ((formula, True), (~exists(formula), False)):
        stream = read(Program("ab", accept=accept, mode="last"), "abba")
        assert stream.accepted() is expected


def test_the_empty_word():
    for accepts_empty in (False, True):
        assert Stream(Program("a", accept=TRUE, accepts_empty=accepts_empty)).accepted() is accepts_empty
        assert read(Program("a", accept=Q("a"), accepts_empty=accepts_empty), "a").accepted()
        # Under "eos" the empty word has a position, 1, and nothing to choose.
        for accept, expected in ((mod(5, 1), True), (Q("a"), False), (count(TRUE) == 1, True)):
            program = Program("a", accept=accept, mode="eos", accepts_empty=accepts_empty)
            assert Stream(program).accepted() is expected
    at_zero = [
        (Q("a"), False),
        (~Q("a"), True),
        (mod(3, 0), True),
        (mod(3, 1), False),
        (count(TRUE) >= 1, False),
        (exists(TRUE), False),
        (forall(Q("a")), True),
        (prev(TRUE), False),
        (ind(~Q("a")) + count(Q("a")) >= 1, False),
        (count(~Q("a"), at=[0, 1]) + 2 * count(Q("a")) == 0, True),
        (count(count(Q("a")) == 0) >= 1, False),
    ]
    for accept, expected in at_zero:
        stream = Stream(Program("ab", accept=accept))
        assert stream.accepted() is expected
        assert stream.values[accept.node] is expected
        assert stream.position == 0


def test_predictions():
    letters = "xyz"
    totals = [count(Q(letter)) for letter in letters]
    following = {
        letter: Q("S")
        & _all(total >= other for other in totals)
        & ~_any(earlier >= total for earlier in totals[:index])
        for index, (letter, total) in enumerate(zip(letters, totals, strict=True))
    }
    following["E"] = ~Q("S") & exists(Q("S"))
    program = Program("xyzS", next=following)
    for n in range(6):
        for word in itertools.product(letters, repeat=n):
            stream = read(program, "".join(word))
            assert stream.predictions() == frozenset()
            stream.step(3)
            winner = max(letters, key=lambda letter: (word.count(letter), -letters.index(letter)))
            assert stream.predictions() == {winner}
            stream.step(letters.index(winner))
            assert stream.predictions() == {"E"}
    assert Stream(Program("a", next={"p": ~Q("a"), "q": exists(Q("a"))})).predictions() == {"p"}


def _all(formulas):
    found = TRUE
    for one in formulas:
        found = found & one
    return found


def _any(formulas):
    return ~_all(~one for one in formulas)


def test_mistakes_are_told_and_change_nothing():
    stream = read(majority("last"), "01101")
    before = stream.values
    for symbol in (2, -1, 10**20):
        with pytest.raises(ValueError, match=f"symbol {symbol} is not between 0 and 1"):
            stream.step(symbol)
    assert stream.values == before
    assert stream.position == 5
    with pytest.raises(ValueError, match="no part of the program"):
        stream.value(sym("7"))
    with pytest.raises(ValueError, match="use accepted"):
        stream.predictions()
    with pytest.raises(ValueError, match="use predictions"):
        Stream(Program("a", next={"a": TRUE})).accepted()


def test_margins_are_what_comparisons_compare():
    a, b = count(Q("a")), count(Q("b"))
    program = Program("ab", accept=(2 * a - 3 * b + 1 >= 0) & (count(Q("b"), at=[1, 2]) - ind(a >= 2) >= 1))
    word = "abbaabab"
    for n in range(1, len(word) + 1):
        read_, before = word[:n], word[max(0, n - 3) : n - 1]
        margins = read(program, read_).margins()
        twos = read_.count("a") >= 2
        expected = [2 * read_.count("a") - 3 * read_.count("b") + 1, before.count("b") - twos - 1]
        assert sorted(margins) == sorted([*expected, read_.count("a") - 2])


def test_a_program_is_not_kept_alive():
    program = majority("last")
    assert read(program, "011").accepted()
    seen = weakref.ref(program)
    del program
    gc.collect()
    assert seen() is None
