"""The algorithmic tasks: streams against plain Python, and the exact distribution of inputs."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from suites_oracles import ANSWERS, legal, separator, stream

import lengthwise as lw
from lengthwise.tasks import ALGORITHMIC
from lengthwise.tasks._ordering import ascending, permutations

FALSE_ALARM = 1e-6
SHORTEST = {"binary-majority-interleaved": 3, "parity": 0, "addition": 4}
"""As published; 1 of the others."""


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def inputs_of(task, examples):
    """The input symbols of every stream."""
    alphabet, mark = task.alphabet, separator(task.name)
    for row in examples.tokens.tolist():
        symbols = [alphabet[token] for token in row]
        yield symbols[1 : symbols.index(mark)]


def check(task, examples, inputs):
    """That these are the streams of these inputs."""
    width, most = examples.tokens.shape[1], examples.target.shape[1]
    alphabet = task.alphabet
    for row, symbols in enumerate(inputs):
        expected, places = stream(task.name, symbols)
        tokens = [alphabet[token] for token in examples.tokens[row].tolist()]
        assert tokens == expected[:-1] + ["<eos>"] * (width + 1 - len(expected))
        assert examples.scored[row].tolist() == [True] * len(places) + [False] * (most - len(places))
        assert examples.places[row].tolist() == places + [0] * (most - len(places))
        target = [alphabet[token] for token in examples.target[row].tolist()]
        assert target[: len(places)] == [expected[place + 1] for place in places]


def given_inputs(task, inputs):
    """Examples of inputs that a test chooses, padded with a symbol that is not to be looked at."""
    width = max(map(len, inputs))
    number = {symbol: token for token, symbol in enumerate(task.alphabet)}
    numbers = [[number[symbol] for symbol in symbols] for symbols in inputs]
    padded = [row + [1] * (width - len(row)) for row in numbers]
    sizes = torch.tensor([len(row) for row in numbers])
    return task.examples_of(torch.tensor(padded, dtype=torch.int64).reshape(len(inputs), width), sizes)


def test_the_suite_has_8_tasks():
    assert set(ALGORITHMIC) == set(ANSWERS)
    for name, kind in ALGORITHMIC.items():
        assert lw.task(name) == kind()
        assert kind().shortest == SHORTEST.get(name, 1)
        assert kind().classes == kind().vocabulary == len(set(kind().alphabet))


@pytest.mark.parametrize("name", ALGORITHMIC)
@pytest.mark.parametrize(("low", "high"), [(0, 6), (1, 50), (101, 150)])
def test_samples_against_plain_python(name, low, high):
    """Lengths, legal inputs, answers, places and padding, symbol by symbol."""
    task = lw.task(name)
    examples = task.sample(60, low, high, generator(1))
    assert examples.tokens.shape == (60, task.stream_length(high))
    assert examples.places.shape == examples.scored.shape == examples.target.shape == (60, task.answers(high))
    inputs = list(inputs_of(task, examples))
    check(task, examples, inputs)
    counted = 1 if name == "addition" else 0  # the sign = is part of the input
    for symbols in inputs:
        assert len(symbols) + counted in task.lengths(low, high)
        assert legal(name, symbols)


@pytest.mark.parametrize(
    ("name", "letters", "longest"),
    [
        ("binary-majority", "01", 8),
        ("binary-majority-interleaved", "01", 9),
        ("copy-repeat", "ab", 7),
        ("parity", "01", 8),
        ("majority", "abc", 6),
        ("copy-unique", ["0", "1", "75", "149"], 4),
        ("sort", ["0", "7", "75", "149"], 4),
        ("addition", "01+", 9),
    ],
)
def test_every_short_input_has_its_answer(name, letters, longest):
    """All legal inputs up to a length side by side, so that each is padded by the others' length."""
    task = lw.task(name)
    every = (list(symbols) for size in range(longest + 1) for symbols in product(letters, repeat=size))
    inputs = [symbols for symbols in every if (symbols or name == "parity") and legal(name, symbols)]
    check(task, given_inputs(task, inputs), inputs)


NUMBERS = st.one_of(
    st.integers(1, 2**400),
    st.integers(0, 400).map(lambda bits: 2**bits),
    st.integers(1, 400).map(lambda bits: 2**bits - 1),
)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5))
def test_sums_of_long_numbers(pairs):
    """Random ones, and those whose carry goes all the way."""
    task = lw.task("addition")
    inputs = [list(f"{first:b}+{second:b}") for first, second in pairs]
    check(task, given_inputs(task, inputs), inputs)


def p_value(observed, chances):
    """Of counts against probabilities that add up to 1, which no other key may have."""
    assert sum(chances.values()) == pytest.approx(1, abs=1e-9)
    assert set(observed) <= set(chances)
    total = observed.total()
    cells = [(observed[key], total * float(chance)) for key, chance in chances.items()]
    assert all(expected >= 5 for _, expected in cells)
    if len(cells) == 1:
        return 1.0
    return stats.chisquare([o for o, _ in cells], [e for _, e in cells]).pvalue


