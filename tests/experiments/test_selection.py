"""The paper's grid and its rule: what is selected is what going through the whole grid would select."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suite_results import SHARES, results_of

from lengthwise.experiments import huang
from lengthwise.experiments.selection import (
    GRID,
    NONE_PERFECT,
    candidates,
    ends,
    grid_up_to,
    searched,
    select,
)
from lengthwise.tasks import task

CELLS = huang.cells("algorithmic", "quick", tasks=["parity"], seeds=2, seed=5)
"""Learned positions, and none."""


def test_the_grid_is_the_papers_and_the_simplest_comes_first():
    assert len(set(GRID)) == 54
    assert {shape.layers for shape in GRID} == {1, 2, 4} == {shape.heads for shape in GRID}
    assert {shape.width for shape in GRID} == {16, 64, 256}
    assert {shape.learning_rate for shape in GRID} == {1e-3, 1e-4}
    sizes = [(shape.layers, shape.width, shape.heads) for shape in GRID]
    assert sizes == sorted(sizes)


def test_a_part_of_the_grid():
    assert grid_up_to(None) == GRID == grid_up_to("12/12/768")
    part = grid_up_to("2/1/64")
    assert part == tuple(
        shape for shape in GRID if shape.layers < 4 and shape.heads == 1 and shape.width < 256
    )
    assert len(part) == 2 * 1 * 2 * 2
    for wrong in ("2/2", "2/2/64/1", "a/b/c", "2,2,64", "-1/2/64", ""):
        with pytest.raises(ValueError, match="such as 2/2/64"):
            grid_up_to(wrong)


USUAL = huang.RECIPES["algorithmic", "quick"]
SEEDS = (7, 8)


def outcomes(number):
    """What so many candidates may end with: three shares for each of two seeds."""
    one = st.tuples(SHARES, SHARES, SHARES)
    good = st.tuples(st.just(1.0), st.sampled_from([0.3, 0.9, 1.0, 1.0]), SHARES)
    alike = st.one_of(good, one).map(lambda own: (own, own))
    return st.lists(
        st.one_of(alike, st.tuples(good, good), st.tuples(one, one)), min_size=number, max_size=number
    )


def brute(tried, shares):
    """Perfect on the first bin with all seeds, best on the second, first among equals: going through all."""
    expected, best = None, -1.0
    for runs, own in zip(tried, shares, strict=True):
        second = sum(share[1] for share in own) / len(own)
        if all(share[0] == 1.0 for share in own) and second > best + 1e-9:
            expected, best = runs, second
    return expected


@settings(max_examples=40)
@given(outcomes(6))
def test_selection_is_the_papers(shares):
    tried = candidates(task("parity"), "none", "quick", SEEDS, USUAL, GRID[:6])
    runs = [run for own in tried for run in own]
    known = ends(results_of(runs, [one for own in shares for one in own]))
    assert select(tried, known) == brute(tried, shares)


def test_candidates_are_the_grid_with_every_choice_of_spare_positions():
    """The simplest shape first, and of one shape all choices in the order that is given."""
    recipe = replace(USUAL, spare_positions=(60, 0))
    learned = candidates(task("parity"), "learned", "quick", SEEDS, recipe)
    told = [
        (model.layers, model.heads, model.width, model.spare_positions, training.learning_rate)
        for model, training in ((runs[0].decoder.model, runs[0].decoder.training) for runs in learned)
    ]
    assert told == [
        (*shape[:3], spare, rate) for shape in GRID[::2] for spare in (60, 0) for rate in (1e-3, 1e-4)
    ]
    for runs in learned:
        assert runs == tuple(runs[0].but(seed=seed) for seed in SEEDS)
    assert len(candidates(task("parity"), "none", "quick", SEEDS, recipe)) == len(GRID)


TWELVE = outcomes(12)


@settings(max_examples=60)
@given(TWELVE, TWELVE, st.sampled_from(["perfect", "end"]), st.sampled_from([(0,), (60, 0)]))
def test_a_search_that_ends_early_selects_the_same(learned, none, until, spares):
    """And trains nothing behind the round in which a candidate is perfect on two bins; no run twice. All
    models, those of the grid and those of the selected architecture, stop alike.
    """
    recipe, grid = replace(USUAL, until=until, spare_positions=spares), GRID[: 12 // len(spares)]
    tried = [candidates(cell.task, cell.positions, "quick", SEEDS, recipe, grid) for cell in CELLS]
    outcome = [shares[: len(own)] for own, shares in zip(tried, (learned, none), strict=True)]
    known = {
        run: share
        for candidates_of, ends_of in zip(tried, outcome, strict=True)
        for runs, of in zip(candidates_of, ends_of, strict=True)
        for run, share in zip(runs, of, strict=True)
    }
    trained = []

    def measure(_, runs):
        trained.extend(runs)
        return results_of(runs, [known[run] for run in runs])

    found = searched(CELLS, "quick", measure, recipe, grid, len(SEEDS))
    stops = {run.evaluation.stop for run in (*trained, *(run for cell in found for run in cell.runs))}
    assert stops == {until == "perfect"}
    assert len(trained) == len(set(trained))
    for cell, before, own, shares in zip(found, CELLS, tried, outcome, strict=True):
        perfect = [place for place, of in enumerate(shares) if all(one[:2] == (1.0, 1.0) for one in of)]
        rounds = perfect[0] // 2 + 1 if perfect else len(own) // 2
        runs = [run for runs in own for run in runs]
        assert [run for run in trained if run in runs] == runs[: 2 * rounds * len(SEEDS)]
        expected = brute(own, shares)
        if expected is None:
            firsts = [sum(one[0] for one in of) for of in shares]
            expected = own[firsts.index(max(firsts))]
            assert cell.note == NONE_PERFECT
        else:
            assert cell.note == ""
        assert (cell.task, cell.positions, cell.seeds) == (before.task, before.positions, (5, 6))
        assert cell.runs == tuple(expected[0].but(seed=seed) for seed in (5, 6))


def test_a_search_in_tables_that_lack_runs_is_not_run():
    (cell,) = CELLS[:1]
    tried = candidates(cell.task, cell.positions, "quick", SEEDS, USUAL, GRID[:4])
    there = [run for runs in tried for run in runs][:-1]

    def measure(_, asked):
        known = [run for run in asked if run in there]
        return results_of(known, [(1.0, 0.9, 0.5)] * len(known))

    (found,) = searched([cell], "quick", measure, USUAL, GRID[:4], len(SEEDS))
    assert found.runs == ()
    assert found.not_run == huang.NOT_THERE
