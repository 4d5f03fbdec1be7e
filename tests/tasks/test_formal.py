"""The formal languages: sets against all short words of plain predicates, and uniform words."""

import math
import pickle
from collections import Counter

import pytest
import torch
from scipy import stats
from suites_oracles import LANGUAGES, following, strings, words

import lengthwise as lw
from lengthwise.automata import compile_regex, word_counts
from lengthwise.tasks import FORMAL, PREDICTION_TASKS

FALSE_ALARM = 1e-6
LONGEST = 8
EVERY_STRING = {"aa-bb-cc-dd-ee": 3, "ab-d-bc": 5, "012-02": 6}
"""Up to which length all strings are tried, words or not; 8 for the others."""


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def text(task, letters):
    return "".join(task.letters[letter] for letter in letters)


def test_the_suite_has_18_languages():
    assert list(FORMAL) == list(LANGUAGES)
    assert len(FORMAL) == 18
    assert all(lw.task(name) == kind() for name, kind in FORMAL.items())


@pytest.mark.parametrize("name", LANGUAGES)
def test_sets_after_every_prefix_are_those_of_brute_force(name):
    """After all prefixes of all words up to length 8, and of all strings, words or not, up to some length."""
    alphabet, _ = LANGUAGES[name]
    task = lw.task(name)
    assert task.letters == alphabet
    assert task.alphabet == ("<bos>", *alphabet)
    assert task.classes == len(alphabet) + 1
    known = {}
    for length in range(LONGEST + 1):
        chosen = strings(alphabet, length) if length <= EVERY_STRING.get(name, 8) else words(name, length)
        if not chosen:
            continue
        letters = torch.tensor([[*map(alphabet.index, word)] for word in chosen], dtype=torch.int64)
        examples = task.examples_of(letters, torch.full((len(chosen),), length))
        assert examples.scored.all()
        for word, found in zip(chosen, examples.target.tolist(), strict=True):
            for end in range(length + 1):
                if word[:end] not in known:
                    known[word[:end]] = following(name, word[:end])
                assert found[end] == known[word[:end]], (word, end)


@pytest.mark.parametrize("name", LANGUAGES)
def test_lengths_are_those_of_the_words(name):
    task = lw.task(name)
    having = [length for length in range(LONGEST + 1) if words(name, length)]
    assert task.lengths(0, LONGEST) == tuple(having)
    assert task.shortest == having[0]
    counts = word_counts(task.automaton, LONGEST)
    assert [row[task.automaton.start] for row in counts] == [len(words(name, n)) for n in range(LONGEST + 1)]


@pytest.mark.parametrize("name", LANGUAGES)
def test_samples_are_words_with_their_sets(name):
    """Streams up to length 150 letter by letter: each is a word, padded, and has the sets of its prefixes."""
    _, member = LANGUAGES[name]
    task = lw.task(name)
    for low, high in ((task.shortest, 12), (101, 150)):
        found = task.sample(40, low, high, generator(3))
        assert found.tokens.shape == found.places.shape == found.scored.shape == (40, high + 1)
        assert found.target.shape == (40, high + 1, task.classes)
        assert task.stream_length(high) == task.answers(high) == high + 1
        for tokens, places, scored, target in zip(
            found.tokens.tolist(), found.places.tolist(), found.scored.tolist(), found.target, strict=True
        ):
            size = sum(scored) - 1
            assert size in task.lengths(low, high)
            assert scored == [True] * (size + 1) + [False] * (high - size)
            assert places == [*range(size + 1), *[0] * (high - size)]
            word = text(task, [token - 1 for token in tokens[1 : size + 1]])
            assert tokens[0] == 0
            assert member(word)
            letters = torch.tensor([[token - 1 for token in tokens[1 : size + 1]]], dtype=torch.int64)
            again = task.examples_of(letters, torch.tensor([size]))
            assert torch.equal(again.target[0], target[: size + 1])
            assert torch.equal(again.tokens[0], torch.tensor(tokens[: size + 1]))
            assert target[size, -1]
            if size:  # the letter that follows is in the set
                assert target[torch.arange(size), letters[0]].all()


@pytest.mark.parametrize("name", LANGUAGES)
def test_words_of_a_length_are_uniform_and_lengths_too(name):
    task = lw.task(name)
    lengths = [n for n in task.lengths(0, LONGEST) if len(words(name, n)) <= 400][-3:]
    found = task.sample(20_000, lengths[0], lengths[-1], generator(5))
    sizes = (found.scored.sum(1) - 1).tolist()
    observed = Counter(
        text(task, [token - 1 for token in row[1 : size + 1]])
        for row, size in zip(found.tokens.tolist(), sizes, strict=True)
    )
    possible = task.lengths(lengths[0], lengths[-1])
    expected = {
        word: 20_000 / len(possible) / len(words(name, length))
        for length in possible
        for word in words(name, length)
    }
    assert set(observed) == set(expected)
    if len(expected) > 1:
        cells = [observed[word] for word in expected]
        assert stats.chisquare(cells, list(expected.values())).pvalue > FALSE_ALARM