def law(name, length, size):
    """The exact probability of every input of a length, as a tuple of symbols; ``size`` letters or tokens."""
    if name == "addition":
        found = {}
        for bits in product("01", repeat=length - 2):
            for cut in range(1, length - 2):
                first, second = "".join(bits[:cut]), "".join(bits[cut:])
                if first[0] == second[0] == "1":
                    found[(*first, "+", *second)] = Fraction(1, (length - 3) * 2 ** (length - 4))
        return found
    letters = "01" if name.startswith("binary") or name == "parity" else "abcdef"[:size]
    if name in ("copy-unique", "sort"):
        letters = [str(token) for token in range(size)]
    every = [word for word in product(letters, repeat=length) if legal(name, list(word))]
    if name in ("binary-majority", "parity"):
        counts = {word.count("0") for word in every}
        return {word: Fraction(1, len(counts) * math.comb(length, word.count("0"))) for word in every}
    if name == "binary-majority-interleaved":
        parts = [law("binary-majority", len(range(start, length, 3)), 2) for start in range(3)]
        return {word: math.prod(parts[start][word[start::3]] for start in range(3)) for word in every}
    return {word: Fraction(1, len(every)) for word in every}


@pytest.mark.parametrize(
    ("name", "lengths", "knobs"),
    [
        ("binary-majority", (1, 2, 5, 6), {}),
        ("binary-majority-interleaved", (3, 6), {}),
        ("parity", (0, 1, 4, 5), {}),
        ("copy-repeat", (1, 6), {}),
        ("copy-unique", (1, 3, 5), {"tokens": 5}),
        ("sort", (2, 4), {"tokens": 5}),
        ("addition", (4, 5, 8), {}),
        ("majority", (1, 2, 3, 6), {"size": 3}),
        ("majority", (4, 7), {"size": 2}),
        ("majority", (2, 5), {"size": 4}),
    ],
)
def test_inputs_have_exactly_their_distribution(name, lengths, knobs):
    task = lw.task(name, **knobs)
    for length in lengths:
        noise = task.noise(8000, length, length, generator(length))
        assert (noise[0] == length).all()
        observed = Counter(map(tuple, inputs_of(task, task.examples(*noise, high=length))))
        assert p_value(observed, law(name, length, next(iter(knobs.values()), 2))) > FALSE_ALARM


@pytest.mark.parametrize("name", ALGORITHMIC)
def test_lengths_are_uniform(name):
    task = lw.task(name)
    examples = task.sample(20_000, 0, 20, generator(2))
    sizes = Counter(examples.places[:, 0].tolist())  # that of the separator, one more than the input has
    possible = task.lengths(0, 20)
    step = 3 if name == "binary-majority-interleaved" else 1
    assert possible == tuple(range(SHORTEST.get(name, 1), 21, step))
    shift = 0 if name == "addition" else 1
    assert p_value(sizes, {length + shift: Fraction(1, len(possible)) for length in possible}) > FALSE_ALARM


