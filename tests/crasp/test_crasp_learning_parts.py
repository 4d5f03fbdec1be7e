"""The parts of learning, each against plain definitions."""

import time
from itertools import pairwise, product
from random import Random

import numpy as np
import pytest
import torch
from crasp_programs import RECIPES, WORDS, build_program, plain_values, word_for
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.crasp import accepts, compile_regex, decide, learn, parse
from lengthwise.crasp.learning import Shape
from lengthwise.crasp.learning.annealing import Annealing
from lengthwise.crasp.learning.checking import Checker, proved, witness
from lengthwise.crasp.learning.deadline import Deadline, OutOfTime
from lengthwise.crasp.learning.endings import at_last_letter
from lengthwise.crasp.learning.moves import Moves
from lengthwise.crasp.learning.oracles import FunctionOracle, ProgramOracle
from lengthwise.crasp.learning.samples import first_words, with_labels, with_prefixes
from lengthwise.crasp.learning.simpler import measure, smaller, specialised
from lengthwise.crasp.learning.slots import EVERYWHERE, Join, Sum, denoted
from lengthwise.crasp.learning.values import Values
from lengthwise.crasp.learning.walks import walks
from lengthwise.crasp.learning.words import all_words, padded, told, written
from lengthwise.crasp.power import PowerWord, evaluate_power

pytestmark = pytest.mark.usefixtures("one_thread")

SHAPES = st.fixed_dictionaries(
    {
        "slots": st.integers(1, 6),
        "distances": st.sets(st.integers(0, 4), max_size=2).map(tuple),
        "moduli": st.sets(st.integers(2, 3), max_size=1).map(tuple),
    }
)
LETTERS = "abc"


def drawn_slots(shape, letters, seed):
    """A random slot program."""
    moves = Moves(shape, shape.bases(letters), Random(seed))
    return tuple(moves.rule(place) for place in range(shape.slots))


def plain_truth(program, word):
    """A program at every position of a word, by its definition."""
    return plain_values(program, word)[program.root()]


@given(
    SHAPES,
    st.integers(1, 3),
    st.integers(0, 10**6),
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=5),
)
def test_values_are_those_of_the_program(shape, letters, seed, words):
    """Every slot on every position of every word, and the error, as the program that the slots denote."""
    shape = Shape(**shape)
    words = [tuple(symbol % letters for symbol in word) for word in words]
    slots = drawn_slots(shape, letters, seed)
    sample = with_labels(words, [bool(sum(word) % 2) for word in words])
    values = Values(sample, letters, shape)
    numbers = values.of(slots)
    for place in range(shape.slots):
        program = denoted(slots[: place + 1], LETTERS[:letters], shape, None)
        truth = [held for word in words for held in plain_truth(program, word)]
        assert values.held(numbers[shape.bases(letters) + place]).tolist() == truth
    wrong = sum(
        weight
        for weight, label, held in zip(sample.weights_N, sample.labels_N, truth, strict=True)
        if held != label
    )
    assert values.cost(numbers[-1]) == pytest.approx(wrong)
    assert sample.fits(program) == (wrong == 0)


def test_slots_by_hand():
    """d == 0 and never d < 0, with d the number of a less that of b; and a local one."""
    d_below = Sum(False, -1, ((1, EVERYWHERE, 1), (-1, EVERYWHERE, 0)))
    d_zero = Sum(True, 0, ((1, EVERYWHERE, 0), (-1, EVERYWHERE, 1)))
    both = Join(True, ((True, True, 2), (False, False, 3)))
    dyck = denoted((d_below, d_zero, both), "ab", Shape(), True)
    reference = parse('%empty true\nd = # "a" - # "b"\naccept = # (d < 0) == 0 && d == 0')
    for word in all_words(2, 9).tolist():
        assert dyck(word) == reference(word)
    twice = denoted((Sum(False, -2, ((1, 0, 0), (1, 1, 0))),), "ab", Shape(distances=(0, 1)), None)
    for word in all_words(2, 6).tolist():
        assert twice(word) == (word[-2:] == [0, 0])


