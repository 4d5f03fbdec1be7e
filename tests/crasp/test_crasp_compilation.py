"""Compiled programs compute what the programs do: every formula, at every position, at many lengths."""

import itertools
from dataclasses import replace

import pytest
import torch
from crasp_programs import RECIPES, WORDS, build_program, plain_values, word_for
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.crasp import compilation, nodes
from lengthwise.crasp.batch import accepts
from lengthwise.crasp.builder import Formula, Q, count, ind, mod
from lengthwise.crasp.compilation import compile, encode
from lengthwise.crasp.exactness import exact_length, ramp_error
from lengthwise.crasp.program import Program
from lengthwise.limit.reference import stream


def answers(f, program, words):
    """The outputs of a compiled program on words of one length."""
    return f(torch.tensor([encode(program, word) for word in words]))[:, 0]


@settings(max_examples=30)
@given(RECIPES, WORDS, st.sampled_from(["heaviside", "relu"]))
def test_every_node_at_every_position(recipe, word, form):
    """The stream of a compiled model tells every formula, and every count divided by the number of tokens up
    to here, at every position, for position i attends to nothing behind it.
    """
    program = build_program(recipe)
    word = word_for(program, word)
    table = plain_values(program, word)
    compiler = compilation._Compiler(program, form, slope=4.0 * (64 + 2), bits=16)
    f = compiler.transformer()
    y = stream(f, torch.tensor([encode(program, word)]))[0, 1:]
    told = {node: y[:, compiler.at[node]] for node in program.nodes if node in compiler.at}
    simple = (nodes.Not, nodes.True_)
    assert told.keys() >= {node for node in program.nodes if not isinstance(node, simple)}
    for node, values in told.items():
        scale = torch.arange(2.0, len(y) + 2) if isinstance(node, nodes.Count) else 1
        assert (values * scale).tolist() == pytest.approx(list(map(float, table[node])), abs=1e-9)
    expected = [float(held) for held in table[program.root()]]
    assert (y @ f.readout.mT)[:, 0].tolist() == pytest.approx(expected, abs=1e-9)


@settings(max_examples=10)
@given(RECIPES, WORDS, st.sampled_from(["heaviside", "relu"]))
def test_every_formula_alone(recipe, word, form):
    """A formula inside a program is what a program of its own would accept with."""
    program = build_program(recipe)
    word = word_for(program, word)
    table = plain_values(program, word)
    for node in [node for node in program.nodes if isinstance(node, nodes.Bool)][-4:]:
        alone = replace(program, accept=Formula(node), next={}, accepts_empty=None)
        f = compile(alone, form, longest=64)
        found = (stream(f, torch.tensor([encode(alone, word)])) @ f.readout.mT)[0, 1:, 0]
        assert found.tolist() == pytest.approx([float(held) for held in table[node]], abs=1e-9)


A, B = Q("a"), Q("b")
D = count(A) - count(B)
PROGRAMS = {
    "majority": Program("ab", accept=count(B) > count(A)),
    "dyck": Program("ab", accept=(count(D < 0) == 0) & (D == 0)),
    "dyck under eos": Program("ab", accept=(count(D < 0) == 0) & (D == 0), mode="eos"),
    "no aaa": Program("ab", accept=count(A & (count(A, at=[1, 2]) == 2)) == 0),
    "(abab)*": Program("ab", accept=(count((A & mod(2, 0)) | (B & mod(2, 1))) == 0) & mod(4, 0)),
    "even": Program("ab", accept=mod(2, 0)),
    "strict": Program("ab", accept=(count(A, strict=True) >= 2) & (count(B, at_least=3) <= 1)),
    "deep indicator": Program("ab", accept=ind(count(A) >= 2) + count(B) >= 3),
    "not the empty word": Program("ab", accept=count(B) >= count(A), accepts_empty=False),
    "the empty word": Program("ab", accept=count(A) >= 1, accepts_empty=True),
    "all": Program("ab", accept=Formula(nodes.TRUE)),
    "none": Program("ab", accept=Formula(nodes.FALSE)),
}


