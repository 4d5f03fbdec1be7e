"""What all tasks of decoders share: examples that follow from noise, row by row; loss; what is right."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.cli import main
from lengthwise.crasp import Stream, library
from lengthwise.experiments.predictions import predict
from lengthwise.experiments.recipes import recipe
from lengthwise.tasks import ALGORITHMIC, FORMAL, PREDICTION_TASKS, TASKS

ALL = [*ALGORITHMIC, *FORMAL]
BINS = ((0, 50), (51, 100), (101, 150))


def generator(seed=0, device="cpu"):
    return torch.Generator(device).manual_seed(seed)


def parts(examples):
    return examples.tokens, examples.places, examples.scored, examples.target


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(parts(one), parts(other), strict=True))


def test_names():
    assert len(ALL) == 26
    assert set(PREDICTION_TASKS) == {*ALL, "language"}
    assert not set(PREDICTION_TASKS) & set(TASKS)
    for name, kind in PREDICTION_TASKS.items():
        assert kind.name == kind().name == name
        assert len({*kind().alphabet}) == kind().vocabulary
        assert isinstance(kind(), lw.PredictionTask)
        assert lw.task(name, **kind().knobs) == kind()
        assert hash(lw.task(name)) == hash(kind())


@pytest.mark.parametrize("name", ALL)
def test_examples_follow_from_their_own_noise(name):
    """Noise of three generators made into examples at once: what each makes alone, whatever stands beside."""
    task, high = lw.task(name), 14
    noises = [task.noise(4, task.shortest, high, generator(seed)) for seed in range(3)]
    together = task.examples(*(torch.cat(part) for part in zip(*noises, strict=True)), high=high)
    for seed in range(3):
        alone = task.sample(4, task.shortest, high, generator(seed))
        rows = slice(4 * seed, 4 * seed + 4)
        assert all(torch.equal(a[rows], b) for a, b in zip(parts(together), parts(alone), strict=True))
    reverse = task.examples(*(torch.cat(part).flip(0) for part in zip(*noises, strict=True)), high=high)
    assert all(torch.equal(a.flip(0), b) for a, b in zip(parts(together), parts(reverse), strict=True))
    one = task.examples(*(part[2:3] for part in noises[1]), high=high)
    assert all(torch.equal(a[6:7], b) for a, b in zip(parts(together), parts(one), strict=True))


@pytest.mark.parametrize("name", ALL)
def test_shapes_depend_on_the_batch_and_the_longest_length_alone(name):
    task = lw.task(name)
    for low, high in ((0, task.shortest), (0, 13), (12, 13), (140, 150)):
        possible = task.lengths(low, high)
        if not possible:
            continue
        assert possible == tuple(sorted(possible))
        for batch in (1, 5):
            examples = task.sample(batch, low, high, generator(batch))
            tokens, places, scored, target = parts(examples)
            assert tokens.shape == (batch, task.stream_length(high))
            assert places.shape == scored.shape == (batch, task.answers(high))
            assert target.shape == places.shape + ((task.classes,) if task.kind == "set" else ())
            assert (tokens.dtype, places.dtype, scored.dtype) == (torch.int64, torch.int64, torch.bool)
            assert target.dtype == (torch.bool if task.kind == "set" else torch.int64)
            assert 0 <= tokens.min() <= tokens.max() < task.vocabulary
            assert places.max() < task.stream_length(high)
            assert (places[~scored] == 0).all()
            assert scored.any(1).all()
            assert (tokens[:, 0] == 0).all()
    assert all(task.answers(n) <= task.answers(n + 1) for n in range(4, 30))
    assert all(task.stream_length(n) <= task.stream_length(n + 1) for n in range(4, 30))


@pytest.mark.parametrize("name", ALL)
def test_bins_never_overlap(name):
    """Neither as lengths nor as streams that are drawn."""
    task = lw.task(name)
    lengths = [set(task.lengths(low, high)) for low, high in BINS]
    assert all(lengths)
    assert sum(map(len, lengths)) == len(set.union(*lengths)) == len(task.lengths(0, 150))
    streams = []
    for low, high in BINS:
        noise = task.noise(30, low, high, generator(7))
        assert set(noise[0].tolist()) <= set(task.lengths(low, high))
        examples = task.examples(*noise, high=high)
        ends = examples.places.amax(1).tolist()
        streams.append(
            {tuple(row[: end + 1]) for row, end in zip(examples.tokens.tolist(), ends, strict=True)}
        )
    assert not streams[0] & streams[1]
    assert not streams[1] & streams[2]
    assert not streams[0] & streams[2]


def logits_for(task, examples, seed):
    shape = (*examples.places.shape, task.classes)
    return torch.randn(shape, dtype=torch.float64, generator=generator(seed))


@given(st.sampled_from(["copy-repeat", "addition", "tomita-3", "aa-bb-cc-dd-ee"]), st.integers(0, 10**6))
def test_loss_is_the_mean_over_places_and_right_means_everywhere(name, seed):
    """Against loops, for two models with a batch each."""
    task = lw.task(name)
    flat = task.sample(6, 0, 9, generator(seed))
    examples = lw.Examples(*(part.unflatten(0, (2, 3)) for part in parts(flat)))
    logits = logits_for(task, examples, seed)
    # Right everywhere in one sequence, and in another everywhere but for one place that counts.
    best = (
        torch.nn.functional.one_hot(examples.target, task.classes)
        if task.kind == "token"
        else examples.target
    )
    logits[0, 1] = 2.0 * best[0, 1] - 1
    logits[1, 2] = 2.0 * best[1, 2] - 1
    logits[1, 2, 0] *= -1
    loss, right = task.loss(logits, examples), task.right(logits, examples)
    assert loss.shape == right.shape == (2, 3)
    for model in range(2):
        lost, places = [0.0] * 3, 0
        for row in range(3):
            good = True
            for place in range(examples.places.shape[2]):
                if not examples.scored[model, row, place]:
                    continue
                places += 1
                numbers = logits[model, row, place].tolist()
                target = examples.target[model, row, place].tolist()
                if task.kind == "token":
                    lost[row] += math.log(sum(map(math.exp, numbers))) - numbers[target]
                    good &= numbers.index(max(numbers)) == target
                else:
                    for number, inside in zip(numbers, target, strict=True):
                        lost[row] += math.log1p(math.exp(-number if inside else number))
                        good &= (number > 0) == inside
            assert right[model, row].item() == good
        assert loss[model].mean().item() == pytest.approx(sum(lost) / places)
        assert (loss[model] * places / 3).tolist() == pytest.approx(lost)
    assert right[0, 1]
    assert not right[1, 2]


@pytest.mark.parametrize("name", ["sort", "dyck-3"])
def test_what_is_not_scored_has_no_influence(name):
    task = lw.task(name)
    examples = task.sample(5, 0, 8, generator(8))
    logits = logits_for(task, examples, 8).requires_grad_()
    loss = task.loss(logits, examples)
    loss.mean().backward()
    assert (logits.grad[~examples.scored] == 0).all()
    assert (logits.grad[examples.scored] != 0).any(-1).all()
    padding = torch.where(examples.scored.unsqueeze(-1), logits.detach(), 1e3)
    other = examples.target.logical_not() if task.kind == "set" else (examples.target + 1) % task.classes
    scored = examples.scored.unsqueeze(-1) if task.kind == "set" else examples.scored
    elsewhere = replace(examples, target=torch.where(scored, examples.target, other))
    torch.testing.assert_close(task.loss(padding, elsewhere), loss.detach())
    assert torch.equal(task.right(padding, elsewhere), task.right(logits.detach(), examples))


@pytest.mark.parametrize("name", ["parity", "tomita-1"])
def test_logits_that_decide_nothing_are_wrong(name):
    task = lw.task(name)
    examples = task.sample(5, 0, 8, generator(9))
    for value in (0.0, math.nan):
        assert not task.right(torch.full_like(logits_for(task, examples, 0), value), examples).any()
    if task.kind == "token":
        best = torch.nn.functional.one_hot(examples.target, task.classes).double()
    else:
        best = examples.target.double() - 0.5
    assert task.right(best, examples).all()
    if task.kind == "set":  # 0 never follows a word without 0
        assert not task.right(best.clamp_min(0.0), examples).any()
    one_nan = best.clone()
    one_nan[:, 0, 0] = math.nan
    assert not task.right(one_nan, examples).any()


@pytest.mark.parametrize("name", ALL)
def test_theory_is_that_of_the_library_and_of_the_programs_that_do_the_task(name):
    entry, task = library.named(name.removesuffix("-language")), lw.task(name)
    theory, program = task.theory, predict(task, "learned").program
    assert (theory.in_crasp, theory.in_positional) == (entry.in_crasp.answer, entry.in_positional.answer)
    assert (theory.period, theory.locality) == (program and program.period, program and program.locality)
    if name in FORMAL:
        assert task.automaton == entry.automaton
    elif name not in ("binary-majority", "parity"):  # of these the library has the languages
        assert task.alphabet[:-1] == tuple(entry.alphabet)


@pytest.mark.parametrize(
    ("task", "program"),
    [
        (lw.task("majority", size=4), "majority-4"),
        (lw.task("binary-majority-interleaved"), "binary-majority-interleaved"),
        (lw.task("copy-unique", tokens=9), "copy-unique-9"),
        (lw.task("sort", tokens=9), "sort-9"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_programs_of_the_library_predict_the_examples(task, program):
    examples = task.sample(30, 0, 9, generator(10))
    program = library.named(program).program
    for tokens, places, scored, target in zip(*(part.tolist() for part in parts(examples)), strict=True):
        wanted = {place: token for place, token, real in zip(places, target, scored, strict=True) if real}
        reader = Stream(program)
        for place, token in enumerate(tokens[: max(wanted) + 1]):
            reader.step(token)
            if place in wanted:
                assert reader.predictions() == {task.alphabet[wanted[place]]}


def test_what_is_for_limit_transformers_alone_says_so(capsys):
    with pytest.raises(ValueError, match="sort is a task of decoders"):
        recipe(lw.task("sort"))
    for arguments in (["advise", "copy-unique"], ["advise", "--seeds", "2", "tomita-4"]):
        assert main(arguments) == 2
        said = capsys.readouterr()
        assert "is a task of decoders, which this command does not advise on" in said.err
        assert "it takes simple, modp, kgram" in said.err
        assert said.err.count("\n") == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", ALL)
def test_on_a_gpu_the_same_noise_makes_the_same_examples_and_can_be_replayed(name):
    """Against the CPU, and inside a CUDA graph, where nothing may wait for the device."""
    task, high = lw.task(name), 50
    noise = task.noise(64, 0, high, generator(11, "cuda"))
    expected = task.examples(*(part.cpu() for part in noise), high=high)
    found = task.examples(*noise, high=high)
    assert all(part.device.type == "cuda" for part in parts(found))
    assert same(lw.Examples(*(part.cpu() for part in parts(found))), expected)
    static = tuple(part.clone() for part in noise)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = task.examples(*static, high=high)
    fresh = task.noise(64, 0, high, generator(12, "cuda"))
    for part, new in zip(static, fresh, strict=True):
        part.copy_(new)
    graph.replay()
    assert same(captured, task.examples(*fresh, high=high))
