"""Random formulas of the fragments of C-RASP as nested tuples, and all short words that satisfy them.

    formula: ("letter", number), ("true",), ("not", f), ("and", f, g), ("or", f, g), ("mod", m, r),
             ("ge", ((alpha, count), ...), constant)
    count:   ("all", f), ("strict", f), ("at", distances, f)

``built`` makes a formula of the package; ``truth`` evaluates the tuples themselves on all words of a length,
with nothing of the package.
"""

import numpy as np
from hypothesis import strategies as st

from lengthwise.crasp import builder
from lengthwise.crasp.program import Program

LETTERS = "abc"
REACH = {1: 12, 2: 8, 3: 5}
"""All words are tried up to these lengths, by the number of letters."""


class _Choices:
    """Bytes as a stream of choices; all choices are the first one when they are used up."""

    def __init__(self, data):
        self.data = iter(data)

    def below(self, number):
        return next(self.data, 0) % number

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def of(self, *options):
        return options[self.below(len(options))]


def recipes(kind, **options):
    """Numbers of letters, modes, and formulas of a kind, which is one of the functions below.

    They are decoded from bytes: hypothesis is slow at drawing nested values.
    """

    def decoded(data):
        choose = _Choices(data)
        letters = choose.of(2, 2, 3, 1)
        return letters, choose.of("last", "eos"), kind(choose, letters, **options)

    return st.binary(min_size=80, max_size=80).map(decoded)


def _boolean(choose, leaf, size):
    """A Boolean combination of at most so many leaves."""
    found = leaf()
    for _ in range(choose.below(size)):
        if choose.below(3) == 0:
            found = ("not", found)
        found = (choose.of("and", "or", "and"), found, leaf())
    return ("not", found) if choose.below(4) == 0 else found


def _letter(choose, letters):
    return ("letter", choose.below(letters)) if choose.below(6) else ("true",)


def _alpha(choose):
    return choose.of(1, -1, 2, -2, 3, -3)


def _distances(choose, largest):
    return tuple({choose.between(0, largest) for _ in range(choose.between(1, 3))})


def of_letters(choose, letters, positions=False):
    """C-RASP_1, or what it is with positions: counts of letters (and phases) alone."""

    def leaf():
        if positions and choose.below(3) == 0:
            return ("mod", choose.between(2, 4), choose.below(4))
        return _letter(choose, letters)

    def count():
        low = _boolean(choose, leaf, 3)
        kinds = [("all", low), ("all", low), ("strict", low), ("at", (0,), low)]
        if positions:
            kinds[1:] = [("at", _distances(choose, 4), low)] * 2
        return choose.of(*kinds)

    def compare():
        if choose.below(5) == 0:
            return leaf()
        terms = tuple((_alpha(choose), count()) for _ in range(choose.between(1, 3)))
        return ("ge", terms, choose.between(-9, 9))

    return _boolean(choose, compare, 5)


def of_one_sign(choose, letters, strict=False, mixed=False):
    """C-RASP_+, nested; with strict counts too; with any comparison where it is not counted."""

    def count(depth):
        counted = _boolean(choose, lambda: formula(depth - 1), 2)
        return (choose.of("all", "strict") if strict else "all", counted)

    def formula(depth):
        if depth == 0 or choose.below(3) == 0:
            return _letter(choose, letters)
        sign = choose.of(1, 1, -1)
        terms = tuple((sign * choose.between(1, 2), count(depth)) for _ in range(choose.between(1, 2)))
        return ("ge", terms, -choose.between(0, 4) if sign > 0 else choose.between(0, 3))

    def top():
        if mixed and choose.below(2):
            terms = tuple((_alpha(choose), count(2)) for _ in range(choose.between(1, 2)))
            here = _boolean(choose, lambda: formula(2), 2)
            return ("ge", (*terms, (_alpha(choose), ("at", (0,), here))), choose.between(-5, 5))
        return formula(3)

    return _boolean(choose, top, 4)


