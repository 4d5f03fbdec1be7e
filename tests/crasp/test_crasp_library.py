"""The languages of the library: programs against plain Python, verdicts against published tables, names."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from library_oracles import LANGUAGES, PUBLISHED, TABLE, brackets
from regular_languages import answers, labels, words

from lengthwise.crasp import decide, library

LONGEST = {1: 14, 2: 12, 3: 9, 4: 8, 5: 7}
"""Up to which length all words are checked, by the size of the alphabet."""

WITH_PROGRAM = [name for name in LANGUAGES if library.named(name).program is not None]


def text(entry, row):
    return "".join(entry.alphabet[symbol] for symbol in row)


def same_words(program, rows):
    """Whether a program accepts each row, by the definition of every node; the empty word by itself."""
    return answers(program, rows) if rows.shape[1] else np.array([program("")])


@pytest.mark.parametrize("name", LANGUAGES)
def test_programs_automata_and_plain_python_agree_on_all_short_words(name):
    entry = library.named(name)
    alphabet, belongs = LANGUAGES[name]
    assert "".join(entry.alphabet) == alphabet
    at_end = entry.in_crasp_eos.witness if entry.in_crasp_eos.answer else None
    for length in range(LONGEST[len(alphabet)] + 1):
        rows = words(len(alphabet), length)
        right = [belongs(text(entry, row)) for row in rows]
        if entry.automaton is not None:
            assert labels(entry.automaton, rows).tolist() == right
        if entry.program is not None:
            assert same_words(entry.program, rows).tolist() == right
        if at_end is not None:
            assert at_end.mode == "eos"
            assert answers(at_end, rows).tolist() == right


def member(dfa, length, random):
    """A random word that an automaton accepts, the longest up to this length that there is."""
    alive = [{q for q in dfa.states if q in dfa.accepting}]
    for _ in range(length):
        alive.append({q for q in dfa.states if set(dfa.transitions[q]) & alive[-1]})
    left = next(n for n in range(length, -1, -1) if dfa.start in alive[n])
    state, word = dfa.start, []
    for n in range(left, 0, -1):
        choices = [s for s, q in enumerate(dfa.transitions[state]) if q in alive[n - 1]]
        word.append(random.choice(choices))
        state = dfa.transitions[state][word[-1]]
    return word


def edited(word, letters, random):
    """The word with a letter changed, left out, put in, or exchanged for its neighbour."""
    word, at = list(word), random.randrange(len(word) + 1)
    kind = random.randrange(4)
    if kind == 0:
        word.insert(at, random.randrange(letters))
    elif kind == 1:
        del word[at : at + 1]
    elif kind == 2:
        word[at : at + 1] = [random.randrange(letters)]
    else:
        word[at : at + 2] = word[at : at + 2][::-1]
    return word


@pytest.mark.parametrize("name", [name for name in WITH_PROGRAM if library.named(name).regex])
def test_programs_on_long_words_of_the_language_and_on_words_near_them(name):
    entry, (alphabet, belongs) = library.named(name), LANGUAGES[name]
    random = Random(0)
    seen = set()
    for length in range(13, 73, 3):
        for dfa in entry.automaton, entry.automaton.complement():
            word = member(dfa, length, random)
            for one in [word, *(edited(word, len(alphabet), random) for _ in range(4))]:
                right = belongs(text(entry, one))
                assert entry.program(one) == right
                seen.add(right)
    assert seen == {True, False}


@given(st.integers(1, 40), st.data())
def test_brackets_of_any_depth_near_their_limit(height, data):
    deepest = brackets(height)
    # Up to the limit or one beyond, down to the ground or one below, some steps between.
    top = height + data.draw(st.integers(-1, 1))
    middle = data.draw(st.lists(st.sampled_from(["ab", "ba", "b", "a"]), max_size=6))
    word = "a" * top + "".join(middle)
    word += "b" * (word.count("a") - word.count("b") + data.draw(st.sampled_from([0, 0, 0, 1, -1])))
    assert library.named(f"dyck-{height}").program(word) == deepest(word)
    assert library.named("dyck").program(word) == brackets(float("inf"))(word)


@given(st.lists(st.integers(0, 30), min_size=3, max_size=3), st.permutations("abc"))
def test_equally_many_letters_in_order(numbers, order):
    program, belongs = library.named("an-bn-cn").program, LANGUAGES["an-bn-cn"][1]
    for counts in numbers, numbers[:1] * 3:
        for letters in order, "abc":
            word = "".join(letter * count for letter, count in zip(letters, counts, strict=True))
            assert program(word) == belongs(word)


@pytest.mark.parametrize("name", TABLE)
def test_verdicts_are_those_of_the_table(name):
    entry = library.named(name)
    eos, last, positional = map(bool, TABLE[name])
    assert entry.in_crasp_eos.answer is eos
    assert entry.in_crasp.answer is last
    assert entry.in_positional.answer is positional
    # A program at hand does not hide what the decision procedure says.
    assert decide(entry.automaton).answer is last
    assert decide(entry.automaton, positional=True).answer is positional
    assert (entry.program is not None) == positional
    if positional:
        assert last == (entry.fragment != "C-RASP[periodic,local]")


def test_every_regular_language_is_in_the_table():
    regular = {name for name in library.names() if library.named(name).regex}
    assert regular - set(TABLE) == {"dyck-1"}  # tomita-2 with other letters
    assert regular >= set(TABLE)


def test_verdicts_of_the_suites_are_the_published_ones_but_for_copying():
    found = {}
    for name in PUBLISHED:
        entry = library.named(name)
        found[name] = (int(entry.in_crasp.answer), int(entry.in_positional.answer))
    differs = {name for name in PUBLISHED if found[name] != PUBLISHED[name]}
    # The published flag says that no program without positions was found; the library has one. There are
    # finitely many inputs, so that there had to be.
    assert differs == {"copy-unique"}
    assert found["copy-unique"] == (1, 1)
    assert library.named("copy-unique").finite


def test_the_suites_are_complete():
    algorithmic = [name for name in PUBLISHED if library.named(name).suite in ("algorithmic", "both")]
    formal = [name for name in PUBLISHED if library.named(name).suite in ("formal", "both")]
    assert (len(algorithmic), len(formal)) == (8, 18)
    others = set(library.names()) - set(PUBLISHED)
    assert {library.named(name).suite for name in others} == {None}


def test_a_no_says_what_shows_it():
    for name in library.names():
        entry = library.named(name)
        for verdict in entry.in_crasp, entry.in_positional:
            assert verdict.answer is not None
            if verdict.answer:
                assert verdict.witness.alphabet == entry.alphabet
            else:
                assert verdict.method.startswith(("proved: ", "decided "))
        if entry.in_crasp.answer:
            assert entry.in_crasp.witness.fragment != "C-RASP[periodic,local]"


def test_names_of_families_are_names_of_entries():
    assert library.named("D_12") is library.named("dyck-12")
    assert library.named("dyck-012") is library.named("dyck-12")
    assert library.named("dyck-7") is library.named("dyck-7")
    for family in library.FAMILIES:
        for number in family.least, family.least + 1:
            entry = library.named(f"{family.name}-{number}")
            assert entry.name == f"{family.name}-{number}"
            assert entry.program is not None
        assert library.named(f"{family.name}-{family.most}").name == f"{family.name}-{family.most}"
        for number in family.least - 1, family.most + 1:
            with pytest.raises(ValueError, match=f"go from {family.name}-{family.least} to"):
                library.named(f"{family.name}-{number}")


def test_an_unknown_name_gives_the_nearest():
    for wrong, right in (
        ("dyck2", "dyck-2"),
        ("Tomita-4", "tomita-4"),
        ("unique-copy", "copy-unique"),
        ("binary-majority-interleave", "binary-majority-interleaved"),
        ("dyk-77", "dyck-77"),
        ("copy-uniqe-33", "copy-unique-33"),
        ("aastar", "aa-star"),
    ):
        with pytest.raises(ValueError, match=f"the library has no '{wrong}'; did you mean '{right}'"):
            library.named(wrong)
    with pytest.raises(ValueError, match=r"the library has no 'zzz'\Z"):
        library.named("zzz")


def test_every_entry_is_told_in_its_own_words():
    entries = [library.named(name) for name in library.names()]
    assert len({entry.says for entry in entries}) == len(entries)
    assert all(entry.title for entry in entries)
