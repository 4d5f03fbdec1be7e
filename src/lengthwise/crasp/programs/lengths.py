"""How long must words be to tell programs apart?

The numbers are for an ideal learner: one that finds, among the hypotheses that agree with the truth on all
words up to a length, one of least complexity. If that length tells the truth from all hypotheses of at most
its complexity, what the learner finds is right on words of every length. Gradient descent is another matter.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lengthwise.crasp.program import Program
from lengthwise.crasp.programs import counts, phases
from lengthwise.crasp.programs.questions import difference, equivalent

CAVEAT = "This holds for an ideal learner of least complexity, not for gradient descent."


@dataclass(frozen=True)
class LengthBound:
    """A length of words that tells apart what is to be told apart.

    - ``number``: the length, or None where there is none to be given;
    - ``exact``: no smaller number would do (and with None, that there is nothing to be told apart);
    - ``words``: what this means, with its caveat.
    """

    number: int | None
    exact: bool
    words: str


def distinguishing_length(p: Program, q: Program, *, time_limit: float = 10.0) -> LengthBound:
    """The length of a shortest word that one of two programs accepts and the other does not.

    Exact if both programs are in C-RASP_1, or both in C-RASP_+, and the time is enough; for others it may be
    exact. If it is not found, the closed bound is given, where there is one.
    """
    verdict = equivalent(p, q, time_limit=time_limit)
    if verdict.answer:
        return _bound(None, True, "The programs accept the same words: no length tells them apart.")
    if verdict.answer is None:
        closed = closed_length(p, q)
        same = f"No difference was found on words of length {verdict.details['checked']} or less."
        return LengthBound(closed.number, False, f"{same} {closed.words}")
    number = verdict.details["length"]
    if verdict.details["shortest"]:
        return _bound(
            number, True, f"The programs differ on a word of length {number}, and on no shorter one."
        )
    return _bound(
        number,
        False,
        f"The programs differ on a word of length {number}, and on none of length "
        f"{verdict.details['checked']} or less; of the lengths between this is not known.",
    )


def closed_length(p: Program, q: Program) -> LengthBound:
    """A number such that two programs that differ differ on a word of at most this length, by a formula.

    For two programs of C-RASP_1, or two of C-RASP_+; see ``counts.length_bound``, ``phases.length_bound``.
    """
    either = difference(p, q)
    bounds = [
        bound for bound in (counts.length_bound(either), phases.length_bound(either)) if bound is not None
    ]
    if bounds:
        number = min(bounds)
        return _bound(number, False, f"If the programs differ, then on a word of length {number} or less.")
    if counts.applies(either) or phases.applies(either):
        return _bound(None, False, "For these programs we know no formula, but the length can be computed.")
    return _bound(
        None,
        False,
        "None: with nested counts and mixed signs no length can be computed that is always enough.",
    )


def hypotheses_length(p: Program, others: Iterable[Program], *, time_limit: float = 10.0) -> LengthBound:
    """The least length that tells a program from each of a list of others that is not equivalent to it.

    ``time_limit`` is for each of them.
    """
    found = [distinguishing_length(p, other, time_limit=time_limit) for other in others]
    numbers = [bound.number for bound in found if bound.number is not None]
    if any(bound.number is None and not bound.exact for bound in found):
        return _bound(None, False, "None: for one of the hypotheses no length was found.")
    if not numbers:
        return _bound(None, True, "All hypotheses accept the same words: no length tells them apart.")
    exact = all(bound.exact for bound in found)
    number = max(numbers)
    least = ", and no shorter length is enough" if exact else ""
    said = f"Every hypothesis that differs does so on a word of length {number} or less{least}."
    return _bound(number, exact, said)


def automaton_length(states: int) -> LengthBound:
    """2n - 2: two deterministic complete automata of at most n states that differ do so on such a word.

    Words up to length k sort the 2n states of both into classes; as long as some states of one class differ
    in what they accept, words of length k + 1 make more classes, and words of length 0 make two, if any do.
    So 2n classes, the most, are reached at 2n - 2. No less is enough: over one letter, the automaton that
    counts modulo n and accepts n - 1, and the one that goes back from n - 1 to 1 instead of 0, agree on all
    words shorter than this.
    """
    if states < 1:
        raise ValueError(f"an automaton has at least one state, got {states}")
    number = 2 * states - 2
    said = f"Two automata of at most {states} states that differ do so on a word of length {number} or less."
    return _bound(number, True, said)


def size_length(size: int) -> LengthBound:
    """2^(c + 1) + 2c + 2: two programs of C-RASP_+ of at most size c that differ do so on such a word.

    From ``phases.length_bound``: a constant of b bits makes a threshold of at most 2^b; those of one program
    add up to at most 2^c + c.
    """
    if size < 1:
        raise ValueError(f"a program has at least size 1, got {size}")
    number = 2 ** (size + 1) + 2 * size + 2
    return _bound(
        number,
        False,
        f"Two programs of C-RASP_+ of size {size} or less that differ do so on a word of length {number} or "
        "less.",
    )


def _bound(number: int | None, exact: bool, said: str) -> LengthBound:
    return LengthBound(number, exact, said if number is None else f"{said} {CAVEAT}")
