"""Runs of decoders: their identity, their ensembles, their rows, and that nothing kills them."""

import dataclasses
import hashlib
import json
import subprocess
import sys

import jaxtyping
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.experiments import decoders, engine
from lengthwise.experiments.audit import audit
from lengthwise.experiments.decoders import bytes_of, most_together
from lengthwise.experiments.engine import plan, run_ensemble, train_all
from lengthwise.experiments.run import run_from
from lengthwise.experiments.store import DamagedRun
from lengthwise.models.positions import SCHEMES
from lengthwise.tasks import PREDICTION_TASKS
from lengthwise.training import start_decoders, train_decoders
from lengthwise.training.decoder_evaluation import accuracy, readings_of_bins
from lengthwise.training.workers import Workers

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")
EVALUATION = lw.DecoderEvaluation(ends=(4, 6, 9), sequences=40, every=10)
RUN = lw.Run(
    lw.task("binary-majority"),
    lw.DecoderModel(width=8),
    lw.DecoderTraining(length=4, steps=40, batch=8, learning_rate=1e-2),
    EVALUATION,
)
COPY = RUN.but(task=lw.task("copy-unique", tokens=9), layers=2, positions="learned", steps=20)
LIMIT = lw.Run(
    lw.SimpleTask(),
    lw.LimitModel(width=4, hidden=8),
    lw.Training(length=4, steps=20, batch=8),
    lw.Evaluation(lengths=(10, 30, 100, 300, 1000), sequences=64),
)


def test_ids_do_not_change():
    """Those of limit transformers are what they were before decoders had any."""
    assert lw.Run(lw.SimpleTask(omega=8), lw.LimitModel(), lw.Training(length=16)).id == "15fe68922a95c335"
    modp = lw.Run(
        lw.ModPTask(period=5, residue=1),
        lw.LimitModel(period=5, precision=lw.Finite(8)),
        lw.Training(length=16, shortest=3, seed=4),
        lw.Evaluation(lengths=(20, 200, 2000)),
    )
    assert modp.id == "7e67b8a7608d6ac5"
    again = lw.Run(
        RUN.task, RUN.model, RUN.training, lw.DecoderEvaluation(ends=[4, 6, 9], sequences=40, every=10)
    )
    assert again.id == RUN.id


@settings(max_examples=40)
@given(
    st.sampled_from(sorted(PREDICTION_TASKS)),
    st.sampled_from(SCHEMES),
    st.integers(1, 4),
    st.booleans(),
    st.integers(0, 2**40),
    st.floats(1e-6, 1),
    st.booleans(),
)
def test_a_specification_reads_back_as_the_same_run(name, positions, heads, scaled, seed, rate, stop):
    run = lw.Run(
        lw.task(name),
        lw.DecoderModel(heads=heads, width=heads * 4, positions=positions, log_scaling=scaled),
        lw.DecoderTraining(seed=seed, learning_rate=rate, regulariser=float(positions == "learned")),
        lw.DecoderEvaluation(ends=(30, 60), stop=stop),
    )
    again = run_from(json.loads(json.dumps(run.specification())))
    assert again == run
    assert again.id == run.id


@settings(max_examples=20)
@given(st.from_regex(r"(a|b|ab|\(ab\)\*){1,4}", fullmatch=True), st.sampled_from(["", "abc"]))
def test_languages_read_back_whether_or_not_they_have_a_name(expression, letters):
    plain = lw.task("language", expression=expression, letters=letters)
    evaluation = lw.DecoderEvaluation(ends=(plain.shortest,))
    run = lw.Run(plain, lw.DecoderModel(width=4), lw.DecoderTraining(), evaluation)
    assert run_from(json.loads(json.dumps(run.specification()))) == run


def test_every_field_counts():
    changes = [
        *(
            {name: value}
            for name, value in dataclasses.asdict(lw.DecoderModel(layers=2, heads=2, width=4)).items()
        ),
        {"positions": "alibi"},
        {"position_range": 77},
        {"log_scaling": True},
        {"length": 5},
        {"steps": 41},
        {"batch": 9},
        {"learning_rate": 1e-3},
        {"weight_decay": 0.5},
        {"positions": "learned", "regulariser": 1.0},
        {"positions": "learned", "spare_positions": 3},
        {"clip": 1.0},
        {"seed": 1},
        {"task": lw.task("majority", size=3)},
        *(
            {"evaluation": dataclasses.replace(EVALUATION, **change)}
            for change in ({"ends": (4, 6)}, {"sequences": 5}, {"every": 3}, {"stop": False}, {"seed": 1})
        ),
    ]
    different = {RUN.but(**change) for change in changes}
    assert len({run.id for run in different}) == len(different) >= len(changes) - 3


