"""Proofs that a program accepts exactly the words of an automaton: induction along the states.

For every state q of the automaton an invariant I_q of the program's memory is sought: of its counts, of what
its local counts look back at, and of the phase. If I_q holds of the memory after the empty word for the
first state, if a letter s that leads from q to q s takes memories of I_q to memories of I_(q s), and if in a
memory of I_q the program accepts with the letter s just where q s accepts, then the two agree on all words,
but for the empty one, which is looked at by itself.

The invariants are guessed from words. A situation is what is looked back at, which counts are 0, and the
phase. Guessed are, for each situation that was met in a state,

- every linear equation that holds between the counts there;
- that a count, or the sum of counts in a comparison of the program, is at least, or at most, what it was
  there, if longer words did not change it;
- and that the state has no other situations.

Guesses that a letter does not keep are dropped until all that are left are kept (Houdini, Flanagan and Leino
2001). Not to find a proof says nothing.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lengthwise.automata import DFA
from lengthwise.crasp.batch import node_values
from lengthwise.crasp.learning.walks import Walk
from lengthwise.crasp.nodes import Ge
from lengthwise.crasp.program import Program
from lengthwise.crasp.programs.arithmetic import (
    Truth,
    all_of,
    any_of,
    checked,
    holds,
    new_solver,
    one_letter,
    opposite,
    same,
    told,
    weighted,
)
from lengthwise.crasp.programs.outcome import Clock
from lengthwise.crasp.programs.transition import State, System, named
from lengthwise.crasp.regular.linear import Relations, primitive

MOST_SITUATIONS = 400
"""No proof is tried with more."""

Situation = tuple[int, ...]
"""The values that are looked back at, those of each formula newest first; for each count whether it is
positive; and the phase.
"""


@dataclass(frozen=True)
class Fact:
    """In a situation, coefficients times counts and a constant add up to at least 0, or to 0."""

    situation: Situation
    equal: bool
    coefficients: tuple[int, ...]
    constant: int


@dataclass
class Invariant:
    """What is guessed of a state: one of the situations, and all facts."""

    situations: list[Situation]
    facts: list[Fact]


def follows(program: Program, dfa: DFA, words: Sequence[Walk], clock: Clock) -> bool:
    """Whether a proof was found that a program under "last" accepts just the words that an automaton does.

    ``words``, which must lead to all states, are what the invariants are guessed from.
    """
    assert program.mode == "last"
    if program.empty != (dfa.start in dfa.accepting):
        return False
    system = System(program)
    guesses = _guesses(system, words)
    if sum(len(guess.situations) for guess in guesses.values()) > MOST_SITUATIONS:
        return False
    return _Induction(system, dfa, guesses, clock).succeeds()


class _Induction:
    """The memories before a letter and after it, for a solver."""

    def __init__(self, system: System, dfa: DFA, guesses: dict[int, Invariant], clock: Clock) -> None:
        self._dfa, self._guesses, self._clock = dfa, guesses, clock
        self._before, facts = system.unknown("s")
        self._after: list[State] = []
        self._accepted: list[Truth] = []
        self._solvers: list[Any] = []
        for letter in dfa.alphabet:
            tests = one_letter(letter, dfa.alphabet)
            after, names = named(system.step(self._before, tests), "t")
            solver = new_solver()
            told(solver, *facts, *names)
            self._solvers.append(solver)
            self._after.append(after)
            self._accepted.append(system.holds(self._before, tests))

    def succeeds(self) -> bool:
        """Whether the guesses that are kept suffice."""
        edges = [(state, symbol) for state in self._dfa.states for symbol in range(len(self._dfa.alphabet))]
        waiting = deque(edges)
        while waiting:
            state, symbol = waiting.popleft()
            dropped = self._dropped(state, symbol)
            if dropped is None:
                return False
            if dropped:
                after = self._dfa.transitions[state][symbol]
                again = [edge for edge in edges if edge[0] == after and edge not in waiting]
                waiting.extend(again)
        return all(self._agrees(state, symbol) for state, symbol in edges)

    def _dropped(self, state: int, symbol: int) -> bool | None:
        """Drop what is guessed of the next state and a letter does not keep; whether there was such a guess.
        None if a situation comes up that was not met, or if the time is over.
        """
        solver, after = self._solvers[symbol], self._after[symbol]
        guess = self._guesses[self._dfa.transitions[state][symbol]]
        solver.push()
        try:
            told(solver, self._guessed(state))
            if self._possible(solver, opposite(_among(guess.situations, after))) is not False:
                return None
            dropped = False
            claims = {fact: _claim(fact, after) for fact in guess.facts}
            while claims:
                broken = self._possible(solver, any_of(opposite(claim) for claim in claims.values()))
                if broken is None:
                    return None
                if broken is False:
                    break
                claims = {fact: claim for fact, claim in claims.items() if holds(broken, claim)}
                dropped = True
            guess.facts = list(claims)
            return dropped
        finally:
            solver.pop()

    def _agrees(self, state: int, symbol: int) -> bool:
        """Whether the program accepts with a letter, in all memories of a state, just where the automaton
        does.
        """
        accepts = self._dfa.transitions[state][symbol] in self._dfa.accepting
        wrong = all_of([self._guessed(state), opposite(same(self._accepted[symbol], accepts))])
        return self._possible(self._solvers[symbol], wrong) is False

    def _guessed(self, state: int) -> Truth:
        guess = self._guesses[state]
        claims = (_claim(fact, self._before) for fact in guess.facts)
        return all_of([_among(guess.situations, self._before), *claims])

    def _possible(self, solver: Any, formula: Truth) -> Any:
        """A model in which a formula holds; False if there is none, None if the time is over first."""
        solver.push()
        told(solver, formula)
        answer = checked(solver, self._clock)
        found = solver.model() if answer else answer
        solver.pop()
        return found


def _among(situations: Sequence[Situation], state: State) -> Truth:
    return any_of(_is(situation, state) for situation in situations)


def _is(situation: Situation, state: State) -> Truth:
    values = [value for ring in state.rings.values() for value in ring]
    values += [count >= 1 for count in state.counts.values()]
    *seen, phase = situation
    tests = [same(value, bool(one)) for value, one in zip(values, seen, strict=True)]
    return all_of([*tests, state.phase == phase])


def _claim(fact: Fact, state: State) -> Truth:
    terms = [(count, a) for count, a in zip(state.counts.values(), fact.coefficients, strict=True) if a]
    total = weighted(terms, fact.constant)
    return any_of([opposite(_is(fact.situation, state)), total == 0 if fact.equal else total >= 0])


def _guesses(system: System, words: Sequence[Walk]) -> dict[int, Invariant]:
    """What the words show of each state."""
    rows = np.concatenate([_memories(system, walk) for walk in words])
    width = len(system.counts)
    forms = _forms(system)
    guesses: dict[int, Invariant] = {}
    keys, which = np.unique(rows[:, : -1 - width], axis=0, return_inverse=True)
    for place, (state, *situation) in enumerate(keys.tolist()):
        here = rows[which.reshape(-1) == place, -1 - width :]
        guess = guesses.setdefault(state, Invariant([], []))
        guess.situations.append(tuple(situation))
        guess.facts += _facts(tuple(situation), here[:, :-1], here[:, -1], forms)
    return guesses


def _memories(system: System, walk: Walk) -> np.ndarray:
    """A row for every prefix of every word: state, situation, counts, length."""
    found = node_values([*system.counts, *system.reach], walk.letters_BN, system.program.alphabet)
    words, length = walk.letters_BN.shape
    times = np.broadcast_to(np.arange(length + 1), (words, length + 1))
    columns = [walk.states_BT.numpy()]
    for node, reach in system.reach.items():
        columns += [_earlier(found[node].numpy(), back) for back in range(reach)]
    counts = [_earlier(found[node].numpy(), 0) for node in system.counts]
    columns += [count > 0 for count in counts]
    columns += [times % system.program.period, *counts, times]
    return np.unique(np.stack(columns, -1).reshape(-1, len(columns)).astype(np.int64), axis=0)


def _earlier(values: np.ndarray, back: int) -> np.ndarray:
    """What a node was so many letters before the end of each prefix, 0 before the first letter."""
    words, length = values.shape
    found = np.zeros((words, length + 1), dtype=np.int64)
    found[:, 1 + back :] = values[:, : max(0, length - back)]
    return found


def _forms(system: System) -> list[tuple[int, ...]]:
    """Sums of counts, as coefficients: each count, and those in the comparisons of the program."""
    place = {node: at for at, node in enumerate(system.counts)}
    forms = {tuple(int(one == at) for one in range(len(place))) for at in range(len(place))}
    for node in system.program.nodes:
        if isinstance(node, Ge):
            form = [0] * len(place)
            for one, alpha in node.terms:
                if one in place:
                    form[place[one]] += alpha
            forms.add(tuple(form))
    return sorted(form for form in forms if any(form))


def _facts(
    situation: Situation, counts: np.ndarray, lengths: np.ndarray, forms: Sequence[tuple[int, ...]]
) -> list[Fact]:
    """What holds of all counts that were met in a situation."""
    facts = [Fact(situation, True, row[:-1], row[-1]) for row in _equations(counts)]
    early = lengths <= np.median(lengths)
    for form in forms:
        values = counts @ np.array(form)
        low, high = int(values.min()), int(values.max())
        if low == high:
            continue  # an equation
        if values[early].min() == low:
            facts.append(Fact(situation, False, form, -low))
        if values[early].max() == high:
            facts.append(Fact(situation, False, tuple(-alpha for alpha in form), high))
    return facts


def _equations(counts: np.ndarray) -> list[tuple[int, ...]]:
    """Linear equations that span all that hold: rows of coefficients and a constant whose sum with every row
    of counts, and 1, is 0.
    """
    rows = np.unique(np.concatenate([counts, np.ones((len(counts), 1), dtype=np.int64)], 1), axis=0)
    known = Relations(None)  # between the coefficients: a row of counts is one
    while True:
        spanned = _solutions(known, rows.shape[1])
        broken = np.flatnonzero((rows @ np.array(spanned).reshape(-1, rows.shape[1]).T).any(axis=1))
        if not len(broken):
            return spanned
        known.add({at: int(value) for at, value in enumerate(rows[broken[0]]) if value})


def _solutions(known: Relations, width: int) -> list[tuple[int, ...]]:
    """A basis of the solutions of linear relations, in whole numbers."""
    found = []
    for free in range(width):
        if free not in known.bound:
            row = {free: 1} | {at: value[free] for at, value in known.bound.items() if free in value}
            whole = primitive(row)
            found.append(tuple(whole.get(at, 0) for at in range(width)))
    return found
