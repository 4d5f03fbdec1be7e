"""What stands beside an advice is what the theory wing says of the same models."""

import json
import math

import pandas as pd
import pytest

import lengthwise as lw
from lengthwise.experiments.advice import Advice
from lengthwise.experiments.decay import Prediction
from lengthwise.experiments.theory import beside_theory, construction


def advice_with(task, f, tolerance=0.01):
    prediction = Prediction(12, (10, 14), None, "")
    return Advice(task, tolerance, prediction, 13, (), pd.DataFrame(), 10**9, f)


@pytest.mark.parametrize(
    ("task", "f"),
    [
        (lw.SimpleTask(omega=4), lw.constructions.simple_task(4, 7)),
        (lw.ModPTask(period=3, residue=1), lw.constructions.mod_p(3, 1, bits=8)),
        (lw.KGramTask(k=1, vocabulary=2), lw.constructions.k_gram(1, 2, 0.5)),
    ],
)
def test_bounds_are_those_of_the_theory_wing(task, f):
    found = beside_theory(advice_with(task, f))
    assert found is not None
    assert found.tolerance == pytest.approx(0.1)
    known = construction(task, 0.1, f.precision)
    assert known is not None
    assert found.trained.bound.length == lw.bound(f, known, 0.1).length
    assert found.construction is not None
    if len(f.layers) == 1:
        assert found.construction.bound.length == lw.bound(known, None, 0.1).length
    if isinstance(f.precision, lw.Finite):
        assert found.trained.margin == f.logit_margin()
        assert found.trained.hardmax_length == f.hardmax_length()
    else:
        assert found.trained.margin == f.positional_margin()
        assert found.trained.hardmax_length is None
    json.dumps(found.to_json(), allow_nan=False)


def test_nothing_is_said_without_a_model():
    assert beside_theory(advice_with(lw.SimpleTask(), None)) is None


def test_a_task_without_a_construction_still_has_the_bound_of_its_model(monkeypatch):
    f = lw.constructions.simple_task(4, 7)
    monkeypatch.setattr("lengthwise.experiments.theory.construction", lambda *_: None)
    found = beside_theory(advice_with(lw.SimpleTask(), f))
    assert found is not None
    assert found.construction is None
    assert found.trained.bound.length == lw.bound(f, None, 0.1).length < math.inf