@settings(max_examples=25)
@given(SHAPES, st.integers(0, 10**6))
def test_moves_keep_account(shape, seed):
    """After many moves the error and the size are those of the current program, computed anew."""
    shape = Shape(**shape)
    words = [tuple(word) for word in all_words(2, 4).tolist()] + [(0, 1) * 6, (1,) * 9]
    labels = [np.array([word[:end].count(0) > end / 2 for end in range(1, len(word) + 1)]) for word in words]
    annealing = Annealing(2, shape, Random(seed))
    annealing.use(with_prefixes(words, labels, 1))
    annealing.restart()
    annealing.stage(200, lambda: None)
    program = denoted(annealing.current, "ab", shape, None)
    wrong = {
        word[: end + 1]
        for word, truth in zip(words, labels, strict=True)
        for end, held in enumerate(plain_truth(program, word))
        if held != truth[end]
    }
    assert set(annealing.errors(annealing.current)) == wrong
    assert (annealing.error == 0) == (not wrong)
    error, size = annealing.error, annealing.size
    annealing.begin(annealing.current)
    assert (annealing.error, annealing.size) == (pytest.approx(error), size)
    assert annealing.best_error <= error
    if not error:
        annealing.shrink(200, lambda: None)
        assert annealing.error == 0
        assert annealing.size <= size


@given(RECIPES.map(lambda recipe: {**recipe, "mode": "eos"}), WORDS)
def test_programs_at_the_last_letter(recipe, word):
    """The same words are accepted, the empty one among them."""
    program = build_program(recipe)
    other = at_last_letter(program)
    assert other.mode == "last"
    word = word_for(program, word)
    assert other(()) == plain_truth(program, ())[-1]
    for end in range(1, len(word) + 1):
        assert other(word[:end]) == plain_truth(program, word[:end])[-1]


@given(RECIPES.map(lambda recipe: {**recipe, "mode": "last"}), WORDS)
def test_what_knows_its_letter_is_the_same(recipe, word):
    program = build_program(recipe)
    word = word_for(program, word)
    assert plain_truth(specialised(program), word) == plain_truth(program, word)


@settings(max_examples=20)
@given(RECIPES)
def test_smaller_programs_are_smaller(recipe):
    program = build_program(recipe)
    for candidate, _ in zip(smaller(program), range(20), strict=False):
        assert measure(candidate) < measure(program)
        assert (candidate.alphabet, candidate.mode, candidate.empty) == (
            program.alphabet,
            program.mode,
            program.empty,
        )


def test_letters_are_used():
    program = parse(
        'accept = ("a" && # "a" - ind "a" >= 1) || ("b" && # "a" > 3)'.replace('ind "a"', '#[i - j == 0] "a"')
    )
    assert specialised(program).root() is parse('accept = ("a" && # "a" >= 2) || ("b" && # "a" > 3)').root()


def balanced(word):
    heights = [sum(1 if letter == "a" else -1 for letter in word[:end]) for end in range(len(word) + 1)]
    return min(heights) >= 0 and heights[-1] == 0


def test_the_first_sample():
    """No word twice, right labels, both classes, many lengths, and negatives one edit from a positive."""
    oracle = FunctionOracle(balanced, "ab", Deadline(60))
    words = first_words(oracle, Random(1), Deadline(60))
    assert len(set(words)) == len(words)
    assert () not in words
    assert set(product((0, 1), repeat=5)) <= set(words)
    texts = ["".join("ab"[symbol] for symbol in word) for word in words]
    positive = {text for text in texts if balanced(text)}
    assert len(positive) >= 60
    assert {len(text) for text in positive} == set(range(2, 25, 2))
    negative = set(texts) - positive
    assert set(range(1, 25)) <= {len(text) for text in negative}
    removed = {text[:at] + text[at + 1 :] for text in positive for at in range(len(text))}
    assert len(negative & removed) >= 10


