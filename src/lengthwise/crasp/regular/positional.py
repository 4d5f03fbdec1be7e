"""C-RASP with positions: programs that also see the last letters and the position modulo a period.

Local counts can be pushed down to letters, so that a program of C-RASP[periodic,local] is one of C-RASP
whose letters also show, for some k and m, the k letters before (the window) and the position modulo m (the
phase). For a given k and m this is decided exactly, on the product of the minimal automaton with windows
and phases; states of different windows or phases are apart from the start. No bound on k and m is known, so
that the search may end without an answer. (Derived for this project, not published.)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lengthwise.automata.automaton import DFA, paths
from lengthwise.crasp.regular.classes import Monoid, Stable, local_failure, stability, transition_monoid
from lengthwise.crasp.regular.membership import inseparable, inseparable_tagged

MOST_WINDOW = 6
MOST_PERIOD = 128
MOST_BLIND_PERIOD = 12
"""The largest period that is tried where the stability index is not known."""

MOST_PRODUCT = 20_000
"""Products with more states are not searched."""

Tag = tuple[tuple[int, ...], int]
"""A window, the nearest letter first, and a phase: the number of letters read so far, modulo the period."""


@dataclass(frozen=True)
class Product:
    """An automaton that keeps window and phase in its states; ``tags`` has those of each state.

    At the start the window is full of the letter ``padding``. This loses nothing: a program knows by counting
    that it has read fewer letters than the window holds.
    """

    dfa: DFA
    tags: tuple[Tag, ...]
    padding: int


@dataclass(frozen=True)
class Search:
    """What is known about C-RASP[periodic,local]: the answer and how it was found; where it is yes, the
    window and the period found; where it is no, a word for the idempotent whose local monoid fails; the
    pairs of window and period that were tried and failed, and those that were too large.
    """

    answer: bool | None
    method: str
    window: int | None = None
    period: int | None = None
    stability: int | None = None
    idempotent: tuple[str, ...] | None = None
    tried: tuple[tuple[int, int], ...] = ()
    skipped: tuple[tuple[int, int], ...] = ()


def product(dfa: DFA, window: int, period: int, most: int = MOST_PRODUCT) -> Product | None:
    """The product with windows and phases, padded with the letter that makes it smallest; None if all are
    larger than ``most``. Without windows and phases it is the automaton, however large.
    """
    if window < 0 or period < 1:
        raise ValueError(
            f"the window must be at least 0 and the period at least 1, got {window} and {period}"
        )
    if (window, period) == (0, 1):
        return Product(dfa, (((), 0),) * len(dfa.transitions), 0)
    best = None
    for padding in range(len(dfa.alphabet) if window else 1):
        found = _product(dfa, window, period, padding, most)
        if found is not None and (best is None or len(found.tags) < len(best.tags)):
            best, most = found, len(found.tags)
    return best


def _product(dfa: DFA, window: int, period: int, padding: int, most: int) -> Product | None:
    # Every window occurs with every phase, whatever the automaton.
    if len(dfa.alphabet) ** window * period > most:
        return None
    states: list[tuple[int, tuple[int, ...], int]] = [(dfa.start, (padding,) * window, 0)]
    number = {states[0]: 0}
    rows = []
    for state, seen, phase in states:
        row = []
        for letter, next_state in enumerate(dfa.transitions[state]):
            after = next_state, (letter, *seen)[:window], (phase + 1) % period
            if after not in number:
                if len(states) >= most:
                    return None
                number[after] = len(states)
                states.append(after)
            row.append(number[after])
        rows.append(tuple(row))
    accepting = frozenset(index for index, (state, _, _) in enumerate(states) if state in dfa.accepting)
    tags = tuple((seen, phase) for _, seen, phase in states)
    return Product(DFA(dfa.alphabet, tuple(rows), 0, accepting), tags, padding)


def is_positional(dfa: DFA, window: int, period: int) -> bool | None:
    """Whether programs with this window and period, under "eos", can tell the language of a minimal
    automaton; None if the product is too large.
    """
    if (window, period) == (0, 1):
        return inseparable(dfa) is None
    # The padding makes no difference to the answer.
    found = _product(dfa, window, period, 0, MOST_PRODUCT)
    return None if found is None else inseparable_tagged(found.dfa.transitions, found.tags) is None


def search(
    dfa: DFA,
    targets: Sequence[DFA],
    most_window: int = MOST_WINDOW,
    most_period: int = MOST_PERIOD,
    monoid: Monoid | None = None,
) -> Search:
    """Look for a window and a period that suffice for all ``targets``, minimal automata: the language of
    ``dfa`` itself under "eos", its quotients by the letters under "last".
    """

    def suffice(window: int, period: int) -> bool | None:
        answers = (is_positional(one, window, period) for one in targets)
        return next((found for found in answers if found is not True), True)

    return searched(dfa, suffice, most_window, most_period, monoid)


def searched(
    dfa: DFA,
    suffice: Callable[[int, int], bool | None],
    most_window: int = MOST_WINDOW,
    most_period: int = MOST_PERIOD,
    monoid: Monoid | None = None,
) -> Search:
    """Look for a window and a period that suffice. That none does is known where a local monoid of the
    language of a minimal automaton fails.
    """
    if suffice(0, 1):
        return Search(True, "potentials on the minimal automaton", 0, 1)
    monoid = transition_monoid(dfa) if monoid is None else monoid
    stable = None if monoid is None else stability(monoid)
    index = None if stable is None else stable.index
    if monoid is not None and stable is not None:
        failure = local_failure(monoid, stable)
        if failure is not None:
            word = tuple(dfa.alphabet[symbol] for symbol in paths(monoid.right.tolist(), 0)[failure])
            return Search(False, "a local monoid is not in C-RASP", stability=index, idempotent=word)
    tried, skipped = [(0, 1)], []
    for window, period in _pairs(len(dfa.alphabet), stable, most_window, most_period):
        answer = suffice(window, period)
        if answer:
            how = "potentials on the product with windows and phases"
            return Search(True, how, window, period, index, None, tuple(tried), tuple(skipped))
        (skipped if answer is None else tried).append((window, period))
    how = "search for a window and a period"
    return Search(None, how, None, None, index, None, tuple(tried), tuple(skipped))


def _pairs(
    letters: int, stable: Stable | None, most_window: int, most_period: int
) -> Iterator[tuple[int, int]]:
    """Windows and periods beyond (0, 1), those of small products first. Periods divide twice the stability
    index; where that is not known small ones are tried.
    """
    if stable is None:
        periods = range(1, min(most_period, MOST_BLIND_PERIOD) + 1)
    else:
        periods = [m for m in range(1, most_period + 1) if 2 * stable.index % m == 0]
    pairs = [(k, m) for k in range(most_window + 1) for m in periods if (k, m) != (0, 1)]
    yield from sorted(pairs, key=lambda pair: (letters ** pair[0] * pair[1], pair[0]))
