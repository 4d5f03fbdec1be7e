"""Training of decoders: as plain loops do it, whoever the neighbours are, and whoever leaves."""

import dataclasses

import jaxtyping
import pytest
import torch

from lengthwise.models.decoder import DecoderModel
from lengthwise.models.positions import SCHEMES
from lengthwise.tasks.algorithmic import (
    BinaryMajorityTask,
    CopyRepeatTask,
    CopyUniqueTask,
    ParityTask,
    SortTask,
)
from lengthwise.tasks.formal import LanguageTask
from lengthwise.training import decoder_evaluation, pieces
from lengthwise.training.adam import StackAdam
from lengthwise.training.decoder_config import DecoderEvaluation, DecoderTraining
from lengthwise.training.decoder_data import FreshData, lengths
from lengthwise.training.decoder_evaluation import accuracy, readings_of_bins
from lengthwise.training.decoder_step import Backward
from lengthwise.training.decoders import BETAS, linear, start_decoders, train_decoders
from lengthwise.training.randomness import generator
from lengthwise.training.step import step_of
from lengthwise.training.workers import Workers
from plain_decoder import PlainDecoder

pytestmark = pytest.mark.usefixtures("one_thread")

TINY = DecoderModel(layers=2, heads=2, width=8, positions="learned")
COPY = CopyUniqueTask(tokens=9)
LANGUAGES = [LanguageTask(expression=own) for own in ("a*", "(ab)*", "(a|b)*cd")]
QUICK = DecoderEvaluation(ends=(4, 6, 9), sequences=20, every=50)


def uncounted(model, task):
    """An ensemble that is given the same data, tokens and all."""
    return start_decoders(dataclasses.replace(model, layers=2), task, range(2), 9, dtype=torch.float64)


def plain_loss(task, module, stream, model):
    """Cross-entropy of all scored places of a model's batch, by the definition."""
    lost = []
    for row in range(stream.tokens.shape[1]):
        positions = stream.more[0][model, row] if stream.more else None
        logits = module(stream.tokens[model, row], positions)
        for place, scored, target in zip(
            stream.places[model, row], stream.scored[model, row], stream.target[model, row], strict=True
        ):
            if not scored:
                continue
            if task.kind == "token":
                lost.append(-torch.log_softmax(logits[place], -1)[target])
            else:
                signed = torch.where(target, logits[place], -logits[place])
                lost.append(torch.log1p(torch.exp(-signed)).sum())
    return torch.stack(lost).mean()


