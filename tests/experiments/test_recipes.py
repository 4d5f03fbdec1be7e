"""What is trained by default can solve its task, and the published grids are whole."""

import itertools
from typing import get_args

import pytest
import torch

import lengthwise as lw
from lengthwise.experiments.izzo import FIRST_SEED, Figure, Scale, studies
from lengthwise.experiments.recipes import recipe
from lengthwise.experiments.theory import construction


@pytest.mark.parametrize(
    "task", [lw.SimpleTask(), lw.ModPTask(period=5, residue=2), lw.KGramTask(k=3, vocabulary=2)]
)
def test_a_recipe_has_the_shape_that_theory_asks_for(task):
    found = recipe(task)
    assert found.model.period == task.theory.period
    assert (found.model.locality or 0) == task.theory.locality
    known = construction(task, 0.1, found.model.precision)
    assert known is not None
    assert found.model.layers == len(known.layers)
    assert found.model.heads >= max(layer.heads for layer in known.layers)
    assert found.run(task).training.length >= task.shortest


@pytest.mark.parametrize("tolerance", [0.3, 0.1, 0.01])
@pytest.mark.parametrize(
    "task", [lw.SimpleTask(omega=8), lw.ModPTask(period=5, residue=2), lw.KGramTask(k=1, vocabulary=3)]
)
def test_constructions_are_within_half_the_tolerance(task, tolerance):
    """Where strings are long enough for a context to recur (k-gram); elsewhere at every length."""
    precision = lw.Infinite() if task.name == "kgram" else lw.Finite(16)
    f = construction(task, tolerance, precision)
    for length in (2000,) if task.name == "kgram" else (5, 20, 301):
        tokens = task.sample(64, length, torch.Generator().manual_seed(length))
        target = task.target(tokens)
        known = ~target.isnan().any(-1)
        errors = torch.linalg.vector_norm(f(tokens[known]) - target[known], dim=-1)
        if task.name == "kgram":
            common = torch.stack([(row == row[-1]).double().mean() for row in tokens[known]]) > 1 / 3
            errors = errors[common]
            assert len(errors) > 10
        assert float(errors.max()) <= tolerance / 2 + 0.02 * (task.name == "kgram")


@pytest.mark.parametrize(("figure", "scale"), list(itertools.product(get_args(Figure), get_args(Scale))))
def test_every_study_is_a_whole_grid(figure, scale):
    for study in studies(figure, scale):
        part, name = study.knob.split(".")
        assert part == "task"
        points = [(r.task.knobs[name], r.training.length, r.training.seed) for r in study.runs]
        knobs, lengths, seeds = map(set, zip(*points, strict=True))
        assert sorted(points) == sorted(itertools.product(knobs, lengths, seeds))
        assert study.shown in knobs
        assert len(seeds) >= 5
        assert min(seeds) >= FIRST_SEED
        if figure != "figure3":
            assert len(knobs) >= (5 if scale == "paper" else 3)
            assert len(lengths) >= (5 if scale == "paper" else 3)
        for run in study.runs:
            lw.plateau(run.test_lengths, [1.0] * len(run.test_lengths), [0.0] * len(run.test_lengths))


def test_figure_three_looks_at_the_models_of_figure_two():
    (all_of_it,), (shown,) = studies("figure2"), studies("figure3")
    assert set(shown.runs) == {run for run in all_of_it.runs if run.task == lw.ModPTask(period=5, residue=1)}
