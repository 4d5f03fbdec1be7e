"""Training that is interrupted anywhere goes on, bit for bit, as if it had not been."""

import copy
import json
import sys
from functools import partial

import pytest
import torch

from lengthwise.models import DecoderModel, LimitModel
from lengthwise.tasks import KGramTask, ModPTask, SimpleTask
from lengthwise.tasks.algorithmic import BinaryMajorityTask, CopyUniqueTask
from lengthwise.tasks.formal import LanguageTask
from lengthwise.training import (
    DecoderEvaluation,
    DecoderTraining,
    Training,
    data,
    decoder_data,
    start_ensemble,
    train_decoders,
    train_on_counts,
    train_on_tokens,
)
from lengthwise.training.checkpoint import State

pytestmark = pytest.mark.usefixtures("one_thread", "drawn_for_four_steps")


@pytest.fixture
def drawn_for_four_steps(monkeypatch):
    """So that a short training ends blocks of data, and is inside one, often."""
    monkeypatch.setattr(data, "MOST_STEPS", 4)
    monkeypatch.setattr(decoder_data, "MOST_STEPS", 4)


class Kept:
    """Keeps every state, and gives one of them."""

    def __init__(self, state=None, most=1000):
        self.given, self.states, self.refused, self.most = state, [], [], most

    def load(self):
        return self.given

    def refuse(self, why):
        self.refused.append(why)

    def due(self):
        return len(self.states) < self.most

    def save(self, state):
        tensors = {name: tensor.clone() for name, tensor in state.tensors.items()}
        self.states.append(State(tensors, json.loads(json.dumps(state.about))))


def limit_case(model, tasks, trainings):
    """What training these leaves: the curve, the weights, and the progress that was told."""

    def outcome(kept):
        ensemble = start_ensemble(model, tasks[0], [own.seed for own in trainings])
        train, told = train_on_counts if model.layers == 1 else train_on_tokens, []
        curve = train(ensemble, tasks, trainings, told.append, kept)
        assert sum(told) == sum(own.steps for own in trainings)
        return [torch.tensor(curve.steps), curve.loss, ensemble.stack.values]

    return outcome


def decoder_case(model, task, trainings, evaluation):
    """What training these leaves: steps, accuracies, losses, weights, and all that was told of them."""

    def outcome(kept):
        told, measured = [], []
        results = train_decoders(
            model,
            task,
            trainings,
            evaluation,
            progress=told.append,
            measured=lambda *row: measured.append(row),
            checkpoints=kept,
        )
        assert sum(told) == sum(own.steps for own in trainings)
        rows = [(index, step, *right.tolist(), loss) for index, step, right, loss in measured]
        found = [torch.tensor(sorted(rows), dtype=torch.float64)]
        for own in results:
            found += [torch.tensor(own.steps), own.accuracy, own.loss, *own.weights.values()]
        return found

    return outcome


def trainings(steps, seeds=2, kind=Training, **others):
    return [
        kind(steps=steps, batch=3, seed=seed, learning_rate=0.01 * (seed + 1), **others)
        for seed in range(seeds)
    ]


def easy(seeds, task=None, **model):
    """Decoders of an easy task, some of which leave early; measured after every three steps."""
    return decoder_case(
        DecoderModel(width=8, heads=2, **model),
        task or BinaryMajorityTask(),
        [
            DecoderTraining(steps=20, batch=8, seed=seed, length=3, learning_rate=rate)
            for seed, rate in zip(seeds, (0.3, 0.001, 0.1, 0.03), strict=True)
        ],
        DecoderEvaluation(ends=(3, 6), sequences=4, every=3),
    )


CASES = {
    "one layer, counts": limit_case(
        LimitModel(width=4, hidden=8), [SimpleTask(), SimpleTask(omega=3.0)], trainings(14, length=4)
    ),
    "one layer, counts of lengths that vary": limit_case(
        LimitModel(width=4, hidden=8, period=3, locality=1),
        [ModPTask(period=3, residue=1)] * 2,
        trainings(9, length=9, shortest=4),
    ),
    "two layers, tokens": limit_case(
        LimitModel(width=4, hidden=0, heads=2, layers=2, locality=1),
        [KGramTask(k=1, vocabulary=2)] * 2,
        trainings(9, length=6),
    ),
    "decoders from counts": easy(range(24, 28), positions="none"),
    "decoders with learned positions": easy(range(8, 12), positions="learned", layers=2),
    "decoders of several languages": easy(
        range(4), [LanguageTask(expression=own) for own in ("a*", "(ab)*", "(ab)*", "a*b*c*")]
    ),
    "decoders with randomised positions": easy(range(24, 28), positions="randomised", position_range=40),
}


