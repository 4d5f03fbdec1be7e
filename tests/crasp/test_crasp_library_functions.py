"""Programs of the library whose answer is a word, symbol by symbol; and why some tasks have none."""

from itertools import permutations, product
from random import Random

import pytest
from crasp_programs import RECIPES, build_program
from hypothesis import given, settings
from hypothesis import strategies as st
from library_oracles import copied, in_order, majority, three_majorities

from lengthwise.crasp import Stream, library, parse
from lengthwise.crasp.library.functions import BEGIN, END, SEPARATOR
from lengthwise.crasp.nodes import Ge
from lengthwise.crasp.power import PowerWord, power_values


def answered(program, word, longest):
    """What a program answers to an input, where it reads what it has predicted; at every step it must predict
    exactly one symbol.
    """
    stream, number = Stream(program), {letter: index for index, letter in enumerate(program.alphabet)}
    for symbol in (BEGIN, *word, SEPARATOR):
        stream.step(number[symbol])
    answer = []
    while len(answer) <= longest:
        predicted = stream.predictions()
        assert len(predicted) == 1
        (symbol,) = predicted
        if symbol == END:
            return answer
        answer.append(symbol)
        stream.step(number[symbol])
    return answer


def all_words(letters, longest, shortest=0):
    return (word for n in range(shortest, longest + 1) for word in product(letters, repeat=n))


def arrangements(size):
    """All words of some tokens, none of them twice."""
    tokens = [str(number) for number in range(size)]
    return (word for n in range(size + 1) for word in permutations(tokens, n))


def check(name, inputs, oracle):
    program = library.named(name).program
    for word in inputs:
        right = oracle(word)
        assert answered(program, word, len(right)) == right


@pytest.mark.parametrize(("size", "longest"), [(2, 8), (3, 6), (4, 4)])
def test_majority_on_all_short_inputs(size, longest):
    check(f"majority-{size}", all_words("abcd"[:size], longest, shortest=1), majority)


def test_majority_of_26_letters_with_close_counts_and_ties():
    random = Random(0)
    inputs = []
    for length in (1, 2, 5, 30, 31, 150, 300):
        letters = random.sample("abcdefghijklmnopqrstuvwxyz", 1 + length % 7)
        inputs += [
            [letters[at % len(letters)] for at in range(length)],
            random.choices("abcdefghijklmnopqrstuvwxyz", k=length),
        ]
        random.shuffle(inputs[-2])
    check("majority", inputs, majority)


def test_three_majorities_on_all_short_inputs():
    # Also where the strings are not equally long, and where there are ties.
    check("binary-majority-interleaved", all_words("01", 9), three_majorities)


def test_three_majorities_on_long_inputs():
    random = Random(0)
    lengths = [12, 15, 48, 49, 50, 150, 300]
    inputs = [random.choices("01", weights=(1, random.choice([0.9, 1, 1.1])), k=n) for n in lengths * 4]
    check("binary-majority-interleaved", inputs, three_majorities)


@pytest.mark.parametrize(("name", "size"), [("copy-unique", 6), ("copy-unique-local", 5)])
def test_copies_of_all_arrangements(name, size):
    check(f"{name}-{size}", arrangements(size), copied)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_small_alphabets(size):
    for name, oracle in ("copy-unique", copied), ("copy-unique-local", copied), ("sort", in_order):
        check(f"{name}-{size}", arrangements(size), oracle)


def random_arrangements(size, lengths):
    random = Random(size)
    tokens = [str(number) for number in range(size)]
    yield from (random.sample(tokens, length) for length in lengths)
    yield tokens[::-1]


def test_copies_of_the_150_tokens_of_the_suite():
    check("copy-unique", random_arrangements(150, [2, 75, 150]), copied)


def test_copies_by_bigrams_of_many_tokens():
    check("copy-unique-local-20", random_arrangements(20, [1, 2, 10, 19, 20]), copied)


def test_copying_needs_no_positions_and_grows_with_the_alphabet():
    sizes = [library.named(f"copy-unique-{size}").program.size for size in (10, 20, 30)]
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0]
    pairs = [library.named(f"copy-unique-local-{size}").program for size in (10, 20, 30)]
    assert pairs[2].size - pairs[1].size > pairs[1].size - pairs[0].size
    program = library.named("copy-unique").program
    assert (program.depth, program.period, program.locality) == (2, 1, 0)
    assert (pairs[0].depth, pairs[0].locality) == (2, 1)
    assert library.named("copy-unique-local-10").in_crasp.witness.locality == 0


