"""Learning as a whole: what is found is right, what is said of it is true, and the time is kept."""

import json
import subprocess
import sys
from pathlib import Path

import crasp_learning_runs as runs
import pytest
import torch
from crasp_programs import plain_values

from lengthwise.automata import states_along
from lengthwise.crasp import DFA, PowerWord, accepts, compile_regex, evaluate_power, learn, outputs, parse
from lengthwise.crasp.learning.words import all_words

LONGEST = {1: 12, 2: 12, 3: 8, 4: 7}
"""Up to which length all words over so many letters are compared."""

MARGIN = 1.0
"""Seconds by which a time limit may be exceeded."""


@pytest.fixture(scope="module")
def found():
    """What ``crasp_learning_runs`` prints."""
    done = subprocess.run(
        [sys.executable, str(Path(runs.__file__))], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def spelled(program, row):
    letters = [program.alphabet[symbol] for symbol in row]
    return "".join(letters) if all(len(letter) == 1 for letter in program.alphabet) else tuple(letters)


def assert_same(program, truth):
    """A program accepts what a function of words says, on all short words."""
    assert program(()) == truth(spelled(program, ()))
    for length in range(1, LONGEST[len(program.alphabet)] + 1):
        tokens = all_words(len(program.alphabet), length)
        wanted = torch.tensor([truth(spelled(program, row)) for row in tokens.tolist()])
        assert torch.equal(accepts(program, tokens), wanted)


@pytest.mark.parametrize("name", runs.FUNCTIONS)
def test_functions(found, name):
    letters, function, _ = runs.FUNCTIONS[name]
    learned = found["functions"][name]
    program = parse(learned["program"])
    assert learned["found"]
    assert (learned["known"], learned["proved"]) == ("checked", False)
    assert learned["checked"] == {2: 15, 3: 9, 4: 7}[len(letters)]  # at most 2^15 words of a length
    assert learned["errors"] == []
    assert_same(program, function)
    # Words far longer than any that was compared.
    for word in (
        letters * 100,
        letters[::-1] * 50,
        letters[0] * 99,
        letters[-1] * 300,
        letters[0] * 90 + letters[1] * 90,
    ):
        assert program(word) == function(word)


def test_positions_only_where_the_shape_has_them(found):
    for name, (_, _, shape) in runs.FUNCTIONS.items():
        program = parse(found["functions"][name]["program"])
        assert program.locality <= max(shape.get("distances", ()), default=0)
        assert program.period in (1, *shape.get("moduli", ()))


def test_the_seed_decides(found):
    one, again = found["functions"]["D_2"], found["again"]
    assert one == again
    assert one["moves"] > 4000  # it was a search


@pytest.mark.parametrize("name", runs.PROGRAMS)
def test_programs_are_proved(found, name):
    learned = found["programs"][name]
    target, program = parse(runs.PROGRAMS[name]), parse(learned["program"])
    assert (learned["known"], learned["proved"], learned["answer"]) == ("proved", True, True)
    assert program.mode == "last"
    assert program.alphabet == target.alphabet
    assert program(()) == target(())
    for length in range(1, 13):
        tokens = all_words(2, length)
        assert torch.equal(accepts(program, tokens), accepts(target, tokens))


def test_a_proof_refutes_where_words_cannot(found):
    """Programs that differ from true only on long words: the solver's word is learned from, or remembered."""
    for number, learned in found["far"].items():
        assert (learned["found"], learned["proved"], learned["checked"]) == (False, False, None)
        assert learned["counterexamples"] == [[["a", int(number)]]]
        nearest = parse(learned["program"])
        for word in learned["errors"]:
            blocks = [(word, 1)] if isinstance(word, str) else word
            power = PowerWord(tuple((tuple(nearest.symbols(v)), times) for v, times in blocks))
            assert evaluate_power(nearest, power) != (sum(v.count("a") * n for v, n in blocks) < int(number))
        assert learned["errors"]


def test_counterexamples_are_real(found):
    """Each program that was refuted is wrong on the words that refuted it, by the plain evaluation."""
    assert found["refuted"]
    for text, words in found["refuted"][:10]:
        program = parse(text)
        for blocks in words:
            word = [symbol for symbols, times in blocks for symbol in symbols * times]
            assert plain_values(program, word)[program.root()][-1] != (word.count(0) < runs.FEW)


@pytest.mark.parametrize("name", runs.CONTROLS)
def test_controls_are_not_found(found, name):
    """What no program accepts is not found, and the nearest program is wrong on the words that are told."""
    learned = found["controls"][name]
    _, function = runs.CONTROLS[name]
    assert not learned["found"]
    assert not learned["proved"]
    assert learned["known"] == "not found"
    assert learned["checked"] is None
    nearest = parse(learned["program"])
    assert learned["errors"]
    for word in learned["errors"]:
        assert nearest(word) != function(word)


@pytest.mark.parametrize("regex", runs.REGULAR)
def test_automata(found, regex):
    letters, _ = runs.REGULAR[regex]
    learned = found["regular"][regex]
    dfa, program = compile_regex(regex, letters), parse(learned["program"])
    assert (learned["known"], learned["proved"]) == ("proved", True)
    assert learned["size"] == program.size
    assert program.size < learned["details"]["extracted_size"]  # all of these can be made smaller
    assert_same(program, dfa.accepts)


def assert_proofs_are_right(dfa, programs):
    """The first program is proved to follow the automaton, the second, which is wrong on words that are too
    long to be met, is not; and each that is proved agrees on all words of up to 12 letters.
    """
    labels = torch.tensor([state in dfa.accepting for state in dfa.states])
    tokens = all_words(2, 12)
    wanted = labels[states_along(dfa, tokens)[:, 1:]]
    assert [proof for _, proof in programs[:2]] == [True, False]
    for text, proof in programs:
        if proof:
            program = parse(text)
            assert torch.equal(outputs(program, tokens)["accept"], wanted)
            assert program(()) == dfa.accepts(())


@pytest.mark.parametrize("regex", runs.FOLLOWED)
def test_proofs_along_automata(found, regex):
    assert_proofs_are_right(compile_regex(regex), found["followed"][regex])


def test_proofs_along_random_automata(found):
    for rows, accepting, programs in found["random automata"]:
        dfa = DFA(("a", "b"), tuple(map(tuple, rows)), 0, frozenset(accepting))
        assert_proofs_are_right(dfa, programs)
    proofs = [proof for _, _, programs in found["random automata"] for _, proof in programs[2:]]
    assert any(proofs)
    assert not all(proofs)


@pytest.mark.parametrize("regex", ["b*(ab*ab*)*", "(a|b)*aa(a|b)*"])
def test_automata_without_a_program(regex):
    learned = learn(compile_regex(regex))
    assert not learned.found
    assert learned.program is None
    assert learned.verdict is not None
    assert learned.verdict.answer is False
    assert (learned.known, learned.proved, learned.checked) == ("not found", False, None)


@pytest.mark.parametrize(
    "name",
    [
        "a slow function",
        "a hard program",
        "long examples",
        "almost no time",
        "an automaton",
        "a large automaton",
    ],
)
def test_the_time_limit_is_kept(found, name):
    learned = found["limits"][name]
    assert learned["took"] <= learned["limit"] + MARGIN


def test_an_automaton_is_right_when_time_cuts_in(found):
    """The program from the automaton is there at once; what time allows is how small it gets."""
    learned = found["limits"]["an automaton"]
    assert learned["proved"]
    assert learned["size"] <= learned["details"]["extracted_size"]
    assert_same(parse(learned["program"]), compile_regex("(ab|bbaa)*").accepts)


def test_what_is_no_target(found):
    assert found["no target"] == "a target is labelled words, a function, a Program or a DFA, got 3"
