"""The words of an automaton: their number at each length, uniform draws, and what may follow a prefix.

Axes: B batch, N letters of a word, T = N + 1 prefixes of a word, the empty one first, Q states, S letters of
the alphabet. Letters and states are numbers, as in ``DFA.transitions``.
"""

from functools import lru_cache
from itertools import accumulate, pairwise

import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from lengthwise.automata.automaton import DFA

MOST_LETTERS = 20_000
"""Words are counted up to this length: their exact numbers have as many bits."""


@lru_cache(maxsize=64)
def word_counts(dfa: DFA, longest: int) -> tuple[tuple[int, ...], ...]:
    """How many words of k letters are accepted from state q, exactly: row k and column q, for k up to
    ``longest``.
    """
    if longest > MOST_LETTERS:
        raise ValueError(f"words of up to {MOST_LETTERS:,} letters are counted, got {longest:,}")
    if longest < 0:
        raise ValueError(f"words have at least 0 letters, got {longest}")
    row = tuple(int(state in dfa.accepting) for state in dfa.states)
    rows = [row]
    for _ in range(longest):
        row = tuple(sum(row[after] for after in successors) for successors in dfa.transitions)
        rows.append(row)
    return tuple(rows)


def word_lengths(dfa: DFA, low: int, high: int) -> tuple[int, ...]:
    """The lengths from ``low`` to ``high`` at which a word is accepted."""
    counts = word_counts(dfa, high)
    return tuple(length for length in range(max(low, 0), high + 1) if counts[length][dfa.start])


def next_sets(dfa: DFA) -> Bool[Tensor, "Q S_plus_one"]:
    """For each state the letters that some accepted word goes on with, and, in the last column, whether the
    state itself is accepting.
    """
    rows = [[*(after in dfa.live for after in dfa.transitions[q]), q in dfa.accepting] for q in dfa.states]
    return torch.tensor(rows)


def states_along(dfa: DFA, letters: Int[Tensor, "B N"]) -> Int[Tensor, "B T"]:
    """The states after all prefixes of some words."""
    transitions = torch.tensor(dfa.transitions, device=letters.device)
    states = [torch.full((len(letters),), dfa.start, device=letters.device)]
    for letter_B in letters.unbind(1):
        states.append(transitions[states[-1], letter_B])
    return torch.stack(states, 1)


def draw_words(
    dfa: DFA,
    lengths: Int[Tensor, "B"],
    chances: Float64[Tensor, "B N"],
    starts: Int[Tensor, "B"] | None = None,
) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B T"]]:
    """Words of these lengths, each uniform among all of its length that are accepted from where it starts,
    and the states along them.

    - ``lengths``: at most N, and such that there is a word (see ``word_lengths``); this is not checked, since
      to look would be to wait for the device;
    - ``chances``: independent uniform numbers from 0 to below 1, one a letter;
    - ``starts``: the state before each word, by default the automaton's.

    With k letters to go from state q, letter s has the probability c(k - 1, q s) / c(k, q), where c are the
    ``word_counts``; a word of length n then has the product of these, 1 / c(n, q). Each quotient is
    rounded once, from exact integers. Letters past the end of a word, and the states after them, have no
    meaning.
    """
    limits, transitions = _tables(dfa, chances.shape[1], chances.device)
    letters_NB = lengths.new_zeros(chances.shape[1], len(lengths))
    states_TB = lengths.new_empty(chances.shape[1] + 1, len(lengths))
    states_TB[0] = dfa.start if starts is None else starts
    # One step for all words at once: every letter depends on the one before it.
    for step, chance_B in enumerate(chances.mT.contiguous()):
        row_B = (lengths - step).clamp_min(0) * len(dfa.states) + states_TB[step]
        for limit in limits:
            letters_NB[step] += chance_B >= limit.index_select(0, row_B)
        place_B = states_TB[step] * len(dfa.alphabet) + letters_NB[step]
        states_TB[step + 1] = transitions.index_select(0, place_B)
    return letters_NB.mT, states_TB.mT


def sample_words(dfa: DFA, lengths: Int[Tensor, "B"], generator: torch.Generator) -> Int[Tensor, "B N"]:
    """Words of these lengths, each uniform among all accepted words of its length, on the generator's device;
    letters past the end of a word have no meaning.
    """
    longest = int(lengths.max()) if len(lengths) else 0
    missing = set(lengths.tolist()) - set(word_lengths(dfa, 0, longest))
    if missing:
        raise ValueError(f"there is no word of length {min(missing)}")
    shape, device = (longest, len(lengths)), generator.device
    chances = torch.rand(shape, dtype=torch.float64, generator=generator, device=device).mT
    return draw_words(dfa, lengths.to(device), chances)[0]


@lru_cache(maxsize=64)
def _tables(dfa: DFA, longest: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """For each letter but the last, in row k Q + q for k letters to go from state q, the number from which on
    a later letter is drawn; and the transitions, flat.
    """
    counts = word_counts(dfa, longest)
    never = [1.0] * (len(dfa.alphabet) - 1)
    limits = [never for _ in dfa.states]
    for fewer, total in pairwise(counts):
        for state, row in enumerate(dfa.transitions):
            up_to = accumulate(fewer[after] for after in row[:-1])
            limits.append([part / total[state] for part in up_to] if total[state] else never)
    rows = torch.tensor(limits, dtype=torch.float64, device=device).reshape(len(limits), len(never))
    return rows.mT.contiguous(), torch.tensor(dfa.transitions, device=device).flatten()
