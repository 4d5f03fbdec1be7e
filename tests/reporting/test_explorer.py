"""What the explorer answers is what the library says."""

import json
import math
import re
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.limit import Infinite
from lengthwise.reporting.explorer import (
    CONSTRUCTIONS,
    attention_answer,
    bound_answer,
    controls,
    simulation_answer,
)
from lengthwise.reporting.explorer.controls import LONGEST_INPUT, TOLERANCE

pytestmark = pytest.mark.usefixtures("one_thread")


def model(name, p):
    """The construction with the logit gap that was asked for, from its weights."""
    precision = Infinite() if p.get("bits") == "infinite" else lw.Finite(p.get("bits", 1))
    if name == "simple":
        return replace(lw.constructions.simple_task(p["omega"], p["knots"]), precision=precision)
    if name == "modp":
        f = replace(lw.constructions.mod_p(p["period"], p["residue"]), precision=precision)
        f.layers[0].key_query[f.layers[0].key_query != 0] = p["margin"]
        return f
    f = lw.constructions.k_gram(p["k"], p["vocabulary"], 0.5)
    f.layers[1].key_query[f.layers[1].key_query != 0] = p["margin"]
    return f


@st.composite
def settings_of(draw):
    name = draw(st.sampled_from(sorted(CONSTRUCTIONS)))
    chosen = {}
    for control in (*CONSTRUCTIONS[name].parameters, TOLERANCE):
        kind = st.integers if control.whole else st.floats
        among = kind(control.low, control.high)
        chosen[control.name] = draw(st.just("infinite") | among if control.infinite else among)
    if name == "modp":
        chosen["residue"] %= chosen["period"]
    tokens = st.integers(0, chosen.get("vocabulary", 2) - 1)
    return name, chosen, draw(st.lists(tokens, min_size=1, max_size=60))


def asked(name, chosen, tokens):
    return {"construction": name, **chosen, "input": "".join(map(str, tokens))}


@given(settings_of())
@settings(max_examples=5)
def test_bound_is_that_of_the_library(drawn):
    name, chosen, tokens = drawn
    answer = bound_answer(asked(name, chosen, tokens))
    expected = lw.bound(model(name, chosen), None, chosen["tolerance"])
    assert answer["theorem"] == expected.theorem
    assert answer["certified"] == expected.certified
    assert [term["name"] for term in answer["terms"]] == list(expected.terms)
    assert answer["order"]["label"] == "of this order (paper)"
    for told, length in (
        (answer["log10_length"], expected.length),
        (answer["order"]["log10_length"], expected.order.length),
    ):
        if length == math.inf:
            assert told is None
            assert "infinite" not in answer["order"]["length_words"]
        else:
            assert told == pytest.approx(math.log10(length), abs=1e-6)
    lengths = [point["log10_length"] for point in answer["curve"]]
    finite = [length for length in lengths if length is not None]
    assert finite == sorted(finite, reverse=True)
    json.dumps(answer, allow_nan=False)


def test_bound_in_words_on_a_known_case():
    answer = bound_answer({"construction": "simple", "omega": 8, "knots": 64, "tolerance": 0.1})
    expected = lw.bound(lw.constructions.simple_task(8, 64), None, 0.1)
    assert answer["length"] == expected.length
    assert answer["length_words"] == f"{expected.length:,}"
    assert f"{expected.length:,} tokens" in answer["sentence"]
    near = min(answer["curve"], key=lambda point: abs(point["tolerance"] - 0.1))
    assert near["log10_length"] == pytest.approx(math.log10(expected.length))


@given(settings_of())
@settings(max_examples=15)
def test_simulation_is_that_of_the_library(drawn):
    name, chosen, tokens = drawn
    answer = simulation_answer(asked(name, chosen, tokens * 12))
    f, x = model(name, chosen), torch.tensor(tokens * 12)
    found = lw.simulate(f, f, x, chosen["tolerance"])
    assert answer["z"]["length"] == found.length
    assert answer["error"] == pytest.approx(found.error_f, abs=1e-9)
    assert answer["error"] <= chosen["tolerance"]
    assert answer["method"] == found.method
    period = f.period
    for string, told in ((x.tolist(), answer["x"]), (found.tokens.tolist(), answer["z"])):
        types = [(token, place % period) for place, token in enumerate(string, 1)]
        every = [(token, residue) for token in range(f.vocabulary) for residue in range(period)]
        assert told["counts"] == [types.count(kind) for kind in every]
        assert sum(told["shares"]) == pytest.approx(1)
        assert told["output"] == pytest.approx(f(torch.tensor(string)).tolist(), abs=1e-9)
        again = simulation_answer({"construction": name, **chosen, "input": told["text"]})
        assert again["x"]["counts"] == told["counts"]
    json.dumps(answer, allow_nan=False)