def test_weights():
    """Half for words and half for prefixes, each class half; counterexamples weigh three times as much."""
    words = [(0,), (0, 1), (1, 1, 1), (0, 0)]
    labels = [np.array([True]), np.array([True, False]), np.array([False] * 3), np.array([True, True])]
    sample = with_prefixes(words, labels, 1)
    weights, truth = sample.weights_N, sample.labels_N
    assert weights.sum() == pytest.approx(1)
    assert weights[truth].sum() == pytest.approx(0.5)
    # Whole words: a weighs 1 of 4 of the true ones, aa 3 of 4; prefixes: a 1, a of ab 1/2, aa 3/2 and 3/2.
    assert weights[0] == pytest.approx((1 / 4 + 1 / 4.5) / 4)
    assert weights[-1] == pytest.approx((3 / 4 + 1.5 / 4.5) / 4)
    assert [sample.prefix(at) for at in (0, 2, 5)] == [(0,), (0, 1), (1, 1, 1)]
    one_class = with_labels([(0,), (1, 0)], [True, True])
    assert one_class.weights_N.tolist() == pytest.approx([0.5, 0, 0.5])


@settings(max_examples=6)
@given(RECIPES, RECIPES)
def test_what_refutes_a_program_is_real(one, other):
    """By words and by the solver: the two programs differ there, and programs that agree are not refuted."""
    p, q = at_last_letter(build_program({**one, "letters": 2})), build_program({**other, "letters": 2})
    oracle = ProgramOracle(q, Deadline(60))
    checker = Checker(oracle, [(0, 1)], 0, Deadline(60))
    wrong = checker.counterexamples(p)
    assert checker.length == 15
    for word in wrong:
        assert plain_truth(p, word)[-1] != plain_truth(oracle.program, word)[-1]
    for length in range(1, 6):
        words = all_words(2, length)
        differ = not torch.equal(accepts(p, words), accepts(q, words))
        assert not differ or (wrong and len(wrong[0]) <= length)
    assert not checker.counterexamples(oracle.program)


def test_a_solver_refutes_with_power_words():
    pytest.importorskip("z3")
    oracle = ProgramOracle(parse('%alphabet "a" "b"\naccept = # "a" < 5000'), Deadline(60))
    always = parse('%alphabet "a" "b"\naccept = # "a" >= 0')
    verdict = proved(always, oracle, Deadline(60))
    assert verdict is not None
    assert verdict.answer is False
    word = witness(verdict, always)
    assert sum(symbols.count(0) * times for symbols, times in word.blocks) == 5000
    assert evaluate_power(always, word) != evaluate_power(oracle.program, word)


