"""Many words at once: the values of the definitions at every node and position, whatever the stretch."""

import itertools

import pytest
import torch
from crasp_programs import RECIPES, WORDS, build_program, plain_values, word_for
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.crasp import batch
from lengthwise.crasp.batch import NO_LETTER, accepts, node_values, outputs
from lengthwise.crasp.builder import Q, count, mod
from lengthwise.crasp.program import Program


@settings(max_examples=150)
@given(RECIPES, st.lists(WORDS, min_size=1, max_size=4), st.sampled_from([1, 7, 64, 2**16]))
def test_every_node_at_every_position(recipe, words, stretch):
    program = build_program(recipe)
    words = [word_for(program, word) for word in words]
    longest = max(map(len, words)) + (program.mode == "eos")
    tokens = torch.full((len(words), longest), NO_LETTER)
    for row, word in zip(tokens, words, strict=True):
        row[: len(word)] = torch.tensor(word, dtype=torch.long)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "STRETCH", stretch)
        found = node_values(program.nodes, tokens, program.alphabet)
    for index, word in enumerate(words):
        for node, row in plain_values(program, word).items():
            assert found[node][index, : len(row)].tolist() == row


@settings(max_examples=100)
@given(RECIPES, st.lists(WORDS, min_size=1, max_size=5), st.sampled_from([1, 16, 2**16]))
def test_words_of_several_lengths_at_once(recipe, words, stretch):
    """What is behind the end of a word does not matter."""
    program = build_program(recipe)
    words = [word_for(program, word) for word in words]
    width, letters = max(map(len, words)) + 2, len(program.alphabet)
    tokens = torch.arange(len(words) * width).reshape(len(words), width) % letters
    for row, word in zip(tokens, words, strict=True):
        row[: len(word)] = torch.tensor(word, dtype=torch.long)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "STRETCH", stretch)
        found = accepts(program, tokens, torch.tensor([len(word) for word in words]))
    for word, answer in zip(words, found.tolist(), strict=True):
        if word or program.mode == "eos":
            assert answer == plain_values(program, word)[program.root()][-1]
        else:
            assert answer == program.empty


def test_languages_on_all_short_words():
    a, b = Q("a"), Q("b")
    d = count(a) - count(b)
    dyck = Program("ab", accept=(count(d < 0) == 0) & (d == 0))
    third = Program("ab", accept=(count(a & mod(3, 2)) == 0), mode="eos")
    for length in range(11):
        words = list(itertools.product((0, 1), repeat=length))
        tokens = torch.tensor(words, dtype=torch.long).reshape(len(words), length)
        for word, balanced, free in zip(
            words, accepts(dyck, tokens).tolist(), accepts(third, tokens).tolist(), strict=True
        ):
            heights = list(itertools.accumulate(1 - 2 * letter for letter in word))
            assert balanced == (not word or (min(heights) >= 0 and heights[-1] == 0))
            assert free == (0 not in word[1::3])


def test_predictions_at_every_position():
    p = Program("ab", next={"a": count(Q("a")) <= count(Q("b")), "b": Q("a")})
    found = outputs(p, torch.tensor([[0, 1, 1, 0]]))
    assert found["a"].tolist() == [[False, True, True, True]]
    assert found["b"].tolist() == [[True, False, False, True]]
    with pytest.raises(ValueError, match="predicts symbols"):
        accepts(p, torch.tensor([[0]]))


def test_long_words_in_bounded_memory(monkeypatch):
    """A stretch holds no more than it should, and counts go on across stretches."""
    monkeypatch.setattr(batch, "STRETCH", 1000)
    d = count(Q("a")) - count(Q("b"))
    bounded = Program("ab", accept=(count((d < 0) | (d > 1)) == 0) & (d == 0))
    tokens = torch.arange(10**5).remainder(2).unsqueeze(0)
    sizes = [
        max(value.numel() for value in values.values())
        for _, values in batch.stretches((bounded.root(),), tokens, "ab")
    ]
    assert len(sizes) == 100
    assert max(sizes) == 1000
    assert accepts(bounded, tokens).tolist() == [True]
    tokens[0, 77_777] = 0
    assert accepts(bounded, tokens).tolist() == [False]


def test_mistakes():
    p = Program("ab", accept=count(Q("a")) >= 1)
    for wrong, message in (
        (torch.tensor([[0, 2]]), "tokens must be between 0 and 1, got 0 to 2"),
        (torch.tensor([[-1]]), "tokens must be between 0 and 1"),
    ):
        with pytest.raises(ValueError, match=message):
            accepts(p, wrong)
    with pytest.raises(ValueError, match="whole numbers"):
        batch.check_tokens(p, torch.tensor([[0.5]]))
    with pytest.raises(ValueError, match="lengths must be between 0 and the number of tokens, 2"):
        accepts(p, torch.tensor([[0, 1]]), torch.tensor([3]))
    huge = Program("ab", accept=2**61 * count(Q("a")) >= 3 * count(Q("b")))
    with pytest.raises(ValueError, match="exceed 2\\^62"):
        accepts(huge, torch.tensor([[0, 1, 0]]))
