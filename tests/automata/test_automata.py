"""Automata and regular expressions against brute force over all short words."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from regular_languages import components, dyck

from lengthwise.automata.automaton import DFA, difference, paths, reachable, strong_components
from lengthwise.automata.regex import MOST_STATES, compile_regex


@st.composite
def raw_automata(draw, letters=None):
    """The data of any automata, with states that are not reachable or not different."""
    letters = draw(st.integers(1, 3)) if letters is None else letters
    size = draw(st.integers(1, 8))
    states = st.integers(0, size - 1)
    rows = tuple(tuple(draw(states) for _ in range(letters)) for _ in range(size))
    return tuple("abc"[:letters]), rows, draw(states), frozenset(draw(st.sets(states)))


def short_words(alphabet, longest):
    return ["".join(word) for length in range(longest + 1) for word in product(alphabet, repeat=length)]


def residual(dfa, word, longest):
    return tuple(dfa.accepts(word + end) for end in short_words(dfa.alphabet, longest))


@given(raw_automata())
def test_a_minimal_automaton_has_one_state_for_each_residual_language(data):
    dfa = DFA(*data)
    # Two of at most 8 states differ on a word of at most 6 letters, and each is reached by at most 7.
    minimal = dfa.minimal()
    alphabet = dfa.alphabet
    starts = {
        state: "".join(alphabet[s] for s in path) for state, path in paths(dfa.transitions, dfa.start).items()
    }
    longest = 6 if len(alphabet) < 3 else 4
    residuals = {residual(dfa, word, longest) for word in starts.values()}
    if len(alphabet) < 3:
        assert len(minimal.states) == len(residuals)
    assert len(minimal.states) >= len(residuals)
    assert residual(dfa, "", longest) == residual(minimal, "", longest)
    assert difference(dfa, minimal) is None


@given(raw_automata(), st.randoms(use_true_random=False))
def test_equal_languages_have_equal_minimal_automata(data, random):
    dfa = DFA(*data)
    names = list(dfa.states)
    random.shuffle(names)
    rows = [()] * len(names)
    for state in dfa.states:
        rows[names[state]] = tuple(names[after] for after in dfa.transitions[state])
    # A second copy of every state, used for some of the transitions.
    size = len(names)
    twice = [tuple(q + size * random.randrange(2) for q in row) for row in (*rows, *rows)]
    accepting = frozenset(names[q] + size * copy for q in dfa.accepting for copy in (0, 1))
    other = DFA(dfa.alphabet, tuple(twice), names[dfa.start], accepting)
    assert other.minimal() == dfa.minimal()
    assert dfa.minimal().minimal() == dfa.minimal()


@given(raw_automata(letters=2), raw_automata(letters=2))
def test_difference_is_the_shortest_word_on_which_two_automata_differ(data, others):
    one, other = DFA(*data), DFA(*others)
    found = difference(one, other)
    words = short_words("ab", 8)
    differ = [word for word in words if one.accepts(word) != other.accepts(word)]
    assert (found is None) == (one.minimal() == other.minimal())
    if found is None:
        assert not differ
    else:
        assert one.accepts(found) != other.accepts(found)
        if differ:
            assert len(found) == len(differ[0])
        else:
            assert len(found) > 8


@given(raw_automata())
def test_complements_and_quotients_by_their_definitions(data):
    dfa = DFA(*data)
    complement, quotients = dfa.complement(), {letter: dfa.quotient(letter) for letter in dfa.alphabet}
    for word in short_words(dfa.alphabet, 4):
        assert complement.accepts(word) != dfa.accepts(word)
        for letter, quotient in quotients.items():
            assert quotient.accepts(word) == dfa.accepts(word + letter)


@given(raw_automata())
def test_components_are_classes_of_mutual_reachability_sources_last(data):
    dfa = DFA(*data)
    found = strong_components(dfa.transitions)
    assert sorted(found) == sorted(map(tuple, components(dfa.transitions)))
    place = {state: index for index, one in enumerate(found) for state in one}
    assert all(place[after] <= place[q] for q in dfa.states for after in dfa.transitions[q])
    closure = {dfa.start}
    for _ in dfa.states:
        closure |= {after for q in closure for after in dfa.transitions[q]}
    assert set(reachable(dfa.transitions, dfa.start)) == closure


@given(raw_automata())
def test_paths_are_shortest(data):
    dfa = DFA(*data)
    found = paths(dfa.transitions, dfa.start)
    level, seen = {dfa.start}, set()
    for length in range(len(dfa.transitions)):
        assert {q for q, path in found.items() if len(path) == length} == level
        seen |= level
        level = {after for q in level for after in dfa.transitions[q]} - seen
    for state, path in found.items():
        assert dfa.after([dfa.alphabet[symbol] for symbol in path]) == state


def test_a_long_chain_needs_no_recursion():
    size = 5000
    rows = tuple(((q + 1) % size, q) for q in range(size))
    assert strong_components(rows) == [tuple(range(size))]
    line = dyck(3000)
    assert len(line.minimal().states) == 3002


EXPRESSIONS = st.recursive(
    st.sampled_from(["a", "b", "ab", "()", "(a|b)"]),
    lambda inner: st.one_of(
        st.builds(lambda one, other: f"({one}|{other})", inner, inner),
        st.builds(lambda one, other: f"{one}{other}", inner, inner),
        st.builds(lambda one, operator: f"({one}){operator}", inner, st.sampled_from("*+?")),
    ),
    max_leaves=8,
)


@given(EXPRESSIONS)
def test_expressions_mean_what_they_mean_in_python(text):
    dfa = compile_regex(text, "ab")
    pattern = re.compile(text)
    for word in short_words("ab", 7):
        assert dfa.accepts(word) == (pattern.fullmatch(word) is not None)


def test_operators_bind_repetition_then_sequence_then_alternatives():
    assert compile_regex("ab|c*d+") == compile_regex("(ab)|((c*)(dd*))")
    assert compile_regex("ab*") == compile_regex("a(b*)")
    assert compile_regex("a**?") == compile_regex("a*")
    assert compile_regex("()|a") == compile_regex("a?")
    assert compile_regex("ba").alphabet == ("a", "b")
    assert compile_regex("ba", "ba").alphabet == ("b", "a")
    assert compile_regex("[.]", "[].").accepts("[.]")


@pytest.mark.parametrize(
    ("text", "alphabet", "message"),
    [
        ("a(b", None, r"column 2: this parenthesis is never closed"),
        ("ab)c", None, r"column 3: this parenthesis closes nothing"),
        ("a|*b", None, r"column 3: '\*' has nothing before it"),
        ("+a", None, r"column 1: '\+' has nothing"),
        ("(|a)", None, r"column 2: an alternative is missing.*\(\)"),
        ("(a|)", None, r"column 4: an alternative is missing"),
        ("a|", None, r"column 3: an alternative is missing"),
        ("", "ab", r"column 1: an alternative is missing"),
        ("a b", None, r"column 2: a space"),
        ("ab.", None, r"column 3: '\.' has no meaning"),
        ("abc", "ab", r"column 3: 'c' is not in the alphabet a b"),
        ("()", None, r"no symbols"),
        ("a", ["a", "bb"], r"one character"),
        ("a", "aa", r"letters must differ"),
    ],
)
def test_mistakes_in_expressions_name_their_column(text, alphabet, message):
    with pytest.raises(ValueError, match=message):
        compile_regex(text, alphabet)


def test_the_subset_construction_is_capped_but_long_expressions_are_not():
    tail = "(a|b)"
    assert len(compile_regex("(a|b)*a" + tail * 9).states) == 2**10
    with pytest.raises(ValueError, match=f"more than {MOST_STATES} states"):
        compile_regex("(a|b)*a" + tail * 20)
    assert len(compile_regex("(" * 2000 + "a" + ")" * 2000 + "b" * 2000).states) == 2003


@pytest.mark.parametrize(
    ("alphabet", "rows", "start", "accepting", "message"),
    [
        ((), ((),), 0, (), "alphabet is empty"),
        (("a", "a"), ((0, 0),), 0, (), "letters must differ"),
        (("a", "b"), ((0,),), 0, (), "one transition for each of the 2 letters"),
        (("a",), ((1,),), 0, (), "state 1 is not between 0 and 0"),
        (("a",), ((0,),), 2, (), "state 2 is not"),
        (("a",), ((0,),), 0, (3,), "state 3 is not"),
    ],
)
def test_mistakes_in_automata(alphabet, rows, start, accepting, message):
    with pytest.raises(ValueError, match=message):
        DFA(alphabet, rows, start, frozenset(accepting))


def test_words_must_use_the_alphabet():
    with pytest.raises(ValueError, match="letter 'c' at position 3"):
        dyck(1).accepts("abc")
    with pytest.raises(ValueError, match="different alphabets"):
        difference(dyck(1), compile_regex("c*"))
