"""Classes of regular languages, decisions and extracted programs, against slow definitions."""

import time
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from regular_languages import (
    TABLE,
    answers,
    automaton,
    components,
    dyck,
    labels,
    modular,
    parts_all,
    recipes,
    same_language,
)

from lengthwise.crasp.regular import DFA, classify, compile_regex, decide
from lengthwise.crasp.regular.classes import (
    is_aperiodic,
    is_r_o_g,
    is_r_trivial,
    local_failure,
    stability,
    transition_monoid,
)
from lengthwise.crasp.regular.extraction import extract
from lengthwise.crasp.regular.families import Family
from lengthwise.crasp.regular.membership import inseparable, inseparable_last
from lengthwise.crasp.regular.positional import is_positional

LONGEST = {1: 14, 2: 12, 3: 8, 4: 6, 5: 5}
"""Up to which length all words are checked, by the size of the alphabet."""


@pytest.mark.parametrize("name", TABLE)
def test_the_table_of_languages(name):
    dfa, *row = TABLE[name]
    found = classify(dfa)
    columns = [
        found.states,
        found.monoid,
        found.r_trivial,
        found.r_omega,
        found.aperiodic,
        found.eos,
        found.last,
    ]
    assert columns == row[:7]
    assert found.positional is (row[7] is not None)
    assert row[7] in (None, (found.window, found.period))


def test_parity_is_in_r_o_g_though_not_in_r_omega():
    assert classify(TABLE["parity"][0]).r_o_g is True


@pytest.mark.parametrize("acceptance", ["eos", "last"])
@pytest.mark.parametrize("name", TABLE)
def test_decisions_of_the_table_come_with_programs_that_accept_the_language(name, acceptance):
    dfa, *row = TABLE[name]
    longest = 14 if name == "D_12" else LONGEST[len(dfa.alphabet)]
    plain = decide(dfa, acceptance=acceptance)
    assert plain.answer is bool(row[5 if acceptance == "eos" else 6])
    if plain.answer:
        assert plain.witness.mode == acceptance
        assert plain.witness.period == 1
        assert plain.witness.locality == 0
        assert same_language(plain.witness, dfa, longest)
    else:
        assert isinstance(plain.witness, Family)
    found = decide(dfa, acceptance=acceptance, positional=True)
    assert found.answer is (row[7] is not None)
    if found.answer:
        assert found.witness.locality <= found.details["window"]
        assert found.details["period"] % found.witness.period == 0
        assert same_language(found.witness, dfa, longest)
    if row[7] is not None:
        # What suffices at the end marker suffices at the last letter.
        assert same_language(extract(dfa, acceptance, *row[7]).program, dfa, longest)


def test_rounds_and_potentials_explain_programs():
    one = decide(dyck(4)).details
    assert (one["rounds"], one["potentials"], one["depth"]) == (1, 1, 2)
    # The first round sees the number of a less b, the second counts letters at each value of it.
    two = decide("(ab|bbaa)*").details
    assert (two["rounds"], two["potentials"], two["depth"]) == (2, 2, 3)


@settings(max_examples=120)
@given(recipes())
def test_decisions_agree_with_rational_elimination_and_programs_with_automata(recipe):
    dfa = automaton(recipe)
    quotients = [dfa.quotient(letter).minimal() for letter in dfa.alphabet]
    eos = parts_all(dfa.transitions, [0] * len(dfa.states))
    last = all(parts_all(one.transitions, [0] * len(one.states)) for one in quotients)
    assert (inseparable(dfa) is None) == eos
    assert (inseparable_last(dfa) is None) == last
    assert last or not eos
    for acceptance, answer in ("eos", eos), ("last", last):
        found = extract(dfa, acceptance)
        assert (found is not None) == answer
        if found is not None:
            assert same_language(found.program, dfa, {1: 10, 2: 8, 3: 6}[len(dfa.alphabet)])


def product_with_short_windows(dfa, window, period):
    """The product in which a window holds fewer letters at the start."""
    states = [(dfa.start, (), 0)]
    rows = []
    for state, seen, phase in states:
        row = []
        for letter, after in enumerate(dfa.transitions[state]):
            target = after, (*seen, letter)[max(len(seen) + 1 - window, 0) :], (phase + 1) % period
            if target not in states:
                states.append(target)
            row.append(states.index(target))
        rows.append(row)
    return rows, [state[1:] for state in states]


