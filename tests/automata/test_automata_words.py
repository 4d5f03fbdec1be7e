"""Words of automata: counted, continued and drawn, against all short words and against closed forms."""

import math
from collections import Counter
from itertools import accumulate, product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from test_automata import raw_automata

from lengthwise.automata import (
    DFA,
    compile_regex,
    draw_words,
    next_sets,
    sample_words,
    states_along,
    word_counts,
    word_lengths,
)
from lengthwise.automata.words import _tables

FALSE_ALARM = 1e-6


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def words_from(dfa, state, length):
    """All words of one length that lead from a state to an accepting one."""
    every = product(dfa.alphabet, repeat=length)
    return [word for word in every if dfa.after(word, state) in dfa.accepting]


@given(raw_automata())
def test_counts_and_lengths_are_those_of_all_short_words(data):
    dfa = DFA(*data)
    counts = word_counts(dfa, 4)
    for length in range(5):
        assert counts[length] == tuple(len(words_from(dfa, state, length)) for state in dfa.states)
    assert word_lengths(dfa, 0, 4) == tuple(n for n in range(5) if words_from(dfa, dfa.start, n))
    assert word_lengths(dfa, 2, 3) == tuple(n for n in (2, 3) if words_from(dfa, dfa.start, n))


@given(raw_automata())
def test_next_sets_are_what_some_word_goes_on_with(data):
    dfa = DFA(*data)
    # A shortest word from one of at most 8 states to an accepting one has at most 7 letters; on the way it
    # passes no state twice, so that a search by levels finds all states that have one.
    live = set(dfa.accepting)
    for _ in range(7):
        live |= {q for q in dfa.states for after in dfa.transitions[q] if after in live}
    found = next_sets(dfa)
    assert found.shape == (len(dfa.states), len(dfa.alphabet) + 1)
    for state in dfa.states:
        follows = [after in live for after in dfa.transitions[state]]
        assert found[state].tolist() == [*follows, state in dfa.accepting]


@given(raw_automata(), st.integers(1, 6))
def test_every_word_of_a_length_is_drawn_with_the_same_probability(data, length):
    """The product of the probabilities with which its letters are drawn, for each word; and of no other."""
    dfa = DFA(*data)
    words = words_from(dfa, dfa.start, length)
    if not words:
        return
    limits, _ = _tables(dfa, length, torch.device("cpu"))
    total = 0.0
    for word in product(range(len(dfa.alphabet)), repeat=length):
        chance, state = 1.0, dfa.start
        for step, letter in enumerate(word):
            row = [0.0, *limits[:, (length - step) * len(dfa.states) + state].tolist(), 1.0]
            chance *= row[letter + 1] - row[letter]
            state = dfa.transitions[state][letter]
        if state in dfa.accepting:
            assert chance == pytest.approx(1 / len(words), rel=1e-12)
            total += chance
        else:
            assert chance == 0.0
    assert total == pytest.approx(1, rel=1e-12)


@given(raw_automata(), st.integers(0, 10**6))
def test_words_drawn_from_numbers_are_the_words_of_inversion(data, seed):
    """Against one letter after the other in plain Python, with words of many lengths side by side."""
    dfa = DFA(*data)
    possible = word_lengths(dfa, 0, 7)
    if not possible:
        return
    picked = torch.randint(len(possible), (20,), generator=generator(seed))
    lengths = torch.tensor(possible)[picked]
    chances = torch.rand(20, 7, dtype=torch.float64, generator=generator(seed + 1))
    letters, states = draw_words(dfa, lengths, chances)
    assert letters.shape == (20, 7)
    assert states.shape == (20, 8)
    counts = word_counts(dfa, 7)
    for row, length in enumerate(lengths.tolist()):
        state = dfa.start
        for step in range(length):
            assert states[row, step] == state
            left, total = counts[length - step - 1], counts[length - step][state]
            up_to = accumulate(left[after] for after in dfa.transitions[state])
            chance = chances[row, step].item()
            letter = next(letter for letter, below in enumerate(up_to) if chance < below / total)
            assert letters[row, step] == letter
            state = dfa.transitions[state][letter]
        assert states[row, length] == state
        assert state in dfa.accepting


@given(raw_automata(), st.integers(0, 6), st.integers(0, 10**6))
def test_states_along_words(data, length, seed):
    dfa = DFA(*data)
    letters = torch.randint(len(dfa.alphabet), (5, length), generator=generator(seed))
    for row, states in zip(letters.tolist(), states_along(dfa, letters).tolist(), strict=True):
        word = [dfa.alphabet[letter] for letter in row]
        assert states == [dfa.after(word[:end]) for end in range(length + 1)]