def plain_weights(f, tokens):
    """The weights of every query, position by position, as the definition says them."""
    stream = [f.embedding[token] + f.positions[i % f.period] for i, token in enumerate(tokens, 1)]
    length, told = len(tokens), []
    for layer in f.layers:
        after = [y.clone() for y in stream]
        for head in range(layer.heads):
            rows = []
            for i in range(1, length + 1):
                logits = []
                for j in range(1, i + 1):
                    near = float(layer.local[head, i - j]) if i - j <= layer.locality else 0.0
                    scale = math.log(i) if isinstance(f.precision, Infinite) else 1.0
                    match = float(stream[j - 1] @ layer.key_query[head] @ stream[i - 1])
                    logits.append(match + near * scale)
                gaps = [logit - max(logits) for logit in logits]
                if isinstance(f.precision, Infinite):
                    weights = [math.exp(gap) for gap in gaps]
                else:
                    powers = [gap * math.log2(length) for gap in gaps]
                    weights = [2**power if power > -f.precision.bits else 0.0 for power in powers]
                total = sum(weights)
                rows.append([weight / total for weight in weights] + [0.0] * (length - i))
                for j, weight in enumerate(rows[-1]):
                    after[i - 1] += weight * (layer.value[head] @ stream[j])
            told.append(rows)
        stream = [layer.after_mlp(y) for y in after]
    return told


@given(settings_of())
@settings(max_examples=15)
def test_attention_is_that_of_the_definition(drawn):
    name, chosen, tokens = drawn
    tokens = tokens[:14]
    answer = attention_answer(asked(name, chosen, tokens))
    assert answer["tokens"] == tokens
    expected = plain_weights(model(name, chosen), tokens)
    assert len(answer["heads"]) == len(expected)
    for head, rows in zip(answer["heads"], expected, strict=True):
        torch.testing.assert_close(torch.tensor(head["weights"]), torch.tensor(rows[-1]))
        torch.testing.assert_close(torch.tensor(head["map"]), torch.tensor(rows))
    json.dumps(answer, allow_nan=False)


@pytest.mark.parametrize(
    ("asked", "length", "order"),
    [
        ({"construction": "modp", "margin": 0.05, "bits": 64}, "2.08e385", "more than 1e300"),
        ({"construction": "modp", "margin": 0.5, "bits": 64}, "3.40e38", "3.40e38"),
    ],
)
def test_lengths_beyond_what_a_double_holds(asked, length, order):
    """2^(64/0.05) = 2^1280 = 2.08e385, and 2^128 = 3.40e38."""
    answer = bound_answer(asked)
    assert answer["length_words"] == answer["terms"][0]["words"] == length
    assert answer["order"]["length_words"] == order
    assert f"{length} tokens" in answer["sentence"]
    assert not any("infinite" in one["times"] for one in answer["growth"])


def test_what_is_not_certified_is_not_called_so(monkeypatch):
    from lengthwise.reporting.explorer import answers

    nothing = lw.bound(replace(lw.constructions.k_gram(1, 2, 0.1), precision=lw.Finite(8)), None, 0.1)
    monkeypatch.setattr(answers, "bound", lambda *_: nothing)
    answers._curve.cache_clear()
    answer = bound_answer({"construction": "kgram"})
    answers._curve.cache_clear()
    assert (answer["length_label"], answer["length_words"]) == ("no certified length", "none")
    assert answer["order"] is None
    assert "No bound is known" in answer["sentence"]


COMMANDED = [
    {
        "construction": "simple",
        "omega": 3.5,
        "knots": 20,
        "bits": 7,
        "tolerance": 0.3,
        "input": "(0110)^90",
    },
    {"construction": "modp", "period": 5, "residue": 2, "margin": 3.16, "bits": 9, "input": "0,1 1" * 60},
    {"construction": "modp", "bits": "infinite", "margin": 0.7, "tolerance": 0.0123, "input": "(011)^99"},
    {
        "construction": "kgram",
        "k": 1,
        "vocabulary": 2,
        "margin": 0.3,
        "tolerance": 0.5,
        "input": "(01)^9, 1",
    },
]

