"""Programs extracted from automata against the automata; families of words against programs."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from crasp_checks_common import Progress, agree, helper, over
from hypothesis import strategies as st

from lengthwise.crasp import DFA, Family, PowerWord, Program, Q, count, decide, evaluate_power, text_of
from lengthwise.crasp.builder import number
from lengthwise.crasp.program import Mode

languages = helper("regular_languages")
families = helper("test_crasp_families")
fragments = helper("crasp_fragments")

LONGEST = {1: 14, 2: 12, 3: 8, 4: 6, 5: 5}
"""Up to which length all words are compared, by the number of letters."""

MODES: tuple[Mode, Mode] = ("eos", "last")
LARGEST, LOOP = 60, 1200
"""Families are tried with c at most so large, and loops of at most so many letters."""

FOR_EVER = 10**9

Formula = tuple[int, str, Any]
"""Number of letters, mode and a formula, as the tests draw them."""


@dataclass(frozen=True)
class Outside:
    """A language that is not in C-RASP, and a family of pairs of words that shows it."""

    dfa: DFA
    mode: Mode
    family: Family

    @property
    def large(self) -> list[int]:
        """The two largest c that are tried; none if loops get too long for it to mean much."""
        found = self.family.loop
        short = [c for c in range(1, LARGEST) if sum(len(word) * times for word, times in found(c)) <= LOOP]
        return short[-2:] if len(short) >= 6 else []


def regular(*, quick: bool) -> Progress:
    """The table of languages and random ones: every yes by its program, every no by its family."""
    told = Progress("regular")
    formulas = fragments.recipes(fragments.of_any_sign)

    def check(dfa: DFA, drawn: Formula) -> None:
        for outside in compare_decisions(dfa, told):
            compare_program(outside, drawn, told)

    table = [one for row in languages.TABLE.values() for one in compare_decisions(row[0], told)]

    def check_table(outside: Outside, drawn: Formula) -> None:
        compare_program(outside, drawn, told)

    over(40 if quick else 1000, check_table, st.sampled_from(table), formulas)
    over(60 if quick else 2000, check, languages.recipes().map(languages.automaton), formulas)
    return told


def compare_decisions(dfa: DFA, told: Progress) -> list[Outside]:
    """Every yes comes with a program for the language, and every no with a family, which are returned."""
    found: list[Outside] = []
    for mode in MODES:
        plain = decide(dfa, acceptance=mode)
        if plain.answer:
            compare_language(plain.witness, dfa, told)
        else:
            found.append(Outside(dfa, mode, plain.witness))
            compare_family(found[-1], told)
            wide = decide(dfa, acceptance=mode, positional=True, most_window=2)
            if wide.answer:
                compare_language(wide.witness, dfa, told)
    told.add("languages")
    return found


def compare_language(program: Program, dfa: DFA, told: Progress) -> None:
    """A program and an automaton agree on all short words."""
    letters, longest = len(dfa.alphabet), LONGEST[len(dfa.alphabet)]
    agree(languages.same_language(program, dfa, longest), dfa, text_of(program))
    told.add("programs extracted")
    told.add("words", sum(letters**length for length in range(longest + 1)))


def compare_family(outside: Outside, told: Progress) -> None:
    """The labels of every pair differ, and loops are what they should be. Programs made for the loop of a
    small c, which tell its pairs apart for ever, give both words the same answer when c and N are large.
    """
    families.check_labels(outside.dfa, outside.family)
    if outside.mode == "eos":
        families.check_loops(outside.dfa, outside.family)
    told.add("families")
    # One loop alone is u(c) for every c: no program may be made for it.
    agree(len(outside.family.loops) > 1 or made_for(1, outside) is None, outside)
    large = outside.large
    for c in (1, 2, 3) if large else ():
        made = made_for(c, outside)
        if made is not None:
            agree(all(apart(made, outside, c, n) for n in (1, 2, 7, FOR_EVER)), outside, c)
            agree(not any(apart(made, outside, one, FOR_EVER) for one in large), outside, c)
            told.add("programs made for one c, defeated by larger ones")


def compare_program(outside: Outside, drawn: Formula, told: Progress) -> None:
    """A random program gives both words the same answer when c and N are large."""
    letters, large = len(outside.dfa.alphabet), outside.large
    if drawn[0] <= letters and large:
        program = fragments.program(drawn[2], letters, outside.mode)
        for n in FOR_EVER, FOR_EVER + 1:
            differ = [c for c in large if apart(program, outside, c, n)]
            agree(not differ, outside, text_of(program), differ, n)
        told.add("random programs defeated")


def apart(program: Program, outside: Outside, c: int, repetitions: int) -> bool:
    """Whether a program, whose letters are those of the automaton by number, tells a pair apart."""
    first, second = (
        PowerWord(tuple((tuple(outside.dfa.symbols(word)), times) for word, times in one))
        for one in outside.family.pair(c, repetitions)
    )
    return evaluate_power(program, first) != evaluate_power(program, second)


def made_for(c: int, outside: Outside) -> Program | None:
    """A program that tells the pairs of one c apart for ever: by a sum of letters that the loop leaves as it
    is, and w2 does not. None if there is no such sum.
    """
    alphabet, family = outside.dfa.alphabet, outside.family
    loop = Counter(letter for word, times in family.loop(c) for letter in list(word) * times)
    first, second = (Counter(word) for word in family.strings(c, 1))
    change = {letter: second[letter] - first[letter] for letter in alphabet}
    # The part of the change that is orthogonal to the loop.
    square = sum(number**2 for number in loop.values())
    along = sum(change[letter] * loop[letter] for letter in alphabet)
    factors = {letter: square * change[letter] - along * loop[letter] for letter in alphabet}
    if not any(factors.values()):
        return None
    total = number(0)
    for letter, factor in factors.items():
        total = total + factor * count(Q(letter))
    value = sum(factor * second[letter] for letter, factor in factors.items())
    return Program(alphabet, total == value, mode=outside.mode, accepts_empty=False)