def test_without_the_solver(monkeypatch):
    """Nothing is proved of a search; the program of an automaton, right by itself, stays as it is."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    program = parse('%alphabet "a" "b"\naccept = # "a" == 0')
    assert proved(program, ProgramOracle(program, Deadline(60)), Deadline(60)) is None
    dfa = compile_regex("a*b*")
    learned = learn(dfa)
    assert learned.program is not None
    assert learned.program.root() is decide(dfa).witness.root()
    assert (learned.known, learned.checked) == ("proved", None)


def test_words():
    word = PowerWord((((0, 1), 200), ((1,), 1)))
    assert written(word) == (0, 1) * 200 + (1,)
    assert told(word, "ab") == [("ab", 200), ("b", 1)]
    assert told(PowerWord((((0, 1), 2),)), ("x1", "y")) == ("x1", "y", "x1", "y")
    assert padded([(1, 1), (), (1,)]).tolist() == [[1, 1], [0, 0], [1, 0]]
    assert all_words(3, 2).tolist() == [list(pair) for pair in product(range(3), repeat=2)]


def test_walks_go_everywhere():
    dfa = compile_regex("(a(a(ab)*b)*b)*")
    short, long = walks(dfa, seed=0)
    assert len(short.letters_BN) == 2**11
    for walk in (short, long):
        assert set(walk.states_BT.flatten().tolist()) == set(dfa.states)
        word = walk.letters_BN[7].tolist()
        prefixes = [[dfa.alphabet[symbol] for symbol in word[:end]] for end in range(1, len(word) + 1)]
        assert walk.labels_BN[7].tolist() == [dfa.accepts(prefix) for prefix in prefixes]


EXAMPLES = {
    "": True,
    "ab": True,
    "aabb": True,
    "a": False,
    "b": False,
    "ba": False,
    "abb": False,
    "aab": False,
}


def test_labelled_words():
    """What fits is called that and no more; the label of the empty word counts."""
    for empty in (True, False):
        learned = learn(EXAMPLES | {"": empty}, seconds=30)
        assert (learned.found, learned.known, learned.proved, learned.checked) == (True, "fits", False, None)
        assert learned.verdict is None
        assert learned.program is not None
        assert all(learned.program(word) == label for word, label in EXAMPLES.items() if word)
        assert learned.program("") == empty
        assert learned.examples == 8
    pairs = [(("x1", "y"), True), (("y", "x1"), False), (("x1",), True), (("y",), False)]
    learned = learn(pairs, ("y", "x1", "z"), seconds=30)
    assert learned.program is not None
    assert learned.program.alphabet == ("y", "x1", "z")
    assert [learned.program(word) for word, _ in pairs] == [True, False, True, False]


def test_labelled_words_that_no_small_program_fits():
    """Not found in time is said so, with words on which the nearest program is wrong."""
    source = Random(0)
    words = {tuple(word): bool(source.getrandbits(1)) for word in all_words(2, 7).tolist()}
    texts = {"".join("ab"[symbol] for symbol in word): label for word, label in words.items()}
    learned = learn(texts, seconds=0.5, shape=Shape(slots=2))
    assert (learned.found, learned.known) == (False, "not found")
    assert learned.program is not None
    assert 0 < len(learned.errors) <= 20
    for word in learned.errors:
        assert learned.program(word) != texts[word]


@pytest.mark.parametrize(
    ("target", "alphabet", "message"),
    [
        ([], None, "there are no examples"),
        ({"": True}, None, "no example but the empty word"),
        ([("ab", True), ("ab", False)], None, "'ab' is labelled both true and false"),
        ([("ab", 2)], None, "the label of 'ab' must be true or false, got 2"),
        ([("ab",)], None, "a pair of a word and its label"),
        (["ab"], None, "a pair of a word and its label, got 'ab'"),
        ([(3, True)], None, "a word is a string or a sequence of letters, got 3"),
        ({"abc": True}, "ab", "letter 'c' of the examples is not in the alphabet a b"),
        ({"ab": True}, "aba", "names a letter twice"),
        ({"ab": True}, "", "the alphabet is empty"),
        ({"ab": True}, ["a", ""], "a letter is a string that is not empty"),
        (len, None, "give the alphabet"),
        ("(ab)*", None, "compile_regex"),
        (parse('accept = "a"'), "ab", "a program has its own alphabet, a: leave alphabet out"),
        (parse('NEXT["a"] = "a"'), None, "predicts symbols"),
        (compile_regex("a*"), "ab", "an automaton has its own alphabet, a: leave alphabet out"),
    ],
)
def test_mistakes(target, alphabet, message):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        learn(target, alphabet, seconds=5)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: learn(EXAMPLES, seconds=0), "seconds must be positive"),
        (lambda: learn(EXAMPLES, seconds=float("nan")), "seconds must be positive"),
        (lambda: learn(EXAMPLES, seed=-1), "seed must be"),
        (lambda: Shape(slots=0), "slots must be from 1 to 100, got 0"),
        (lambda: Shape(terms=0), "at least one term"),
        (lambda: Shape(distances=(1, -1)), "distances must be from 0 to"),
        (lambda: Shape(moduli=(1,)), "moduli must be from 2 to"),
    ],
)
def test_mistakes_in_numbers(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_progress():
    seen = []
    learn(EXAMPLES, seconds=0.6, shape=Shape(slots=1, terms=1, literals=1), progress=seen.append)
    assert seen
    assert all(one.moves <= two.moves and one.left > two.left for one, two in pairwise(seen))
    assert all(0 < one.error <= 1 and not one.found for one in seen)


def test_deadlines():
    deadline = Deadline(0.2)
    assert deadline.of(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        deadline.of(lambda: 1 // 0)
    begun = time.monotonic()
    with pytest.raises(OutOfTime):
        deadline.of(lambda: time.sleep(3))
    assert time.monotonic() - begun < 1
    with pytest.raises(OutOfTime):
        deadline.check()
