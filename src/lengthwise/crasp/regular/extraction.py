"""Programs from automata: potentials follow the state."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lengthwise.automata.automaton import DFA, numbered, strong_components
from lengthwise.crasp import nodes
from lengthwise.crasp.builder import TRUE, Formula, Number, Q, count, mod, number
from lengthwise.crasp.program import Mode, Program
from lengthwise.crasp.regular.positional import Product, Tag, product
from lengthwise.crasp.regular.potentials import Blocks, Potential, edges_inside, rounds, together


@dataclass(frozen=True)
class Extraction:
    """A program for the language of an automaton, the largest number of rounds of potentials in a component,
    and the number of potentials in all.
    """

    program: Program
    rounds: int
    potentials: int


@dataclass(frozen=True)
class Follower:
    """For every state, the formula that holds where the letters before this position lead to it."""

    dfa: DFA
    before: Mapping[int, Formula]
    rounds: int
    potentials: int

    def among(self, states: Iterable[int]) -> Formula:
        """The letters before lead to one of the states; said in the shorter of two ways."""
        chosen = set(states)
        return self.parting({state: state in chosen for state in self.before})

    def parting(self, wanted: Mapping[int, bool]) -> Formula:
        """A formula with these values where the letters before lead to these states, whatever it says where
        they lead to others; said in the shorter of two ways.
        """
        direct = _any(self.before[state] for state, value in wanted.items() if value)
        others = ~_any(self.before[state] for state, value in wanted.items() if not value)
        return min(direct, others, key=lambda one: len(nodes.in_order([one.node])))


def extract(dfa: DFA, acceptance: Mode = "last", window: int = 0, period: int = 1) -> Extraction | None:
    """A program for the language of a minimal automaton that sees the given window and period; None if there
    is none (or if the product with them is too large).
    """
    whole = _follow(dfa, window, period)
    if acceptance == "eos":
        if whole is None:
            return None
        accept = whole.among(whole.dfa.accepting)
        return Extraction(Program(dfa.alphabet, accept, mode="eos"), whole.rounds, whole.potentials)
    followers = []
    cases = []
    for letter in dfa.alphabet:
        # Where the automaton itself cannot be followed, that of the words before the letter may.
        follower = whole or _follow(dfa.quotient(letter).minimal(), window, period)
        if follower is None:
            return None
        followers.append(follower)
        completed = follower.dfa.quotient(letter) if whole else follower.dfa
        cases.append(Q(letter) & follower.among(completed.accepting))
    program = Program(dfa.alphabet, _any(cases), mode="last", accepts_empty=dfa.start in dfa.accepting)
    different = followers[:1] if whole else followers
    return Extraction(program, max(one.rounds for one in different), sum(one.potentials for one in different))


def _follow(dfa: DFA, window: int, period: int) -> Follower | None:
    """The automaton, or its product, with formulas for its states; None if potentials do not part them."""
    found = product(dfa, window, period)
    return None if found is None else followed(found, period)


def followed(
    found: Product, period: int, first: int = 1, never: frozenset[int] = frozenset()
) -> Follower | None:
    """Formulas for the states of a product, component by component from the start on; None if potentials do
    not part them.

    - ``first``: the position of the first letter;
    - ``never``: states that no word of interest leads to. They have no formulas.

    A component is entered at most once. Inside, the values of its potentials give the state. The events of
    entering are known from the components before.
    """
    dfa, tags = found.dfa, found.tags

    def seen(tag: Tag) -> Formula:
        shown = [mod(period, tag[1] + first)]
        for distance, letter in enumerate(tag[0], start=1):
            if letter == found.padding:
                others = _any(Q(one) for index, one in enumerate(dfa.alphabet) if index != letter)
                shown.append(count(others, at=[distance]) <= 0)
            else:
                shown.append(count(Q(dfa.alphabet[letter]), at=[distance]) >= 1)
        return _all(shown)

    before: dict[int, Formula] = {}
    entering: dict[int, list[Formula]] = {}
    most_rounds = potentials = 0
    for component in reversed(strong_components(dfa.transitions)):
        if not never.isdisjoint(component):
            continue
        edges = edges_inside(component, dfa.transitions)
        number_of = numbered(tags[state] for state in component)
        blocks: Blocks = {state: number_of[tags[state]] for state in component}
        done, final = rounds(edges, blocks)
        if together(final) is not None:
            return None
        entries = {state: _any(entering[state]) for state in component if state in entering}
        after = TRUE if dfa.start in blocks else count(_any(entries.values()), strict=True) >= 1
        # What a single state sees adds nothing.
        here = {state: seen(tags[state]) if len(component) > 1 else TRUE for state in component}
        for one in done:
            before_round = {one.blocks[state]: formula for state, formula in here.items()}
            for potential in one.potentials:
                total = _total(dfa, potential, before_round, after, entries)
                is_at = {value: total == value for value in set(potential.values.values())}
                here = {state: here[state] & is_at[value] for state, value in potential.values.items()}
                potentials += 1
        most_rounds = max(most_rounds, len(done))
        stays = after & _not_left(dfa, component, here, after, never)
        for state in component:
            before[state] = stays & here[state]
            for target in dict.fromkeys(dfa.transitions[state]):
                if target not in blocks and target not in never:
                    letters = zip(dfa.alphabet, dfa.transitions[state], strict=True)
                    reads = _any(Q(letter) for letter, leads in letters if leads == target)
                    entering.setdefault(target, []).append(before[state] & reads)
    return Follower(dfa, before, most_rounds, potentials)


def _total(
    dfa: DFA,
    potential: Potential,
    here: Mapping[int, Formula],
    after: Formula,
    entries: Mapping[int, Formula],
) -> Number:
    """The value of a potential before this position: where the component was entered, plus all changes.

    As it was entered once, the value there is a sum of counts too. ``here`` has the formula of each block.
    """
    parts: dict[int, list[Formula]] = {}
    for symbol, letter in enumerate(dfa.alphabet):
        weights = {block: weight for (read, block), weight in potential.weights.items() if read == symbol}
        if len(set(weights.values())) == 1:
            # The same in all blocks where the letter stays inside; elsewhere it does not matter.
            parts.setdefault(next(iter(weights.values())), []).append(Q(letter))
            continue
        for weight in dict.fromkeys(weights.values()):
            places = _any(here[block] for block, one in weights.items() if one == weight)
            parts.setdefault(weight, []).append(Q(letter) & places)
    total = number(potential.values.get(dfa.start, 0))
    for weight, reads in parts.items():
        if weight:
            total = total + weight * count(after & _any(reads), strict=True)
    for value in dict.fromkeys(potential.values[state] for state in entries):
        if value:
            entered = _any(event for state, event in entries.items() if potential.values[state] == value)
            total = total + value * count(entered, strict=True)
    return total


def _not_left(
    dfa: DFA, component: Sequence[int], here: Mapping[int, Formula], after: Formula, never: frozenset[int]
) -> Formula:
    """No letter before this position has led out of the component. Formulas of states are right up to the
    first that does, and only whether there was one matters.
    """
    inside = set(component)
    leaving = []
    for symbol, letter in enumerate(dfa.alphabet):
        stay = [here[state] for state in component if dfa.transitions[state][symbol] in inside]
        leave = [here[state] for state in component if dfa.transitions[state][symbol] not in inside | never]
        if leave:
            leaving.append(Q(letter) & (_any(leave) if len(leave) < len(stay) else ~_any(stay)))
    return count(after & _any(leaving), strict=True) <= 0


def _any(formulas: Iterable[Formula]) -> Formula:
    return Formula(nodes.disjunction(one.node for one in formulas))


def _all(formulas: Iterable[Formula]) -> Formula:
    return Formula(nodes.conjunction(one.node for one in formulas))
