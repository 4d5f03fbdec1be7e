"""Whether C-RASP can tell what may follow: after every prefix of a word of a regular language, which letters
some word of the language goes on with, and whether the prefix is itself a word.

A program reads ``<bos>`` and a word letter by letter, and predicts a set after each. It sees the letter that
it predicts after, and reads prefixes of words alone, so that it need not notice when a word has become
impossible. This is easier than to tell the language under "last": a language that is told so has for every
word v a program for the prefixes u with uv in it, and finitely many v make up each set. It can be strictly
easier: in words without aa the last letter says what may follow, but no program without positions tells
whether aa has occurred.

*Theorem.* A state is live if some word is accepted from it. Let the states of each strongly connected
component of the minimal automaton be parted into blocks by potentials (see ``potentials``). A program without
positions predicts all sets if and only if no letter leads two states of one block to two different live
states.

*If.* A program follows the blocks. From a block a letter leads to one live state at most, so that the block
before and the letter give the set, and the block behind. Potentials are numbers of blocks as much as of
states, so they part the blocks also in the automaton whose states these are.

*Only if.* Let a letter lead p and q, of one block, to two live states. As the automaton is minimal,
some word v, perhaps empty, goes on through live states from both, to two whose sets differ: on a shortest
word that exactly one of them accepts there is a first letter that only one may go on with, or else only one
of the two ends is accepting. So words that lead to p and to q, with the letter and v behind them, are
prefixes of words with different sets, and no program tells the ``Family`` of them apart.

With positions the same is decided on the product with windows and phases, for given ones. If a local monoid
of the language fails (see ``local_failure``) none suffice: two states that it leads to, of one component and
block, stay together for all programs, both are live, and like all live states they differ in what may follow.
(Derived for this project, not published.)
"""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from lengthwise.automata.automaton import DFA, numbered, strong_components
from lengthwise.automata.words import next_sets
from lengthwise.crasp import nodes
from lengthwise.crasp.builder import TRUE, Formula, Q
from lengthwise.crasp.program import BEGIN, END, Program
from lengthwise.crasp.regular.decide import minimal_automaton, search_details
from lengthwise.crasp.regular.extraction import followed
from lengthwise.crasp.regular.families import family_of
from lengthwise.crasp.regular.membership import Inseparable
from lengthwise.crasp.regular.positional import MOST_PERIOD, MOST_WINDOW, Product, product, searched
from lengthwise.crasp.regular.potentials import edges_inside, stable_blocks
from lengthwise.crasp.verdict import Verdict

Known = Mapping[int, tuple[int, int]]
"""What a program can know of each live state: the number of its component, and its block there."""


@dataclass(frozen=True)
class Confusion:
    """Two states of one block that a letter leads to two different live states."""

    states: Inseparable
    letter: int


def decide_next(
    regex: str | DFA,
    alphabet: Sequence[str] | None = None,
    positional: bool = False,
    most_window: int = MOST_WINDOW,
    most_period: int = MOST_PERIOD,
) -> Verdict:
    """Whether a program of C-RASP tells what may follow each prefix of a word of a regular language.

    The parameters are those of ``decide``. The witness of a yes is a predictor that reads ``<bos>`` and the
    letters, and predicts letters and, where the prefix is a word, ``<eos>``. That of a no without positions
    is a ``Family`` of pairs of prefixes with different sets.
    """
    if most_window < 0 or most_period < 1:
        raise ValueError("most_window must be at least 0 and most_period at least 1")
    dfa = minimal_automaton(regex, alphabet)
    if not dfa.live:
        raise ValueError("the language has no words, so there is nothing to follow")
    if BEGIN in dfa.alphabet:
        raise ValueError(f"{BEGIN!r} begins every stream, so it cannot be a letter")
    return _with_positions(dfa, most_window, most_period) if positional else _without(dfa)


def _without(dfa: DFA) -> Verdict:
    how = "potentials on the states that lead to words"
    size = {"states": len(dfa.states)}
    found = confusion(dfa, [0] * len(dfa.states))
    if found is not None:
        return Verdict(False, family_of(dfa, found.states, _parting(dfa, found)), how, size)
    return Verdict(True, _program(dfa, 0, 1), how, size)


def _with_positions(dfa: DFA, most_window: int, most_period: int) -> Verdict:
    def suffice(window: int, period: int) -> bool | None:
        seen = product(dfa, window, period)
        return None if seen is None else confusion(seen.dfa, seen.tags) is None

    found = searched(dfa, suffice, most_window, most_period)
    details = {"states": len(dfa.states)} | search_details(found)
    made = None
    if found.answer and found.window is not None and found.period is not None:
        made = _program(dfa, found.window, found.period)
    return Verdict(found.answer, made, found.method, details)