@pytest.mark.parametrize(
    ("part", "entry", "before", "other"),
    [("training", "clip", 0.0, 1.0), ("model", "spare_positions", 0, 2)],
)
def test_runs_from_before_an_entry_was_there_are_still_found(part, entry, before, other, tmp_path):
    """Their specifications lack it. One that has another value is another run."""
    (result,) = train_all([RUN], output=tmp_path, device="cpu")
    folder = tmp_path / RUN.id
    told = json.loads((folder / "spec.json").read_text())

    def write():
        (folder / "spec.json").write_text(json.dumps(told))
        sums = [line.split("  ")[1] for line in (folder / "SHA256SUMS").read_text().splitlines()]
        hashes = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in sums]
        lines = [f"{sha}  {name}\n" for sha, name in zip(hashes, sums, strict=True)]
        (folder / "SHA256SUMS").write_text("".join(lines))

    assert told["specification"][part].pop(entry) == before
    write()
    store = lw.Store(tmp_path)
    assert store.runs() == [RUN]
    again = store.result(RUN)
    pd.testing.assert_frame_equal(again.metrics, result.metrics)
    table = store.table()
    assert list(table[f"{part}.{entry}"].unique()) == [before]
    pd.testing.assert_frame_equal(lw.train([RUN], output=tmp_path, device="cpu"), table)
    assert [kept.run for kept in audit(store).runs] == [RUN]
    told["specification"][part][entry] = other
    write()
    with pytest.raises(DamagedRun, match="it is that of another run"):
        store.result(RUN)


