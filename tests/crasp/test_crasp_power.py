"""Power words: against plain reading where that is possible, against mathematics where it is not."""

import itertools
import random
import sys
import time
from math import ceil, lcm, prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

try:
    from crasp_programs import RECIPES, build_program
except ModuleNotFoundError:
    sys.path.insert(0, str(Path(__file__).parent))
    from crasp_programs import RECIPES, build_program

from lengthwise.crasp import power
from lengthwise.crasp.builder import TRUE, Q, count, exists, ind, mod, prev
from lengthwise.crasp.nodes import Ge
from lengthwise.crasp.power import PowerWord, evaluate_power, parse_power, power_values, read_power
from lengthwise.crasp.program import Program
from lengthwise.crasp.stream import Stream

REPETITIONS = st.one_of(st.integers(0, 3), st.integers(4, 40), st.integers(4, 40), st.integers(100, 400))
BLOCKS = st.lists(st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=5), REPETITIONS), max_size=6)
SUFFIXES = st.lists(st.integers(0, 2), max_size=40)
LONGEST = 2000


def over(program, blocks):
    """The blocks as a power word over the letters of a program."""
    k = len(program.alphabet)
    return PowerWord(tuple((tuple(symbol % k for symbol in word), times) for word, times in blocks))


def expanded(word):
    return [symbol for symbols, times in word.blocks for symbol in symbols * times]


def read(program, symbols):
    stream = Stream(program)
    for symbol in symbols:
        stream.step(symbol)
    return stream


def compare(program, word, suffix=()):
    """A power word gives every value that plain reading gives, now and after more letters."""
    plain, jumped = read(program, expanded(word)), read_power(program, word)
    assert jumped.values == plain.values
    assert jumped.accepted() == plain.accepted()
    assert jumped.position == word.length == len(expanded(word))
    assert jumped.end_values() == plain.end_values()
    for symbol in suffix:
        jumped.step(symbol % len(program.alphabet))
        plain.step(symbol % len(program.alphabet))
        assert jumped.values == plain.values


