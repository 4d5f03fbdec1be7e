"""The tests behind the claims: exact against enumeration, blind to nothing, rarely wrong by chance."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.experiments.claims import _holm, _kendall, _page, attention_claim, claims

KNOBS, LENGTHS, SEEDS = (2, 4, 8, 12, 16), (4, 8, 16, 32, 64), range(5)


def grid(value, trend="level", baseline=lambda knob: 1.0, exact=False):
    rows = [
        {
            "task.omega": knob,
            "training_length": length,
            "seed": seed,
            "plateau": value(knob, length, seed),
            "trend": trend(knob, length, seed) if callable(trend) else trend,
            "baseline": baseline(knob),
            "exact": exact,
        }
        for knob in KNOBS
        for length in LENGTHS
        for seed in SEEDS
    ]
    return pd.DataFrame(rows).sample(frac=1, random_state=0)  # order must not matter


def noise(knob, length, seed, size=0.3):
    return np.exp(size * np.sin(1000.0 * knob + 77.7 * length + 13.3 * seed))


def law(knob, length, seed):
    return knob * length**-1.5 * noise(knob, length, seed)


def test_what_is_true_is_found():
    level, falls, rises = claims(grid(law), "task.omega")
    assert (level.name, falls.name, rises.name) == ("a", "b", "c")
    assert level.holds
    assert level.effect == 1
    assert falls.holds
    assert falls.effect < -0.9
    assert rises.holds
    assert rises.effect > 0.6
    assert set(rises.by_seed) == set(SEEDS)
    assert "omega" in rises.statement


def test_what_is_false_is_not():
    falling = claims(grid(lambda k, n, s: law(1 / k, n, s)), "task.omega")[2]
    assert not falling.holds
    assert falling.effect < 0
    rising = claims(grid(lambda k, n, s: law(k, 1 / n, s)), "task.omega")[1]
    assert not rising.holds
    # One knob value at which the plateau does not fall is enough.
    flat = claims(grid(lambda k, n, s: law(k, n if k != 8 else 8, s)), "task.omega")[1]
    assert not flat.holds
    assert flat.details["p at omega = 8"] > 0.01 > flat.details["p at omega = 4"]
    # One seed that goes the other way is enough.
    seed = claims(grid(lambda k, n, s: law(k if s else 1 / k, n, s)), "task.omega")[2]
    assert not seed.holds
    assert seed.by_seed[0] < 0 < seed.by_seed[1]


def test_runs_that_rise_or_diverge_count():
    def trend(knob, length, seed):
        return "rising" if (knob, seed) == (8, 0) and length > 8 else "level"

    level = claims(grid(law, trend), "task.omega")[0]
    assert not level.holds
    assert level.effect == pytest.approx(1 - 3 / 125)
    assert level.details["omega = 8"] == pytest.approx(1 - 3 / 25)
    assert level.by_seed[0] == pytest.approx(1 - 3 / 25)
    diverged = claims(grid(lambda k, n, s: np.inf if n == 64 else law(k, n, s), "diverged"), "task.omega")
    assert not diverged[0].holds
    assert not diverged[1].holds


def test_relative_loss_is_another_claim():
    """The plateau falls with the knob, but less than the loss of a constant answer does."""
    table = grid(lambda k, n, s: law(1 / k, n, s), baseline=lambda knob: knob**-2.0)
    assert not claims(table, "task.omega")[2].holds
    assert claims(table, "task.omega", "relative")[2].holds


def test_a_grid_with_a_hole_is_refused():
    with pytest.raises(ValueError, match="one run for every combination"):
        claims(grid(law).iloc[1:], "task.omega")
    with pytest.raises(ValueError, match="at least 3 knob values"):
        claims(grid(law).query("`task.omega` < 5"), "task.omega")


def test_chance_rarely_passes():
    """Under no effect at all, p < 0.01 must happen in about 1% of data sets."""
    random = np.random.default_rng(0)
    trials = [_page(random.random((5, 5))) < 0.01 for _ in range(1000)]
    assert np.mean(trials) < 0.02


@settings(max_examples=15)
@given(st.lists(st.permutations(range(4)), min_size=2, max_size=3))
def test_page_is_exact(rows):
    """Against all orderings of all blocks."""
    weights = np.arange(1, 5)
    statistic = sum(np.dot(weights, np.array(row) + 1) for row in rows)
    sums = [np.dot(weights, np.array(order) + 1) for order in itertools.permutations(range(4))]
    totals = [sum(choice) for choice in itertools.product(sums, repeat=len(rows))]
    expected = np.mean([total >= statistic for total in totals])
    assert _page(np.array(rows, float)) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=7))
def test_kendall(values):
    pairs = [np.sign(b - a) for a, b in itertools.combinations(values, 2)]
    assert _kendall(np.array(values, float)) == pytest.approx(np.mean(pairs))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm(p_values):
    """Rejecting at level a rejects the smallest p values, as long as the i-th is at most a / (m - i)."""
    corrected = _holm(p_values)
    for level in (0.01, 0.05, 0.3):
        rejected, ordered = 0, sorted(p_values)
        while rejected < len(ordered) and (len(ordered) - rejected) * ordered[rejected] <= level:
            rejected += 1
        assert sum(p <= level for p in corrected) == rejected


def test_attention_counts_from_twice_the_period_on():
    rows = [
        {"training_length": n, "seed": s, "off": 0.2 if n < 10 else 0.004, "spread": 0.001 * s}
        for n in (4, 8, 10, 16)
        for s in SEEDS
    ]
    claim = attention_claim(pd.DataFrame(rows), 5)
    assert claim.holds
    assert claim.effect == pytest.approx(0.004)
    rows[-1]["spread"] = 0.011
    claim = attention_claim(pd.DataFrame(rows), 5)
    assert not claim.holds
    assert claim.by_seed[4] == pytest.approx(0.011)
    assert not attention_claim(pd.DataFrame(rows), 50).holds  # nothing was trained that long


def test_known_limits_are_to_be_reached():
    """A loss that ends above its known limit has not arrived; without a limit it may still fall."""
    assert claims(grid(law, "falling"), "task.omega")[0].holds
    known = claims(grid(law, "falling", exact=True), "task.omega")[0]
    assert not known.holds
    assert "exact limit" in known.test
    assert claims(grid(law, exact=True), "task.omega")[0].holds
