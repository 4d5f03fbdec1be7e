"""What may follow each prefix of a word: programs that tell it, and prefixes that none tells apart."""

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from regular_languages import TABLE, automaton, components, final_blocks, recipes, words
from test_crasp_families import check_loops, compared, sums

from lengthwise.automata import next_sets
from lengthwise.crasp import Stream, outputs, parse, text_of
from lengthwise.crasp.builder import Q, count
from lengthwise.crasp.program import BEGIN, END, Program
from lengthwise.crasp.regular import DFA, compile_regex, decide, decide_next
from lengthwise.crasp.regular.positional import is_positional

EASIER = {
    "no aa": ("(b|ab)*a?", True, (0, 1)),  # the last letter tells
    "a, then no aa": ("a(b|ba)*", True, (0, 1)),
    "no aaa": ("(b|ab|aab)*(a|aa)?", False, (1, 1)),
    "pairs": ("(ab|cd)*", True, (0, 1)),
    "ab or ba": ("(ab|ba)*", True, (0, 1)),
    "a every second time": ("((a|b)a)*", False, (0, 2)),
}
"""Languages, whether what may follow is told without positions, and the window and period that suffice."""


@cache
def following(dfa):
    """The symbols that may follow in each state: letters to states that reach an accepting one."""
    reach = np.eye(len(dfa.states), dtype=int)
    for state, row in enumerate(dfa.transitions):
        reach[state, list(row)] = 1
    for _ in range(len(dfa.states).bit_length()):
        reach = np.minimum(reach @ reach, 1)
    live = reach[:, list(dfa.accepting)].any(axis=1)
    return [
        {letter for letter, after in zip(dfa.alphabet, row, strict=True) if live[after]}
        | ({END} if state in dfa.accepting else set())
        for state, row in enumerate(dfa.transitions)
    ]


def check_program(program, dfa, longest):
    """A program predicts the sets of all prefixes of words up to a length."""
    assert program.alphabet == (BEGIN, *dfa.alphabet)
    rows, transitions = words(len(dfa.alphabet), longest), np.array(dfa.transitions)
    states = [np.full(len(rows), dfa.start)]
    for column in rows.T:
        states.append(transitions[states[-1], column])
    states = np.stack(states, axis=1)
    begins = np.array([bool(found) for found in following(dfa)])[states]
    predicted = outputs(program, torch.as_tensor(np.pad(rows + 1, ((0, 0), (1, 0)))))
    assert set(predicted) == {*dfa.alphabet, END}
    for symbol, values in predicted.items():
        right = np.array([symbol in found for found in following(dfa)])[states]
        assert (values.numpy() == right)[begins].all(), symbol


def told(dfa, tags):
    """Whether a letter leads no two states of a block to two live ones, with blocks by dense elimination."""
    live = {state for state in dfa.states if following(dfa)[state]}
    for inside in components(dfa.transitions):
        block = final_blocks(inside, dfa.transitions, tags)
        for p in set(inside) & live:
            for q in set(inside) & live:
                for one, other in zip(dfa.transitions[p], dfa.transitions[q], strict=True):
                    if block[p] == block[q] and one != other and {one, other} <= live:
                        return False
    return True


def check_family(dfa, found):
    """Both words begin words and go on differently, and differ in nothing that a program can count."""
    check_loops(dfa, found)
    for c, N in (1, 1), (2, 3):
        one, other = (following(dfa)[dfa.after(word)] for word in found.strings(c, N))
        assert one
        assert other
        assert one != other


@pytest.mark.parametrize("name", TABLE)
def test_the_table(name):
    dfa, window_and_period = TABLE[name][0], TABLE[name][-1]
    without, positional = decide_next(dfa), decide_next(dfa, positional=True)
    # In words of ab and aabb the height and the last letter tell what may follow; nothing tells the words.
    assert without.answer == (bool(TABLE[name][7]) or name == "(ab|aabb)*")
    assert positional.answer == (window_and_period is not None)
    longest = {1: 14, 2: 10, 3: 7, 4: 6, 5: 6}[len(dfa.alphabet)]
    for verdict in without, positional:
        if verdict.answer:
            check_program(verdict.witness, dfa, longest)
    if not without.answer:
        check_family(dfa, without.witness)


