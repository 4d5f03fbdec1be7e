"""Words that go everywhere in an automaton, with what it says of all their prefixes.

Axes: B word, N letters of a word, T = N + 1 prefixes of a word, the empty one first.
"""

from dataclasses import dataclass
from random import Random

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from lengthwise.automata import DFA, states_along
from lengthwise.automata.automaton import paths, strong_components
from lengthwise.crasp.batch import outputs
from lengthwise.crasp.learning.samples import longest
from lengthwise.crasp.learning.words import all_words
from lengthwise.crasp.program import Program

ALL_UP_TO = 2**11
"""All words are taken of the largest length with at most so many."""

LONG, RANDOM = 40, 96
"""The least length and the least number of the longer words."""

STAYING = 0.9
"""The chance that a longer word stays in its strongly connected component where it can."""


@dataclass(frozen=True)
class Walk:
    """Words of one length, the states along them, and which of their prefixes are accepted."""

    letters_BN: Int64[Tensor, "B N"]
    states_BT: Int64[Tensor, "B N+1"]
    labels_BN: Bool[Tensor, "B N"]

    def fits(self, program: Program) -> bool:
        """Whether a program is right on all prefixes but the empty one."""
        return torch.equal(outputs(program, self.letters_BN)["accept"], self.labels_BN)


def walks(dfa: DFA, seed: int) -> tuple[Walk, Walk]:
    """All words of a short length, and longer ones that begin with a shortest word to each state in turn."""
    letters, source = len(dfa.alphabet), Random(seed)
    ways = list(paths(dfa.transitions, dfa.start).items())
    component = {q: at for at, some in enumerate(strong_components(dfa.transitions)) for q in some}
    length = max(LONG, *(len(way) for _, way in ways))
    rows = []
    for number in range(max(RANDOM, len(ways))):
        state, way = ways[number % len(ways)]
        word = list(way)
        while len(word) < length:
            row = dfa.transitions[state]
            staying = [symbol for symbol in range(letters) if component[row[symbol]] == component[state]]
            inside = staying and source.random() < STAYING
            word.append(source.choice(staying if inside else range(letters)))
            state = row[word[-1]]
        rows.append(word)
    short = all_words(letters, longest(letters, ALL_UP_TO))
    return _along(dfa, short), _along(dfa, torch.tensor(rows))


def _along(dfa: DFA, letters_BN: Tensor) -> Walk:
    accepting = torch.tensor([state in dfa.accepting for state in dfa.states])
    states_BT = states_along(dfa, letters_BN)
    return Walk(letters_BN, states_BT, accepting[states_BT[:, 1:]])
