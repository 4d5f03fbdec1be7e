"""Programs whose counts count letters: whether some word is accepted, exactly, with a shortest one.

In C-RASP_1 a count counts positions whose letter is one of some, and comparisons are evaluated once, at the
end. So a word matters only through its last letter and through how many n_a of each letter a it has, and any
order is as good as any other. Acceptance is a formula of linear integer arithmetic in the n_a.

The same holds with positions modulo m, and with counts over distances at the end, as long as what is counted
knows only the letter and the phase at its own position. With N positions in all,

- n(a, r) is the number of positions that are r modulo m and have the letter a; the n(a, r) of one r add up to
  the number of positions up to N that are r modulo m;
- the last letters, as many as the largest distance tells, are unknowns; n(a, r) is at least the number of
  those at positions that are r modulo m. All other letters may stand in any order.

Under "eos" the position after the end is one more, with no letter.

This is the encoding of C-RASP_1 in linear arithmetic; that positions fit into it too is our observation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt
from typing import Any

from lengthwise.crasp.nodes import Bool, Count, Ge, Mod, Node, Sym
from lengthwise.crasp.program import Program
from lengthwise.crasp.programs.arithmetic import (
    Integer,
    Truth,
    all_of,
    any_of,
    checked,
    down_to,
    exactly_one,
    holds,
    least,
    new_solver,
    no_letter,
    number,
    one_letter,
    same,
    told,
    values,
    weighted,
    where,
    z3_module,
)
from lengthwise.crasp.programs.outcome import Blocks, Clock, Outcome, joined

MOST_CASES = 4000
"""Letters times the period times the distances that are looked back are at most so many."""


def applies(program: Program) -> bool:
    """Whether counts, except indicators, are of formulas without comparisons (and the period is not huge)."""
    cases = len(program.alphabet) * program.period * (program.locality + 1)
    return cases <= MOST_CASES and all(one.operand.rank == 0 for one in program.counts)


def search(program: Program, clock: Clock) -> Outcome:
    """A shortest word that is accepted, or the proof that there is none."""
    assert applies(program)
    solver = new_solver()
    word = _unknown_word(program)
    told(solver, *word.facts)
    given = _at_end(program, word)
    root = program.root()
    told(solver, values(down_to([root], given), given)[root])
    answer = checked(solver, clock)
    if not answer:
        return Outcome(none=answer is False)
    model, shortest = least(solver, word.total, 1, clock)
    return Outcome(_arranged(program, word, model), shortest)


@dataclass(frozen=True)
class _Word:
    """A word by its numbers of letters: see the module.

    - ``total``: N; ``phases``: whether N is r modulo m;
    - ``amounts``: n(a, r); the letter None is that of the position after the end;
    - ``window``: whether the letter so far back from the end is a; ``facts``: what ties these together.
    """

    total: Integer
    phases: list[Truth]
    amounts: dict[tuple[str | None, int], Integer]
    window: list[dict[str | None, Truth]]
    facts: list[Truth]


def _unknown_word(program: Program) -> _Word:
    z3 = z3_module()
    period, alphabet = program.period, program.alphabet
    facts: list[Truth] = []
    phases: list[Truth] = [True] if period == 1 else [z3.Bool(f"N={r}") for r in range(period)]
    if period > 1:
        facts.append(exactly_one(phases))
    cycles = z3.Int("cycles")
    total = weighted([(cycles, period), *((where(phase, r), 1) for r, phase in enumerate(phases))])
    facts += [cycles >= 0, total >= 1]

    window: list[dict[str | None, Truth]] = []
    for back in range(program.locality + 1):
        if program.mode == "eos" and back == 0:
            window.append({**dict.fromkeys(alphabet, False), None: True})
            continue
        here = {letter: z3.Bool(f"w{back}={index}") for index, letter in enumerate(alphabet)}
        # Where the word is too short there is no letter, and so none of them.
        some = any_of(here.values())
        facts += [same(some, total >= back + 1), z3.AtMost(*here.values(), 1) if len(here) > 1 else True]
        window.append({**here, None: False})

    amounts: dict[tuple[str | None, int], Integer] = {}
    later: Truth = False
    for r, phase in reversed(list(enumerate(phases))):
        # One position of phase r in each cycle, and one more where N is at least r modulo m.
        later = any_of([phase, later])
        there = weighted([(cycles, 1), (where(later, 1) if r else 0, 1)])
        amounts[None, r] = where(phase, 1) if program.mode == "eos" else 0
        for index, letter in enumerate(alphabet):
            amounts[letter, r] = amount = z3.Int(f"n{index},{r}")
            # The position so far back from N is r where N is r plus as much, modulo m.
            seen = [
                where(all_of([here[letter], phases[(r + back) % period]]), 1)
                for back, here in enumerate(window)
            ]
            facts += [amount >= 0, amount >= weighted((one, 1) for one in seen)]
        facts.append(weighted((amounts[letter, r], 1) for letter in (*alphabet, None)) == there)
    return _Word(total, phases, amounts, window, facts)


def _at_end(program: Program, word: _Word) -> dict[Node, Any]:
    """The values of counts and of tests for letters and phases at the last position."""
    period = program.period
    given: dict[Node, Any] = {}
    for node in program.nodes:
        if isinstance(node, Sym):
            given[node] = word.window[0][node.letter]
        elif isinstance(node, Mod):
            given[node] = any_of(word.phases[node.residue :: node.modulus])
    for one in program.counts:
        table = _table(program, one.operand)
        if one.distances is None:
            given[one] = weighted((amount, 1) for key, amount in word.amounts.items() if table[key])
        else:
            seen = (
                any_of(
                    all_of([word.window[back][letter], phase])
                    for r, phase in enumerate(word.phases)
                    for letter in word.window[back]
                    if table[letter, (r - back) % period]
                )
                for back in one.distances
            )
            given[one] = weighted((where(each, 1), 1) for each in seen)
    return given


def _table(program: Program, operand: Bool) -> dict[tuple[str | None, int], bool]:
    """Whether a formula without comparisons holds, by letter and phase."""
    syms = {letter: one_letter(letter, program.alphabet) for letter in program.alphabet}
    found: dict[tuple[str | None, int], bool] = {}
    order = down_to([operand], ())
    for letter in (*program.alphabet, None):
        tests = no_letter(program.alphabet) if letter is None else syms[letter]
        for r in range(program.period):
            phase = {n: r % n.modulus == n.residue for n in order if isinstance(n, Mod)}
            found[letter, r] = values(order, {**tests, **phase})[operand]
    return found


def _arranged(program: Program, word: _Word, model: Any) -> Blocks:
    """A word with the numbers of letters that the model says."""
    period, total = program.period, number(model, word.total)
    left = {key: number(model, amount) for key, amount in word.amounts.items()}
    end: list[str] = []
    for back, here in enumerate(word.window):
        for letter in program.alphabet:
            if holds(model, here[letter]):
                end.insert(0, letter)
                left[letter, (total - back) % period] -= 1
    # Position i is number (i - 1) // m of its phase; phases r from 1 on come first.
    runs = [
        [(letter, left[letter, r % period]) for letter in program.alphabet if left[letter, r % period]]
        for r in range(1, period + 1)
    ]
    blocks: list[tuple[list[str], int]] = []
    while all(runs):
        times = min(run[0][1] for run in runs)
        blocks.append(([run[0][0] for run in runs], times))
        for run in runs:
            letter, amount = run[0]
            run[:1] = [(letter, amount - times)] if amount > times else []
    rest = [run[0][0] for run in runs if run]
    return joined([*blocks, (rest, 1), (end, 1)])


def length_bound(program: Program) -> int | None:
    """If a program of C-RASP_1 accepts a word that is not empty, it accepts one of at most this length.

    Fix the last letter l, whether each of the r comparisons holds, and substitute n_l = 1 + n'_l. What is
    left is A n - s = b with n, s >= 0, one row for each comparison, with a slack s. An integer solution is a
    point of the convex hull of vertices, plus at most k rays with coefficients >= 0, for k letters; without
    the whole parts of these it is still one. Entries of vertices and of integer rays are at most the largest
    minor of (A | -I | b), which is at most the product of max(1, |row of (A | b)|) (Hadamard). So
    n_a <= (k + 1) times this product, and the length is at most 1 + k (k + 1) times it.

    None for programs of other fragments.
    """
    if program.fragment != "C-RASP_1":
        return None
    comparisons = [node for node in program.nodes if isinstance(node, Ge)]
    if not comparisons:
        return 1
    tables = {
        node: {letter: holds for (letter, _), holds in _table(program, node.operand).items()}
        for node in program.nodes
        if isinstance(node, Count)
    }
    squares = 1
    for node in comparisons:
        squares *= max(1, _squared_norm(node, program, tables))
    letters = len(program.alphabet)
    ends = 0 if program.mode == "eos" else 1
    return ends + letters * (letters + 1) * isqrt(squares)


def _squared_norm(node: Ge, program: Program, tables: Mapping[Count, Mapping[str | None, bool]]) -> int:
    """The square of the length of a row, at most over all last letters and both truth values."""
    totals = [(one, alpha) for one, alpha in node.terms if one.distances is None]
    row = {
        letter: sum(alpha for one, alpha in totals if tables[one][letter])
        for letter in (*program.alphabet, None)
    }
    most = 0
    for last in [None] if program.mode == "eos" else program.alphabet:
        held = sum(alpha for one, alpha in node.terms if one.distances and tables[one][last])
        constant = node.constant + row[last] + held
        most = max(most, constant**2, (constant + 1) ** 2)
    return most + sum(row[letter] ** 2 for letter in program.alphabet)