def of_any_sign(choose, letters, positions=False):
    """Nested counts with any signs."""

    def leaf():
        if positions and choose.below(4) == 0:
            return ("mod", choose.between(2, 3), choose.below(3))
        return _letter(choose, letters)

    def formula(depth):
        if depth == 0 or choose.below(4) == 0:
            return leaf()
        terms = []
        for _ in range(choose.between(1, 2)):
            counted = _boolean(choose, lambda: formula(depth - 1), 2)
            kinds = [("all", counted), ("all", counted), ("strict", counted), ("at", (0,), counted)]
            if positions:
                kinds[1:] = [("at", _distances(choose, 2), counted)] * 2
            terms.append((_alpha(choose), choose.of(*kinds)))
        return ("ge", tuple(terms), choose.between(-4, 4))

    return _boolean(choose, lambda: formula(2), 3)


def built(recipe):
    """The formula of the package."""
    match recipe:
        case ("letter", number):
            return builder.Q(LETTERS[number])
        case ("true",):
            return builder.TRUE
        case ("mod", modulus, residue):
            return builder.mod(modulus, residue)
        case ("not", one):
            return ~built(one)
        case ("and", one, other):
            return built(one) & built(other)
        case ("or", one, other):
            return built(one) | built(other)
        case ("ge", terms, constant):
            total = builder.number(constant)
            for alpha, count in terms:
                total = total + alpha * _count(count)
            return total >= 0
    raise AssertionError(recipe)


def _count(recipe):
    match recipe:
        case ("all", one):
            return builder.count(built(one))
        case ("strict", one):
            return builder.count(built(one), strict=True)
        case ("at", distances, one):
            return builder.count(built(one), at=distances)
    raise AssertionError(recipe)


def program(recipe, letters, mode, accepts_empty=False):
    """The program that accepts with the formula."""
    return Program(LETTERS[:letters], built(recipe), mode=mode, accepts_empty=accepts_empty)


def truth(recipe, words):
    """The values at every position of words, which are rows of letter numbers; -1 is no letter."""
    match recipe:
        case ("letter", number):
            return words == number
        case ("true",):
            return np.ones(words.shape, bool)
        case ("mod", modulus, residue):
            return np.broadcast_to((np.arange(1, words.shape[1] + 1) - residue) % modulus == 0, words.shape)
        case ("not", one):
            return ~truth(one, words)
        case ("and", one, other):
            return truth(one, words) & truth(other, words)
        case ("or", one, other):
            return truth(one, words) | truth(other, words)
        case ("ge", terms, constant):
            return sum((alpha * _amount(count, words) for alpha, count in terms), constant) >= 0
    raise AssertionError(recipe)


def _amount(recipe, words):
    held = truth(recipe[-1], words).astype(int)
    match recipe:
        case ("all", _):
            return held.cumsum(1)
        case ("strict", _):
            return held.cumsum(1) - held
        case ("at", distances, _):
            width = held.shape[1]
            return sum(np.pad(held, ((0, 0), (d, 0)))[:, :width] for d in distances)
    raise AssertionError(recipe)


def accepted(recipe, mode, words):
    """Which of some words of one length, at least 1 under "last", are accepted."""
    words = np.asarray(words)
    if mode == "eos":
        words = np.pad(words, ((0, 0), (0, 1)), constant_values=-1)
    return truth(recipe, words)[:, -1]


def all_words(letters, length):
    """All words of a length, as rows."""
    return np.indices((letters,) * length).reshape(length, -1).T if length else np.zeros((1, 0), int)


def shortest(recipe, letters, mode, reach=None):
    """The least length of an accepted word within reach (not empty under "last"), or None."""
    for length in range(mode == "last", (REACH[letters] if reach is None else reach) + 1):
        if accepted(recipe, mode, all_words(letters, length)).any():
            return length
    return None
