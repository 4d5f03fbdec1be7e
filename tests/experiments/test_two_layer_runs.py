"""Two-layer runs through the engine: trained on strings, stored, resumed, measured, read by the theory."""

import torch

import lengthwise as lw
from lengthwise.experiments.results import NO_LENGTH, curves
from lengthwise.training import loss_at_length, start_ensemble, train_on_tokens
from lengthwise.training.data import draw_strings
from lengthwise.training.randomness import generator

MODEL = lw.LimitModel(width=8, hidden=0, heads=2, layers=2, locality=1)
TASK = lw.KGramTask(k=1, vocabulary=2)


def runs(steps=5):
    evaluation = lw.Evaluation(lengths=(20, 40, 80), sequences=32)
    return [
        lw.Run(TASK, MODEL, lw.Training(length=length, steps=steps, batch=8, seed=seed), evaluation)
        for length in (6, 9)
        for seed in (0, 1)
    ]


def test_rows_are_the_same_alone_and_from_the_store(tmp_path):
    whole = lw.train(runs())
    assert set(whole["test_length"]) == {NO_LENGTH, 6, 9, 20, 40, 80}
    assert len(curves(whole)) == 4
    assert all(curve.plateau.value == curve.limit[0] for curve in curves(whole))
    lw.train(runs()[:2], output=tmp_path)
    resumed = lw.train(runs(), output=tmp_path)
    assert (resumed["value"] == whole["value"]).all()
    f = lw.Store(tmp_path).transformer(runs()[0].id)
    assert (len(f.layers), f.locality, f.vocabulary) == (2, 1, 2)


def test_strings_made_together_come_from_each_models_own_stream():
    streams = [generator(seed, "data") for seed in range(3)]
    together = draw_strings([TASK] * 3, 4, 10, streams)
    for seed in range(3):
        assert torch.equal(together[seed], TASK.sample(4, 10, generator(seed, "data")))


def test_measured_loss_is_that_of_the_limit_transformer_on_the_same_strings():
    ensemble = start_ensemble(MODEL, TASK, [0, 1], dtype=torch.float64)
    train_on_tokens(ensemble, [TASK] * 2, [lw.Training(length=8, steps=20, batch=16, seed=s) for s in (0, 1)])
    evaluation = lw.Evaluation(lengths=(30,), sequences=50, seed=3)
    measured = loss_at_length(ensemble, [TASK] * 2, 30, evaluation)
    tokens = TASK.sample(50, 30, generator(3, "evaluation"))
    for index in range(2):
        output = ensemble.transformer(index).evaluate(tokens, "reference")
        expected = TASK.loss(output, TASK.target(tokens)).mean()
        torch.testing.assert_close(measured.loss[index], expected, rtol=1e-8, atol=1e-10)


def test_an_induction_head_is_learnt():
    """The 1-gram over two tokens, at length 16: at length 500 the loss is far below the best constant's."""
    evaluation = lw.Evaluation(lengths=(500,), sequences=256)
    model = lw.LimitModel(width=32, hidden=0, heads=2, layers=2, locality=1)
    trainings = [lw.Training(length=16, steps=600, batch=64, seed=seed) for seed in (0, 1, 2)]
    results = lw.train([lw.Run(TASK, model, training, evaluation) for training in trainings])
    far = results[results["test_length"] == 500]
    loss = far[far["metric"] == "loss"]["value"].median()
    assert loss < 0.3 * far[far["metric"] == "baseline"]["value"].median()
