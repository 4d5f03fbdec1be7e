"""How far apart two one-layer models can be: the exact supremum over all inputs of a length.

All configurations that the models can tell apart are evaluated (``lengthwise.simulation.configurations``).
Axes: B count matrix, N suffix, K far type, W distance.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from lengthwise.bounds.one_layer import certified_length, far_sets
from lengthwise.limit.margins import hardmax_length
from lengthwise.limit.norms import times
from lengthwise.limit.precision import Finite
from lengthwise.limit.sensitivity import sensitivity
from lengthwise.limit.transformer import LimitTransformer
from lengthwise.sequences import Summary, check_length, string_of
from lengthwise.simulation.configurations import Configurations, one_thread
from lengthwise.simulation.pair import Pair

MOST_LENGTHS = 10**5
"""A profile has at most so many lengths."""

MOST_CONFIGURATIONS = 2 * 10**9
"""More configurations than this are refused: they take several minutes to an hour on two cores."""


class Divergence(float):
    """The largest |f - g| over all inputs of a length: a number, with the input that attains it.

    - ``length``: of the inputs;
    - ``summary``: all that f and g see of a maximising input;
    - ``tokens``: a maximising input, built from it;
    - ``configurations``: how many were evaluated.
    """

    length: int
    summary: Summary
    configurations: int

    def __new__(cls, value: float, length: int, summary: Summary, configurations: int) -> "Divergence":
        """The value, and what belongs to it."""
        self = super().__new__(cls, value)
        self.length, self.summary, self.configurations = length, summary, configurations
        return self

    def __getnewargs__(self) -> tuple[float, int, Summary, int]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return float(self), self.length, self.summary, self.configurations

    @property
    def tokens(self) -> Int[Tensor, "T"]:
        """A maximising input: far positions filled with the counted tokens in order, then the suffix."""
        return string_of(self.summary)


def divergence(
    f: LimitTransformer, g: LimitTransformer, length: int, *, progress: Callable[[int], object] | None = None
) -> Divergence:
    """The exact supremum of |f - g| (Euclidean norm of outputs) over all inputs of that length.

    For one-layer models in either precision, at any length, before attention is hard too. Exact up to the
    rounding of one evaluation, by evaluating every configuration. ``progress`` is called
    now and then with the number of configurations done so far.
    """
    configurations = Configurations.of(f, g, length)
    configurations.check(MOST_CONFIGURATIONS)
    return _largest_distance(configurations, progress)


def _largest_distance(
    configurations: "Configurations", progress: Callable[[int], object] | None = None
) -> Divergence:
    best, at, done = -1.0, None, 0
    with one_thread():
        for counts_KB, suffix_NW, distance_NB in configurations.distances():
            highest, where = distance_NB.flatten().max(0)
            if float(highest) > best:
                suffix, matrix = divmod(int(where), distance_NB.shape[1])
                best, at = float(highest), (counts_KB[:, matrix].clone(), suffix_NW[suffix].clone())
            done += distance_NB.numel()
            if progress is not None:
                progress(done)
    assert at is not None
    assert done == configurations.number
    return Divergence(best, configurations.length, configurations.summary(*at), done)


@dataclass(frozen=True)
class Bracket:
    """low <= sup over ALL inputs of |f - g| <= high.

    ``low`` is attained on ``tokens``, of length ``length``; ``eta`` is by how much the attention of a longer
    input can differ from that of one of the lengths that were looked at, in total variation (None where
    nothing is known: then ``high`` is infinite).
    """

    low: float
    high: float
    length: int
    tokens: Int[Tensor, "T"]
    eta: float | None


def limit_divergence(
    f: LimitTransformer,
    g: LimitTransformer,
    up_to: int,
    n_cert: Callable[[float], int | float] | None = None,
) -> Bracket:
    """A proved bracket of the supremum of |f - g| over inputs of every length.

    ``low`` is the largest divergence at the lengths up to ``up_to``, and

        high = low + (Lambda_f + Lambda_g) eta

    for the smallest eta <= 1/2 with N_cert(eta) <= ``up_to`` (``certified_length``, Theorem B), infinite if
    there is none or a model is in infinite precision; Lambda is the ``sensitivity``, and the number of heads
    in Theorem B is ``far_sets``.

    Proof. For an input x longer than N_cert(eta) there is z of length at most N_cert(eta) on which every head
    of f and g attends as on x, to within eta in total variation. So |f(x) - f(z)| <= Lambda_f eta, and the
    same for g, and |f(z) - g(z)| <= low.

    ``n_cert`` may be given as a function of eta, non-increasing, where a better one is known.
    """
    best = largest(profile(f, g, up_to))
    eta = smallest_eta(f, g, up_to, n_cert)
    spread = math.inf if eta is None else times(sensitivity(f, hard=True) + sensitivity(g, hard=True), eta)
    return Bracket(float(best), float(best) + spread, best.length, best.tokens, eta)


def profile(f: LimitTransformer, g: LimitTransformer, up_to: int) -> list[Divergence]:
    """The divergences at the lengths 1, 2, ..., ``up_to``."""
    longest = Configurations.of(f, g, check_length(up_to, "up_to"))
    if up_to > MOST_LENGTHS:
        raise ValueError(f"divergences are computed up to length {MOST_LENGTHS:,}, got {up_to}")
    every = [Configurations(longest.pair, length) for length in range(1, up_to + 1)]
    number = sum(configurations.number for configurations in every)
    if number > MOST_CONFIGURATIONS:
        raise ValueError(
            f"lengths up to {up_to} have {number} configurations together, more than {MOST_CONFIGURATIONS}: "
            f"{longest.number} at the last one, {longest.formula()}"
        )
    return [_largest_distance(configurations) for configurations in every]


def largest(found: list[Divergence]) -> Divergence:
    """The largest divergence, at the shortest length that has it."""
    return max(found, key=lambda one: (float(one), -one.length))


def smallest_eta(
    f: LimitTransformer, g: LimitTransformer, up_to: int, n_cert: Callable[[float], int | float] | None
) -> float | None:
    """The smallest eta <= 1/2 with N_cert(eta) <= ``up_to``, to one part in 10^9; None if there is none."""
    n_cert = n_cert or _theorem_b(f, g)
    if n_cert is None or n_cert(0.5) > up_to:
        return None
    low, high = 0.0, 0.5
    while high - low > 1e-9 * high and high > 1e-300:
        middle = (low + high) / 2
        low, high = (low, middle) if n_cert(middle) <= up_to else (middle, high)
    return high


def _theorem_b(f: LimitTransformer, g: LimitTransformer) -> Callable[[float], int | float] | None:
    """N_cert of a pair as a function of eta; None in infinite precision."""
    if not (isinstance(f.precision, Finite) and isinstance(g.precision, Finite)):
        return None
    pair = Pair.of(f, g)
    sets = far_sets(pair)
    hard = max(hardmax_length(model) for model in pair.models)
    return lambda eta: certified_length(pair.vocabulary, pair.period, pair.locality, sets, eta, hard)