RUN_COMMANDS = """
import contextlib, io, json, shlex, sys
from lengthwise.cli import main
from lengthwise.reporting.explorer import bound_answer, simulation_answer

for asked in json.loads(sys.argv[1]):
    for answer in (bound_answer(asked), simulation_answer(asked)):
        first, *words = shlex.split(answer["command"])
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = main([*words, "--json", "--output", sys.argv[2]])
        print(json.dumps([first, status, answer, json.loads(said.getvalue())]))
"""


def test_commands_give_the_same_in_a_terminal(tmp_path):
    """In a process of its own, where shapes are not checked at every call."""
    command = [sys.executable, "-c", RUN_COMMANDS, json.dumps(COMMANDED), str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [json.loads(line) for line in said.splitlines()]
    assert [line[:2] for line in lines] == [["lengthwise", 0]] * (2 * len(COMMANDED))
    for (*_, bounded, one), (*_, simulated, other) in zip(lines[::2], lines[1::2], strict=True):
        assert one["length"] == other["bound"]["length"] == bounded["length"]
        assert other["length"] == simulated["z"]["length"]
        assert other["input_length"] == simulated["x"]["length"]
        assert other["error_f"] == pytest.approx(simulated["error"], rel=1e-9, abs=1e-12)


def test_a_long_input_has_no_map():
    answer = attention_answer({"construction": "modp", "input": f"0^{LONGEST_INPUT}"})
    assert len(answer["heads"][0]["weights"]) == LONGEST_INPUT
    assert sum(answer["heads"][0]["weights"]) == pytest.approx(1)
    assert answer["heads"][0]["map"] is None


def test_inputs_are_digits_powers_or_commas():
    spelled = [
        attention_answer({"construction": "simple", "input": text})["tokens"]
        for text in ("010101 1", "(01)^3 1", "0,1,0,1,0,1,1", "(01)^(3) 1^1")
    ]
    assert spelled == [[0, 1, 0, 1, 0, 1, 1]] * 4


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"construction": "induction"}, "construction must be one of simple, modp, kgram"),
        ({"construction": ["modp"]}, "construction must be one of"),
        ({"omega": 3}, "has no parameter 'omega'"),
        ({"period": 13}, "period must be a whole number from 1 to 12, got 13"),
        ({"period": 2.5}, "period must be a whole number"),
        ({"period": True}, "period must be a whole number"),
        ({"period": "3"}, "period must be a whole number"),
        ({"period": 10**400}, "got a number of more than 60 digits"),
        ({"margin": math.nan}, "margin must be a number from 0.05 to 50"),
        ({"margin": "infinite"}, "margin must be a number from 0.05 to 50, got 'infinite'"),
        ({"bits": "inf"}, "bits must be a whole number from 1 to 64 or 'infinite', got 'inf'"),
        ({"tolerance": 0}, "tolerance must be a number from 0.0001 to 1"),
        ({"period": 2, "residue": 2}, "residue must be below the period"),
        ({"input": None}, "input must be a text"),
        ({"input": ""}, "the input is empty"),
        ({"input": "012"}, "'2' at place 3"),
        ({"input": "0" * 1001}, "at most 1000 tokens"),
        ({"input": "0^(10^3000)"}, "got a number of more than 60 digits"),
        ({"input": "0^(9^(9^9))"}, "the power at place 2 needs a whole number"),
        ({"input": "(" * 3999}, "the parenthesis at place 1 is not closed"),
        ({"input": "0" * 5000}, "at most 4000 characters"),
    ],
)
def test_mistakes_are_one_sentence(changes, says):
    with pytest.raises(ValueError, match=re.escape(says)) as told:
        attention_answer({"construction": "modp", "input": "01", **changes})
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 200


def test_controls_are_plain_and_their_defaults_within_range():
    told = controls()
    json.dumps(told, allow_nan=False)
    for name, one in told["constructions"].items():
        assert all(control["low"] <= control["default"] <= control["high"] for control in one["parameters"])
        assert simulation_answer({"construction": name, "input": one["example"]})["z"]["length"] > 0