@pytest.mark.parametrize(
    ("task", "model", "regulariser", "clip"),
    [
        (COPY, TINY, 0.0, 0.0),
        (COPY, TINY, 30.0, 0.0),
        (COPY, TINY, 30.0, 1e-2),
        (BinaryMajorityTask(), DecoderModel(width=4), 0.0, 0.0),
        (LanguageTask(expression="(ab)*c"), DecoderModel(width=4, positions="rotary"), 0.0, 0.1),
    ],
)
def test_training_is_that_of_a_plain_loop(task, model, regulariser, clip):
    """The same batches through modules and PyTorch's AdamW, one model at a time; all but vectors decay. A
    gradient that is clipped is the whole one, with that of the regulariser.
    """
    steps, rates, decay = 4, (1e-2, 1e-3), 0.5
    ensemble = start_decoders(model, task, range(2), 9, dtype=torch.float64)
    with torch.no_grad():  # so that no part of a gradient is lost in Adam's eps
        ensemble.stack.values.mul_(20)
    modules = [PlainDecoder(model, ensemble.stack.weights(index)) for index in range(2)]
    optimisers = []
    for module, rate in zip(modules, rates, strict=True):
        tables = [own for own in module.parameters() if own.dim() > 1]
        vectors = [own for own in module.parameters() if own.dim() == 1]
        groups = [{"params": tables, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
        optimisers.append(torch.optim.AdamW(groups, lr=rate, betas=BETAS))
    data, with_tokens = (
        FreshData(own, [task] * 2, length=5, batch=3, seeds=range(2))
        for own in (ensemble, uncounted(model, task))
    )
    shortened = 0
    with Workers(2) as workers:
        adam = StackAdam(ensemble.stack, rates, BETAS, decay, clip)
        step = step_of(adam, Backward(ensemble, task, regulariser, workers))
        for number in range(steps):
            batch = data.take(workers)
            step(batch.parts(), linear(number, steps), groups=data.groups())
            losses, batch = step.take_total(), with_tokens.take(workers)
            for index, (module, optimiser) in enumerate(zip(modules, optimisers, strict=True)):
                loss = plain_loss(task, module, batch, index)
                assert float(losses[index]) == pytest.approx(float(loss.detach()), rel=1e-9)
                (loss + regulariser * plain_regulariser(module, regulariser)).backward()
                shortened += shorten(module, clip)
                for group in optimiser.param_groups:
                    group["lr"] = rates[index] * linear(number, steps)
                optimiser.step()
                optimiser.zero_grad()
    assert shortened > 0 or not clip
    for index, module in enumerate(modules):
        for name, value in ensemble.stack.weights(index).items():
            expected = module.weight(name).detach().clone()
            if name.endswith("attention_in_bias") and model.positions != "rotary":
                # What all keys share cancels out: its gradient is rounding, which Adam makes larger.
                keys = slice(model.width, 2 * model.width)
                assert value[keys].abs().max() < 1e-6
                expected[keys] = value[keys]
            torch.testing.assert_close(value, expected, rtol=1e-6, atol=1e-9)


def shorten(module, longest):
    """Whether the gradient was longer than this, and so made as long."""
    gradients = [own.grad for own in module.parameters() if own.grad is not None]
    norm = sum(float(own.square().sum()) for own in gradients) ** 0.5
    if not longest or norm <= longest:
        return False
    for own in gradients:
        own.mul_(longest / norm)
    return True


def plain_regulariser(module, factor):
    if not factor:
        return 0.0
    model, total = module.model, 0.0
    for layer in range(model.layers):
        matrix, p = module.weight(f"layers.{layer}.attention_in"), module.weight("positions")
        query, key, _ = (p @ matrix).split(model.width, -1)
        for q, k in zip(query.chunk(model.heads, -1), key.chunk(model.heads, -1), strict=True):
            total = total + (q @ k.T).tril().square().sum() / len(p)
    return total


def of_seeds(seeds, **changes):
    given = {"length": 4, "steps": 100, "batch": 8} | changes
    return [DecoderTraining(**given, seed=seed, learning_rate=1e-3 * (1 + 4 * (seed % 3))) for seed in seeds]


def assert_same_results(found, expected):
    assert found.steps == expected.steps
    torch.testing.assert_close(found.accuracy, expected.accuracy, rtol=0, atol=0)
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-7, atol=1e-9)
    for name, value in expected.weights.items():
        torch.testing.assert_close(found.weights[name], value, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("task", "model", "clip"),
    [(COPY, TINY, 0.0), (COPY, TINY, 0.5), (BinaryMajorityTask(), DecoderModel(width=8, heads=2), 0.0)],
)
def test_a_result_does_not_depend_on_the_neighbours(task, model, clip):
    """After 100 steps, in float64: models of several seeds and rates together, alone, in another order."""
    trainings = of_seeds(range(4), clip=clip)
    whole = {"evaluation": dataclasses.replace(QUICK, stop=False), "dtype": torch.float64}
    together = train_decoders(model, task, trainings, **whole)
    backwards = train_decoders(model, task, trainings[::-1], **whole)[::-1]
    for index in range(4):
        assert_same_results(together[index], backwards[index])
    for index in (1, 2):
        (alone,) = train_decoders(model, task, [trainings[index]], **whole)
        assert_same_results(together[index], alone)
    assert not torch.equal(together[0].weights["embedding"], together[1].weights["embedding"])


@pytest.mark.parametrize(
    "model", [DecoderModel(width=8, heads=2), TINY, dataclasses.replace(TINY, positions="randomised")]
)
def test_languages_of_one_form_share_an_ensemble(model):
    """In float64, a model of each of three languages with other alphabets and words of other lengths, in any
    order, some of which leave early, beside each by itself.
    """
    trainings = [
        dataclasses.replace(own, learning_rate=rate, batch=16, clip=0.5)
        for own, rate in zip(of_seeds(range(5)), (3e-2, 1e-2, 1e-4, 1e-2, 1e-4), strict=True)
    ]
    evaluation = DecoderEvaluation(ends=(4, 7), sequences=30, every=15)
    tasks = [LANGUAGES[index] for index in (0, 1, 1, 2, 0)]
    together = train_decoders(model, tasks, trainings, evaluation, dtype=torch.float64)
    assert len({result.steps[-1] for result in together}) > 1
    for task, training, result in zip(tasks, trainings, together, strict=True):
        (alone,) = train_decoders(model, task, [training], evaluation, dtype=torch.float64)
        assert_same_results(result, alone)


def test_who_leaves_changes_nothing_for_the_others():
    """Models that are perfect early leave at different times, in the middle of what data was drawn at once;
    the weights of each are those of a run by itself.
    """
    evaluation = DecoderEvaluation(ends=(3, 5), sequences=40, every=7)
    rates = (1e-2, 1e-4, 3e-2, 5e-3, 1e-5)
    trainings = [
        DecoderTraining(length=3, steps=100, batch=16, seed=seed, learning_rate=rate)
        for seed, rate in enumerate(rates)
    ]
    done = []
    results = train_decoders(
        DecoderModel(width=8),
        BinaryMajorityTask(),
        trainings,
        evaluation,
        dtype=torch.float64,
        progress=done.append,
    )
    ends = [result.steps[-1] for result in results]
    assert len(set(ends)) >= 3
    assert max(ends) == 100
    assert [result.perfect for result in results] == [end < 100 for end in ends]
    assert sum(done) == 5 * 100
    for training, result in zip(trainings, results, strict=True):
        (alone,) = train_decoders(
            DecoderModel(width=8), BinaryMajorityTask(), [training], evaluation, dtype=torch.float64
        )
        assert_same_results(result, alone)


@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_a_diverging_model_leaves_the_others_alone(clip):
    trainings = of_seeds(range(2), steps=30, clip=clip)
    wild = [dataclasses.replace(trainings[0], learning_rate=1e30), trainings[1]]
    calm = train_decoders(TINY, COPY, trainings, QUICK, dtype=torch.float64)
    beside = train_decoders(TINY, COPY, wild, QUICK, dtype=torch.float64)
    assert not beside[0].loss.isfinite().all() or beside[0].loss.max() > 1e3
    assert not beside[0].perfect
    assert_same_results(beside[1], calm[1])


@pytest.mark.parametrize(
    ("task", "model"),
    [
        (COPY, TINY),
        (COPY, DecoderModel(layers=2, width=8, positions="relative")),
        (LanguageTask(expression="(ab)*c"), DecoderModel(width=8)),
        (CopyRepeatTask(), DecoderModel(width=4, positions="randomised")),
    ],
)
@pytest.mark.parametrize(("models", "threads"), [(3, 1), (3, 2), (1, 2), (2, 4)])
def test_gradients_in_pieces_are_those_of_the_batch(task, model, models, threads, monkeypatch):
    """Also where several threads share the streams of a model."""
    ensemble = start_decoders(model, task, range(models), 9, dtype=torch.float64)
    data = FreshData(ensemble, [task] * models, length=6, batch=10, seeds=range(models))
    before, found = torch.get_num_threads(), []
    torch.set_num_threads(threads)
    try:
        with Workers(models) as workers:
            assert workers.size == threads
            batch = data.take(workers)
            for sizes in ((2**30, 2**30, 1), (600, 100, 3000), (600, 900, 2**30), (1, 1, 1)):
                for name, size in zip(("PIECE", "FEWEST", "SHARE"), sizes, strict=True):
                    monkeypatch.setattr(pieces, name, size)
                cut = pieces.shares(batch, ensemble, threads)
                counts = len(cut), max(len(share.pieces) for share in cut)
                assert (counts == (1, 1)) == (sizes[0] == 2**30)
                loss_M = Backward(ensemble, task, 0.0, workers)(*batch.parts())
                found.append((loss_M, ensemble.stack.gradients.clone()))
                ensemble.stack.gradients.zero_()
    finally:
        torch.set_num_threads(before)
    assert torch.get_num_threads() == before
    for loss_M, gradients in found[1:]:
        torch.testing.assert_close(loss_M, found[0][0], rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(gradients, found[0][1], rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize(("models", "threads", "least"), [(5, 2, 2), (1, 2, 2), (2, 7, 8), (1, 1, 1)])
def test_shares_cover_every_stream_once(models, threads, least):
    ensemble = start_decoders(DecoderModel(layers=2, width=64), COPY, range(models), 9)
    data = FreshData(ensemble, [COPY] * models, length=9, batch=100, seeds=range(models))
    batch = data.take(Workers(1))
    seen = torch.zeros(models, 100)
    used = lengths(batch.places, batch.scored)
    cut = pieces.shares(batch, ensemble, threads)
    assert len(cut) >= least  # nobody is idle
    for share in cut:
        for groups in share.pieces:
            for group in groups:
                seen[share.models, group.streams] += 1
                assert (used[share.models, group.streams] <= group.tokens).all()
                assert not batch.scored[share.models, group.streams, group.places :].any()
    assert (seen == 1).all()


@pytest.mark.parametrize("positions", ["none", "learned", "rotary", "randomised"])
def test_groups_change_nothing(positions):
    """Batches that are read in groups, as on a GPU, against the same as a whole: losses and gradients."""
    model = DecoderModel(layers=2, width=8, positions=positions)
    ensemble = start_decoders(model, COPY, range(3), 9, dtype=torch.float64)
    data, workers = FreshData(ensemble, [COPY] * 3, length=9, batch=32, seeds=range(3)), Workers(1)
    data._groups = 4
    backward, seen = Backward(ensemble, COPY, 0.0, workers), 0
    for _ in range(20):
        batch, groups, found = data.take(workers), data.groups(), []
        if groups is None:
            continue
        seen += 1
        assert [group.first for group in groups] == [0, 8, 16, 24]
        for cut in (pieces.whole(batch), pieces.grouped(batch, groups)):
            ensemble.stack.gradients.zero_()
            losses = backward._in_pieces(ensemble.weights(), batch, [cut])
            found.append((losses, ensemble.stack.gradients.clone()))
        torch.testing.assert_close(found[1], found[0], rtol=1e-9, atol=1e-12)
    assert seen > 10


def test_each_models_data_are_its_own_streams_draws():
    """Also after others have left; only the order within a batch is changed."""
    ensemble = start_decoders(TINY, COPY, range(3), 9)
    data = FreshData(ensemble, [COPY] * 3, length=5, batch=4, seeds=[7, 8, 9])
    workers = Workers(1)
    steps = data.steps_at_once
    assert steps > 3
    batches = [data.take(workers) for _ in range(3)]
    data.keep([2, 0])
    after = [data.take(workers) for _ in range(steps)]
    for row, seed in ((2, 9), (0, 7)):
        stream = generator(seed, "data")
        drawn = [COPY.sample(4 * steps, 1, 5, stream) for _ in range(2)]
        tokens = torch.cat([examples.tokens for examples in drawn]).unflatten(0, (-1, 4))
        kept = [2, 0].index(row)
        mine = [batch.tokens[row] for batch in batches] + [batch.tokens[kept] for batch in after]
        for own, expected in zip(mine, tokens, strict=False):
            assert sorted(own.tolist()) == sorted(expected.tolist())


@pytest.mark.parametrize("positions", ["none", "learned", "randomised"])
@pytest.mark.parametrize("tasks", [[COPY] * 3, LANGUAGES])
def test_data_made_for_all_models_at_once_are_those_made_one_by_one(tasks, positions):
    """As a GPU makes them, and as the threads of a CPU do."""
    ensemble = start_decoders(DecoderModel(width=4, positions=positions), tasks, range(3), 9)
    once, singly = (FreshData(ensemble, tasks, length=5, batch=4, seeds=[7, 8, 9]) for _ in range(2))
    together = once._made(range(3))
    for index, part in enumerate(zip(*(singly._made([own]) for own in range(3)), strict=True)):
        assert torch.equal(together[index], torch.cat(part))


@pytest.mark.parametrize("spare", [0, 13])
def test_every_learned_position_is_trained_and_testing_starts_at_the_first(spare):
    model = dataclasses.replace(TINY, spare_positions=spare)
    ensemble = start_decoders(model, COPY, [0], 9)
    before = ensemble.stack.weights(0)["positions"]
    (result,) = train_decoders(model, COPY, of_seeds([0], steps=40, weight_decay=0.0), QUICK)
    assert len(before) == COPY.stream_length(9) + spare == 20 + spare
    assert (result.weights["positions"] != before).all()
    assert all(test.more == () for test in readings_of_bins(ensemble, COPY, QUICK))


@pytest.mark.parametrize(
    "task", [COPY, BinaryMajorityTask(), LanguageTask(expression="(ab)*c"), ParityTask()]
)
@pytest.mark.parametrize("positions", ["none", "learned", "randomised"])
def test_accuracy_is_the_share_of_streams_that_are_right(task, positions, monkeypatch):
    """Against the plain module, stream by stream; whatever is read at once."""
    model = DecoderModel(width=8, positions=positions)
    evaluation = DecoderEvaluation(ends=(5, 9), sequences=15)
    ensemble = start_decoders(model, task, range(3), 9, dtype=torch.float64)
    with torch.no_grad():
        ensemble.stack.values.mul_(30)
    modules = [PlainDecoder(model, ensemble.stack.weights(index)) for index in range(3)]
    tests = readings_of_bins(ensemble, task, evaluation)
    streams = readings_of_bins(uncounted(model, task), task, evaluation)
    expected = torch.zeros(3, 2, dtype=torch.float64)
    for column, (test, stream) in enumerate(zip(tests, streams, strict=True)):
        for row in range(15):
            drawn = test.more[0][0, row] if positions == "randomised" else None
            logits = [module(stream.tokens[0, row], drawn)[test.places[0, row]] for module in modules]
            said = [own.argmax(-1) if task.kind == "token" else own > 0 for own in logits]
            if row % 4 < 3:  # what one of them says is right, but for a place in some
                test.target[0, row] = said[row % 4]
                if row % 5 == 0:
                    last = int(test.scored[0, row].sum()) - 1
                    test.target[0, row, last] = 1 - test.target[0, row, last].long().clamp_max(1)
            scored = test.scored[0, row]
            for index in range(3):
                good = (said[index] == test.target[0, row])[scored].all()
                expected[index, column] += float(good) / 15
    assert 0 < expected.max() < 1
    for numbers in (2**20, 500, 1):
        monkeypatch.setattr(decoder_evaluation, "NUMBERS", {"cpu": numbers})
        with Workers(3) as workers:
            torch.testing.assert_close(accuracy(ensemble, [task] * 3, {task: tests}, workers), expected)


def test_bins_never_overlap_and_are_the_same_for_all():
    ensemble = start_decoders(TINY, COPY, range(2), 9)
    tests = readings_of_bins(ensemble, COPY, QUICK)
    inputs = [(lengths(test.places, test.scored) - 2) // 2 for test in tests]
    bounds = [(int(size.min()), int(size.max())) for size in inputs]
    assert bounds == [(1, 4), (5, 6), (7, 9)]
    other = start_decoders(TINY, COPY, [5], 9)
    for one, two in zip(tests, readings_of_bins(other, COPY, QUICK), strict=True):
        assert torch.equal(one.tokens, two.tokens)


@pytest.mark.parametrize("positions", SCHEMES)
def test_every_scheme_learns(positions):
    """With streams that start anywhere, and lengths that were never seen."""
    model = DecoderModel(layers=2, heads=2, width=16, positions=positions, position_range=32)
    training = DecoderTraining(length=3, steps=60, batch=32, learning_rate=1e-2)
    evaluation = DecoderEvaluation(ends=(3, 5), sequences=20, every=20)
    (result,) = train_decoders(model, CopyRepeatTask(), [training], evaluation)
    assert result.loss[-1] < 0.8 * result.loss[0]


def test_majority_is_learned_at_every_length():
    """As the paper has it: without positions, right on all bins; and lengths far beyond can be read."""
    training = DecoderTraining(steps=400, learning_rate=1e-2)
    evaluation = DecoderEvaluation(ends=(50, 100, 150, 1000), sequences=200, every=400)
    (result,) = train_decoders(DecoderModel(width=16), BinaryMajorityTask(), [training], evaluation)
    assert result.perfect
    assert result.accuracy[-1, :3].min() > 0.99
    assert result.accuracy[-1, 3] > 0.95


def test_float32_gives_the_losses_of_float64():
    evaluation = DecoderEvaluation(ends=(5, 9), sequences=10, every=50)
    trainings = of_seeds(range(2), steps=50)
    single, double = (
        train_decoders(TINY, SortTask(tokens=9), trainings, evaluation, dtype=dtype)
        for dtype in (torch.float32, torch.float64)
    )
    for one, two in zip(single, double, strict=True):
        torch.testing.assert_close(one.loss.double(), two.loss, rtol=1e-3, atol=0)


def test_mistakes(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as for users
    for wrong in (
        {"steps": 0},
        {"batch": -1},
        {"learning_rate": 0.0},
        {"seed": -1},
        {"length": -1},
        {"weight_decay": -1.0},
        {"regulariser": float("nan")},
        {"clip": -1.0},
        {"clip": float("inf")},
        {"rounding": "half"},
    ):
        with pytest.raises(ValueError, match="must be"):
            DecoderTraining(**wrong)
    for wrong in (
        {"ends": ()},
        {"ends": (5, 5)},
        {"sequences": 0},
        {"every": 0},
        {"seed": -1},
        {"stop": 1},
        {"ends": (2.5,)},
    ):
        with pytest.raises(ValueError, match="must be"):
            DecoderEvaluation(**wrong)
    with pytest.raises(ValueError, match="has no inputs of a length from 10 to 12"):
        DecoderEvaluation(ends=(9, 12)).bins(COPY)
    with pytest.raises(ValueError, match="give at least one training"):
        train_decoders(TINY, COPY, [])
    with pytest.raises(ValueError, match="may differ in seed and learning rate alone"):
        train_decoders(TINY, COPY, [DecoderTraining(steps=5), DecoderTraining(steps=6)])
    with pytest.raises(ValueError, match="must be a task for each training, got 2 for 1"):
        train_decoders(TINY, LANGUAGES[:2], of_seeds(range(1)))
    with pytest.raises(ValueError, match="must have tasks of one form"):
        train_decoders(TINY, [LANGUAGES[0], COPY], of_seeds(range(2)))
    rotary = DecoderModel(positions="rotary")
    with pytest.raises(ValueError, match="is of learned positions; a model with positions 'rotary' has none"):
        train_decoders(rotary, COPY, [DecoderTraining(length=4, regulariser=1.0)], QUICK)