def confusion(dfa: DFA, tags: Sequence[Hashable]) -> Confusion | None:
    """Why no program predicts the sets, where states of different tags are apart from the start; None if one
    does.
    """
    components = strong_components(dfa.transitions)
    known = _known(dfa, tags, components)
    met: dict[tuple[tuple[int, int], int], tuple[int, int]] = {}
    for state, block in known.items():
        for letter, after in enumerate(dfa.transitions[state]):
            if after not in dfa.live:
                continue
            other, same = met.setdefault((block, letter), (state, after))
            if same != after:
                return Confusion(Inseparable(components[block[0]], (other, state)), letter)
    return None


def _known(dfa: DFA, tags: Sequence[Hashable], components: Sequence[Sequence[int]]) -> Known:
    known: dict[int, tuple[int, int]] = {}
    for index, component in enumerate(components):
        if component[0] not in dfa.live:
            continue
        number = numbered(tags[state] for state in component)
        blocks: Mapping[int, int] = {state: number[tags[state]] for state in component}
        if len(component) > 1:
            blocks = stable_blocks(edges_inside(component, dfa.transitions), blocks)
        known |= {state: (index, block) for state, block in blocks.items()}
    return known


def _parting(dfa: DFA, found: Confusion) -> tuple[str, ...]:
    """The letter, and a shortest word that goes on through live states from where it leads, to two whose sets
    differ.
    """
    sets = next_sets(dfa).tolist()
    first, second = (dfa.transitions[state][found.letter] for state in found.states.pair)
    came: dict[tuple[int, int], tuple[int, ...]] = {(first, second): (found.letter,)}
    queue = deque(came)
    while queue:
        one, other = queue.popleft()
        word = came[one, other]
        if sets[one] != sets[other]:
            return tuple(dfa.alphabet[letter] for letter in word)
        for letter, pair in enumerate(zip(dfa.transitions[one], dfa.transitions[other], strict=True)):
            if pair[0] in dfa.live and pair not in came:
                came[pair] = (*word, letter)
                queue.append(pair)
    raise AssertionError("live states of a minimal automaton differ in what may follow")


def _program(dfa: DFA, window: int, period: int) -> Program:
    seen = product(dfa, window, period)
    assert seen is not None, "it was searched"
    known = _known(seen.dfa, seen.tags, strong_components(seen.dfa.transitions))
    machine, sink = _of_blocks(seen, known)
    follower = followed(machine, period, first=2, never=frozenset([sink]))
    assert follower is not None, "what modulo 2^61 - 1 parts all states must do so over the rationals"
    sets = next_sets(seen.dfa).tolist()
    number = numbered(known.values())
    after: list[dict[int, int]] = [{} for _ in dfa.alphabet]
    for state, block in known.items():
        for letter, target in enumerate(seen.dfa.transitions[state]):
            if target in seen.dfa.live:
                after[letter][number[block]] = target
    predicted = {}
    for place, symbol in enumerate((*dfa.alphabet, END)):
        cases = {BEGIN: TRUE if sets[seen.dfa.start][place] else ~TRUE}
        for letter, leads in zip(dfa.alphabet, after, strict=True):
            if leads:
                cases[letter] = follower.parting({block: sets[to][place] for block, to in leads.items()})
        predicted[symbol] = _by_letter(cases)
    return Program((BEGIN, *dfa.alphabet), next=predicted)


def _of_blocks(seen: Product, known: Known) -> tuple[Product, int]:
    """The automaton of the blocks, and the state of it that stands for all that is not live."""
    number = numbered(known.values())
    sink = len(number)
    rows = [[sink] * len(seen.dfa.alphabet) for _ in range(sink + 1)]
    tags = [seen.tags[0]] * (sink + 1)
    for state, block in known.items():
        tags[number[block]] = seen.tags[state]
        for letter, after in enumerate(seen.dfa.transitions[state]):
            if after in known:
                rows[number[block]][letter] = number[known[after]]
    start = number[known[seen.dfa.start]]
    made = DFA(seen.dfa.alphabet, tuple(map(tuple, rows)), start, frozenset())
    return Product(made, tuple(tags), seen.padding), sink


def _by_letter(cases: Mapping[str, Formula]) -> Formula:
    """What holds at each letter, where others do not matter."""
    if all(one.node is TRUE.node for one in cases.values()):
        return TRUE
    return Formula(nodes.disjunction((Q(letter) & one).node for letter, one in cases.items()))