@pytest.mark.parametrize("form", ["heaviside", "relu"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_short_words(name, form):
    program = PROGRAMS[name]
    f = compile(program, form, longest=8)
    for length in range(9):
        words = list(itertools.product((0, 1), repeat=length))
        expected = accepts(program, torch.tensor(words, dtype=torch.long).reshape(len(words), length))
        torch.testing.assert_close(answers(f, program, words), expected.double(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("form", ["heaviside", "relu"])
@pytest.mark.parametrize("name", ["majority", "dyck", "no aaa", "(abab)*"])
def test_ties_and_near_ties_at_greater_lengths(name, form):
    """Words on which comparisons are decided by one letter."""
    program = PROGRAMS[name]
    for length in (100, 101, 240):
        half = length // 2
        words = [
            ([0, 1] * length)[:length],
            [0] * half + [1] * (length - half),
            [1] * half + [0] * (length - half),
            ([0, 0, 0, 1, 1, 1] * length)[:length],
            [0] * (half + 1) + [1] * (length - half - 1),
            [*([0, 1] * length)[: length - 1], 0],
        ]
        f = compile(program, form, longest=length)
        expected = accepts(program, torch.tensor(words))
        torch.testing.assert_close(answers(f, program, words), expected.double(), rtol=0, atol=1e-9)


def test_a_ramp_is_exact_up_to_its_length_and_no_further():
    """One letter decides: at the longest length it does, far beyond a ramp sees it in part."""
    program = PROGRAMS["majority"]
    f = compile(program, "relu", longest=21)
    tie = [0] * 10 + [1] * 11
    assert float(answers(f, program, [tie])[0]) == pytest.approx(1.0, abs=1e-12)
    long = [0] * 200 + [1] * 201
    assert 0.01 < float(answers(f, program, [long])[0]) < 0.99
    step = compile(program)
    assert answers(step, program, [long]).tolist() == [1.0]


LARGE = st.one_of(st.integers(-9, 9), st.integers(0, 60).map(lambda power: 2**power), st.just(10**30))


@settings(max_examples=60)
@given(LARGE, LARGE, LARGE, st.sampled_from([4, 40, 1000]), st.booleans())
def test_ramps_of_large_numbers_are_as_exact_as_they_say_or_refused(alpha, beta, constant, longest, nested):
    """On words at which the comparison is as close as it gets, and on the others of up to five letters."""
    here = alpha * count(A) + constant >= beta * count(B)
    program = Program("ab", accept=count(here) >= count(~here) + 1 if nested else here)
    error = ramp_error(program, longest)
    if error > 0.25:
        with pytest.raises(ValueError, match="float64 is too coarse for ramps"):
            compile(program, "relu", longest=longest)
        return
    f = compile(program, "relu", longest=longest)
    words = [list(word) for n in range(1, 5) for word in itertools.product([0, 1], repeat=n)]
    words += [[0] * k + [1] * (longest - k) for k in {0, 1, longest // 2, (longest + 1) // 2, longest}]
    words += [[1] * k + [0] * (longest - k) for k in (1, longest // 2)]
    for word in words:
        assert abs(float(f(torch.tensor(encode(program, word)))[0]) - program(word)) <= error + 1e-15


def test_ramps_are_refused_only_where_they_fail():
    """The numbers of usual programs are small; so many letters there never are."""
    assert ramp_error(PROGRAMS["majority"], 10**6) < 1e-6
    never = Program("ab", accept=count(B, at=range(1, 4)) <= 10**30)
    assert ramp_error(never, 20) == float("inf")


def test_majority_is_one_layer_that_theory_can_look_at():
    """A ramp has a slope, so that a bound exists; a step has none, and the bound says so."""
    program = PROGRAMS["majority"]
    ramp, step = compile(program, "relu", longest=20), compile(program)
    assert len(ramp.layers) == len(step.layers) == 1
    other = compile(Program("ab", accept=count(B) >= count(A)), "relu", longest=20)
    found = lw.bound(ramp, other, 0.5)
    assert found.certified
    assert lw.bound(step, other, 0.5).length == float("inf")
    word = [2, *([0, 1, 1] * 5000)]
    z = lw.simulate(ramp, other, word, 0.5)
    assert z.length < len(word)
    assert max(z.error_f, z.error_g) <= 0.5


def test_how_long_float64_is_exact():
    """kappa = 1 + 1 + 1 + 1 for majority: isqrt(2^51 / 4) - 3."""
    assert exact_length(PROGRAMS["majority"]) == 23726566 - 3
    heavy = Program("ab", accept=1000 * count(A) >= 999 * count(B) + 7)
    assert exact_length(heavy) < exact_length(PROGRAMS["majority"])


def test_mistakes():
    with pytest.raises(ValueError, match="predicts symbols"):
        compile(Program("a", next={"a": Q("a")}))
    with pytest.raises(ValueError, match="longest must be"):
        compile(PROGRAMS["majority"], longest=0)
    for large in (mod(10**30, 3), mod(10**4, 1) & mod(10**4 - 1, 1), count(A, at=range(10**4)) >= 2):
        with pytest.raises(ValueError, match="smaller moduli, or with fewer distances"):
            compile(Program("ab", accept=large))
    with pytest.raises(ValueError, match="letter 'c' at position 2"):
        encode(PROGRAMS["majority"], "ac")