def chi_square(observed, expected):
    """The p-value, cells with the expected numbers."""
    assert sum(observed) == pytest.approx(sum(expected))
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize(
    ("expression", "length"), [("(a|b)*", 6), ("(ab|ba|c)*", 6), ("a*b*a*", 9), ("(a(ab)*b)*", 14), ("a*", 5)]
)
def test_drawn_words_are_uniform(expression, length):
    dfa = compile_regex(expression)
    words = words_from(dfa, dfa.start, length)
    drawn = sample_words(dfa, torch.full((20_000,), length), generator(1))
    observed = Counter("".join(dfa.alphabet[letter] for letter in row) for row in drawn.tolist())
    assert set(observed) == {"".join(word) for word in words}
    if len(words) > 1:
        assert chi_square(list(observed.values()), [20_000 / len(words)] * len(words)) > FALSE_ALARM


def test_long_words_are_counted_exactly_and_drawn_without_overflow():
    """At length 1100 there are more words than the largest float can say."""
    anything, one_d = compile_regex("(a|b)*"), compile_regex("(a|b)*d(b|c)*")
    assert word_counts(anything, 1100)[1100][anything.start] == 2**1100
    assert word_counts(one_d, 1100)[1100][one_d.start] == 1100 * 2**1099
    drawn = sample_words(one_d, torch.full((4000,), 1100), generator(2))
    d_at = (drawn == 3).long().argmax(1)
    assert torch.equal((drawn == 3).sum(1), torch.ones(4000, dtype=torch.int64))
    observed = torch.bincount(d_at // 11, minlength=100)
    assert chi_square(observed.tolist(), [40.0] * 100) > FALSE_ALARM
    before = torch.arange(1100) < d_at.unsqueeze(1)
    for letters, allowed in ((drawn[before], {0, 1}), (drawn[~before & (drawn != 3)], {1, 2})):
        assert set(letters.unique().tolist()) == allowed
        heads = (letters == min(allowed)).sum().item()
        assert chi_square([heads, len(letters) - heads], [len(letters) / 2] * 2) > FALSE_ALARM


def test_long_words_of_nested_brackets():
    """A word of D_2 is an outer pair around pairs ab and ba in any order: 2^249 of length 500."""
    dfa = compile_regex("(a(ab)*b)*")
    assert word_counts(dfa, 500)[500][dfa.start] == 2**249
    pairs = sample_words(dfa, torch.full((2000,), 500), generator(3))[:, 1:-1].unflatten(1, (249, 2))
    assert torch.equal(pairs.sum(2), torch.ones(2000, 249, dtype=torch.int64))
    ups = pairs[:, :, 0].sum(0).tolist()
    deviations = [(up - 1000) / math.sqrt(500) for up in ups]
    assert stats.chi2.sf(sum(z * z for z in deviations), len(ups)) > FALSE_ALARM


def test_words_do_not_depend_on_their_neighbours():
    dfa, lengths = compile_regex("(ab|ba|c)*"), torch.tensor([3, 8, 0, 5, 6])
    chances = torch.rand(5, 8, dtype=torch.float64, generator=generator(4))
    together, _ = draw_words(dfa, lengths, chances)
    for row, length in enumerate(lengths.tolist()):
        alone, _ = draw_words(dfa, lengths[row : row + 1], chances[row : row + 1, :length])
        assert torch.equal(alone[0], together[row, :length])


@given(st.lists(raw_automata(), min_size=1, max_size=4), st.integers(0, 10**6))
def test_automata_beside_each_other_draw_each_its_own_words(data, seed):
    """From the same numbers, row by row in turn, and with the same sets of what may follow; also where some
    have fewer letters.
    """
    automata = [dfa for own in data if word_lengths(dfa := DFA(*own), 0, 7)]
    if not automata:
        return
    both, starts = automata[0].beside(automata[1:])
    rows = [number % len(automata) for number in range(15)]
    possible = [word_lengths(dfa, 0, 7) for dfa in automata]
    picked = torch.randint(10**9, (15,), generator=generator(seed)).tolist()
    sizes = [possible[own][at % len(possible[own])] for own, at in zip(rows, picked, strict=True)]
    chances = torch.rand(15, 7, dtype=torch.float64, generator=generator(seed + 1))
    begun = torch.tensor([starts[own] for own in rows])
    letters, states = draw_words(both, torch.tensor(sizes), chances, begun)
    for row, (own, size) in enumerate(zip(rows, sizes, strict=True)):
        expected = draw_words(automata[own], torch.tensor([size]), chances[row : row + 1])
        assert torch.equal(letters[row, :size], expected[0][0, :size])
        follows, ends = next_sets(both)[states[row, : size + 1]].split([len(both.alphabet), 1], 1)
        known = len(automata[own].alphabet)
        sets = torch.cat([follows[:, :known], ends], 1)
        assert torch.equal(sets, next_sets(automata[own])[expected[1][0, : size + 1]])
        assert not follows[:, known:].any()


def test_mistakes():
    dfa = compile_regex("(aa)*")
    with pytest.raises(ValueError, match="there is no word of length 3"):
        sample_words(dfa, torch.tensor([2, 5, 3]), generator())
    with pytest.raises(ValueError, match="at least 0 letters, got -1"):
        word_counts(dfa, -1)
    assert sample_words(dfa, torch.tensor([], dtype=torch.int64), generator()).shape == (0, 0)
    assert sample_words(dfa, torch.tensor([0, 0]), generator()).shape == (2, 0)