@pytest.mark.parametrize("name", EASIER)
def test_languages_that_are_harder_to_tell_than_to_continue(name):
    text, answer, window_and_period = EASIER[name]
    dfa = compile_regex(text)
    assert decide_next(text).answer is answer
    positional = decide_next(text, positional=True)
    assert (positional.details["window"], positional.details["period"]) == window_and_period
    check_program(positional.witness, dfa, {2: 10, 4: 5}[len(dfa.alphabet)])


def test_words_without_aa_are_told_by_the_last_letter_though_no_program_tells_the_language():
    program = decide_next("(b|ab)*a?").witness
    assert text_of(program).splitlines()[1:] == [
        'NEXT["a"] = "<bos>" || "b"',
        'NEXT["b"] = true',
        'NEXT["<eos>"] = true',
    ]
    assert decide("(b|ab)*a?").answer is False


@settings(max_examples=80)
@given(recipes())
def test_random_languages(recipe):
    dfa = automaton(recipe)
    if not dfa.accepting:
        with pytest.raises(ValueError, match="the language has no words"):
            decide_next(dfa)
        return
    without = decide_next(dfa)
    assert without.answer == told(dfa, [0] * len(dfa.states))
    positional = decide_next(dfa, positional=True, most_window=1, most_period=4)
    if without.answer:
        check_program(without.witness, dfa, {1: 9, 2: 7, 3: 5}[len(dfa.alphabet)])
        assert positional.answer
    else:
        check_family(dfa, without.witness)
    if positional.answer:
        check_program(positional.witness, dfa, {1: 9, 2: 7, 3: 5}[len(dfa.alphabet)])
    # To tell the language is at least as hard.
    assert without.answer or not decide(dfa).answer
    if positional.answer is False:
        assert not any(is_positional(dfa, *pair) for pair in ((0, 1), (1, 1), (0, 2), (1, 2)))


@settings(max_examples=20)
@given(st.sampled_from(["tomita 4", "tomita 3 immediately", "(abab)*"]), sums(2), sums(4), sums(3))
def test_programs_predict_the_same_after_both_words_of_a_pair(name, first, second, third):
    dfa = TABLE[name][0]
    found = decide_next(dfa).witness
    letters = [Q(letter) for letter in dfa.alphabet]
    a, b = (count(letter) for letter in letters)
    one = compared(first, [a, b])
    two = compared(second, [a, b, count(one & letters[0]), count(one, strict=True)])
    three = compared(third, [a, count(two), count(two & letters[1])])
    program = Program((BEGIN, *dfa.alphabet), next={"x": one, "y": two, "z": three & letters[0]})

    def predicted(word):
        stream = Stream(program)
        for letter in (BEGIN, *word):
            stream.step(program.alphabet.index(letter))
        return stream.predictions()

    most = {1: 3, 2: 14}[len(found.loops)]
    for c in (most - 1, most):
        assert all(len({frozenset(predicted(w)) for w in found.strings(c, N)}) == 1 for N in (60, 61))


def test_what_may_follow_in_a_state_is_what_automata_say():
    for dfa in (row[0] for row in TABLE.values()):
        assert next_sets(dfa).tolist() == [
            [symbol in found for symbol in (*dfa.alphabet, END)] for found in following(dfa)
        ]


def test_programs_are_text_and_mistakes_are_told():
    program = decide_next("(abab)*", positional=True).witness
    again = parse(text_of(program))
    assert {s: f.node for s, f in again.next.items()} == {s: f.node for s, f in program.next.items()}
    with pytest.raises(ValueError, match="'<bos>' begins every stream"):
        decide_next(DFA((BEGIN, "a"), ((0, 0),), 0, frozenset({0})))
    with pytest.raises(ValueError, match="most_window must be at least 0"):
        decide_next("a*", positional=True, most_window=-1)
