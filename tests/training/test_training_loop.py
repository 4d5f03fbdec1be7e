"""Training: neighbours do not matter, counts and tokens agree, and models learn what they should."""

import dataclasses

import pytest
import torch

import lengthwise as lw
from lengthwise.experiments.recipes import recipe
from lengthwise.sequences import summarize
from lengthwise.training import loss_at_length, start_ensemble, train_on_counts, train_on_tokens
from lengthwise.training.data import count_batches, steps_at_once, token_batches
from lengthwise.training.loop import cosine
from lengthwise.training.randomness import generator

MODEL = lw.LimitModel(width=8, hidden=16)


def weights_after(trainings, tasks, train=train_on_counts, dtype=torch.float64):
    ensemble = start_ensemble(MODEL, tasks[0], [t.seed for t in trainings], dtype=dtype)
    curve = train(ensemble, tasks, trainings)
    return [ensemble.stack.weights(index) for index in range(ensemble.size)], curve


def test_a_result_does_not_depend_on_the_neighbours():
    """Neither on who they are nor on their order, length, rate or task knobs."""
    trainings = [
        lw.Training(length=4, steps=40, batch=16, seed=0),
        lw.Training(length=9, steps=40, batch=16, seed=1, learning_rate=1e-2),
        lw.Training(length=30, steps=40, batch=16, seed=2),
    ]
    tasks = [lw.SimpleTask(omega=omega) for omega in (2, 4, 8)]
    together, curve = weights_after(trainings, tasks)
    for index in range(3):
        (alone,), own = weights_after([trainings[index]], [tasks[index]])
        for name, value in alone.items():
            torch.testing.assert_close(together[index][name], value, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(curve.loss[index], own.loss[0], rtol=1e-9, atol=1e-12)
    backwards, _ = weights_after(trainings[::-1], tasks[::-1])
    for name, value in together[0].items():
        torch.testing.assert_close(backwards[2][name], value, rtol=1e-9, atol=1e-12)


class TokensOnly(lw.Task):
    """SimpleTask without its short cut."""

    name, title = "tokens-only", "TokensOnly"
    alphabet, outputs = lw.SimpleTask().alphabet, 1
    theory = lw.SimpleTask().theory

    def sample(self, batch, length, generator):
        return lw.SimpleTask().sample(batch, length, generator)

    def target(self, tokens):
        return lw.SimpleTask().target(tokens)


def test_training_on_summaries_of_strings_is_training_on_the_strings():
    """A task that samples only strings draws the same ones on both paths: the weights must agree."""
    tasks = [TokensOnly()] * 2
    trainings = [lw.Training(length=7, steps=30, batch=16, seed=seed) for seed in range(2)]
    by_counts, _ = weights_after(trainings, tasks)
    by_tokens, _ = weights_after(trainings, tasks, train_on_tokens)
    for one, other in zip(by_counts, by_tokens, strict=True):
        for name, value in one.items():
            torch.testing.assert_close(other[name], value, rtol=1e-6, atol=1e-9)


def test_data_streams_are_those_of_the_task():
    """Each model's batches are its own stream's draws, cut into steps."""
    task, batch, length = lw.SimpleTask(), 8, 5
    for seed in (0, 1):
        streams = [generator(s, "data") for s in (seed, 5)]
        counts, suffix, lengths, target = next(
            count_batches([task] * 2, [length, 9], batch, streams, period=1, locality=0)
        )
        again = task.sample_counts(steps_at_once(batch, 1) * batch, length, generator(seed, "data"))
        assert torch.equal(counts[0], again.counts[:batch])
        assert torch.equal(suffix[0], again.suffix[:batch])
        assert lengths.tolist() == [[length] * batch, [9] * batch]
        torch.testing.assert_close(target[0], task.target_of_counts(again)[:batch])
        tokens, target = next(token_batches([task], length, batch, [generator(seed, "data")]))
        torch.testing.assert_close(target[0], task.target(tokens[0]))
        assert summarize(tokens, 2).counts.sum() == batch * (length - 1)


def test_streams_differ_by_seed_and_purpose():
    first = {
        (seed, purpose): torch.randint(2**40, (), generator=generator(seed, purpose)).item()
        for seed in range(20)
        for purpose in ("data", "weights", "evaluation")
    }
    assert len(set(first.values())) == len(first)


def test_schedule():
    assert cosine(0, 100) == 1.0
    assert cosine(50, 100) == pytest.approx(0.5)
    assert all(cosine(step, 100) > cosine(step + 1, 100) > 0 for step in range(98))


def test_models_learn_the_task_and_generalise_as_far_as_the_training_length_allows():
    """Longer training sequences: a lower loss at a million tokens, by more than an order of magnitude."""
    lengths = (4, 8, 32)
    task = lw.SimpleTask(omega=4)
    trainings = [
        lw.Training(length=n, steps=700, batch=128, learning_rate=3e-3, seed=s)
        for n in lengths
        for s in (0, 1, 2)
    ]
    tasks = [task] * len(trainings)
    ensemble = start_ensemble(lw.LimitModel(width=32, hidden=64), task, [t.seed for t in trainings])
    curve = train_on_counts(ensemble, tasks, trainings)
    assert curve.steps[-1] == 700
    assert len(curve.steps) == curve.loss.shape[1] == 20
    assert (curve.loss[:, -1] < 0.02 * curve.loss[:, 0]).all()
    measured = loss_at_length(ensemble, tasks, 10**6, lw.Evaluation())
    median = measured.loss.view(3, 3).median(-1).values
    assert median[0] > median[1] > median[2]
    assert median[0] > 10 * median[2]
    assert median[2] < 0.01 * measured.baseline[0]


def test_a_diverging_model_leaves_the_others_alone():
    trainings = [lw.Training(length=4, steps=30, batch=16, seed=s) for s in range(2)]
    tasks = [lw.SimpleTask()] * 2
    wild = [dataclasses.replace(trainings[0], learning_rate=1e30), trainings[1]]
    calm, _ = weights_after(trainings, tasks)
    beside, curve = weights_after(wild, tasks)
    assert not torch.isfinite(curve.loss[0]).all() or curve.loss[0].max() > 1e20
    for name, value in calm[1].items():
        torch.testing.assert_close(beside[1][name], value, rtol=1e-9, atol=1e-12)


def test_settings_that_are_none():
    for wrong in ({"steps": 0}, {"batch": -1}, {"learning_rate": 0.0}, {"seed": -1}, {"length": 0}):
        with pytest.raises(ValueError, match="must be"):
            lw.Training(**{"length": 4} | wrong)


def test_lengths_that_vary_teach_every_residue():
    """ModPTask: trained at one length, a model has met one query residue and fails at others; trained at
    lengths up to it, it works at all.
    """
    task, model = lw.ModPTask(period=3, residue=1), lw.LimitModel(width=32, hidden=0, period=3)
    worst = {}
    for shortest in (None, 1):
        training = lw.Training(length=12, shortest=shortest, steps=600, batch=64, learning_rate=2e-3)
        ensemble = start_ensemble(model, task, [0])
        train_on_counts(ensemble, [task], [training])
        far = lw.evaluate(ensemble.transformer(0), task, [10**6, 10**6 + 1, 10**6 + 2]).losses
        assert min(far) < 1e-3
        worst[shortest] = max(far)
        # The lab's loss at a length is the mean over the residues at which a string may end.
        measured = loss_at_length(ensemble, [task], 10**6 + 2, lw.Evaluation(sequences=20_000))
        assert float(measured.loss[0]) == pytest.approx(sum(far) / 3, rel=0.1)
    assert worst[1] < 1e-3 < worst[None]


def test_lengths_are_uniform_from_the_shortest_to_the_longest():
    task = lw.SimpleTask()
    batches = count_batches([task], [6], 500, [generator(0, "data")], period=1, locality=0, shortest=[3])
    lengths = torch.cat([next(batches)[2].flatten() for _ in range(8)])
    assert sorted(set(lengths.tolist())) == [3, 4, 5, 6]
    share = torch.bincount(lengths)[3:].double() / len(lengths)
    assert (share - 0.25).abs().max() < 0.03


def test_mistakes_of_lengths_that_vary():
    with pytest.raises(ValueError, match="shortest training length must be at most the longest, 4, got 5"):
        lw.Training(length=4, shortest=5)
    with pytest.raises(ValueError, match="shortest training length must be between 1"):
        lw.Training(length=4, shortest=0)
    run = lw.Run(lw.ModPTask(period=5), lw.LimitModel(period=5), lw.Training(length=9, shortest=2, steps=1))
    with pytest.raises(ValueError, match="needs strings of at least 5 tokens, got 2"):
        lw.train([run])
    two = lw.LimitModel(layers=2, width=4, hidden=0, locality=1)
    run = lw.Run(lw.KGramTask(k=1), two, lw.Training(length=9, shortest=2, steps=1))
    with pytest.raises(ValueError, match="shortest must be None"):
        lw.train([run])


@pytest.mark.parametrize(
    ("task", "length", "steps"),
    [
        (lw.SimpleTask(omega=4), 10, 200),
        (lw.ModPTask(period=2, residue=1), 8, 200),
        (lw.KGramTask(k=1, vocabulary=2), 16, 100),
    ],
)
def test_float32_gives_the_losses_of_float64(task, length, steps):
    """Seed by seed, far beyond the training length, to 1%."""
    found, losses = recipe(task), {}
    settings = {"length": length, "shortest": found.training.shortest, "steps": steps, "batch": 64}
    trainings = [lw.Training(**settings, seed=seed) for seed in range(4)]
    for dtype in (torch.float32, torch.float64):
        ensemble = start_ensemble(found.model, task, range(4), dtype=dtype)
        train = train_on_tokens if found.model.layers == 2 else train_on_counts
        train(ensemble, [task] * 4, trainings)
        losses[dtype] = loss_at_length(ensemble, [task] * 4, 1000, lw.Evaluation(sequences=256)).loss
    torch.testing.assert_close(losses[torch.float32], losses[torch.float64], rtol=0.01, atol=0)
