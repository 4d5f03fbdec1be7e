"""A trace holds the values of the definitions, part by part."""

import pytest
from crasp_programs import RECIPES, WORDS, build_program, plain_values, word_for
from hypothesis import given, settings

from lengthwise.crasp import nodes
from lengthwise.crasp.builder import Q, count
from lengthwise.crasp.program import Program
from lengthwise.crasp.trace import trace


def test_dyck_by_hand():
    d = count(Q("a")) - count(Q("b"))
    p = Program("ab", accept=(count(d < 0) == 0) & (d == 0), names={"low": d < 0})
    found = trace(p, "aabba")
    assert found.letters == ("a", "a", "b", "b", "a")
    rows = dict(zip(found.parts, found.values, strict=True))
    assert rows['# "a"'] == (1, 2, 2, 2, 3)
    assert rows['# "b"'] == (0, 0, 1, 2, 2)
    assert next(row for part, row in rows.items() if part.startswith("low = ")) == (0, 0, 0, 0, 0)
    assert next(row for part, row in rows.items() if part.startswith("accept = ")) == (0, 0, 0, 1, 0)
    with pytest.raises(ValueError, match="letter 'c' at position 2"):
        trace(p, "ac")


@settings(max_examples=60)
@given(RECIPES, WORDS)
def test_every_count_and_comparison_is_there(recipe, word):
    program = build_program(recipe)
    word = word_for(program, word)
    expected = plain_values(program, word)
    found = trace(program, word)
    kept = [n for n in program.nodes if isinstance(n, nodes.Count | nodes.Ge) or n is program.root()]
    assert len(found.parts) == len(kept)
    for node, row, counts in zip(kept, found.values, found.counts, strict=True):
        assert list(row) == [int(value) for value in expected[node]]
        assert counts == isinstance(node, nodes.Count)