def test_sorting_all_arrangements():
    check("sort-5", arrangements(5), in_order)


def test_sorting_the_150_tokens_of_the_suite():
    check("sort", random_arrangements(150, [1, 149]), in_order)
    program = library.named("sort").program
    assert (program.depth, program.fragment) == (1, "C-RASP_1")
    signs = [{alpha > 0 for _, alpha in node.terms} for node in program.nodes if isinstance(node, Ge)]
    assert all(len(one) == 1 for one in signs)


def test_sorting_with_repetitions():
    check("sort-repeat-3", all_words("012", 6), in_order)
    random = Random(0)
    inputs = [random.choices([str(number) for number in range(12)], k=length) for length in (20, 60, 150)]
    check("sort-repeat-12", inputs, in_order)


def test_there_are_more_copies_and_sums_than_states():
    """The numbers in the argument of few states."""
    for bits in range(1, 9):
        numbers = range(2 ** (bits - 1), 2**bits)
        assert len({x + y for x in numbers for y in numbers}) == 2**bits - 1
    for name in "copy-repeat", "addition":
        entry = library.named(name)
        assert (entry.program, entry.in_crasp.answer, entry.in_positional.answer) == (None, False, False)


A, B = "01", "10"
ENDS = B + A + A + "111", A + B + A + "111"
"""How the two inputs of the argument of equal counts end."""


def without_positions(recipe):
    """A recipe of the letters 0 and 1, with global counts in place of local ones and no moduli."""

    def total(terms_and_constant):
        terms, constant = terms_and_constant
        kinds = {"far": "strict", "local": "count"}
        return [(kinds.get(term[0], term[0]), *term[1:3]) for term in terms], constant

    steps = []
    for step in recipe["steps"]:
        match step:
            case ("mod", _, _):
                steps.append(("exists", 0))
            case ("prev", back):
                steps.append(("forall", back))
            case (kind, *parts):
                steps.append((kind, *(total(one) if isinstance(one, tuple) else one for one in parts)))
    return recipe | {"letters": 2, "mode": "last", "steps": steps}


def large_enough(program):
    """k and N for which the argument holds, with a bound on the powers after which the type of a position
    decides the formulas of each rank.
    """
    sums = [node for node in program.nodes if isinstance(node, Ge)]
    total = max((sum(abs(alpha) for _, alpha in node.terms) for node in sums), default=0)
    constant = max((abs(node.constant) for node in sums), default=0)
    k = 3 * (2 * total // 3 + 1)
    powers = 1
    for _ in range(program.rank):
        # What was counted before is off by at most 2 a position; a sum moves by 1 a power or more.
        powers = constant + 4 * total * (k + 1) * powers + 2 * total * (2 * k + 12) + 1
    return k, 3 * powers


@settings(max_examples=80)
@given(RECIPES.map(without_positions))
def test_programs_without_positions_do_not_see_which_string_has_more_ones(recipe):
    program = build_program(recipe)
    assert (program.period, program.locality) == (1, 0)
    k, repetitions = large_enough(program)
    block = tuple(map(int, A * k + B))
    first, second = (
        power_values(program, PowerWord(((block, repetitions), (tuple(map(int, end)), 1)))) for end in ENDS
    )
    assert first == second


@settings(max_examples=15)
@given(st.integers(1, 5), st.integers(1, 5))
def test_the_two_inputs_have_different_answers(thirds, powers):
    strings = [(A * (3 * thirds) + B) * (3 * powers) + end for end in ENDS]
    assert [three_majorities(word) for word in strings] == [["1", "0", "1"], ["0", "1", "1"]]
    for word in strings:
        parts = [word[start::3] for start in range(3)]
        assert len({len(part) for part in parts}) == 1
        assert len(parts[0]) % 2 == 1  # no ties
    check("binary-majority-interleaved", strings, three_majorities)


def test_programs_without_positions_see_it_where_the_blocks_are_in_the_ratio_that_they_count():
    """k must be large for the program: this one tells the two inputs with k = 3 apart, whatever N is."""
    program = parse(
        'd = # "1" - # "0"\nm = # ("1" && d == 0) - 3 * # ("1" && d == 1)\naccept = # (m <= -3) >= 5'
    )
    for k, differs in (3, True), (6, False):
        found = [program((A * k + B) * 30 + end) for end in ENDS]
        assert (found[0] != found[1]) == differs
    k, _ = large_enough(program)
    assert k > 3
