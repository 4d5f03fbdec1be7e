"""Is a program's language empty, is it included in another's, are two equal?

Each question is one about emptiness: p is not included in q if "p and not q" holds at the end of some word,
and p and q are not equivalent if "p xor q" does. What can be decided depends on the form of that formula:

- counts of letters alone (C-RASP_1, also with positions): always, with a shortest word (``counts``);
- counted comparisons that change at most once (C-RASP_+): always, with a shortest word (``phases``);
- all others: no method decides all of them. A word is searched for (``positions``, ``runs``), and a proof
  that there is none (``induction``); if neither is found in time, the answer is None.

The answer is True or False only where it is proved; every word is evaluated again before it is returned. A
verdict's ``details`` are, where they apply,

- ``length`` of the witness, and whether it is known to be ``shortest``; ``accepted_by`` "first" or "second";
- ``checked``: no witness has at most so many letters; ``runs``: none has at most so many runs (see ``runs``);
- ``words``: how many random words were tried; ``phases``: see ``phases``;
- ``k`` and ``invariants``: see ``induction``.
"""

from collections.abc import Callable
from typing import Any

from lengthwise.crasp.builder import Formula
from lengthwise.crasp.nodes import FALSE, Bool, conjunction, disjunction, negation
from lengthwise.crasp.program import Program
from lengthwise.crasp.programs import counts, induction, phases, positions, runs
from lengthwise.crasp.programs.outcome import Clock, Outcome, accepted, length, shown
from lengthwise.crasp.verdict import Verdict

FEW_WORDS, MANY_WORDS = 2**10, 2**14
"""All words are tried of lengths with at most so many words: first, and after other methods have failed."""


def empty(p: Program, *, time_limit: float = 10.0) -> Verdict:
    """Whether p accepts no word; if it accepts one, the witness is such a word. Times are in seconds."""
    clock = Clock(time_limit)
    _check_acceptor(p)
    outcome, method = _decide(p, clock)
    assert outcome.blocks is None or accepted(p, outcome.blocks)
    return _verdict(outcome, method)


def included(p: Program, q: Program, *, time_limit: float = 10.0) -> Verdict:
    """Whether q accepts every word that p accepts; if not, the witness is one that only p accepts."""
    clock = Clock(time_limit)
    _check_comparable(p, q)
    outcome, method = _decide(_asked(p, _and_not(p, q), p.empty and not q.empty), clock)
    blocks = outcome.blocks
    assert blocks is None or (accepted(p, blocks) and not accepted(q, blocks))
    return _verdict(outcome, method)


def equivalent(p: Program, q: Program, *, time_limit: float = 10.0) -> Verdict:
    """Whether p and q accept the same words; if not, the witness is one that exactly one of them accepts."""
    clock = Clock(time_limit)
    outcome, method = _decide(difference(p, q), clock)
    if outcome.blocks is None:
        return _verdict(outcome, method)
    first, second = accepted(p, outcome.blocks), accepted(q, outcome.blocks)
    assert first != second
    return _verdict(outcome, method, accepted_by="first" if first else "second")


def difference(p: Program, q: Program) -> Program:
    """The program that accepts the words that exactly one of two programs accepts."""
    _check_comparable(p, q)
    return _asked(p, disjunction((_and_not(p, q), _and_not(q, p))), p.empty != q.empty)


def _check_acceptor(p: Program) -> None:
    if p.accept is None:
        raise ValueError("this program predicts symbols: only programs that accept words can be compared")


def _check_comparable(p: Program, q: Program) -> None:
    _check_acceptor(p)
    _check_acceptor(q)
    if set(p.alphabet) != set(q.alphabet):
        one, other = " ".join(p.alphabet), " ".join(q.alphabet)
        raise ValueError(f"the alphabets differ ({one} and {other}): give both programs the same letters")
    if p.mode != q.mode:
        raise ValueError(f"the modes differ ({p.mode} and {q.mode}): give both programs the same mode")


def _and_not(p: Program, q: Program) -> Bool:
    return conjunction((p.root(), negation(q.root())))


def _asked(p: Program, differ: Bool, empty_word: bool) -> Program:
    """The program that accepts the words in question."""
    return Program(p.alphabet, Formula(differ), mode=p.mode, accepts_empty=empty_word)


def _verdict(outcome: Outcome, method: str, **more: Any) -> Verdict:
    blocks = outcome.blocks
    if blocks is None:
        return Verdict(True if outcome.none else None, None, method, outcome.details)
    details = {**outcome.details, "length": length(blocks), "shortest": outcome.shortest, **more}
    return Verdict(False, shown(blocks), method, details)


def _decide(program: Program, clock: Clock) -> tuple[Outcome, str]:
    """Whether a program accepts some word, and how that was found."""
    if program.mode == "last" and program.empty:
        return Outcome((), shortest=True), "the empty word"
    if program.root() is FALSE:
        return Outcome(none=True), "the formula is never true"
    exact = counts if counts.applies(program) else phases if phases.applies(program) else None
    outcome = positions.exhaustive(program, clock.share(0.2), FEW_WORDS)
    if outcome.blocks is not None:
        return outcome, "all short words"
    details = outcome.details
    if exact is not None:
        found = exact.search(program, clock.share(0.7))
        details = {**details, **found.details}
        if found.none or found.blocks is not None:
            method = "counts of letters, exact" if exact is counts else "phases, exact"
            return Outcome(found.blocks, found.shortest, found.none, details), method
    return _searched(program, details, clock)


def _searched(program: Program, details: dict[str, Any], clock: Clock) -> tuple[Outcome, str]:
    """A word, or a proof that there is none, where no method is sure to find one of them."""
    attempts: list[tuple[str, Callable[[int], Outcome]]] = [
        ("k-induction", lambda short: induction.prove(program, clock.share(0.3), short)),
        ("all short words", lambda short: positions.exhaustive(program, clock.share(0.2), MANY_WORDS, short)),
        ("words of few runs", lambda short: runs.search(program, clock.share(0.5))),
        ("random words", lambda short: positions.mutated(program, clock.share(0.2))),
        ("letter by letter", lambda short: positions.unrolled(program, clock, short)),
    ]
    if not runs.applies(program):
        del attempts[2]
    details = dict(details)
    for method, attempt in attempts:
        if clock.over():
            break
        found = attempt(details["checked"])
        details |= found.details
        if found.none or found.blocks is not None:
            first = found.blocks is not None and length(found.blocks) == details["checked"] + 1
            return Outcome(found.blocks, found.shortest or first, found.none, details), method
    return Outcome(details=details), "no method decided in time"
