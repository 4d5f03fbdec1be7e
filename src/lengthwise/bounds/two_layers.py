"""How long is long enough for two-layer models in infinite precision."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from lengthwise.limit.complexity import TwoLayerConstants, balanced_dimension
from lengthwise.simulation.lemmas import balanced_error, balanced_terms

LONGEST = 10**300
"""Lengths beyond this are reported as infinite: their powers do not fit a double."""

LONGEST_RUN = 10**150
"""Longer runs, and lower bounds on their number, are not looked for."""

ROUNDING = 5e-12
"""The error must stay below the tolerance by this share of it, more than evaluating it can be off."""


@dataclass(frozen=True)
class TwoLayerLength:
    """A training length, and the subsample that it rests on.

    - ``length``: N = m l + 2 tau + l;
    - ``runs`` m and ``run_length`` l: the subsample has m runs of length l, and an end run;
    - ``error_f``, ``error_g``: eps_f(m, l) and eps_g(m, l), together within the tolerance;
    - ``terms``: the parts of their sum, by the names of ``balanced_terms``.

    All numbers are infinite, and there are no terms, if no length within a double's reach is enough.
    """

    length: int | float
    runs: int | float
    run_length: int | float
    error_f: float
    error_g: float
    terms: dict[str, float]


def two_layer_length(cf: TwoLayerConstants, cg: TwoLayerConstants, tolerance: float) -> TwoLayerLength:
    """Theorem E: if f and g differ by at most eps0 on all strings of length up to N, then they differ by at
    most eps0 + ``tolerance`` on all strings; N = m l + 2 tau + l for any m and any l, a multiple of both
    periods and at least tau + 1, with eps_f(m, l) + eps_g(m, l) <= ``tolerance`` (``balanced_error``).

    Proof. A string x that is longer has a balanced subsample z of length at most N with |f(x) - f(z)| <=
    eps_f and |g(x) - g(z)| <= eps_g, and |f(z) - g(z)| <= eps0.

    The order of N is (C/tolerance)^max(2, 1/gamma), up to logarithms, and (C/tolerance)^max(1, 1/gamma) if
    tau = 0. Errors fall in m and in l; for each l on a grid, refined around the best, the least m is found by
    bisection (to 50 bits). So the inequality holds for what is returned, and N is least for its l, though
    perhaps not over all l.
    """
    if cf.vocabulary != cg.vocabulary:
        raise ValueError(f"f and g must have one vocabulary, got {cf.vocabulary} and {cg.vocabulary} tokens")
    if not tolerance > 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}")
    period, locality = math.lcm(cf.period, cg.period), max(cf.locality, cg.locality)
    dimension = balanced_dimension(cf, cg)

    def error(c: TwoLayerConstants, runs: int, run_length: int) -> float:
        return balanced_error(c, dimension=dimension, locality=locality, runs=runs, run_length=run_length)

    def enough(runs: int, run_length: int) -> bool:
        return error(cf, runs, run_length) + error(cg, runs, run_length) <= tolerance * (1 - ROUNDING)

    def whole(runs: int, run_length: int) -> int:
        return runs * run_length + 2 * locality + run_length

    found = _shortest(enough, period, locality + 1, whole)
    if found is None:
        return TwoLayerLength(math.inf, math.inf, math.inf, math.inf, math.inf, {})
    runs, run_length = found
    parts = [
        balanced_terms(c, dimension=dimension, locality=locality, runs=runs, run_length=run_length)
        for c in (cf, cg)
    ]
    return TwoLayerLength(
        length=whole(runs, run_length),
        runs=runs,
        run_length=run_length,
        error_f=error(cf, runs, run_length),
        error_g=error(cg, runs, run_length),
        terms={name: parts[0][name] + parts[1][name] for name in parts[0]},
    )


def order_two_layers(complexity_f: float, complexity_g: float, margin: float, tolerance: float) -> float:
    """(max(C(f), C(g))/tolerance)^max(1/gamma, 3): the training length is of this order (paper), constant 1,
    not certified.
    """
    if not (margin > 0 and tolerance > 0):
        raise ValueError(f"margin and tolerance must be positive, got {margin} and {tolerance}")
    ratio = max(complexity_f, complexity_g) / tolerance
    try:
        return ratio ** max(1 / margin, 3.0)
    except OverflowError:
        return math.inf


def _shortest(
    enough: Callable[[int, int], bool], period: int, least: int, whole: Callable[[int, int], int]
) -> tuple[int, int] | None:
    """(m, l) with l a multiple of the period, l >= least, that is ``enough`` and for which N = ``whole`` is
    least among those looked at; None if there is none with N <= ``LONGEST``.
    """
    fewest = _least(lambda m: enough(m, LONGEST_RUN * period), 1, LONGEST_RUN) or LONGEST_RUN
    best: tuple[int, int] | None = None

    def multiple(size: int) -> int:
        return period * -(-max(size, least) // period)

    def look(run_length: int, bits: int) -> None:
        """Find the least m for this l, to so many bits, and keep the pair if its N is the least so far."""
        nonlocal best
        runs = _least(lambda m: enough(m, run_length), 1, LONGEST // (2 * run_length), bits)
        if runs is not None and (best is None or whole(runs, run_length) < whole(*best)):
            best = runs, run_length

    run_length = multiple(least)
    while run_length <= LONGEST_RUN and (best is None or whole(fewest, run_length) < whole(*best)):
        look(run_length, bits=3)
        run_length = multiple(4 * run_length)
    if best is None:
        return None
    for parts, bits in ((4, 8), (16, 12), (64, 50)):
        _, middle = best
        around = {middle + middle * step // parts for step in range(-4, 5)}
        around |= {2 * middle, 3 * middle} if parts == 4 else set()
        for run_length in sorted({multiple(size) for size in around}):
            look(run_length, bits)
    return best


def _least(holds: Callable[[int], bool], low: int, high: int, bits: int = 50) -> int | None:
    """The least number from ``low`` to ``high`` for which a condition holds that stays true once it is, or
    one above it by no more than 2^-``bits`` of itself; None if there is none.

    Bisects exponents first, so that a large range costs little.
    """
    if low > high or not holds(high):
        return None
    if holds(low):
        return low
    while high - low > max(1, high >> bits):
        middle = math.isqrt(low * high) if high > 4 * low else (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