@settings(max_examples=60)
@given(recipes(), st.sampled_from([(0, 2), (1, 1), (1, 2), (2, 1), (0, 3)]))
def test_windows_and_periods_agree_with_rational_elimination_and_programs_with_automata(recipe, pair):
    dfa = automaton(recipe)
    window, period = pair
    if len(dfa.states) * len(dfa.alphabet) ** window * period > 40:
        return
    rows, tags = product_with_short_windows(dfa, window, period)
    answer = parts_all(rows, tags)
    assert is_positional(dfa, window, period) is answer
    for acceptance in "eos", "last":
        found = extract(dfa, acceptance, window, period)
        assert found is not None or not answer
        if found is not None:
            assert answer or acceptance == "last"
            assert found.program.locality <= window
            assert period % found.program.period == 0
            assert same_language(found.program, dfa, {1: 10, 2: 8, 3: 5}[len(dfa.alphabet)])


def elements_of(dfa):
    """The maps of states that words are, and those of the words of each length."""
    letters = [tuple(row[s] for row in dfa.transitions) for s in range(len(dfa.alphabet))]
    every = {tuple(dfa.states)}
    lengths = [every]
    while True:
        lengths.append({tuple(letter[q] for q in one) for one in lengths[-1] for letter in letters})
        every = every | lengths[-1]
        if lengths[-1] in lengths[1:-1]:
            return every, lengths


def times(one, other):
    return tuple(other[q] for q in one)


@settings(max_examples=80)
@given(recipes())
def test_classes_of_monoids_by_their_definitions(recipe):
    dfa = automaton(recipe)
    every, _ = elements_of(dfa)
    if len(every) > 120:
        assert transition_monoid(dfa, 120) is None
        return
    monoid = transition_monoid(dfa)
    assert {tuple(row) for row in monoid.maps.tolist()} == every
    ideals = {x: frozenset(times(x, y) for y in every) for x in every}
    idempotents = {x for x in every if times(x, x) == x}
    for x, number in ((tuple(row), i) for i, row in enumerate(monoid.maps.tolist())):
        assert bool(monoid.idempotents[number]) == (x in idempotents)
    powers = {x: [x] for x in every}
    for x, known in powers.items():
        while times(known[-1], x) not in known:
            known.append(times(known[-1], x))
    aperiodic = all(times(known[-1], x) == known[-1] for x, known in powers.items())
    assert is_aperiodic(monoid) == aperiodic
    per_class = [ideals[x] for x in idempotents]
    r_o_g = len(set(per_class)) == len(per_class)
    assert is_r_o_g(monoid) == r_o_g
    r_trivial = len(set(ideals.values())) == len(every)
    assert is_r_trivial(dfa) == r_trivial
    eos = inseparable(dfa) is None
    # The chain R, C-RASP, R^omega, A.
    assert not r_trivial or eos
    assert not eos or (r_o_g and aperiodic)


@settings(max_examples=80)
@given(recipes())
def test_local_monoids_by_their_right_cayley_graphs(recipe):
    dfa = automaton(recipe)
    every, lengths = elements_of(dfa)
    monoid = transition_monoid(dfa)
    if len(every) > 60:
        return
    stable = stability(monoid)
    # Lengths repeat from some point on, so that they can be looked up beyond the list.
    start = lengths.index(lengths[-1], 1)
    period = len(lengths) - 1 - start

    def of_length(n):
        return lengths[n if n <= start else start + (n - start) % period]

    index = next(n for n in range(1, 10**4) if of_length(n) == of_length(2 * n))
    assert stable.index == index
    semigroup = {tuple(row) for row in monoid.maps[stable.elements].tolist()}
    assert semigroup == of_length(index)

    def fails(e):
        local = sorted({times(times(e, x), e) for x in semigroup})
        number = {x: i for i, x in enumerate(local)}
        graph = [[number[times(x, y)] for y in local] for x in local]
        return not parts_all(graph, [0] * len(local))

    images = {}
    for e in semigroup:
        if times(e, e) == e:
            images.setdefault(len(set(e)), []).append(e)
    candidates = [e for size in sorted(images) for e in images[size][:4]]
    found = local_failure(monoid, stable)
    if found is None:
        assert not any(fails(e) for e in candidates)
    else:
        assert fails(tuple(monoid.maps[found].tolist()))
        assert inseparable_last(dfa) is not None
        for pair in (0, index), (1, 1), (1, 2):
            assert is_positional(dfa, *pair) is not True


