"""The suites of Huang et al.: what is run, and outcomes over all seeds."""

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suite_results import SHARES, results_of

from lengthwise.experiments import huang
from lengthwise.experiments.published import LARGEST, PUBLISHED
from lengthwise.experiments.selection import candidates, grid_up_to
from lengthwise.experiments.verdicts import agreement, verdicts
from lengthwise.tasks import ALGORITHMIC, FORMAL

REPRODUCTIONS = Path(__file__).parents[2] / "docs/reproductions/huang"


def test_every_published_cell_is_on_the_side_of_its_program():
    """What is enough was chosen so: above it with a program, below it without."""
    for schemes in PUBLISHED.values():
        for published in schemes.values():
            assert (published.accuracy[2] >= 100 * huang.ENOUGH) == published.program
    assert set(PUBLISHED) == {*ALGORITHMIC, *FORMAL} - {"parity-language"}


def test_cells_at_the_papers_scale():
    cells = huang.cells("algorithmic", "paper", seeds=6, seed=50)
    assert len(cells) == 8 * 4
    for cell in cells:
        published = PUBLISHED[cell.task.name]
        expected = published.get(cell.positions, published["learned"]).shape
        assert cell.seeds == tuple(range(50, 56))
        if expected == LARGEST:
            assert cell.runs == ()
            assert "12 layers" in str(cell.not_run)
            continue
        assert [run.training.seed for run in cell.runs] == list(range(50, 56))
        for run in cell.runs:
            parts = run.decoder
            shape = (parts.model.layers, parts.model.heads, parts.model.width, parts.training.learning_rate)
            assert shape == tuple(expected)
            assert (parts.training.steps, parts.training.batch, parts.training.length) == (30_000, 64, 50)
            assert (parts.evaluation.ends, parts.evaluation.every) == ((50, 100, 150), 3000)
    assert sum(cell.not_run is not None for cell in cells) == 6
    assert len(huang.cells("formal", "paper")) == 18 * 2
    recipe = replace(huang.RECIPES["algorithmic", "paper"], regulariser=1e-4)
    regularised = huang.cells("algorithmic", "paper", tasks=["majority"], recipe=recipe)
    factors = {cell.positions: cell.runs[0].decoder.training.regulariser for cell in regularised}
    assert factors == {"learned": 1e-4, "none": 0.0, "rotary": 0.0, "alibi": 0.0}


@pytest.mark.parametrize("scale", ["quick", "paper"])
@pytest.mark.parametrize("suite", ["algorithmic", "formal"])
def test_models_are_trained_by_the_recipe(suite, scale):
    usual = huang.RECIPES[suite, scale]
    for recipe in (
        usual,
        replace(usual, until="end", steps=70),
        replace(usual, until="perfect", clip=0.5, rounding="none", spare_positions=(7, 0)),
    ):
        cells = huang.cells(suite, scale, recipe=None if recipe is usual else recipe)
        for run in (run for cell in cells for run in cell.runs):
            _, model, training, evaluation = run.decoder
            assert training.steps == recipe.steps
            assert (training.clip, training.rounding) == (recipe.clip, recipe.rounding)
            assert evaluation.stop == (recipe.until == "perfect")
            learned = model.positions == "learned"
            assert model.spare_positions == (recipe.spare_positions[0] if learned else 0)
        for cell, other in zip(cells, huang.cells(suite, scale), strict=True):
            assert cell.published == other.published


def test_models_stop_when_they_are_perfect_but_at_the_papers_scale_languages_train_to_the_end():
    assert {pair: recipe.until for pair, recipe in huang.RECIPES.items()} == {
        ("algorithmic", "quick"): "perfect",
        ("algorithmic", "paper"): "perfect",
        ("formal", "quick"): "perfect",
        ("formal", "paper"): "end",
    }
    assert {recipe.clip for recipe in huang.RECIPES.values()} == {1.0}


def test_committed_results_are_those_of_todays_runs():
    """Results from before gradients could be shortened among them: their ids have not changed."""
    first = huang.Recipe(steps=30_000, until="perfect", clip=0, rounding="bfloat16")
    recipes = {
        "languages": huang.RECIPES["formal", "paper"],
        "formal-search": first,
        "formal-search-end": replace(first, until="end"),
    }
    formal = {name: huang.cells("formal", "paper", recipe=recipe) for name, recipe in recipes.items()}

    def grid(name, selecting):
        for cell in formal[name]:
            found = candidates(cell.task, cell.positions, "paper", [0], recipes[name], grid_up_to("2/2/64"))
            behind = range(max(cell.seeds) + 1, max(cell.seeds) + 1 + selecting)
            yield from (run.but(seed=seed) for (run,) in found for seed in (*cell.seeds, *behind))

    unshortened = replace(huang.RECIPES["algorithmic", "paper"], clip=0)
    cells = {
        "algorithmic": huang.cells("algorithmic", "paper"),
        "algorithmic-unshortened": huang.cells("algorithmic", "paper", recipe=unshortened),
        "formal-1": formal["formal-search"],
        "formal-end": formal["formal-search-end"],
    }
    possible = {name: [run for cell in own for run in cell.runs] for name, own in cells.items()}
    possible |= {name: grid(name, 3 if name == "languages" else 1) for name in recipes}
    for name, runs in possible.items():
        known = {*pd.read_parquet(REPRODUCTIONS / f"{name}.parquet", columns=["run"])["run"]}
        assert known
        assert known <= {run.id for run in runs}


