"""Subsampling: prefix rounding, block geometry, and Theorem E from end to end."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import RECIPES, build

import lengthwise as lw
from lengthwise.limit.complexity import balanced_dimension, two_layer_constants
from lengthwise.simulation.lemmas import balanced_error
from lengthwise.simulation.pair import Pair, distance
from lengthwise.simulation.rounding import prefix_rounding
from lengthwise.simulation.runs import (
    Blocks,
    balanced_blocks,
    default_run,
    far_quantities,
    markov_positions,
    simulate_runs,
    stratified_blocks,
)

METHODS = ("markov", "stratified", "balanced")


pytestmark = pytest.mark.usefixtures("one_thread")


def measured(f, x, found):
    size = 1 + float(f(x).norm())
    return pytest.approx(distance(f, x, found.tokens), rel=1e-9, abs=1e-11 * size)


def vectors(kind, count, width, seed):
    random = np.random.default_rng(seed)
    normal = random.standard_normal((count, width))
    return {
        "normal": normal,
        "heavy tails": normal**7,
        "scales": normal * 10.0 ** np.linspace(-9, 9, width),
        "same": np.ones((count, width)),
        "few": np.eye(width)[random.integers(width, size=count)],
        "ordered": np.eye(width)[np.sort(random.integers(width, size=count))],
        "drift": np.linspace(0, 1, count)[:, None] ** np.arange(width),
        "nearly dependent": normal[:, :1] + 1e-7 * normal,
        "small rank": normal[:, :1] @ random.standard_normal((1, width)),
        "first nothing": normal * (np.arange(count)[:, None] > count // 2),
        "integers": random.integers(-1, 2, (count, width)).astype(float),
    }[kind]


VECTORS = ["normal", "heavy tails", "scales", "same", "few", "ordered", "drift", "integers"]
VECTORS += ["nearly dependent", "small rank", "first nothing"]


@settings(max_examples=100)
@given(
    st.sampled_from(VECTORS),
    st.integers(1, 600),
    st.integers(1, 9),
    st.floats(0, 1),
    st.integers(0, 10**6),
)
def test_prefix_rounding_keeps_every_prefix_in_every_seminorm(kind, count, width, share, seed):
    v = np.concatenate([np.ones((count, 1)), vectors(kind, count, width, seed)], 1)
    chosen = round(share * count)
    x = prefix_rounding(v, chosen)
    assert x.sum() == chosen
    random = np.random.default_rng(seed + 1)
    sums = np.cumsum((x - chosen / count)[:, None] * v, 0)
    weights = random.random(v.shape[1]) * 10.0 ** random.integers(-6, 7, v.shape[1])
    seminorms = [
        lambda u: np.abs(u).max(1),
        lambda u: np.abs(u).sum(1),
        lambda u: np.linalg.norm(u * weights, axis=1),
        *(lambda u, a=a: np.abs(u @ a) for a in random.standard_normal((3, v.shape[1]))),
        *(lambda u, j=j: np.abs(u[:, j]) for j in range(v.shape[1])),
    ]
    for seminorm in seminorms:
        assert seminorm(sums).max() <= v.shape[1] * seminorm(v).max() * (1 + 1e-9)


def test_prefix_rounding_counts_the_span_and_not_the_coordinates():
    """Equal vectors in 50 coordinates: a span of one dimension, so every prefix is off by less than 1."""
    x = prefix_rounding(np.ones((1000, 50)), 300)
    assert np.abs(np.cumsum(x - 0.3)).max() < 1
    assert prefix_rounding(np.zeros((5, 2)), 3).sum() == 3


@settings(max_examples=100)
@given(st.integers(1, 400), st.integers(1, 4), st.integers(1, 5), st.integers(0, 4), st.integers(0, 10**6))
def test_blocks_keep_windows_and_residues(length, period, multiple, tau, seed):
    run = period * -(-(tau + multiple) // period)
    length = length + 2 * tau + 1
    blocks = Blocks.of(length, run, tau)
    assert blocks.count * run + blocks.end == length
    assert 2 * tau + 1 <= blocks.end <= 2 * tau + run
    random = np.random.default_rng(seed)
    chosen = np.flatnonzero(random.random(blocks.count) < 0.5)
    where = blocks.positions(chosen)
    place = np.arange(len(where))
    assert len(where) == len(chosen) * run + blocks.end
    assert (where % period == place % period).all()
    # In a block from its position tau on, and in the end run, the window is that of x.
    inside = (place % run >= tau) | (place >= len(chosen) * run + tau)
    for t in range(tau + 1):
        assert (where[place[inside] - t] == where[inside] - t).all()
    # All near keys of the last query have their windows inside the end run.
    assert inside[-(tau + 1) :].all()


@pytest.mark.parametrize("period", [1, 3])
def test_the_chain_keeps_as_much_and_in_as_long_runs_as_it_should(period):
    random, tau, length = np.random.default_rng(0), 2, 300_000
    for kept, run in ((3000, 9), (60_000, 30), (150_000, 6), (270_000, 60)):
        where = markov_positions(length, period, tau, kept, run, random)
        end = 2 * tau + 1 + (length - 2 * tau - 1) % period
        assert (where[-end:] == np.arange(length - end, length)).all()
        assert (where % period == np.arange(len(where)) % period).all()
        inside = where[:-end]
        assert (inside[::period] % period == 0).all()
        runs = 1 + (np.diff(inside) > 1).sum()
        # Five standard deviations of each: the variance of the number kept is at most 2 n l.
        assert abs(len(inside) - kept) <= 5 * math.sqrt(2 * kept * run)
        assert abs(len(inside) / runs - run) <= 5 * run / math.sqrt(runs)


def test_the_chain_at_the_ends_of_its_range():
    random = np.random.default_rng(0)
    assert len(markov_positions(50, 2, 1, 50, 4, random)) == 50
    assert (markov_positions(50, 1, 1, 0, 4, random) == [47, 48, 49]).all()
    lengths = [len(markov_positions(1000, 1, 0, 990, 2, random)) for _ in range(200)]
    assert 980 <= np.mean(lengths) <= 1000


@settings(max_examples=60)
@given(st.integers(1, 500), st.floats(0, 1), st.integers(0, 10**6))
def test_every_stratum_gives_one_block(count, share, seed):
    runs = max(1, round(share * count))
    chosen = stratified_blocks(count, runs, np.random.default_rng(seed))
    assert chosen.shape == (runs,)
    assert (np.diff(chosen) >= 0).all()
    stratum = np.arange(runs)
    assert (chosen + 1 > stratum * count / runs - 1e-9).all()
    assert (chosen < (stratum + 1) * count / runs + 1e-9).all()
    assert chosen.min() >= 0
    assert chosen.max() < count


def string(kind, length, vocabulary, random):
    """Strings whose statistics are hard to sample."""
    if kind == "runs":
        sizes = np.ceil(random.pareto(0.9, length) + 1).clip(max=length).astype(int)
        tokens = np.repeat(random.integers(0, vocabulary, length), sizes)[:length]
    elif kind == "drift":
        tokens = (random.random(length) + np.linspace(0, vocabulary, length)) % vocabulary
    elif kind == "blocks":
        tokens = np.repeat(random.integers(0, vocabulary, length // 300 + 1), 300)[:length]
        tokens = np.where(random.random(length) < 0.2, random.integers(0, vocabulary, length), tokens)
    elif kind == "periodic":
        tokens = np.arange(length) // 5 % vocabulary
    elif kind == "one token":
        tokens = np.zeros(length)
    else:
        tokens = random.integers(0, vocabulary, length)
    return torch.from_numpy(np.asarray(tokens).astype(np.int64))


KINDS = ("runs", "drift", "blocks", "periodic", "one token", "random")


@settings(max_examples=40)
@given(
    st.sampled_from(KINDS),
    st.integers(1, 3),
    st.sampled_from([5, 20, 80]),
    st.integers(1, 150),
    st.integers(0, 99),
)
def test_histograms_of_balanced_prefixes(kind, period, run, runs, seed):
    """At the block chosen after k others TV <= (d + 1)/k, in the end run TV <= (d + e/l)/m."""
    random = np.random.default_rng(seed)
    vocabulary, length, run = 3, 6000, period * -(-run // period)
    tokens = string(kind, length, vocabulary, random)
    blocks = Blocks.of(length, run, 2)
    runs = min(runs, blocks.count - 1)
    histograms = blocks.histograms(tokens, vocabulary, period)
    extra = random.standard_normal((blocks.count, 2))
    chosen = balanced_blocks(histograms, extra, period, runs)
    d = period * (vocabulary - 1) + 1 + 2
    where = blocks.positions(chosen)
    kinds = torch.from_numpy(np.arange(1, length + 1) % period) + tokens * period
    indicator = np.eye(vocabulary * period)[kinds.numpy()]
    of_x, of_z = indicator.cumsum(0), indicator[where].cumsum(0)
    of_x /= of_x.sum(1, keepdims=True)
    of_z /= of_z.sum(1, keepdims=True)
    variation = np.abs(of_z - of_x[where]).sum(1) / 2
    before = np.arange(len(where)) // run
    inside = (before > 0) & (before < runs)
    assert (variation[inside] <= (d + 1) / before[inside] * (1 + 1e-9)).all()
    assert (variation[-blocks.end :] <= (d + blocks.end / run) / runs * (1 + 1e-9)).all()


def model(vocabulary, period, localities, heads, hidden, weights, logits, local, seed):
    """A two-layer model with weights of a given size and local logits drawn from a list."""
    random = torch.Generator().manual_seed(seed)
    d = 3

    def draw(*shape, size=1.0):
        return size * torch.randn(shape, generator=random, dtype=torch.float64)

    layers = []
    for tau in localities:
        index = torch.randint(len(local), (heads, tau + 1), generator=random)
        layers.append(
            lw.LimitLayer(
                draw(heads, d, d, size=logits),
                draw(heads, d, d, size=weights),
                torch.tensor(local, dtype=torch.float64)[index],
                draw(hidden, d, size=0.3),
                draw(hidden, size=0.3),
                draw(d, hidden, size=0.3),
            )
        )
    readout = draw(2, d)
    return lw.LimitTransformer(draw(vocabulary, d), draw(period, d), tuple(layers), readout, lw.Infinite())


@settings(max_examples=60)
@given(
    st.sampled_from(KINDS),
    st.lists(st.sampled_from([1, 2, 3]), min_size=2, max_size=2),
    st.lists(st.sampled_from([0, 1, 3]), min_size=4, max_size=4),
    st.integers(1, 2),
    st.sampled_from([0.1, 0.5, 1.0]),
    st.sampled_from([0.01, 0.1, 0.5]),
    st.sampled_from([[0.0], [0.0, 0.5], [0.0, 1.0], [0.0, 2.0, 0.5]]),
    st.sampled_from([200, 1500]),
    st.integers(0, 10**4),
)
def test_theorem_e_on_random_pairs(kind, periods, taus, heads, weights, logits, local, length, seed):
    """|f(x) - f(z)| and |g(x) - g(z)| within eps_f(m, l) and eps_g(m, l), and z within its length."""
    pair = Pair.of(
        model(2, periods[0], taus[:2], heads, 2, weights, logits, local, seed),
        model(2, periods[1], taus[2:], 1, 0, weights, logits, local, seed + 1),
    )
    x = string(kind, 4000 + seed % 7, 2, np.random.default_rng(seed))
    found = simulate_runs(pair, x, 0.0, "balanced", length=length)
    run, runs, tau = found.details["run"], found.details["blocks"], pair.locality
    assert found.length <= length
    assert found.length % pair.period == len(x) % pair.period
    assert found.error_f == measured(pair.f, x, found)
    assert found.error_g == measured(pair.g, x, found)
    assert run % pair.period == 0
    assert run >= tau + 1
    constants = [two_layer_constants(f) for f in pair.models]
    d = balanced_dimension(*constants)
    for c, error, promised in zip(
        constants,
        (found.error_f, found.error_g),
        (found.guaranteed_f, found.guaranteed_g),
        strict=True,
    ):
        bound = balanced_error(c, dimension=d, locality=tau, runs=runs, run_length=run)
        assert promised == (bound if math.isfinite(bound) else None)
        assert error <= bound * (1 + 1e-9)
    assert found.guarantee == "always"


@pytest.mark.parametrize(("taus", "run"), [([1, 1], 32), ([0, 0], 8)])
def test_theorem_e_says_something(taus, run):
    """Small logits, long strings: the bound is below what two strings with one suffix can differ by."""
    for seed in range(3):
        pair = Pair.of(*(model(2, 1, taus, 1, 0, 0.3, 0.01, [0.0], 10 * seed + i) for i in range(2)))
        suffix = torch.zeros(5, dtype=torch.long)
        far = [torch.cat([torch.full((50_000,), token), suffix]) for token in (0, 1)]
        for kind in ("runs", "drift", "late"):
            x = string(kind, 100_000, 2, np.random.default_rng(seed))
            if kind == "late":
                x = (torch.arange(100_000) > 70_000).long()
            found = simulate_runs(pair, x, 0.0, "balanced", length=50_000, run=run)
            assert found.error_f <= found.guaranteed_f < distance(pair.f, *far)
            assert found.error_g <= found.guaranteed_g < distance(pair.g, *far)


@settings(max_examples=40)
@given(RECIPES, st.sampled_from(METHODS), st.integers(1, 300), st.integers(0, 100))
def test_any_length_is_respected(recipe, method, length, seed):
    """Even where not a single run fits; with huge weights too, and with models that have no limit."""
    recipe = recipe | {"precision": lw.Infinite(), "period": min(recipe["period"], 7)}
    f, tokens = build(recipe | {"localities": [2, 5]})
    g, _ = build(recipe | {"localities": [0, 1], "seed": recipe["seed"] + 1})
    pair, x = Pair.of(f, g), tokens[0]
    found = simulate_runs(pair, x, 0.1, method, length=length, draws=2, seed=seed)
    assert 1 <= found.length <= length
    assert found.tokens.shape == (found.length,)
    assert found.error_f == measured(pair.f, x, found)
    if found.length >= pair.period:
        assert found.length % pair.period == len(x) % pair.period
    if length >= len(x):
        assert torch.equal(found.tokens, x)
        assert found.error_f == found.error_g == 0
    json.dumps(found.to_json())


@pytest.mark.parametrize("method", METHODS)
def test_the_shortest_length_on_the_grid(method):
    pair = Pair.of(*(model(3, 2, [1, 1], 1, 2, 0.7, 0.3, [0.0], seed) for seed in (1, 2)))
    x = string("blocks", 3000, 3, np.random.default_rng(0))
    lengths = []
    for tolerance in (0.3, 0.03, 0.003):
        found = simulate_runs(pair, x, tolerance, method, draws=3)
        assert max(found.error_f, found.error_g) <= tolerance
        assert found.error_g == measured(pair.g, x, found)
        lengths.append(found.length)
    assert lengths == sorted(lengths)
    assert lengths[0] < len(x)
    again = simulate_runs(pair, x, 0.003, method, draws=3)
    assert torch.equal(found.tokens, again.tokens)
    exact = simulate_runs(pair, x, 0.0, method, draws=1)
    assert exact.error_f == exact.error_g == 0


def test_no_guarantee_where_the_theorem_gives_none():
    pair = Pair.of(*(model(2, 1, [1, 1], 1, 0, 0.3, 0.1, [0.0], seed) for seed in (1, 2)))
    x = string("drift", 300, 2, np.random.default_rng(0))
    assert simulate_runs(pair, x, 0.1, "balanced", length=100, run=10).guarantee == "always"
    longest = simulate_runs(pair, x, 0.1, "balanced", length=299, run=10)
    assert longest.guarantee == "always"  # all blocks but one: still T > m l + 2 tau + l
    none = simulate_runs(pair, x, 0.1, "balanced", length=5, run=10)  # not a single run fits
    assert none.guaranteed_f is none.guaranteed_g is None
    assert none.guarantee == "none"
    for method in ("markov", "stratified"):
        found = simulate_runs(pair, x, 0.1, method, length=100)
        assert found.guaranteed_f is found.guaranteed_g is None
        assert found.guarantee == "none"
    (first, second) = model(2, 1, [1, 1], 1, 2, 0.3, 0.1, [0.0], 3).layers
    steps = dataclasses.replace(pair.f, layers=(first, dataclasses.replace(second, activation="heaviside")))
    found = simulate_runs(Pair.of(steps, pair.g), x, 0.1, "balanced", length=100, run=10)
    assert found.guaranteed_f is None
    assert found.guaranteed_g is not None


def test_positional_heads_need_nothing_but_the_end():
    """Both layers look at near positions only: of the far part, nothing is balanced but histograms."""
    pair = Pair.of(*(model(2, 1, [1, 1], 1, 0, 0.5, 0.5, [1.5, 3.0], seed) for seed in (1, 2)))
    x = string("random", 2000, 2, np.random.default_rng(0))
    assert far_quantities(pair, x).shape == (2000, 0)
    found = simulate_runs(pair, x, 0.05, "balanced")
    assert found.length < 200


def test_far_quantities_are_what_the_second_layer_averages():
    """Of a model whose limit is exact (no first-layer head): their means give its output."""
    f = model(3, 2, [0, 0], 2, 2, 0.8, 0.6, [0.0], 5)
    empty = dataclasses.replace(
        f.layers[0],
        key_query=f.layers[0].key_query[:0],
        value=f.layers[0].value[:0],
        local=f.layers[0].local[:0],
    )
    f = dataclasses.replace(f, layers=(empty, f.layers[1]))
    x = string("random", 50, 3, np.random.default_rng(1))
    quantities = far_quantities(Pair.of(f, f), x)
    y = empty.after_mlp(f.embedding[x] + f.positions[torch.arange(1, 51) % 2])
    update, column = y[-1].clone(), 0
    for value in f.layers[1].value:
        rank = int(torch.linalg.matrix_rank(value))
        part = quantities[:, column : column + 1 + rank].mean(0)
        column += 1 + rank
        basis = torch.linalg.svd(value).U[:, :rank]
        update += value @ y[0] + basis @ torch.from_numpy(part[1:] / part[0])
    expected = f.layers[1].after_mlp(update) @ f.readout.mT
    assert quantities.shape[1] == 2 * column
    assert torch.allclose(f(x), expected, atol=1e-10)


def test_default_runs():
    for method in METHODS:
        for length in (1, 10, 1000, 10**6):
            for period in (1, 3):
                for tau in (0, 2):
                    run = default_run(method, length, 10**4, period, tau)
                    assert run % period == 0
                    assert run >= tau + 1
    assert default_run("balanced", 10**4, 10**5, 3, 0) == 3
    assert default_run("balanced", 10**4, 10**5, 1, 2) == 100
    assert default_run("stratified", 10**6, 10**7, 1, 2) == 100


def test_what_cannot_be_simulated():
    one, two = lw.constructions.mod_p(2, 1), lw.constructions.k_gram(1, 2, 0.1)
    pair = Pair.of(two, two)
    with pytest.raises(ValueError, match="needs two layers in infinite precision, this model has 1"):
        simulate_runs(Pair.of(one, one), [0, 1], 0.1, "markov")
    with pytest.raises(ValueError, match="tolerance must be at least 0, got -1"):
        simulate_runs(pair, [0, 1], -1.0, "markov")
    with pytest.raises(ValueError, match="tolerance must be at least 0, got nan"):
        simulate_runs(pair, [0, 1], math.nan, "markov")
    with pytest.raises(ValueError, match="length must be between 1"):
        simulate_runs(pair, [0, 1], 0.1, "markov", length=0)
    with pytest.raises(ValueError, match="run must be a multiple of 1 and at least 2, got 1"):
        simulate_runs(pair, [0, 1], 0.1, "balanced", run=1)
    with pytest.raises(ValueError, match="draws must be at least 1"):
        simulate_runs(pair, [0, 1], 0.1, "markov", draws=0)
    with pytest.raises(ValueError, match="one string of at least one token"):
        simulate_runs(pair, [], 0.1, "markov")
    with pytest.raises(ValueError, match="whole numbers"):
        simulate_runs(pair, torch.tensor([0.5]), 0.1, "markov")
    with pytest.raises(ValueError, match="between 0 and 1"):
        simulate_runs(pair, [0, 2], 0.1, "markov")
