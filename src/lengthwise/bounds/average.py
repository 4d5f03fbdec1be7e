"""The average case: token probabilities pi drawn from Dir(alpha), tokens then independent given pi.

One-layer models. The average of |f - g| over inputs of a length is a sum over the configurations of
``lengthwise.simulation.configurations``, each with its exact probability; far longer inputs are sampled.

Axes: B count matrix or sample, N suffix, S token, K type, W distance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.special import betainc, betaln
from torch import Tensor

from lengthwise._checks import check_concentration, number, several, whole
from lengthwise.limit.margins import hardmax_length
from lengthwise.limit.norms import times
from lengthwise.limit.precision import Finite
from lengthwise.limit.sensitivity import sensitivity
from lengthwise.limit.transformer import LimitTransformer
from lengthwise.sequences import BEFORE_START, Summary, check_length, check_seed, draw_summaries
from lengthwise.simulation.configurations import Configurations, one_thread
from lengthwise.simulation.pair import Pair

MOST_SUMMED = 10**7
"""Up to this many configurations are summed, more are sampled."""

SAMPLES = 100_000
"""How many inputs are drawn unless told otherwise."""

MOST_SAMPLES = 10**8
"""How many at most."""

PIECE = 2**14
"""How many of them at once."""

LONGEST_SEARCHED = 2**60
"""Lengths beyond this are reported as infinite."""

ROUNDED_UP = 1 + 1e-6
"""Certified numbers are enlarged by this factor, far more than the special functions err by."""

Concentration = float | Sequence[float]


@dataclass(frozen=True)
class AverageError:
    """The mean of |f - g| over inputs of a length.

    - ``value``: exact up to rounding if ``exact``, else the mean of ``samples`` inputs;
    - ``interval``: (value, value), or a 95% interval for the mean;
    - ``method``: "sum" over all configurations; "bounded" (the interval is an empirical Bernstein bound,
      which holds at least 95% of the time, whatever the distribution, since |f - g| is bounded); "normal" (no
      bound on |f - g| is known, and the interval is that of the central limit theorem);
    - ``samples``: how many configurations were summed, or inputs drawn.
    """

    value: float
    interval: tuple[float, float]
    exact: bool
    method: Literal["sum", "bounded", "normal"]
    samples: int


def average_error(
    f: LimitTransformer,
    g: LimitTransformer,
    length: int,
    concentration: Concentration,
    *,
    samples: int | None = None,
    seed: int = 0,
) -> AverageError:
    """E |f - g| at a length: pi ~ Dir(``concentration``), tokens independent given pi.

    ``concentration`` is one number for all tokens or one for each. The average is exact, a sum over all
    configurations, if there are at most 10^7 of them and no number of ``samples`` is given; otherwise inputs
    are drawn by their counts, at any length up to 2^53.

    A configuration with token counts N_s in all, far counts n_(s,r) and c_r far positions of residue r has
    probability

        Gamma(a0)/Gamma(a0 + T) prod_s Gamma(alpha_s + N_s)/Gamma(alpha_s)  prod_r c_r!/prod_s n_(s,r)!,

    a0 the sum of alpha: the first two factors are that of one string, the last is how many there are.
    """
    configurations = Configurations.of(f, g, length)
    alpha = _alpha(concentration, f.vocabulary)
    if samples is None and configurations.number <= MOST_SUMMED:
        return _summed(configurations, alpha)
    drawn = SAMPLES if samples is None else samples
    whole(drawn, "samples", 2, MOST_SAMPLES)
    check_seed(seed)
    return _sampled(configurations, alpha, drawn, seed)


def average_bound(
    f: LimitTransformer, g: LimitTransformer, n: int, n2: int, concentration: Concentration
) -> float:
    """Theorem G: by how much E |f - g| at lengths n and n2 can differ; infinite where the theorem is silent.

    For one-layer models in finite precision, n = n2 (mod D), both at least max(N_hard, tau + 1 + D):

        | E|f - g|_n - E|f - g|_n2 |  <=  e_f(n) + e_f(n2) + e_g(n) + e_g(n2),
        e_f(n) = Lambda_f (Psi(c) + D miss(c)),   c = floor((n - tau - 1)/D),  K = S D,
        miss(c) = sum_s E (1 - pi_s)^c,
        Psi(c)  = min(1, sum_s E min{1, sqrt(2 K/(c pi_s)) + 1/c + (tau + 1)/(c pi_s)}).

    Proof. Couple pi and the suffix. If all types occur in the far part, which has probability at least
    1 - D miss(c), the sets of attended types depend on suffix and residue alone; compare each head with
    attention proportional to pi on its set. Given pi the counts of a set of probability p = pi(set) differ
    from c pi_s by at most sqrt((c + 1) K p) + p in mean, summed over the set, and the suffix adds tau + 1,
    out of at least c p; p is at least the smallest pi_s, and a decreasing function of the smallest is at most
    its sum over all. Otherwise attention moves by at most 1. The limit is common to n and n2.

    Rounded up: the integrals are upper sums, and the result is enlarged by one part in a million.
    """
    pair = _finite_pair(f, g)
    check_length(n, "n")
    check_length(n2, "n2")
    if (n - n2) % pair.period:
        raise ValueError(f"n and n2 must be equal modulo the period {pair.period}, got {n} and {n2}")
    alpha = _alpha(concentration, f.vocabulary)
    if min(n, n2) < _first_length(pair):
        return math.inf
    size = sensitivity(f) + sensitivity(g)
    return times(size, _spread(pair, alpha, n) + _spread(pair, alpha, n2)) * ROUNDED_UP


def average_length(
    f: LimitTransformer, g: LimitTransformer, tolerance: float, concentration: Concentration
) -> int | float:
    """N0 such that an average error at the D lengths N0, .., N0 + D - 1 carries over to every longer length
    at the cost of at most ``tolerance`` (Theorem G); infinite if there is none below 2^60.

    The smallest N0 with 2 (e_f(N0) + e_g(N0)) <= tolerance (see ``average_bound``; e decreases with the
    length), and at least max(N_hard, tau + 1 + D). It grows like (Lambda/tolerance)^max(2, 1/alpha0), alpha0
    the smallest concentration, up to logarithms.
    """
    if not number(tolerance, "tolerance") > 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}")
    pair = _finite_pair(f, g)
    alpha = _alpha(concentration, f.vocabulary)
    size = sensitivity(f) + sensitivity(g)

    def enough(n: int) -> bool:
        return 2 * times(size, _spread(pair, alpha, n)) * ROUNDED_UP <= tolerance

    low, high = _first_length(pair), LONGEST_SEARCHED
    if low > high or not enough(high):
        return math.inf
    assert isinstance(low, int)
    if enough(low):
        return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def average_order(tolerance: float, concentration: Concentration) -> float:
    """eps^(-2 - 2/alpha0), alpha0 the smallest concentration (Theorem 4.2, which concludes an average error
    of order sqrt(eps)): of this order (paper), constant 1, not certified.
    """
    if not number(tolerance, "tolerance") > 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}")
    smallest = min(_alpha(concentration, 1 if isinstance(concentration, int | float) else len(concentration)))
    exponent = (-2 - 2 / smallest) * math.log(tolerance)
    return math.exp(exponent) if exponent < 709 else math.inf


def _alpha(concentration: Concentration, vocabulary: int) -> list[float]:
    one = isinstance(concentration, int | float)
    each = (concentration,) if one else several(concentration, "concentration")
    alpha = [number(value, "concentration") for value in each] * (vocabulary if one else 1)
    if len(alpha) != vocabulary:
        raise ValueError(f"concentration must be one number or {vocabulary}, one a token, got {len(alpha)}")
    return [check_concentration(each) for each in alpha]


def _finite_pair(f: LimitTransformer, g: LimitTransformer) -> Pair:
    for name, model in (("f", f), ("g", g)):
        if len(model.layers) != 1 or not isinstance(model.precision, Finite):
            raise ValueError(
                f"{name} must have one layer in finite precision, it has {len(model.layers)} in "
                f"{model.precision!r}"
            )
    return Pair.of(f, g)


def _first_length(pair: Pair) -> int | float:
    return max(*(hardmax_length(model) for model in pair.models), pair.locality + 1 + pair.period)


@one_thread()
def _summed(configurations: Configurations, alpha: list[float]) -> AverageError:
    pair, length = configurations.pair, configurations.length
    alpha_S = torch.tensor(alpha, dtype=torch.float64, device=pair.f.embedding.device)
    a0 = alpha_S.sum()
    fixed = torch.lgamma(a0) - torch.lgamma(a0 + length) - torch.lgamma(alpha_S).sum()
    fixed = fixed + sum(math.lgamma(size + 1) for size in configurations.sizes)
    total = mean = 0.0
    for counts_KB, suffix_NW, distance_NB in configurations.distances():
        counts_KB = counts_KB.double()
        logarithm_NB = fixed - torch.lgamma(counts_KB + 1).sum(0)
        far_SB = counts_KB.unflatten(0, (pair.vocabulary, pair.period)).sum(1)
        for token in range(pair.vocabulary):
            near_N = (suffix_NW == token).sum(1).double()
            logarithm_NB = logarithm_NB + torch.lgamma(alpha[token] + near_N.unsqueeze(1) + far_SB[token])
        probability_NB = logarithm_NB.exp()
        total += float(probability_NB.sum())
        mean += float((probability_NB * distance_NB).sum())
    if abs(total - 1) >= 1e-6:
        raise ValueError(
            "with a concentration as large as this, probabilities cannot be summed in float64: give samples"
        )
    value = mean / total
    return AverageError(value, (value, value), True, "sum", configurations.number)


@one_thread()
def _sampled(configurations: Configurations, alpha: list[float], samples: int, seed: int) -> AverageError:
    pair = configurations.pair
    random = np.random.default_rng(seed)
    distances = []
    for start in range(0, samples, PIECE):
        summary = _draw(configurations, alpha, min(PIECE, samples - start), random)
        distances.append(_distance(pair, summary))
    distance_B = torch.cat(distances)
    mean, variance = float(distance_B.mean()), float(distance_B.var())
    most = _largest_distance(configurations)
    if math.isfinite(most):
        # Maurer and Pontil: each side fails with probability at most delta/2, delta = 0.05.
        logarithm = math.log(4 / 0.05)
        wide = math.sqrt(2 * variance * logarithm / samples) + 7 * most * logarithm / (3 * (samples - 1))
        method = "bounded"
    else:
        wide, method = 1.96 * math.sqrt(variance / samples), "normal"
    return AverageError(mean, (max(0.0, mean - wide), mean + wide), False, method, samples)


def _draw(
    configurations: Configurations, alpha: list[float], samples: int, random: np.random.Generator
) -> Summary:
    """Summaries of inputs: pi in logarithms (Gamma(a) is Gamma(a + 1) times U^(1/a)), so that a small
    concentration does not underflow, then independent tokens.
    """
    pair, shape = configurations.pair, np.array(alpha)
    size = samples, len(shape)
    logarithm = np.log(random.standard_gamma(shape + 1, size)) + np.log1p(-random.random(size)) / shape
    weight = np.exp(logarithm - logarithm.max(-1, keepdims=True))
    chance_BS = weight / weight.sum(-1, keepdims=True)
    drawn = draw_summaries(chance_BS, pair.period, pair.locality, configurations.length, random)
    device = pair.f.embedding.device
    return Summary(drawn.counts.to(device), drawn.suffix.to(device), drawn.length.to(device))


def _distance(pair: Pair, summary: Summary) -> Float[Tensor, "B"]:
    one, other = (model.evaluate_counts(summary) for model in pair.models)
    return torch.linalg.vector_norm(one - other, dim=-1)


def _largest_distance(configurations: Configurations) -> float:
    """A bound on |f - g| over all inputs of the length: whatever the attention, f is within Lambda_f of its
    output on the string that repeats the last token, and g within Lambda_g.
    """
    pair = configurations.pair
    sizes = torch.tensor(configurations.sizes)
    token = torch.arange(pair.vocabulary)
    counts = torch.eye(pair.vocabulary, dtype=torch.long).unsqueeze(-1) * sizes
    suffix: Int[Tensor, "S W"] = token.unsqueeze(1).expand(-1, configurations.window)
    suffix = torch.nn.functional.pad(
        suffix, (0, pair.locality + 1 - configurations.window), value=BEFORE_START
    )
    repeated = Summary(counts, suffix, torch.tensor(configurations.length))
    return float(_distance(pair, repeated).max()) + sum(sensitivity(model) for model in pair.models)


def _spread(pair: Pair, alpha: list[float], n: int) -> float:
    """Psi(c) + D miss(c) of Theorem G, not smaller than it is."""
    far = (n - pair.locality - 1) // pair.period
    a0 = sum(alpha)
    missing = psi = 0.0
    for one in alpha:
        others = a0 - one if len(alpha) > 1 else 0.0
        if others > 0:
            missing += math.exp(betaln(others + far, one) - betaln(others, one))
        psi += _attention_error(pair, one, others, far)
    return min(1.0, psi) + pair.period * missing


def _attention_error(pair: Pair, one: float, others: float, far: int) -> float:
    """E min{1, h(p)}, h(p) = sqrt(2 K/(c p)) + 1/c + (tau + 1)/(c p), p ~ Beta(one, others), as an upper sum:
    h decreases, so between two grid points it is at most its value at the left one.
    """
    root, linear = math.sqrt(2 * pair.vocabulary * pair.period / far), (pair.locality + 1) / far
    u = 2 * (1 - 1 / far) / (root + math.sqrt(root**2 + 4 * linear * (1 - 1 / far)))
    if u <= 1:  # h(p) = 1 where p = 1/u^2
        return 1.0
    if others <= 0:  # one token: p = 1
        return min(1.0, root + 1 / far + linear)
    steps = math.ceil(2 * math.log(u) / 1e-3)
    grid = np.exp(np.linspace(-2 * math.log(u), 0.0, steps + 1))
    grid[-1] = 1.0
    below = betainc(one, others, grid)
    height = np.minimum(1.0, root / np.sqrt(grid[:-1]) + 1 / far + linear / grid[:-1])
    return float(below[0] + (height * np.diff(below)).sum()) + steps * 1e-15
