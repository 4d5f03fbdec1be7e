"""Whether C-RASP can tell a regular language, with a program if it can and pairs of words if it cannot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lengthwise._checks import whole
from lengthwise._messages import shown
from lengthwise.automata.automaton import DFA
from lengthwise.automata.regex import compile_regex
from lengthwise.crasp.program import Mode
from lengthwise.crasp.regular.classes import is_aperiodic, is_r_o_g, is_r_trivial, transition_monoid
from lengthwise.crasp.regular.extraction import Extraction, extract
from lengthwise.crasp.regular.families import family
from lengthwise.crasp.regular.membership import inseparable, inseparable_last
from lengthwise.crasp.regular.positional import MOST_PERIOD, MOST_WINDOW, Search, search
from lengthwise.crasp.verdict import Verdict


@dataclass(frozen=True)
class Classes:
    """Where a regular language stands; None is unknown.

    - ``states``: of the minimal automaton; ``monoid``: the size of the syntactic monoid;
    - ``r_trivial``, ``r_o_g``, ``r_omega``, ``aperiodic``: the classes R, R o G, R^omega and A;
    - ``eos``, ``last``: in C-RASP without positions, under either acceptance;
    - ``positional``: in C-RASP[periodic,local]; if yes ``window`` and ``period`` suffice under "eos".
    """

    states: int
    monoid: int | None
    r_trivial: bool
    r_o_g: bool | None
    r_omega: bool | None
    aperiodic: bool | None
    eos: bool
    last: bool
    positional: bool | None
    window: int | None
    period: int | None


def decide(
    regex: str | DFA,
    alphabet: Sequence[str] | None = None,
    acceptance: Mode = "last",
    positional: bool = False,
    most_window: int = MOST_WINDOW,
    most_period: int = MOST_PERIOD,
) -> Verdict:
    """Whether a program of C-RASP accepts exactly the words of a regular language.

    - ``regex``: a regular expression (see ``compile_regex``) or an automaton; ``alphabet``: of the
      expression;
    - ``acceptance``: at the last letter ("last") or at an end marker ("eos"), as in ``Program``;
    - ``positional``: programs may use positions modulo a period and local counts. Without positions the
      answer is always known; with them it may be None, and ``details`` says which windows, up to
      ``most_window``, and periods, up to ``most_period``, were tried.

    The witness of a yes is a ``Program``; that of a no without positions is a ``Family`` of pairs of words.
    """
    if not isinstance(acceptance, str) or acceptance not in ("last", "eos"):
        raise ValueError(f"acceptance must be last or eos, got {shown(acceptance)}")
    whole(most_window, "most_window", 0)
    whole(most_period, "most_period", 1)
    dfa = minimal_automaton(regex, alphabet)
    return (
        _with_positions(dfa, acceptance, most_window, most_period)
        if positional
        else _without(dfa, acceptance)
    )


def classify(
    regex: str | DFA,
    alphabet: Sequence[str] | None = None,
    most_window: int = MOST_WINDOW,
    most_period: int = MOST_PERIOD,
) -> Classes:
    """The classes of a regular language."""
    dfa = minimal_automaton(regex, alphabet)
    monoid = transition_monoid(dfa)
    aperiodic = None if monoid is None else is_aperiodic(monoid)
    r_o_g = None if monoid is None else is_r_o_g(monoid)
    found = search(dfa, [dfa], most_window, most_period, monoid)
    return Classes(
        states=len(dfa.states),
        monoid=None if monoid is None else len(monoid),
        r_trivial=is_r_trivial(dfa),
        r_o_g=r_o_g,
        r_omega=None if r_o_g is None or aperiodic is None else r_o_g and aperiodic,
        aperiodic=aperiodic,
        eos=inseparable(dfa) is None,
        last=inseparable_last(dfa) is None,
        positional=found.answer,
        window=found.window,
        period=found.period,
    )


def minimal_automaton(regex: str | DFA, alphabet: Sequence[str] | None) -> DFA:
    """The minimal automaton of an expression over an alphabet, or of an automaton."""
    if not isinstance(regex, DFA):
        return compile_regex(regex, alphabet)
    if alphabet is not None and tuple(alphabet) != regex.alphabet:
        raise ValueError("an automaton has its own alphabet: leave alphabet out")
    return regex.minimal()


def _without(dfa: DFA, acceptance: Mode) -> Verdict:
    how = "potentials on the minimal automaton" + (" of each quotient" if acceptance == "last" else "")
    size: dict[str, Any] = {"states": len(dfa.states)}
    pairs = family(dfa, acceptance)
    if pairs is not None:
        return Verdict(False, pairs, how, size)
    found = extract(dfa, acceptance)
    assert found is not None, "what modulo 2^61 - 1 parts all states must do so over the rationals"
    return Verdict(True, found.program, how, size | _measures(found))


def _with_positions(dfa: DFA, acceptance: Mode, most_window: int, most_period: int) -> Verdict:
    quotients = [dfa.quotient(letter).minimal() for letter in dfa.alphabet]
    targets = [dfa] if acceptance == "eos" else quotients
    found = search(dfa, targets, most_window, most_period)
    details = {"states": len(dfa.states)} | search_details(found)
    if not found.answer or found.window is None or found.period is None:
        return Verdict(found.answer, None, found.method, details)
    made = extract(dfa, acceptance, found.window, found.period)
    assert made is not None, "what modulo 2^61 - 1 parts all states must do so over the rationals"
    return Verdict(True, made.program, found.method, details | _measures(made))


def _measures(found: Extraction) -> dict[str, Any]:
    return {"depth": found.program.depth, "rounds": found.rounds, "potentials": found.potentials}


def search_details(found: Search) -> dict[str, Any]:
    """What a search found and tried, by name."""
    return {
        "window": found.window,
        "period": found.period,
        "stability": found.stability,
        "idempotent": found.idempotent,
        "tried": found.tried,
        "too_large": found.skipped,
    }