def test_quick_cells_have_nothing_published_of_other_lengths():
    assert all(cell.published is None for cell in huang.cells("algorithmic", "quick"))
    learned, none = huang.cells("algorithmic", "paper", tasks=["sort"], schemes=["learned", "none"])
    assert learned.published.accuracy == (100.0, 100.0, 99.4)
    assert none.published.accuracy == (100.0, 99.8, 80.6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": ["copy-uniqe"]}, "has no task 'copy-uniqe'.*copy-unique"),
        ({"tasks": ["dyck-2"]}, "the algorithmic suite has no task 'dyck-2'"),
        ({"schemes": ["rotatory"]}, "no scheme of positions 'rotatory'.*rotary"),
        ({"seeds": 0}, "seeds must be at least 1"),
    ],
)
def test_mistakes(changes, message):
    with pytest.raises(ValueError, match=message):
        huang.cells("algorithmic", "quick", **changes)


@settings(max_examples=25)
@given(st.lists(st.tuples(SHARES, SHARES, SHARES), min_size=7, max_size=7), st.integers(0, 2))
def test_outcomes_count_every_seed(shares, other):
    cells = huang.cells("algorithmic", "quick", tasks=["binary-majority", "parity"], seeds=7, seed=3)
    cells = [cell for cell in cells if cell.positions == "none"]
    runs = [run for cell in cells for run in cell.runs]
    results = results_of(runs, [*shares, *([(1.0, 1.0, other / 2)] * 7)])
    first, second = huang.outcomes(cells, results).to_dict("records")
    for number in (1, 2, 3):
        column = [own[number - 1] for own in shares]
        assert first[f"mean_{number}"] == pytest.approx(sum(column) / 7)
        assert (first[f"low_{number}"], first[f"high_{number}"]) == (min(column), max(column))
        five = [own[number - 1] for own in shares if own[0] == 1.0][:5]
        if len(five) == 5:
            assert first[f"five_{number}"] == pytest.approx(sum(five) / 5)
        else:
            assert math.isnan(first[f"five_{number}"])
    assert (first["seeds"], first["perfect"]) == (7, sum(own[0] == 1.0 for own in shares))
    assert first["generalises"] == (sorted(own[2] for own in shares)[3] >= 0.7)
    assert second["generalises"] == (other == 2)


def test_agreement_leaves_out_what_is_not_decided_or_not_run():
    cells = huang.cells(
        "algorithmic",
        "paper",
        tasks=["binary-majority", "parity", "sort"],
        schemes=["learned", "none", "rotary"],
        seeds=2,
    )
    good, bad = (1.0, 1.0, 0.95), (1.0, 0.5, 0.4)
    outcome = {"binary-majority": good, "parity": good, "sort": bad}
    runs = [run for cell in cells for run in cell.runs]
    found = verdicts(cells, results_of(runs, [outcome[run.task.name] for run in runs]))
    told = {
        (row["task"], row["positions"]): None if pd.isna(row["agrees"]) else bool(row["agrees"])
        for row in found.to_dict("records")
    }
    assert told == {
        ("binary-majority", "learned"): True,
        ("binary-majority", "none"): True,
        ("binary-majority", "rotary"): None,  # no theorem speaks of it
        ("parity", "learned"): False,  # theory says no, the outcome here is yes
        ("parity", "none"): None,  # not run
        ("parity", "rotary"): None,
        ("sort", "learned"): None,  # finitely many inputs
        ("sort", "none"): None,
        ("sort", "rotary"): None,
    }
    assert agreement(found) == (2, 3)


def test_cells_whose_runs_are_missing_are_not_run():
    cells = huang.cells("algorithmic", "quick", tasks=["parity"], seeds=2)
    results = results_of(cells[0].runs, [(1.0, 1.0, 1.0)] * 2)
    first, second = huang.there(cells, results)
    assert first == cells[0]
    assert second.runs == ()
    assert second.not_run == huang.NOT_THERE
