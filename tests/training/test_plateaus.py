"""Plateaus of curves whose limits are known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw

LENGTHS = lw.Evaluation().lengths


def of(function, errors=0.0):
    losses = [function(length) for length in LENGTHS]
    return lw.plateau(LENGTHS, losses, [errors] * len(LENGTHS))


@given(st.floats(1e-8, 10), st.floats(-0.9, 50), st.floats(0.5, 2))
def test_a_curve_with_a_limit_is_level_at_it(limit, excess, power):
    """Approach like 1/T^power from above or below: level by a billion tokens, with the right value."""
    end = of(lambda length: limit * (1 + excess * length**-power))
    assert end.trend == "level"
    assert end.value == pytest.approx(limit, rel=0.01)
    assert end.interval[0] <= end.value <= end.interval[1]


@given(st.floats(1e-6, 1), st.floats(0.1, 3))
def test_a_curve_that_grows_like_the_logarithm_is_rising(limit, growth):
    """As of attention that sharpens with the length: no plateau is claimed."""
    end = of(lambda length: limit * (1 + growth * math.log10(length)))
    last_two_decades = 2 * growth / (1 + 8 * growth)
    assert (end.trend == "rising") == (last_two_decades > 0.1)
    falling = of(lambda length: limit / (1 + growth * math.log10(length)))
    assert falling.trend in ("falling", "level")


def test_a_change_within_the_error_is_level_but_widens_the_interval():
    still = of(lambda length: 1.0 + 0.15 * (length > 10**8), errors=0.1)
    assert still.trend == "level"
    assert still.interval[1] - still.interval[0] > 2 * 1.96 * 0.1
    assert of(lambda length: 1.0 + 0.15 * (length > 10**8), errors=0.01).trend == "rising"


def test_start_is_where_the_curve_enters_its_interval_for_good():
    end = of(lambda length: 1.0 if length >= 1000 else 0.5, errors=0.01)
    assert end.start == 1000
    assert of(lambda length: 1.0, errors=0.01).start == LENGTHS[0]


def test_interval_covers_the_limit_in_95_of_100_noisy_curves():
    """Errors shared by all lengths, as the lab's are."""
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        shift = 0.05 * random.standard_normal()
        end = lw.plateau(LENGTHS, [1 + shift] * len(LENGTHS), [0.05] * len(LENGTHS))
        covered += end.interval[0] <= 1 <= end.interval[1]
    assert 930 <= covered <= 970


def test_a_loss_that_is_not_finite_has_no_plateau():
    for value in (math.nan, math.inf):
        losses = [1.0] * (len(LENGTHS) - 1) + [value]
        end = lw.plateau(LENGTHS, losses, [0.0] * len(LENGTHS))
        assert (end.trend, end.value) == ("diverged", math.inf)


def test_too_few_lengths():
    with pytest.raises(ValueError, match="at least 3 test lengths"):
        lw.plateau([10, 10**6, 10**9], [1.0] * 3, [0.0] * 3)


@given(st.floats(1e-8, 10), st.floats(-0.9, 5), st.floats(0, 0.3))
def test_a_known_limit_is_the_plateau(limit, apart, noise):
    """Level only if the last loss is within 25% or three standard errors of it."""
    losses = [limit * (1 + apart)] * len(LENGTHS)
    end = lw.plateau(LENGTHS, losses, [noise * limit] * len(LENGTHS), (limit, 0.01 * limit))
    assert end.value == limit
    assert end.interval == pytest.approx((limit * (1 - 0.0196), limit * (1 + 0.0196)))
    allowed = max(0.25, 3 * math.hypot(noise, 0.01))
    if abs(apart) < 0.999 * allowed:
        assert end.trend == "level"
    elif abs(apart) > 1.001 * allowed:
        assert end.trend == ("rising" if apart < 0 else "falling")
    assert lw.plateau(LENGTHS, losses, losses, (math.nan, 0.1)).trend == "diverged"
