"""Whether a regular language is in C-RASP: its minimal automaton decides.

The language is in C-RASP, accepting at an end marker ("eos"), if and only if potentials (see
``potentials``) part all states of every strongly connected component of the minimal automaton: a program
can then follow the state, while other sums of counts grow around some cycle, and repeating that cycle
drowns them. It is in C-RASP, accepting at the last letter ("last"), if and only if for every letter a the
words u with ua in the language form a language that is in C-RASP under "eos". (The criterion is that of the
theory of C-RASP and regular languages, arXiv 2608.13433, Appendix J; that linear algebra replaces its
enumeration of cycles is derived here.)
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from lengthwise.automata.automaton import DFA, Transitions, numbered, strong_components
from lengthwise.crasp.regular.potentials import edges_inside, merged, stable_blocks, together


@dataclass(frozen=True)
class Inseparable:
    """Two states of one strongly connected component that no potentials part."""

    component: tuple[int, ...]
    pair: tuple[int, int]


def inseparable(dfa: DFA) -> Inseparable | None:
    """Why the language of a minimal automaton is not in C-RASP under "eos"; None if it is.

    A pair that is found is confirmed over the rationals. That there is none is computed modulo 2^61 - 1; the
    potentials from which a program is made confirm it over the rationals.
    """
    return inseparable_tagged(dfa.transitions, [0] * len(dfa.transitions))


def inseparable_last(dfa: DFA) -> tuple[str, Inseparable] | None:
    """Why the language is not in C-RASP under "last": a letter, and two states of the minimal automaton of
    the words that the letter completes to words of the language. None if it is.
    """
    for letter in dfa.alphabet:
        found = inseparable(dfa.quotient(letter).minimal())
        if found is not None:
            return letter, found
    return None


def inseparable_tagged(transitions: Transitions, tags: Sequence[Hashable]) -> Inseparable | None:
    """Two states in one component, with equal tags, that no potentials part, where states of different tags
    are apart from the start. None if there are none.
    """
    for component in strong_components(transitions):
        if len(component) == 1:
            continue
        number = numbered(tags[state] for state in component)
        blocks = {state: number[tags[state]] for state in component}
        edges = edges_inside(component, transitions)
        pair = merged(edges, blocks) or together(stable_blocks(edges, blocks))
        if pair is not None:
            return Inseparable(component, pair)
    return None