@pytest.mark.parametrize("name", ["binary-majority", "parity"])
def test_long_strings_have_a_uniform_number_of_zeros_at_uniform_places(name):
    task, length = lw.task(name), 60
    tokens = task.sample(20_000, length, length, generator(3)).tokens[:, 1 : length + 1]
    zeros = tokens == 1
    counts = [count for count in range(length + 1) if name == "parity" or count != length // 2]
    observed = Counter(zeros.sum(1).tolist())
    assert p_value(observed, dict.fromkeys(counts, Fraction(1, len(counts)))) > FALSE_ALARM
    each = zeros.sum(0).double()
    assert stats.chisquare(each.tolist()).pvalue > FALSE_ALARM


def test_majority_of_two_and_three_letters_out_of_26():
    """Of length 2 the letters are equal; of length 3 at least two of them are."""
    task = lw.task("majority")
    for length, words in ((2, 26), (3, 26 + 26 * 25 * 3)):
        examples = task.sample(20_000, length, length, generator(4))
        observed = Counter(map(tuple, inputs_of(task, examples)))
        assert len(observed) == words
        assert stats.chisquare(list(observed.values())).pvalue > FALSE_ALARM


def test_counts_of_majority_have_exactly_their_distribution():
    """Of 4 letters and length 9: as likely as there are strings with these counts."""
    task, length = lw.task("majority", size=4), 9
    tokens = task.sample(20_000, length, length, generator(6)).tokens[:, 1 : length + 1]
    observed = Counter(map(tuple, torch.nn.functional.one_hot(tokens - 1, 4).sum(1).tolist()))
    ways = {}
    for counts in product(range(length + 1), repeat=4):
        if sum(counts) == length and counts.count(max(counts)) == 1:
            ways[counts] = math.factorial(length) // math.prod(map(math.factorial, counts))
    total = sum(ways.values())
    rare = {counts for counts, number in ways.items() if 20_000 * number < 5 * total}
    chances = {counts: Fraction(number, total) for counts, number in ways.items() if counts not in rare}
    chances["rare"] = 1 - sum(chances.values())
    assert set(observed) <= set(ways)
    kept = Counter({counts: number for counts, number in observed.items() if counts not in rare})
    kept["rare"] = observed.total() - kept.total()
    assert p_value(kept, chances) > FALSE_ALARM


def strings_by_top(length, size):
    """How many strings have one letter m times and every other one less often, for each m, exactly."""
    found = {}
    for most in range(1, length + 1):
        ways = [1] + [0] * (length - most)
        for _ in range(size - 1):
            ways = [
                sum(math.comb(total, count) * ways[total - count] for count in range(min(most, total + 1)))
                for total in range(len(ways))
            ]
        found[most] = size * math.comb(length, most) * ways[-1]
    return found


@pytest.mark.parametrize(("length", "size"), [(20, 26), (60, 26), (50, 5)])
def test_majority_of_long_strings(length, size):
    """How often the top letter occurs is as likely as there are such strings; every letter is equally often
    the top one, and equally often there if it is not.
    """
    task = lw.task("majority", size=size)
    tokens = task.sample(5000, length, length, generator(5)).tokens[:, 1 : length + 1]
    counts = torch.nn.functional.one_hot(tokens - 1, size).sum(1)
    top, winner = counts.max(1)
    assert ((counts == top.unsqueeze(1)).sum(1) == 1).all()
    number = strings_by_top(length, size)
    total = sum(number.values())
    chances = {most: Fraction(ways, total) for most, ways in number.items()}
    common = [most for most, chance in chances.items() if chance * 5000 >= 5]
    grouped = {most: chances[most] for most in common} | {"rare": 1 - sum(chances[most] for most in common)}
    observed = Counter(most if most in common else "rare" for most in top.tolist())
    if grouped["rare"] * 5000 < 5:
        grouped[common[0]] += grouped.pop("rare")
        observed[common[0]] += observed.pop("rare", 0)
    assert p_value(observed, grouped) > FALSE_ALARM
    assert stats.chisquare(torch.bincount(winner, minlength=size).tolist()).pvalue > FALSE_ALARM
    others = counts.double().scatter(1, winner.unsqueeze(1), torch.nan)
    spread = others[~others.isnan()].std() / math.sqrt(5000 * (size - 1) / size)
    deviation = (others.nanmean(0) - others.nanmean()) / spread
    assert stats.norm.sf(deviation.abs().max().item()) * 2 * size > FALSE_ALARM
    first = (tokens == winner.unsqueeze(1) + 1).sum(0)  # the top letter is as often at every place
    assert stats.chisquare(first.tolist()).pvalue > FALSE_ALARM


@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 10**6))
def test_orders(width, batch, seed):
    chances = torch.rand(batch, width, dtype=torch.float64, generator=generator(seed))
    found = permutations(chances)
    assert torch.equal(found, chances.argsort(-1))
    assert torch.equal(ascending(found), torch.arange(width).expand(batch, -1))


def test_no_more_tokens_than_there_are():
    for name in ("copy-unique", "sort"):
        task = lw.task(name, tokens=5)
        assert task.lengths(1, 100) == (1, 2, 3, 4, 5)
        assert task.lengths(6, 100) == ()
        examples = task.sample(50, 1, 100, generator())
        assert examples.tokens.shape == (50, task.stream_length(100)) == (50, 12)
        assert examples.target.shape == (50, task.answers(100)) == (50, 6)
        check(task, examples, list(inputs_of(task, examples)))
        assert lw.task(name).lengths(101, 200) == tuple(range(101, 151))


def test_mistakes():
    for make, message in (
        (lambda: lw.task("sort", tokens=0), "tokens must be a whole number of at least 1, got 0"),
        (lambda: lw.task("majority", size=27), "size must be a whole number from 2 to 26, got 27"),
        (
            lambda: lw.task("addition").sample(2, 1, 3, generator()),
            "addition has no inputs of a length from 1 to 3",
        ),
        (lambda: lw.task("sort").sample(2, 151, 200, generator()), "sort has no inputs of a length from 151"),
        (
            lambda: lw.task("parity").sample(2, 5, 4, generator()),
            "shortest length 5 is larger than the longest",
        ),
        (
            lambda: lw.task("parity").sample(0, 5, 6, generator()),
            "batch must be a whole number of at least 1",
        ),
        (lambda: lw.task("copy-uniqe"), "no task 'copy-uniqe'; did you mean 'copy-unique'"),
        (lambda: lw.task("sort", size=3), "task 'sort' has no knob 'size'"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
