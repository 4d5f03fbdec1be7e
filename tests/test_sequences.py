"""Counts, prefix counts, suffixes and summaries against plain Python."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.sequences import (
    BEFORE_START,
    check_length,
    counts,
    draw_summary,
    prefix_counts,
    residue_sizes,
    string_of,
    suffix,
    summarize,
)


@st.composite
def strings(draw):
    vocabulary = draw(st.integers(1, 5))
    length = draw(st.integers(1, 30))
    rows = draw(st.integers(1, 3))
    tokens = [
        draw(st.lists(st.integers(0, vocabulary - 1), min_size=length, max_size=length)) for _ in range(rows)
    ]
    return torch.tensor(tokens), vocabulary


def plain_counts(word, period):
    return Counter((token, position % period) for position, token in enumerate(word, start=1))


@given(strings(), st.integers(1, 7))
def test_counts_are_those_of_a_plain_loop(case, period):
    tokens, vocabulary = case
    table = counts(tokens, vocabulary, period)
    for row, word in zip(table, tokens.tolist(), strict=True):
        expected = plain_counts(word, period)
        for token in range(vocabulary):
            for residue in range(period):
                assert row[token, residue] == expected[token, residue]


@given(strings(), st.integers(1, 7))
def test_every_row_of_prefix_counts_counts_that_prefix(case, period):
    tokens, vocabulary = case
    table = prefix_counts(tokens, vocabulary, period)
    for end in range(1, tokens.shape[1] + 1):
        assert torch.equal(table[:, end - 1], counts(tokens[:, :end], vocabulary, period))


@given(strings(), st.integers(1, 40))
def test_suffix_holds_the_token_at_each_distance(case, window):
    tokens, _ = case
    near = suffix(tokens, window)
    for row, word in zip(near.tolist(), tokens.tolist(), strict=True):
        expected = [word[-1 - t] if t < len(word) else BEFORE_START for t in range(window)]
        assert row == expected


@given(strings(), st.integers(1, 7), st.integers(0, 40))
def test_a_summary_partitions_the_positions(case, period, locality):
    """Far counts and suffix together are all positions, each once."""
    tokens, vocabulary = case
    summary = summarize(tokens, vocabulary, period, locality)
    total = tokens.shape[1]
    for row, word in enumerate(tokens.tolist()):
        expected = plain_counts(word, period)
        for token in range(vocabulary):
            for residue in range(period):
                expected[token, residue] -= int(summary.counts[row, token, residue])
        near = Counter(
            (token, (total - t) % period)
            for t, token in enumerate(summary.suffix[row].tolist())
            if token != BEFORE_START
        )
        assert +expected == near
        assert min(expected.values()) >= 0
        assert summary.token_counts()[row].tolist() == [word.count(token) for token in range(vocabulary)]
    assert (summary.period, summary.locality, int(summary.length)) == (period, locality, total)


@given(st.integers(0, 200), st.integers(1, 9))
def test_residue_sizes_count_positions(length, period):
    sizes = residue_sizes(torch.tensor(length), period).tolist()
    assert sizes == [sum(i % period == r for i in range(1, length + 1)) for r in range(period)]


def test_no_batch_axis_and_two_batch_axes_agree():
    tokens = torch.randint(3, (2, 4, 11), generator=torch.Generator().manual_seed(0))
    table = counts(tokens, 3, 2)
    assert table.shape == (2, 4, 3, 2)
    assert torch.equal(table[1, 2], counts(tokens[1, 2], 3, 2))
    assert torch.equal(prefix_counts(tokens, 3, 2)[1, 2], prefix_counts(tokens[1, 2], 3, 2))


@pytest.mark.parametrize("word", [[0, 3], [-1, 0]])
def test_tokens_out_of_range_are_named(word):
    with pytest.raises(ValueError, match=r"between 0 and 2 \(vocabulary 3\), got"):
        counts(torch.tensor(word), 3)


@pytest.mark.parametrize("length", [0, -4, 2**53 + 1, True])
def test_lengths_that_are_none(length):
    with pytest.raises(ValueError, match="length must be"):
        check_length(length)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30), st.integers(1, 4), st.integers(0, 5))
def test_a_string_with_the_summary_of_another(word, period, locality):
    summary = summarize(torch.tensor(word), 3, period, locality)
    again = summarize(string_of(summary), 3, period, locality)
    assert torch.equal(again.counts, summary.counts)
    assert torch.equal(again.suffix, summary.suffix)
    assert len(string_of(summary)) == len(word)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30), st.integers(1, 3), st.integers(0, 5))
def test_counts_of_the_whole_string_and_of_a_smaller_period(word, period, locality):
    summary = summarize(torch.tensor(word), 3, 2 * period, locality)
    folded = summary.folded(period)
    assert torch.equal(folded.type_counts(), counts(torch.tensor(word), 3, period))
    assert torch.equal(summary.token_counts(), counts(torch.tensor(word), 3).squeeze(-1))
    assert torch.equal(folded.counts, summarize(torch.tensor(word), 3, period, locality).counts)


def test_a_drawn_summary_belongs_to_a_string():
    for length in (1, 2, 7, 1000):
        drawn = draw_summary(3, 2, 3, length, seed=length)
        again = summarize(string_of(drawn), 3, 2, 3)
        assert torch.equal(again.counts, drawn.counts)
        assert torch.equal(again.suffix, drawn.suffix)
    long = draw_summary(2, 5, 1, 10**15, seed=0)
    assert int(long.counts.sum()) == 10**15 - 2