def test_numbers_of_long_words():
    """Closed forms at length 500."""
    for name, number in (
        ("tomita-1", 1),
        ("tomita-2", 1),
        ("tomita-5", 2**499),
        ("tomita-6", (2**500 + 2) // 3),
        ("dyck-2", 2**249),
        ("dyck-3", _fibonacci(499)),
        ("aa-bb-cc-dd-ee", math.comb(499, 4)),
        ("ab-d-bc", 500 * 2**499),
        ("parity-language", 2**499),
    ):
        automaton = lw.task(name).automaton
        assert word_counts(automaton, 500)[500][automaton.start] == number, name


def _fibonacci(n):
    """F_1 = F_2 = 1."""
    one, other = 0, 1
    for _ in range(n):
        one, other = other, one + other
    return one


def test_long_words_of_five_runs_are_uniform():
    """Of length 300: the four borders are a uniform set of 4 of the 299 gaps."""
    found = lw.task("aa-bb-cc-dd-ee").sample(5000, 300, 300, generator(6)).tokens[:, 1:]
    borders = (found[:, 1:] != found[:, :-1]).nonzero()
    assert torch.equal(borders[:, 0], torch.arange(5000).repeat_interleave(4))
    each = torch.bincount(borders[:, 1], minlength=299).tolist()
    assert stats.chisquare(each).pvalue > FALSE_ALARM


def test_a_language_of_ones_own():
    task = lw.language("my-language", "(ab)*c", "abc")
    try:
        assert task == lw.task("my-language")
        assert task.knobs == {"expression": "(ab)*c", "letters": "abc"}
        assert task == lw.task("my-language", **task.knobs)
        assert task == lw.language("my-language", "(ab)*c", "abc") == lw.language("my-language", "(ab)*c")
        assert task.automaton == compile_regex("(ab)*c")
        assert task.lengths(0, 8) == (1, 3, 5, 7)
        assert "lw.predict" in task.theory.statement
        assert "crasp decide" not in task.theory.statement  # of the language, not of what may follow
        found = task.sample(4, 5, 5, generator())
        assert [text(task, [token - 1 for token in row[1:]]) for row in found.tokens.tolist()] == [
            "ababc"
        ] * 4
        with pytest.raises(ValueError, match="already a task named 'my-language': take another name"):
            lw.language("my-language", "(ab)*", "abc")
        with pytest.raises(
            ValueError, match=r"my-language is the language \(ab\)\*c; the task named language"
        ):
            lw.task("my-language", expression="a*")
    finally:
        del PREDICTION_TASKS["my-language"]


def test_a_language_without_a_name():
    task = lw.task("language", expression="(ab)*")
    assert task == lw.LanguageTask() == lw.LanguageTask(expression="(ab)*", letters="ab")
    assert task.letters == "ab"
    assert lw.task("language", expression="a*", letters="ab") != lw.task("language", expression="a*")
    assert lw.task("language", expression="10*").letters == "01"


@pytest.mark.parametrize("name", ["tomita-3", "dyck-12", "language"])
def test_languages_travel(name):
    """Pickled, a language is the same task again; so is one that the reader has never heard of."""
    task = lw.task(name)
    assert pickle.loads(pickle.dumps(task)) == task
    assert hash(pickle.loads(pickle.dumps(task))) == hash(task)


def test_mistakes():
    for make, message in (
        (lambda: lw.language("simple", "a*"), "already a task named 'simple'"),
        (lambda: lw.language("parity", "a*"), "already a task named 'parity'"),
        (lambda: lw.language("tomita-1", "1*0", "01"), "already a task named 'tomita-1'"),
        (lambda: lw.language("My language", "a*"), "small letters, digits and hyphens"),
        (lambda: lw.language("mine", "a**)"), "column 4: this parenthesis closes nothing"),
        (lambda: lw.language("mine", "ab", "a"), "column 2: 'b' is not in the alphabet a"),
        (lambda: lw.task("tomita-4", expression="1*"), "tomita-4 is the language"),
        (lambda: lw.task("tomita-4", period=2), "no knob 'period'"),
        (lambda: lw.task("tomita-8"), "no task 'tomita-8'; did you mean 'tomita-"),
        (
            lambda: lw.task("aa-star").sample(2, 3, 3, generator()),
            r"\(aa\)\* has no inputs of a length from 3",
        ),
        (lambda: lw.task("aa-star").sample(0, 2, 4, generator()), "batch must be"),
        (lambda: lw.task("aa-star").lengths(4, 2), "shortest length 4 is larger than the longest, 2"),
        (lambda: lw.task("aa-star").lengths(-1, 2), "shortest length must be"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    assert "mine" not in PREDICTION_TASKS