def test_a_language_named_elsewhere_can_be_read(tmp_path):
    """Its name was given in the process that made the store, and means nothing, or something else, here."""
    code = f"""
import lengthwise as lw
lw.language("evens-of-a", "(aa)*b", "abc")
run = lw.Run(lw.task("evens-of-a"), lw.DecoderModel(width=4), lw.DecoderTraining(length=3, steps=2, batch=4),
             lw.DecoderEvaluation(ends=(3, 5), sequences=4))
lw.train([run], output={str(tmp_path)!r}, device="cpu")
print(run.id)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "evens-of-a" not in PREDICTION_TASKS
    store = lw.Store(tmp_path)
    (run,) = store.runs()
    assert (run.id, run.task.name) == (done.stdout.strip(), "evens-of-a")
    assert run.task.knobs == {"expression": "(aa)*b", "letters": "abc"}
    assert len(store.table()) == len(store.metrics(run)) == 3
    try:
        lw.language("evens-of-a", "(bb)*a")
        assert store.runs() == [run]
    finally:
        del PREDICTION_TASKS["evens-of-a"]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            (lw.task("copy-unique"), lw.LimitModel(), lw.DecoderTraining()),
            "copy, unique is a task of decoders: its model must be a DecoderModel, got a LimitModel",
        ),
        (
            (lw.task("copy-unique"), lw.DecoderModel(), lw.Training(length=8)),
            "its training must be a DecoderTraining, got a Training",
        ),
        (
            (lw.SimpleTask(), lw.DecoderModel(), lw.Training(length=8)),
            "SimpleTask is a task of limit transformers: its model must be a LimitModel, got a DecoderModel",
        ),
        (
            (lw.SimpleTask(), lw.LimitModel(), lw.Training(length=8), lw.DecoderEvaluation()),
            "its evaluation must be an Evaluation, got a DecoderEvaluation",
        ),
        (("simple", lw.LimitModel(), lw.Training(length=8)), "the task of a run must be one"),
        (
            (lw.task("sort"), lw.DecoderModel(positions="rotary"), lw.DecoderTraining(regulariser=1.0)),
            "is of learned positions; a model with positions 'rotary' has none",
        ),
        (
            (lw.task("addition"), lw.DecoderModel(), lw.DecoderTraining(length=3)),
            "addition has no inputs of a length up to 3: the shortest has 4",
        ),
        (
            (lw.task("sort", tokens=40), lw.DecoderModel(), lw.DecoderTraining()),
            "sort has no inputs of a length from 51 to 100",
        ),
        (
            (
                lw.task("sort"),
                lw.DecoderModel(positions="randomised", position_range=99),
                lw.DecoderTraining(),
            ),
            "a position_range of at least the longest stream, 302; it is 99",
        ),
    ],
)
def test_parts_that_do_not_belong_together(parts, message, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as for users
    with pytest.raises(ValueError, match=r"must be|has no|is of|need") as told:
        lw.Run(*parts)
    assert message in str(told.value)


def test_changes_reach_the_parts_that_have_them():
    changed = COPY.but(tokens=12, width=16, seed=3, regulariser=2.0)
    assert changed.task == lw.task("copy-unique", tokens=12)
    assert (changed.model.width, changed.training.seed) == (16, 3)
    assert changed.evaluation == EVALUATION
    with pytest.raises(ValueError, match="nothing named 'tokns' to change; did you mean 'tokens'"):
        COPY.but(tokns=3)
    with pytest.raises(ValueError, match="is of learned positions"):
        changed.but(positions="none")
    runs = lw.vary(RUN, learning_rate=[1e-2, 1e-3], seed=range(3))
    assert [(run.training.learning_rate, run.training.seed) for run in runs] == [
        (rate, seed) for rate in (1e-2, 1e-3) for seed in range(3)
    ]


WORDS = [RUN.but(task=lw.task(name)) for name in ("dyck-2", "tomita-4", "aa-star", "012-02")]


def shape(run):
    """A run without what may differ in an ensemble; all languages count as one."""
    return (WORDS[0] if run.task in [own.task for own in WORDS] else run).but(
        seed=0, learning_rate=1.0, steps=run.training.steps
    )


@given(
    st.lists(
        st.tuples(
            st.sampled_from([1e-3, 1e-2]),
            st.integers(0, 5),
            st.sampled_from([10, 20]),
            st.sampled_from([COPY, RUN, *WORDS]),
        ),
        max_size=30,
        unique=True,
    ),
    st.integers(1, 8),
)
def test_a_plan_is_a_partition_into_runs_that_may_differ_in_seed_rate_and_language_alone(cases, most):
    runs = [like.but(learning_rate=rate, seed=seed, steps=steps) for rate, seed, steps, like in cases]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoders, "MOST_ON_A_CPU", most)
        ensembles = plan([*runs, LIMIT], CPU)
    assert sorted(run.id for group in ensembles for run in group) == sorted(run.id for run in [*runs, LIMIT])
    for group in ensembles:
        assert len(group) <= most
        assert len({shape(run) for run in group}) == 1
    shapes = [shape(group[0]) for group in ensembles]
    for alike in set(shapes):
        sizes = [len(group) for group, own in zip(ensembles, shapes, strict=True) if own == alike]
        total = sum(shape(run) == alike for run in [*runs, LIMIT])
        assert (len(sizes), sum(sizes)) == (-(-total // most), total)
        assert max(sizes) - min(sizes) <= 1


def test_ensembles_fit_the_machine():
    """A GPU's memory is filled with what one model needs; on a CPU models of great width are alone."""
    paper = lw.Run(
        lw.task("copy-unique"), lw.DecoderModel(layers=2, positions="learned"), lw.DecoderTraining()
    )
    gpu = torch.device("cuda")
    assert most_together([paper], gpu, 10 * bytes_of(paper) + 1) == 10
    assert most_together([paper], gpu, 1) == 1
    wider = paper.but(width=128)
    assert 1.5 < bytes_of(wider) / bytes_of(paper) < 4
    sizes = [most_together([run], CPU, 0) for run in (RUN, paper.but(width=4), paper)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == decoders.MOST_ON_A_CPU
    assert sizes[-1] == 1


@pytest.mark.parametrize("scheme", ["learned", "alibi", "relative"])
def test_the_memory_estimate_covers_what_is_kept_for_the_gradient(scheme):
    run = COPY.but(positions=scheme, heads=2, width=32, batch=64)
    task, model, training, _ = run.decoder
    ensemble = start_decoders(model, task, [0], 9)
    examples = task.sample(training.batch, 1, training.length, torch.Generator().manual_seed(0))
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        task.loss(ensemble.forward(examples.tokens[None], examples.places[None])[0], examples).mean()
    total = sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
    data = 8 * 8 * max(decoders.DRAWN_AT_ONCE["cuda"], training.batch * examples.tokens.shape[1])
    assert total < bytes_of(run) - data < 5 * total


def test_rows_are_what_training_told():
    runs = lw.vary(RUN, seed=range(3))
    told: dict[lw.Run, list] = {run: [] for run in runs}
    results = run_ensemble(runs, CPU, None, lambda run, rows: told[run].extend(rows))
    expected = train_decoders(RUN.model, RUN.task, [run.training for run in runs], EVALUATION)
    for run, result, own in zip(runs, results, expected, strict=True):
        rows = list(
            result.metrics[["step", "test_length", "metric", "value"]].itertuples(index=False, name=None)
        )
        assert rows == told[run]
        accuracies = {(step, end): value for step, end, metric, value in rows if metric == "accuracy"}
        losses = {step: (at, value) for step, at, metric, value in rows if metric == "training_loss"}
        assert accuracies == {
            (step, end): float(right)
            for step, rights in zip(own.steps, own.accuracy, strict=True)
            for end, right in zip((4, 6, 9), rights, strict=True)
        }
        assert losses == {step: (4, float(loss)) for step, loss in zip(own.steps, own.loss, strict=True)}
        assert len(rows) == 4 * len(own.steps)
        for name, value in own.weights.items():
            assert torch.equal(result.weights[name], value)


def test_the_table_of_accuracies():
    runs = [
        *lw.vary(RUN, seed=range(2), steps=[40, 80]),
        COPY.but(evaluation=lw.DecoderEvaluation(ends=(3,))),
    ]
    results = lw.train(runs)
    table = lw.accuracies(results)
    assert list(table["run"]) == [run.id for run in runs]
    assert list(table.columns) == [
        *("run", "task", "positions", "training_length", "seed", "learning_rate", "steps"),
        *("accuracy_3", "accuracy_4", "accuracy_6", "accuracy_9", "perfect"),
    ]
    assert list(table["task"]) == ["binary-majority"] * 4 + ["copy-unique"]
    assert list(table["positions"]) == ["none"] * 4 + ["learned"]
    for row in table.to_dict("records"):
        own = results[results["run"] == row["run"]]
        assert row["steps"] == own["step"].max()
        last = own[(own["step"] == row["steps"]) & (own["metric"] == "accuracy")]
        for end, value in zip(last["test_length"], last["value"], strict=True):
            assert row[f"accuracy_{end}"] == value
        assert row["perfect"] == (last["value"].iloc[0] == 1)
        assert sum(pd.notna(row[f"accuracy_{end}"]) for end in (3, 4, 6, 9)) == len(last)
    assert lw.accuracies(results.iloc[:0]).empty


def test_families_side_by_side(tmp_path):
    runs = [RUN, LIMIT, COPY]
    results = lw.train(runs, output=tmp_path)
    assert list(results["run"].unique()) == [run.id for run in runs]
    of_limit, of_decoders = results["run"] == LIMIT.id, results["run"] != LIMIT.id
    alone = lw.train([LIMIT])
    assert lw.plateaus(results[of_limit]).equals(lw.plateaus(alone))
    assert list(lw.accuracies(results[of_decoders])["run"]) == [RUN.id, COPY.id]
    for rows in (results, results[of_decoders]):
        with pytest.raises(ValueError, match=r"decoders .* have no plateau: see lw.accuracies"):
            lw.plateaus(rows)
    for rows in (results, results[of_limit]):
        with pytest.raises(ValueError, match=r"is of a limit transformer.*: see lw.plateaus"):
            lw.accuracies(rows)


def test_the_store_keeps_models_that_work(tmp_path):
    lw.train([COPY, LIMIT], output=tmp_path)
    store = lw.Store(tmp_path)
    task, model, _, evaluation = COPY.decoder
    ensemble = start_decoders(model, task, [9], 9)
    ensemble.stack.load(0, store.weights(COPY))
    with Workers(1) as workers:
        tests = {task: readings_of_bins(ensemble, task, evaluation)}
        found = accuracy(ensemble, [task], tests, workers)
    rows = store.metrics(COPY)
    last = rows[(rows["metric"] == "accuracy") & (rows["step"] == rows["step"].max())]
    assert found[0].tolist() == last["value"].tolist()
    with pytest.raises(ValueError, match="holds a decoder, which is no limit transformer"):
        store.transformer(COPY.id)
    assert isinstance(store.transformer(LIMIT.id), lw.LimitTransformer)


def test_a_killed_and_resumed_sweep_is_the_undisturbed_one(tmp_path, monkeypatch):
    """Killed after its first ensemble, and again within the third."""
    monkeypatch.setattr(decoders, "MOST_ON_A_CPU", 2)
    runs = [*lw.vary(RUN, seed=range(5)), *lw.vary(COPY, learning_rate=[1e-2, 1e-3])]
    undisturbed = lw.train(runs, output=tmp_path / "whole")
    whole, calls = engine.run_ensemble, []

    def dying(group, *others):
        calls.append(len(group))
        if len(calls) in (2, 4):
            raise KeyboardInterrupt
        return whole(group, *others)

    monkeypatch.setattr(engine, "run_ensemble", dying)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            lw.train(runs, output=tmp_path / "killed")
    resumed = lw.train(runs, output=tmp_path / "killed")
    assert len(calls) == 4 + 2  # of four ensembles, each that finished was trained once
    pd.testing.assert_frame_equal(resumed, undisturbed, check_exact=True)
    for run in runs:
        for name in ("metrics.parquet", "weights.safetensors"):
            ours, theirs = (tmp_path / folder / run.id / name for folder in ("killed", "whole"))
            assert ours.read_bytes() == theirs.read_bytes()
