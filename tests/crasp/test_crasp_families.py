"""Families of pairs of words for languages that are not in C-RASP."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from regular_languages import TABLE, answers, automaton, components, final_blocks, recipes, walks

from lengthwise.crasp.builder import Q, count
from lengthwise.crasp.program import Program
from lengthwise.crasp.regular import DFA, decide
from lengthwise.crasp.regular.families import Family, family

OUTSIDE = [
    (name, acceptance)
    for name, row in TABLE.items()
    for acceptance, column in (("eos", 6), ("last", 7))
    if not row[column]
]


def accepts(program, word):
    return bool(answers(program, np.array([[program.alphabet.index(letter) for letter in word]]))[0])


def check_labels(dfa, found):
    for c in 1, 2, 3:
        for N in 1, 2, 5:
            if sum(len(word) * times for word, times in found.loop(c)) * N < 10**5:
                first, second = found.strings(c, N)
                assert dfa.accepts(first) != dfa.accepts(second)


def rank(rows):
    """The rank of vectors of fractions."""
    rows, found = [list(row) for row in rows], 0
    for column in range(len(rows[0])):
        pivot = next((row for row in rows if row[column]), None)
        if pivot is not None:
            found += 1
            rows = [
                [x - row[column] / pivot[column] * y for x, y in zip(row, pivot, strict=True)]
                for row in rows
                if row is not pivot
            ]
        if not rows:
            break
    return found


def check_loops(dfa, found):
    """Each loop returns, and the vectors of letters read in blocks are a basis of those of all cycles."""
    state = dfa.after(found.x)
    assert all(dfa.after(loop, state) == state for loop in found.loops)
    inside = next(one for one in components(dfa.transitions) if state in one)
    blocks = final_blocks(inside, dfa.transitions, [0] * len(dfa.states))
    assert dfa.after(found.w1, state) != dfa.after(found.w2, state)
    assert blocks[dfa.after(found.w1, state)] == blocks[dfa.after(found.w2, state)]
    _, cycles = walks(blocks, dfa.transitions)
    labels = dict.fromkeys(
        (s, blocks[p]) for p in blocks for s, q in enumerate(dfa.transitions[p]) if q in blocks
    )
    vectors = []
    for loop in found.loops:
        vector, at = dict.fromkeys(labels, Fraction(0)), state
        for symbol in dfa.symbols(loop):
            vector[symbol, blocks[at]] += 1
            at = dfa.transitions[at][symbol]
        vectors.append(list(vector.values()))
    assert rank(vectors) == len(vectors) == rank(cycles) == rank(cycles + vectors)


@pytest.mark.parametrize(("name", "acceptance"), OUTSIDE)
def test_pairs_of_the_table_have_different_labels_and_loops_span_all_cycles(name, acceptance):
    dfa = TABLE[name][0]
    found = family(dfa, acceptance)
    check_labels(dfa, found)
    if acceptance == "eos":
        check_loops(dfa, found)


@settings(max_examples=60)
@given(recipes())
def test_pairs_of_random_languages(recipe):
    dfa = automaton(recipe)
    for acceptance in "eos", "last":
        found = family(dfa, acceptance)
        assert (found is None) == decide(dfa, acceptance=acceptance).answer
        if found is not None:
            check_labels(dfa, found)
            if acceptance == "eos":
                check_loops(dfa, found)


def test_pairs_are_the_words_that_they_say():
    found = Family("x", ("p", "qq", "r"), "", "w", "v")
    assert found.loop(3) == (("p", 9), ("qq", 3), ("r", 1))
    first, second = found.pair(2, 4)
    assert first == (("x", 1), ("ppppqqqqr", 4), ("v", 1))
    assert second == (("x", 1), ("ppppqqqqr", 4), ("w", 1), ("v", 1))
    assert found.strings(1, 2) == ("xpqqrpqqrv", "xpqqrpqqrwv")
    letters = Family(("x",), (("p",), ("q", "q")), (), ("w",), ())
    assert letters.strings(2, 1) == (tuple("xppqq"), tuple("xppqqw"))
    with pytest.raises(ValueError, match="c must be at least 1"):
        found.loop(0)
    with pytest.raises(ValueError, match="N must be at least 1"):
        found.pair(1, 0)
    with pytest.raises(ValueError, match="more than 10000000: take a smaller c or N"):
        found.strings(10**6, 1)


def test_letters_of_several_characters_stay_apart():
    parity = DFA(("one", "two"), ((1, 0), (0, 1)), 0, frozenset({0}))
    first, second = family(parity).strings(2, 3)
    assert {"one", "two"} == set(first) == set(second)
    assert parity.accepts(first) != parity.accepts(second)


def last_difference(program, found, most, N):
    """The largest c up to ``most`` at which a program gives different answers to the pair of some N."""
    differ = [
        c
        for c in range(1, most + 1)
        if any(len({accepts(program, word) for word in found.strings(c, n)}) == 2 for n in (N, N + 1, 2 * N))
    ]
    return max(differ, default=0)


@pytest.mark.parametrize("mode", ["eos", "last"])
def test_no_single_loop_works_for_parity(mode):
    a, b = count(Q("a")), count(Q("b"))
    # This program is right for ever on the pairs of the loop with 8 a and 25 b, and wrong on the family.
    program = Program("ab", 350 * a - 112 * b == 350, mode=mode, accepts_empty=False)
    loop = "b" * 25 + "a" * 8
    for N in range(1, 30):
        assert not accepts(program, loop * N)
        assert accepts(program, loop * N + "a")
    found = family(TABLE["parity"][0], mode)
    assert len(found.loops) == 2
    assert last_difference(program, found, 40, 3) == 0
    # For the loop of one c there is such a program too; for larger c it gives both words the same answer.
    chosen = 3
    text = "".join(word * times for word, times in found.loop(chosen))
    first, second = found.strings(chosen, 1)
    change, balance = first.count("a") - second.count("a"), text.count("b")
    right = balance * a - text.count("a") * b
    value = balance * second.count("a") - text.count("a") * second.count("b")
    assert change
    special = Program("ab", right == value, mode=mode, accepts_empty=False)
    assert all(
        accepts(special, second) and not accepts(special, first)
        for first, second in (found.strings(chosen, N) for N in range(1, 20))
    )
    assert last_difference(special, found, 12, 40) == chosen


@st.composite
def sums(draw, formulas):
    """A comparison of a sum of counts, as plain data: coefficients, a constant and a relation."""
    small = st.integers(-3, 3)
    return (
        [draw(small) for _ in range(formulas)],
        draw(st.integers(-4, 4)),
        draw(st.sampled_from([">=", "=="])),
    )


def compared(recipe, counts):
    factors, constant, relation = recipe
    total = sum((factor * one for factor, one in zip(factors, counts, strict=True)), counts[0] * 0) + constant
    return total >= 0 if relation == ">=" else total == 0


@settings(max_examples=60)
@given(
    st.sampled_from(["parity", "S*a", "(ab|bba)*", "(ab|aabb)*", "S*aaS*", "tomita 6", "(aa)* over ab"]),
    st.sampled_from(["eos", "last"]),
    sums(2),
    sums(4),
    sums(3),
)
def test_programs_give_pairs_the_same_answer_for_large_c_and_N(name, mode, first, second, third):
    dfa = TABLE[name][0]
    found = family(dfa, mode)
    if found is None:
        return
    letters = [Q(letter) for letter in dfa.alphabet]
    a, b = (count(letter) for letter in letters)
    one = compared(first, [a, b])
    two = compared(second, [a, b, count(one & letters[0]), count(one, strict=True)])
    three = compared(third, [a, count(two), count(two & letters[1])])
    program = Program(dfa.alphabet, three, mode=mode, accepts_empty=False)
    most = {1: 3, 2: 14}.get(len(found.loops), 6)
    N = 60 if len(found.loops) < 3 else 30
    assert last_difference(program, found, most, N) < most - 1