@settings(max_examples=200)
@given(RECIPES, BLOCKS, SUFFIXES)
def test_powers_are_plain_reading(recipe, blocks, suffix):
    program = build_program(recipe)
    kept = []
    for word, times in blocks:
        room = LONGEST - sum(len(symbols) * repeated for symbols, repeated in kept)
        kept.append((word, min(times, room // len(word))))
    compare(program, over(program, kept), suffix)


@settings(max_examples=60)
@given(RECIPES, st.data())
def test_many_short_blocks(recipe, data):
    program = build_program(recipe)
    block = st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=3), st.integers(0, 12))
    blocks = data.draw(st.lists(block, min_size=10, max_size=40))
    word = over(program, blocks)
    compare(program, word, [0, 1, 2, 1])
    plain = read(program, expanded(word))
    assert power_values(program, word) == plain.values
    assert evaluate_power(program, word) == plain.accepted()


SLOPES = st.tuples(*[st.sampled_from([-3, -2, -1, 1, 2, 3])] * 3, st.integers(-200, 200))


@settings(max_examples=120)
@given(
    st.lists(SLOPES, min_size=1, max_size=3), st.lists(st.integers(0, 1), min_size=1, max_size=5), st.data()
)
def test_walks_that_come_back(slopes, block, data):
    """A block drives sums far from 0 and another brings them back, so that they change sign inside it."""
    total = count(Q("a"), at=[0, 2])
    for alpha, beta, gamma, constant in slopes:
        walk = alpha * count(Q("a")) + beta * count(Q("b")) + gamma * total + constant
        total = count(walk >= 0)
    program = Program("ab", accept=total >= 100)
    first, second = data.draw(st.integers(0, 120)), data.draw(st.integers(50, 120))
    compare(program, PowerWord((((0,), first), (tuple(block), second), ((1, 0, 1), second))))


HUGE = st.builds(lambda base, digits: base * 10**digits + base, st.integers(1, 99), st.integers(9, 40))


@settings(max_examples=80)
@given(
    RECIPES,
    st.lists(st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=4), HUGE), max_size=3),
    st.data(),
)
def test_the_same_word_in_other_blocks(recipe, blocks, data):
    """v^N is v^k v^(N-k), and (v^k)^(N div k) v^(N mod k); (xy)^N is x (yx)^(N-1) y."""
    program = build_program(recipe)
    other = []
    for word, times in blocks:
        kind = data.draw(st.sampled_from(["split", "group", "turn"]))
        if kind == "split":
            first = data.draw(st.integers(0, times))
            other += [(word, first), (word, times - first)]
        elif kind == "group":
            size = data.draw(st.integers(2, 5))
            other += [(word * size, times // size), (word, times % size)]
        else:
            cut = data.draw(st.integers(0, len(word)))
            other += [(word[:cut], 1), (word[cut:] + word[:cut], times - 1), (word[cut:], 1)]
    one, two = over(program, blocks), over(program, other)
    assert one.length == two.length
    assert power_values(program, one) == power_values(program, two)
    assert evaluate_power(program, one) == evaluate_power(program, two)


@settings(max_examples=80)
@given(RECIPES, st.lists(st.integers(0, 2), min_size=1, max_size=4), st.lists(st.integers(0, 2), max_size=40))
def test_letters_read_have_a_bound_without_the_repetitions(recipe, block, prefix):
    program = build_program(recipe)
    ranks = [node.rank for node in program.nodes if isinstance(node, Ge)]
    length = lcm(program.period, len(block))
    w = ceil(program.locality / length)
    runs = prod(1 + w + length * ranks.count(rank) for rank in set(ranks))
    jumps = prod(1 + length * ranks.count(rank) for rank in set(ranks))
    counted = {"step": 0, "advance": 0}

    class Counted(Stream):
        def step(self, symbol):
            counted["step"] += 1
            super().step(symbol)

        def advance(self, increments, times):
            counted["advance"] += times > 0
            super().advance(increments, times)

    stream = Counted(program)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(power, "Stream", lambda program: stream)
        read_power(program, over(program, [(prefix, 1), (block, 10**60)]))
    assert counted["advance"] <= jumps
    # The letters left after whole iterations are fewer than those of one.
    assert counted["step"] <= len(prefix) + (w + 1) * length * runs + length
    assert stream.position == len(prefix) + len(block) * 10**60


def dyck(mode="last"):
    d = count(Q("a")) - count(Q("b"))
    return Program("ab", accept=(count(d < 0) == 0) & (d == 0), mode=mode)


@pytest.mark.parametrize("mode", ["last", "eos"])
def test_dyck_on_words_that_nobody_can_read(mode):
    program = dyck(mode)
    cases = {
        "a^1000000000 b^(10^9)": True,
        "a^(10^9) b^1000000001": False,
        "a^(10^9) b^999999999": False,
        "(ab)^(10^12)": True,
        "(ab)^(10^12) b a": False,
        "(aab)^(10^30) b^(10^30)": True,
        "(aab)^(10^30) b^(10^30) (ba)^(10^30)": False,
        "(aab)^(10^30) (ba)^(10^30) b^(10^30)": True,
        "a (ba)^(10^40) b": True,
        "b (ba)^(10^40) a": False,
        # The lowest point of an iteration is not at its end.
        "a^(10^12) (bba)^999999999999 b": True,
        "a^(10^12) (bba)^(10^12)": False,
        "a^(10^12) (bab)^(10^12)": True,
        "a^(10^12) (bbbaa)^999999999998 bb": True,
        "a^(10^12) (bbbaa)^999999999999 b": False,
        "": True,
    }
    for text, expected in cases.items():
        assert evaluate_power(program, parse_power(text, "ab")) is expected, text


def test_it_takes_no_time():
    program, word = dyck(), parse_power("(ab)^(10^12)", "ab")
    times = []
    for _ in range(5):
        start = time.perf_counter()
        assert evaluate_power(program, word)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.1


def test_margins_that_just_touch_zero():
    """How often d is at least 0, at most 0 and 0 in a^n b^m, around m = n."""
    d = count(Q("a")) - count(Q("b"))
    for n, more in itertools.product([1, 2, 10**9, 10**25], range(-1, 4)):
        m = n + more
        word = PowerWord((((0,), n), ((1,), m)))
        zeros, above, below = int(m >= n), n + min(m, n), max(0, m - n)
        for formula, expected in ((d == 0, zeros), (d >= 0, above), (d < 0, below), (d <= 0, below + zeros)):
            total = count(formula)
            assert evaluate_power(Program("ab", accept=total == expected), word)
            assert not evaluate_power(Program("ab", accept=(total > expected) | (total < expected)), word)


def test_slopes_with_remainders():
    """The first position of a^n at which p i >= q is ceil(q / p), whatever the remainder."""
    random_ = random.Random(5)
    for _ in range(60):
        p, q, n = random_.randrange(1, 50), random_.randrange(1, 10**15), 10**16
        late = count(p * count(Q("a")) >= q)
        early = count(p * count(Q("a")) <= q)
        word = PowerWord((((0,), n),))
        assert evaluate_power(Program("a", accept=late == n - -(-q // p) + 1), word)
        assert evaluate_power(Program("a", accept=early == q // p), word)


def test_events_at_every_depth():
    """In a^n: first i >= k; then the count of that >= k, at i = 2k - 1; and so on, k - 1 later each time."""
    k, n = 10**12 + 7, 10**14
    formula = Q("a")
    for depth in range(1, 30):
        formula = count(formula) >= k
        total = n - (depth * (k - 1) + 1) + 1
        assert evaluate_power(Program("a", accept=count(formula) == total), PowerWord((((0,), n),)))


def test_a_walk_that_turns_on_its_own():
    """A count that slows another down: c grows with i until it is K, and then at every third position."""
    K, n = 10**10, 10**11
    c = count(count(Q("a")) <= K) + count((count(Q("a")) > K) & mod(3, 0))
    thirds = n // 3 - K // 3
    assert evaluate_power(Program("a", accept=c == K + thirds), PowerWord((((0,), n),)))


def test_periods_longer_than_blocks():
    for modulus, block, n in itertools.product([2, 7, 12], ["a", "ab", "aab"], [1, 5, 11, 12, 13, 200]):
        last = modulus - 1
        program = Program(
            "ab", accept=count(mod(modulus, 1) & Q("a")) - count(mod(modulus, last) & prev(Q("a"))) >= 2
        )
        compare(program, PowerWord(((tuple("ab".index(letter) for letter in block), n),)), [0, 1] * 10)
    n = 10**30
    program = Program("a", accept=count(mod(7, 3)) == (n - 3) // 7 + 1)
    assert evaluate_power(program, PowerWord((((0,), n),)))


def test_distances_longer_than_blocks():
    a, far = Q("a"), [3, 17, 40]
    programs = [
        Program("ab", accept=count(count(a, at=far) - count(a, at=[0, 1, 2]) >= 0) - count(a) >= 5),
        Program("ab", accept=count(count(prev(a) & ~a, at=range(30)) >= 4, at=[0, 25, 50]) >= 2, mode="eos"),
        Program("ab", accept=count(count(TRUE, at=[50]) >= 1) - count(ind(count(a, at=[9]) >= 1) >= 1) == 0),
        Program("ab", accept=count(a, at_least=45) - count(exists(~a), at=range(44)) >= 3),
    ]
    ends = (0, 1, 44, 46, 90)
    for program, (first, second) in itertools.product(programs, itertools.product(ends, repeat=2)):
        compare(program, PowerWord((((0,), first), ((1, 0), second), ((1,), 3), ((0, 0, 1), 30))))
    # 10^20 blocks later, the window still sees exactly the last 51 letters.
    window = count(Q("b"), at=range(51))
    for rest, expected in ((0, 0), (1, 1), (50, 50), (51, 51), (52, 51)):
        word = PowerWord((((1, 0), 10**20), ((0,), 60), ((0, 0, 0), 10**20), ((1,), rest)))
        assert evaluate_power(Program("ab", accept=window == expected, mode="last"), word)


def test_powers_zero_and_one_and_words_of_no_letters():
    program = dyck()
    assert evaluate_power(program, PowerWord(()))
    assert evaluate_power(program, PowerWord((((1,), 0), ((), 10**9), ((0, 1), 1), ((1, 1), 0))))
    assert not evaluate_power(program, PowerWord((((0,), 1),)))
    empty = PowerWord((((0,), 0),))
    assert power_values(program, empty) == Stream(program).values
    assert not evaluate_power(Program("a", accept=TRUE, accepts_empty=False), empty)
    assert evaluate_power(
        Program("a", accept=count(TRUE) == 10**9 + 1, mode="eos"), parse_power("a^(10^9)", "a")
    )


def test_powers_that_cannot_be_evaluated():
    large = Program("a", accept=mod(10**6 + 3, 1) & mod(10**6 - 1, 2))
    assert not evaluate_power(large, PowerWord((((0,), 1000),)))
    for times in (10**30, 10**8):
        with pytest.raises(ValueError, match="smaller moduli"):
            evaluate_power(large, PowerWord((((0,), times),)))
    with pytest.raises(ValueError, match="symbol 2 is not between 0 and 1"):
        evaluate_power(dyck(), PowerWord((((0, 2), 10**9),)))
    with pytest.raises(ValueError, match="use predictions"):
        evaluate_power(Program("a", next={"a": TRUE}), PowerWord(()))
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        PowerWord((((0,), -1),))
    with pytest.raises(ValueError, match="must not be negative, got -2"):
        PowerWord((((0, -2), 1),))


TEXTS = {
    "(ab)^1000000000000 a b^3 (aab)^(10^12)": [("ab", 10**12), ("a", 1), ("b", 3), ("aab", 10**12)],
    "abba": [("abba", 1)],
    "ab^2a": [("a", 1), ("b", 2), ("a", 1)],
    " ( a b ) ^ ( 10 ^ 2 ) b ^ 7 ": [("ab", 100), ("b", 7)],
    "(ab)a(b)": [("abab", 1)],
    "a^0 b^(3) a^(2^0)": [("a", 0), ("b", 3), ("a", 1)],
    "a^007": [("a", 7)],
    "": [],
    "\n\t": [],
}


@pytest.mark.parametrize("text", TEXTS)
def test_texts(text):
    expected = tuple((tuple("ab".index(letter) for letter in word), times) for word, times in TEXTS[text])
    assert parse_power(text, "ab").blocks == expected


def test_letters_that_are_digits_or_long():
    assert parse_power("0^3 1 (10)^(10^2)", "01").blocks == (((0,), 3), ((1,), 1), ((1, 0), 100))
    assert parse_power("0^31", "01").blocks == (((0,), 31),)
    assert parse_power("abb ab^2", ["a", "ab", "b"]).blocks == (((1, 2), 1), ((1,), 2))
    assert parse_power("<s>(a<s>)^2", ["a", "<s>"]).blocks == (((1,), 1), ((0, 1), 2))


@given(
    st.lists(st.tuples(st.text("xyz", min_size=1, max_size=4), st.integers(0, 10**20)), max_size=6), st.data()
)
def test_what_is_written_is_read(blocks, data):
    text = ""
    for word, times in blocks:
        space = data.draw(st.sampled_from(["", " "]))
        text += f"({space.join(word)}){space}^{space}{times} "
    assert parse_power(text, "xyz").blocks == tuple(
        (tuple("xyz".index(letter) for letter in word), times) for word, times in blocks
    )


MALFORMED = {
    "abc": "letter 'c' at place 3 is not in the alphabet a b",
    "(ab": "the parenthesis at place 1 is not closed",
    "a (b^3": "the parenthesis at place 3 is not closed",
    "ab)": "follows nothing",
    "^3": "follows nothing",
    "a ()^3": "the parentheses at place 3 are empty",
    "((ab)^3 a)^5": "nested powers are not supported",
    "(a^3 b)^5": "nested powers are not supported",
    "a^10^12": "nested powers are not supported",
    "(ab)^2^2": "nested powers are not supported",
    "a^": "whole number",
    "a^b": "whole number",
    "a^-1": "whole number",
    "a^1.5": "letter '.' at place 4",
    "a^(10^)": "whole number",
    "a^(10^2^2)": "whole number",
    "a^(ab)": "whole number",
    "a^(10^1000000000000)": "more than 4000 digits",
    "a^" + "9" * 5000: "more than 4000 digits",
    "a^(2^" + "9" * 5000 + ")": "more than 4000 digits",
    "a\u00b2": "is not in the alphabet",
    "a^\u0663": "whole number",
}


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_texts(text):
    with pytest.raises(ValueError, match=MALFORMED[text].replace(".", r"\.")) as found:
        parse_power(text, "ab")
    assert len(str(found.value).splitlines()) == 1


@pytest.mark.parametrize("letter", ["(", ")", "^", " ", "a b"])
def test_letters_that_texts_cannot_have(letter):
    with pytest.raises(ValueError, match="PowerWord"):
        parse_power("a", ["a", letter])


@given(st.text("ab()^ 019", max_size=14))
def test_any_text_is_read_or_refused_in_one_line(text):
    try:
        found = parse_power(text, "ab")
    except ValueError as error:
        said = str(error)
    else:
        said = ""
        assert text.count("a") + text.count("b") == sum(len(symbols) for symbols, _ in found.blocks)
    assert "\n" not in said
