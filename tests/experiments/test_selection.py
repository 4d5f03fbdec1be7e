"""The paper's grid and its rule: what is selected is what going through the whole grid would select."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suite_results import SHARES, results_of

from lengthwise.experiments import huang
from lengthwise.experiments.selection import GRID, NONE_PERFECT, grid_up_to, search_runs, searched, select
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


@settings(max_examples=40)
@given(st.lists(st.tuples(SHARES, SHARES, SHARES), min_size=6, max_size=6))
def test_selection_is_the_papers(shares):
    """Perfect on the first bin, best on the second, simplest among equals, by going through all."""
    runs = search_runs(task("parity"), "none", "quick", 1, GRID[:6])
    assert select(runs, results_of(runs, shares)) == brute(runs, shares)


def brute(runs, shares):
    expected, best = None, -1.0
    for run, (first, second, _) in zip(runs, shares, strict=True):
        if first == 1.0 and second > best:
            expected, best = run, second
    return expected


GOOD = st.tuples(st.just(1.0), st.sampled_from([0.3, 0.9, 1.0, 1.0]), SHARES)
TWELVE = st.lists(st.one_of(GOOD, st.tuples(SHARES, SHARES, SHARES)), min_size=12, max_size=12)


@settings(max_examples=60)
@given(TWELVE, TWELVE, st.sampled_from(["perfect", "end"]))
def test_a_search_that_ends_early_selects_the_same(learned, none, until):
    """And trains nothing behind the round in which a run is perfect on two bins; no run twice. All models,
    those of the grid and those of the selected architecture, stop alike.
    """
    grids = [search_runs(cell.task, cell.positions, "quick", 7, GRID[:12], until) for cell in CELLS]
    known = {
        run: own
        for runs, of in zip(grids, (learned, none), strict=True)
        for run, own in zip(runs, of, strict=True)
    }
    trained = []

    def measure(_, runs):
        trained.extend(runs)
        return results_of(runs, [known[run] for run in runs])

    found = searched(CELLS, "quick", measure, GRID[:12], until)
    stops = {run.evaluation.stop for run in (*trained, *(run for cell in found for run in cell.runs))}
    assert stops == {until == "perfect"}
    assert len(trained) == len(set(trained))
    for cell, before, runs, shares in zip(found, CELLS, grids, (learned, none), strict=True):
        expected = brute(runs, shares)
        perfect = [place for place, own in enumerate(shares) if own[:2] == (1.0, 1.0)]
        rounds = perfect[0] // 2 + 1 if perfect else 6
        assert [run for run in trained if run in runs] == runs[: 2 * rounds]
        if expected is None:
            best = max(own[0] for own in shares)
            expected = next(run for run, own in zip(runs, shares, strict=True) if own[0] == best)
            assert cell.note == NONE_PERFECT
        else:
            assert cell.note == ""
        assert (cell.task, cell.positions, cell.seeds) == (before.task, before.positions, (5, 6))
        assert cell.runs == tuple(expected.but(seed=seed) for seed in (5, 6))


def test_a_search_in_tables_that_lack_runs_is_not_run():
    (cell,) = CELLS[:1]
    runs = search_runs(cell.task, cell.positions, "quick", 7, GRID[:4])
    there = runs[:3]

    def measure(_, asked):
        known = [run for run in asked if run in there]
        return results_of(known, [(1.0, 0.9, 0.5)] * len(known))

    (found,) = searched([cell], "quick", measure, GRID[:4])
    assert found.runs == ()
    assert found.not_run == huang.NOT_THERE
