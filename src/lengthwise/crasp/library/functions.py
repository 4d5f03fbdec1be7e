"""Programs for tasks whose answer is a word: they predict it symbol by symbol.

The stream is ``<bos>`` x_1 ... x_n ``<sep>`` y_1 ... y_m ``<eos>`` for an input x with the answer y, as in
the algorithmic suite of Huang et al. (ICLR 2025). A program reads all of it but ``<eos>``. At ``<sep>`` and
at every symbol of the answer exactly one formula of ``NEXT`` holds: that of the symbol that comes next. What
it predicts before ``<sep>``, or after a wrong answer, has no meaning. Positions are counted from 1, so that
x_t is at position t + 1.
"""

from collections.abc import Iterable, Mapping, Sequence

from lengthwise.crasp import nodes
from lengthwise.crasp.builder import Formula, Number, Q, count, exists, mod, prev
from lengthwise.crasp.program import BEGIN, END, SEPARATOR, Program

INTERLEAVED = 3
"""How many strings the interleaved task has."""


def majority(letters: Sequence[str]) -> Program:
    """The letter that occurs most often, the first one of the alphabet among equals: one comparison with
    every other letter. Depth 1, without positions.
    """
    often = {letter: count(Q(letter)) for letter in letters}
    predicted = {}
    for place, letter in enumerate(letters):
        others = [often[letter] > often[other] for other in letters[:place]]
        others += [often[letter] >= often[other] for other in letters[place + 1 :]]
        predicted[letter] = _all([Q(SEPARATOR), *others])
    predicted[END] = exists(Q(SEPARATOR)) & _any(map(Q, letters))
    return _predictor(letters, predicted)


def interleaved_majority() -> Program:
    """The majority bits of three strings, of which the first is x_1 x_4 x_7 ..., the second x_2 x_5 ..., the
    third x_3 x_6 ...; 0 if there are as many 1 as 0. In the suite they are equally long.

    When k bits have been answered, ``<sep>`` is k positions back, and what is counted ends there. Depth 1,
    period 3, locality 3.
    """
    asked = [count(Q(SEPARATOR), at=[step]) >= 1 for step in range(INTERLEAVED + 1)]
    more_ones = []
    for step in range(INTERLEAVED):
        here = mod(INTERLEAVED, step + 2)
        ones, zeros = (count(Q(bit) & here, at_least=step) for bit in "10")
        more_ones.append(ones > zeros)
    *steps, ended = asked
    pairs = list(zip(steps, more_ones, strict=True))
    predicted = {
        "0": _any(now & ~ones for now, ones in pairs),
        "1": _any(now & ones for now, ones in pairs),
        END: ended,
    }
    names = {f"ones_{string}": one for string, one in enumerate(more_ones, start=1)}
    return _predictor("01", predicted, names)


def copy_unique(letters: Sequence[str]) -> Program:
    """The input again, where no letter occurs twice.

    After k answers there are k + 1 positions from ``<sep>`` on. There are t positions before the first x_t,
    ``<bos>`` among them, and n + 1 before ``<sep>``; for a letter that was not read it is all positions so
    far, n + 2 + k. So exactly one of these numbers is k + 1: that of x_{k + 1}, or of ``<sep>`` if k = n.
    Depth 2, without positions or distances, and of a size linear in the alphabet.

    Huang et al. (ICLR 2025) mark unique copying as a task without such a program, and their models without
    positions failed on it. The mark is not a theorem, and this program is no exception to one: over a given
    alphabet there are finitely many inputs, none longer than the alphabet, and whatever has finitely many
    inputs is in C-RASP, for "the t-th letter is a" is. So membership alone predicts nothing for this task.
    What this program asks of a transformer is not what an induction head asks, which compares tokens: each
    letter of the alphabet has a count of its own, and at every step the counts of other letters, those of
    its neighbours in the input, differ from the right one by 1 among all positions so far.
    """
    step = count(exists(Q(SEPARATOR)))
    predicted = {letter: _before(letter) == step for letter in letters}
    predicted[END] = _before(SEPARATOR) == step
    return _predictor(letters, predicted)


def _before(letter: str) -> Number:
    """How many positions come before the first occurrence of a letter."""
    return count(~exists(Q(letter)))


def copy_unique_local(letters: Sequence[str]) -> Program:
    """The input again, where no letter occurs twice, as an induction head does it: the letter that followed
    the present one. Depth 2, locality 1, and one count for every pair of letters, which a transformer need
    not have: its attention compares tokens.
    """
    once = count(Q(SEPARATOR)) == 1

    def follows(first: str, second: str) -> Formula:
        return exists(Q(second) & prev(Q(first)))

    predicted = {}
    for letter in letters:
        after = [Q(other) & follows(other, letter) for other in letters if other != letter]
        predicted[letter] = once & _any([Q(SEPARATOR) & follows(BEGIN, letter), *after])
    ends = [Q(letter) & follows(letter, SEPARATOR) for letter in letters]
    predicted[END] = once & _any([Q(SEPARATOR) & follows(BEGIN, SEPARATOR), *ends])
    return _predictor(letters, predicted)


def sort_distinct(letters: Sequence[str]) -> Program:
    """The letters of the input in the order of the alphabet, where none occurs twice: the first letter that
    was read exactly once, for an answered one was read twice. Depth 1, without positions, and every
    comparison has one sign.
    """
    return _in_order({letter: count(Q(letter)) == 1 for letter in letters})


def sort_repeated(letters: Sequence[str]) -> Program:
    """The letters of the input in the order of the alphabet, each as often as it occurs: the first letter
    that the answer has less often than the input. Depth 2, without positions.
    """
    answering = exists(Q(SEPARATOR))
    return _in_order({a: count(Q(a) & ~answering) > count(Q(a) & answering) for a in letters})


def _in_order(left: Mapping[str, Formula]) -> Program:
    """The answer is the first letter that is left, until none is."""
    predicted, none = {}, [exists(Q(SEPARATOR))]
    for letter, one in left.items():
        predicted[letter] = _all([*none, one])
        none.append(~one)
    predicted[END] = _all(none)
    return _predictor(list(left), predicted, {f"left_{letter}": one for letter, one in left.items()})


def _predictor(
    letters: Sequence[str], predicted: Mapping[str, Formula], names: Mapping[str, Formula] | None = None
) -> Program:
    return Program(stream_alphabet(letters), next=predicted, names=names or {})


def stream_alphabet(letters: Sequence[str]) -> tuple[str, ...]:
    """The symbols of a stream that a program reads."""
    return (BEGIN, *letters, SEPARATOR)


def _all(formulas: Iterable[Formula]) -> Formula:
    return Formula(nodes.conjunction(one.node for one in formulas))


def _any(formulas: Iterable[Formula]) -> Formula:
    return Formula(nodes.disjunction(one.node for one in formulas))