@pytest.mark.parametrize("case", CASES)
def test_training_goes_on_from_every_step_as_if_never_interrupted(case):
    outcome, kept = CASES[case], Kept()
    whole = outcome(None)
    every = outcome(kept)
    steps = [state.about["step"] for state in kept.states]
    assert steps == list(range(1, len(steps) + 1))
    assert len(steps) > 8
    if "decoders" in case:
        sizes = {len(state.about["staying"]) for state in kept.states}
        assert len(sizes) > 1, "no model leaves before the end: the case shows less than it should"
    for found in [every, *(outcome(Kept(state)) for state in kept.states)]:
        assert all(torch.equal(one, other) for one, other in zip(found, whole, strict=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("case", CASES)
def test_likewise_on_a_gpu_where_steps_are_replayed(case, monkeypatch):
    here = sys.modules[__name__]
    monkeypatch.setattr(here, "start_ensemble", partial(start_ensemble, device="cuda"))
    monkeypatch.setattr(here, "train_decoders", partial(train_decoders, device="cuda"))
    outcome, kept = CASES[case], Kept()
    whole = outcome(kept)
    assert len(kept.states) > 8
    for state in kept.states:
        found = outcome(Kept(state))
        assert all(torch.equal(one, other) for one, other in zip(found, whole, strict=True))


@pytest.mark.parametrize("case", ["one layer, counts", "decoders from counts"])
def test_interrupted_again_and_again(case):
    """A state that is left after going on from another one is the same as without that."""
    outcome, kept = CASES[case], Kept()
    whole = outcome(kept)
    at = kept.states[4]
    again = Kept(at)
    outcome(again)
    for state, other in zip(again.states, kept.states[5:], strict=True):
        assert state.about == other.about
        assert all(torch.equal(state.tensors[name], other.tensors[name]) for name in other.tensors)
    final = outcome(Kept(again.states[2]))
    assert all(torch.equal(one, other) for one, other in zip(final, whole, strict=True))


def damaged(state):
    """States that are not of this training."""
    tensors, about = dict(state.tensors), copy.deepcopy(dict(state.about))
    yield State({}, about)
    yield State(tensors, {})
    of_models = [name for name in tensors if name.startswith("models.")]
    for name in [own for own in tensors if own not in of_models] + of_models[:2]:
        tensor = tensors[name]
        yield State({**tensors, name: tensor[..., None]}, about)
        yield State({**tensors, name: tensor.to(torch.float16)}, about)
        yield State({other: value for other, value in tensors.items() if other != name}, about)
    yield State({**tensors, "more": torch.zeros(1)}, about)
    yield State({**tensors, "generators": torch.full_like(tensors["generators"], 255)}, about)
    for name in about:
        for wrong in (None, -1, 10**6, [0], True):
            if about[name] != wrong:
                yield State(tensors, {**about, name: wrong})


@pytest.mark.parametrize(("case", "every"), [("one layer, counts", 1), ("decoders from counts", 3)])
def test_a_state_that_does_not_fit_is_refused_and_training_starts_anew(case, every):
    outcome, kept = CASES[case], Kept()
    whole = outcome(kept)
    broken = list(damaged(kept.states[12]))
    assert len(broken) > 25
    for state in broken[::every]:
        other = Kept(state, most=1)
        found = outcome(other)
        assert len(other.refused) == 1
        assert other.states[0].about["step"] == 1
        assert all(torch.equal(one, other) for one, other in zip(found, whole, strict=True))


def test_a_state_of_another_training_is_refused():
    kept = Kept()
    easy(range(4), positions="none")(kept)
    other = Kept(kept.states[-1])
    easy(range(4), CopyUniqueTask(), positions="none")(other)
    assert len(other.refused) == 1
