"""A run's identity follows from its specification and from nothing else."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.experiments.run import run_from

RUN = lw.Run(lw.SimpleTask(omega=8), lw.LimitModel(), lw.Training(length=16))


@given(
    st.floats(0.1, 100),
    st.integers(1, 2**53),
    st.integers(0, 2**40),
    st.floats(1e-6, 1),
    st.sampled_from([lw.Infinite(), lw.Finite(8), lw.Finite(0.5)]),
    st.sampled_from([None, 0, 3]),
)
def test_a_specification_reads_back_as_the_same_run(omega, length, seed, rate, precision, locality):
    run = lw.Run(
        lw.SimpleTask(omega=omega),
        lw.LimitModel(period=3, locality=locality, precision=precision),
        lw.Training(length=length, seed=seed, learning_rate=rate),
        lw.Evaluation(lengths=(10, 1000, 10**9)),
    )
    again = run_from(json.loads(json.dumps(run.specification())))
    assert again == run
    assert again.id == run.id


def test_equal_specifications_have_one_id_however_they_are_written():
    assert lw.Run(lw.task("simple", omega=8), lw.LimitModel(), lw.Training(length=16)).id == RUN.id
    evaluation = lw.Evaluation(lengths=list(lw.Evaluation().lengths))  # pyright: ignore
    assert dataclasses.replace(RUN, evaluation=evaluation).id == RUN.id


def test_every_field_counts():
    variants = [
        RUN,
        dataclasses.replace(RUN, task=lw.SimpleTask(omega=9)),
        dataclasses.replace(RUN, task=lw.SimpleTask(concentration=2)),
        *(
            dataclasses.replace(RUN, model=dataclasses.replace(RUN.model, **{name: value}))
            for name, value in {
                "width": 65,
                "hidden": 255,
                "heads": 2,
                "period": 2,
                "locality": 0,
                "precision": lw.Finite(8),
            }.items()
        ),
        *(
            dataclasses.replace(RUN, training=dataclasses.replace(RUN.training, **{name: value}))
            for name, value in {"length": 17, "steps": 1, "batch": 1, "learning_rate": 1.0, "seed": 1}.items()
        ),
        *(
            dataclasses.replace(RUN, evaluation=dataclasses.replace(RUN.evaluation, **{name: value}))
            for name, value in {"lengths": (10, 20), "sequences": 5, "seed": 1}.items()
        ),
    ]
    assert len({run.id for run in variants}) == len(variants)


def test_the_id_is_the_same_in_another_process():
    run = "lw.Run(lw.SimpleTask(omega=8), lw.LimitModel(), lw.Training(length=16))"
    code = f"import lengthwise as lw; print({run}.id)"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == RUN.id


@pytest.mark.parametrize(
    "damage",
    [
        lambda spec: spec.pop("model"),
        lambda spec: spec["model"].update(wdth=3),
        lambda spec: spec["model"]["precision"].update(kind="exact"),
        lambda spec: spec["task"].update(name="simpel"),
        lambda spec: spec["training"].update(length=-1),
        lambda spec: spec.update(evaluation=7),
    ],
)
def test_what_is_not_a_specification_is_refused(damage):
    specification = json.loads(json.dumps(RUN.specification()))
    damage(specification)
    with pytest.raises(ValueError, match=r"\w"):
        run_from(specification)


def test_changes_reach_the_parts_that_have_them():
    modp = lw.Run(lw.ModPTask(period=5, residue=1), lw.LimitModel(period=5), lw.Training(length=16))
    changed = modp.but(period=3, seed=7, length=9, width=8)
    assert changed.task == lw.ModPTask(period=3, residue=1)
    assert changed.model == lw.LimitModel(period=3, width=8)
    assert changed.training == lw.Training(length=9, seed=7)
    assert changed.evaluation == modp.evaluation  # whose own seed is another matter
    whole = modp.but(task=lw.SimpleTask(omega=2), model=lw.LimitModel(), omega=3)
    assert whole.task == lw.SimpleTask(omega=3)
    assert modp.but() == modp
    with pytest.raises(ValueError, match="nothing named 'omgea' to change; did you mean 'omega'"):
        RUN.but(omgea=3)


def test_vary_is_the_product_in_order():
    runs = lw.vary(RUN, omega=[4, 8], length=[16, 32], seed=range(3))
    found = [(run.task.knobs["omega"], run.training.length, run.training.seed) for run in runs]
    assert found == [(w, n, s) for w in (4, 8) for n in (16, 32) for s in range(3)]
    assert len({run.id for run in runs}) == 12
    assert lw.vary(RUN) == [RUN]
    assert lw.vary(RUN, seed=[]) == []
