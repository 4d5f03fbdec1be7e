"""Finite automata: minimal forms, quotients, shortest words, strongly connected components."""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

Transitions = Sequence[Sequence[int]]
"""The successor of every state under every letter, both numbered from 0."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class DFA:
    """A deterministic automaton: from ``start``, letter s leads from state q to ``transitions[q][number of
    s]``; a word is accepted if it ends in ``accepting``. Every state has a successor under every letter.
    """

    alphabet: tuple[str, ...]
    transitions: tuple[tuple[int, ...], ...]
    start: int
    accepting: frozenset[int]

    def __post_init__(self) -> None:
        letters, states = len(self.alphabet), len(self.transitions)
        if not letters:
            raise ValueError("the alphabet is empty: an automaton needs at least one letter")
        if len(set(self.alphabet)) != letters or not all(self.alphabet):
            raise ValueError(f"letters must differ and must not be empty: {' '.join(self.alphabet)}")
        if any(len(row) != letters for row in self.transitions):
            raise ValueError(f"every state needs one transition for each of the {letters} letters")
        for state in (self.start, *self.accepting, *(after for row in self.transitions for after in row)):
            if not 0 <= state < states:
                raise ValueError(f"state {state} is not between 0 and {states - 1}")

    @property
    def states(self) -> range:
        """The states."""
        return range(len(self.transitions))

    @cached_property
    def live(self) -> frozenset[int]:
        """The states from which some word is accepted."""
        sources: list[list[int]] = [[] for _ in self.states]
        for state, row in enumerate(self.transitions):
            for after in row:
                sources[after].append(state)
        found = set(self.accepting)
        waiting = list(found)
        while waiting:
            fresh = {state for state in sources[waiting.pop()] if state not in found}
            found |= fresh
            waiting += fresh
        return frozenset(found)

    def symbols(self, word: str | Sequence[str]) -> list[int]:
        """The letters of a word as their numbers in the alphabet."""
        number = {letter: index for index, letter in enumerate(self.alphabet)}
        for place, letter in enumerate(word, start=1):
            if letter not in number:
                known = " ".join(self.alphabet)
                raise ValueError(f"letter {letter!r} at position {place} is not in the alphabet {known}")
        return [number[letter] for letter in word]

    def after(self, word: str | Sequence[str], state: int | None = None) -> int:
        """The state after a word, from a state or from the start."""
        state = self.start if state is None else state
        for symbol in self.symbols(word):
            state = self.transitions[state][symbol]
        return state

    def accepts(self, word: str | Sequence[str]) -> bool:
        """Whether a word is accepted."""
        return self.after(word) in self.accepting

    def complement(self) -> "DFA":
        """The automaton of all other words."""
        return replace(self, accepting=frozenset(self.states) - self.accepting)

    def quotient(self, letter: str) -> "DFA":
        """The automaton of the words that are accepted once the letter is appended."""
        (symbol,) = self.symbols((letter,))
        return replace(
            self,
            accepting=frozenset(q for q in self.states if self.transitions[q][symbol] in self.accepting),
        )

    def beside(self, others: Sequence["DFA"]) -> tuple["DFA", tuple[int, ...]]:
        """One automaton with the states of this and then those of others, each by itself, and the start of
        each in it. Letters go by their numbers; one that an automaton lacks leads to a state of its own,
        which comes last and from which nothing is accepted.
        """
        every = (self, *others)
        dead = sum(len(own.states) for own in every)
        alphabet = max((own.alphabet for own in every), key=len)
        transitions, accepting, starts = [], set[int](), []
        for own in every:
            first = len(transitions)
            lacking = (dead,) * (len(alphabet) - len(own.alphabet))
            transitions += [(*(first + after for after in row), *lacking) for row in own.transitions]
            accepting |= {first + state for state in own.accepting}
            starts.append(first + own.start)
        transitions.append((dead,) * len(alphabet))
        return DFA(alphabet, tuple(transitions), starts[0], frozenset(accepting)), tuple(starts)

    def minimal(self) -> "DFA":
        """The smallest automaton of the same language, states numbered as a breadth-first search meets them;
        the same for all automata of the language over this alphabet.
        """
        kept = reachable(self.transitions, self.start)
        number = {state: index for index, state in enumerate(kept)}
        rows = [[number[after] for after in self.transitions[state]] for state in kept]
        class_of = _classes(rows, {number[q] for q in self.accepting if q in number})
        merged = {class_of[q]: tuple(class_of[after] for after in rows[q]) for q in range(len(rows))}
        order = reachable([merged[name] for name in range(len(merged))], class_of[0])
        new = {name: index for index, name in enumerate(order)}
        return DFA(
            self.alphabet,
            tuple(tuple(new[after] for after in merged[name]) for name in order),
            0,
            frozenset(new[class_of[number[q]]] for q in self.accepting if q in number),
        )


def reachable(transitions: Transitions, start: int) -> list[int]:
    """The states that some word leads to, in the order of a breadth-first search."""
    found = {start: None}
    queue = deque(found)
    while queue:
        for after in transitions[queue.popleft()]:
            if after not in found:
                found[after] = None
                queue.append(after)
    return list(found)


def paths(transitions: Transitions, start: int) -> dict[int, tuple[int, ...]]:
    """A shortest path, as the numbers of its letters, from a state to every state that can be reached."""
    found: dict[int, tuple[int, ...]] = {start: ()}
    queue = deque(found)
    while queue:
        state = queue.popleft()
        for letter, after in enumerate(transitions[state]):
            if after not in found:
                found[after] = (*found[state], letter)
                queue.append(after)
    return found


def difference(one: DFA, other: DFA) -> tuple[str, ...] | None:
    """A shortest word that exactly one of two automata accepts; None if they accept the same words."""
    if one.alphabet != other.alphabet:
        raise ValueError(
            f"the automata have different alphabets: {' '.join(one.alphabet)} and {' '.join(other.alphabet)}"
        )
    start = one.start, other.start
    came: dict[tuple[int, int], tuple[tuple[int, int], int] | None] = {start: None}
    queue = deque(came)
    while queue:
        pair = queue.popleft()
        if (pair[0] in one.accepting) != (pair[1] in other.accepting):
            word = []
            step = came[pair]
            while step is not None:
                word.append(one.alphabet[step[1]])
                step = came[step[0]]
            return tuple(reversed(word))
        rows = zip(one.transitions[pair[0]], other.transitions[pair[1]], strict=True)
        for letter, after in enumerate(rows):
            if after not in came:
                came[after] = pair, letter
                queue.append(after)
    return None


def strong_components(transitions: Transitions) -> list[tuple[int, ...]]:
    """The maximal sets of states that reach each other, each sorted; a set comes after all sets that it
    leads to (Tarjan's algorithm, with its stack of calls written out).
    """
    entered: dict[int, int] = {}
    low: dict[int, int] = {}
    opened: list[int] = []
    closed: set[int] = set()
    components: list[tuple[int, ...]] = []
    for root in range(len(transitions)):
        if root in entered:
            continue
        calls = [(root, iter(transitions[root]))]
        while calls:
            state, rest = calls[-1]
            if state not in entered:
                entered[state] = low[state] = len(entered)
                opened.append(state)
            for after in rest:
                if after not in entered:
                    calls.append((after, iter(transitions[after])))
                    break
                if after not in closed:
                    low[state] = min(low[state], entered[after])
            else:
                calls.pop()
                if calls:
                    low[calls[-1][0]] = min(low[calls[-1][0]], low[state])
                if low[state] == entered[state]:
                    component = [opened.pop()]
                    while component[-1] != state:
                        component.append(opened.pop())
                    closed.update(component)
                    components.append(tuple(sorted(component)))
    return components


def numbered(keys: Iterable[Key]) -> dict[Key, int]:
    """Different keys numbered from 0 in the order in which they come."""
    return {key: index for index, key in enumerate(dict.fromkeys(keys))}


def _classes(transitions: Transitions, accepting: set[int]) -> Mapping[int, int]:
    """The classes of states that accept the same words, numbered from 0 (Hopcroft's algorithm)."""
    letters = range(len(transitions[0]))
    sources: list[list[list[int]]] = [[[] for _ in transitions] for _ in letters]
    for state, row in enumerate(transitions):
        for letter, after in enumerate(row):
            sources[letter][after].append(state)
    members = [group for group in (accepting, set(range(len(transitions))) - accepting) if group]
    class_of = {state: name for name, group in enumerate(members) for state in group}
    waiting = {(name, letter) for name in range(len(members)) for letter in letters}
    while waiting:
        name, letter = waiting.pop()
        touched: dict[int, set[int]] = {}
        for after in members[name]:
            for state in sources[letter][after]:
                touched.setdefault(class_of[state], set()).add(state)
        for split, inside in touched.items():
            if len(inside) == len(members[split]):
                continue
            members[split] -= inside
            new = len(members)
            members.append(inside)
            for state in inside:
                class_of[state] = new
            for one in letters:
                # Either part may wait if the whole did not; the smaller one is cheaper.
                smaller = split if len(members[split]) < len(inside) else new
                waiting.add((new if (split, one) in waiting else smaller, one))
    return class_of