def test_a_positional_no_names_an_idempotent():
    dfa = TABLE["flip-flop"][0]
    word = decide(dfa, positional=True).details["idempotent"]
    once = [dfa.after(word, state) for state in dfa.states]
    assert [dfa.after(word, state) for state in once] == once


def test_a_neutral_letter_makes_positions_useless():
    for language in "parity", "flip-flop", "(0|1|2)*02*", "(ab|bba)*", "(aa)*", "(ab|ba)*":
        dfa = TABLE[language][0]
        rows = tuple((*row, q) for q, row in enumerate(dfa.transitions))
        neutral = DFA((*dfa.alphabet, "n"), rows, dfa.start, dfa.accepting)
        assert decide(neutral, positional=True).answer is (inseparable(dfa) is None)


def test_long_lines_are_decided_in_less_than_a_second():
    for height in 148, 150:
        dfa = dyck(height)
        begin = time.process_time()
        verdict = decide(dfa, acceptance="eos")
        assert time.process_time() - begin < 1
        assert verdict.answer is True
        assert verdict.details["states"] == height + 2
        rng = np.random.default_rng(height)
        up = np.concatenate([np.zeros(height, dtype=int), np.ones(height, dtype=int)])
        walk = [up, up[:-1], np.concatenate([[0], up]), np.concatenate([up, rng.permutation(up)])]
        for word in walk:
            assert answers(verdict.witness, word[None]) == labels(dfa, word[None])


def test_a_large_automaton_outside_is_decided_in_less_than_a_second():
    # A cycle of 150 heights: the number of 0 less 1 is known modulo 150 alone, which no potential gives.
    begin = time.process_time()
    assert inseparable(modular(150)) is not None
    assert time.process_time() - begin < 1


def test_what_was_tried_is_told_where_the_answer_is_unknown():
    verdict = decide(TABLE["tomita 4"][0], acceptance="eos", positional=True, most_window=1)
    assert verdict.answer is None
    assert verdict.witness is None
    tried = verdict.details["tried"]
    stable = verdict.details["stability"]
    divisors = [m for m in range(1, 2 * stable + 1) if 2 * stable % m == 0]
    assert sorted(tried) == [(k, m) for k in (0, 1) for m in divisors]
    assert decide("(a|b)*a(a|b)(a|b)", positional=True, most_window=1).answer is None
    assert decide("(a|b)*a(a|b)(a|b)", positional=True, most_window=2).answer is True


def test_a_large_monoid_leaves_its_classes_unknown():
    size = 7
    maps = [[(q + 1) % size for q in range(size)], [1, 0, *range(2, size)], [0, 0, *range(2, size)]]
    dfa = DFA(("a", "b", "c"), tuple(zip(*maps, strict=True)), 0, frozenset({0}))
    found = classify(dfa, most_window=1, most_period=2)
    assert (found.monoid, found.aperiodic, found.r_o_g, found.r_omega) == (None, None, None, None)
    assert (found.eos, found.last, found.positional) == (False, False, None)


def test_letters_may_be_longer_than_a_character():
    dfa = DFA(("up", "down"), dyck(3).transitions, 0, frozenset({0}))
    verdict = decide(dfa)
    assert verdict.answer is True
    assert same_language(verdict.witness, dfa, 10)


def test_trivial_languages():
    every, none = compile_regex("(a|b)*"), compile_regex("(a|b)*").complement()
    for dfa in every, none, compile_regex("()", "ab"), compile_regex("a*"):
        for acceptance, positional in product(("eos", "last"), (False, True)):
            verdict = decide(dfa, acceptance=acceptance, positional=positional)
            assert verdict.answer is True
            assert same_language(verdict.witness, dfa, 5)


def test_mistakes():
    with pytest.raises(ValueError, match="most_window"):
        decide("a*", positional=True, most_window=-1)
    with pytest.raises(ValueError, match="its own alphabet"):
        decide(dyck(1), alphabet="abc")
    with pytest.raises(ValueError, match="column 2"):
        decide("a)")


def test_components_of_the_table_are_found_by_transitive_closure_too():
    # The slow deciders above rest on this closure.
    assert sorted(map(len, components(dyck(3).transitions))) == [1, 4]
