"""How tight the bounds are: the length that a pair really needs, beside the certified one and the paper's."""

import math
from dataclasses import dataclass
from itertools import accumulate

from lengthwise._checks import number
from lengthwise.bounds.bound import bound
from lengthwise.bounds.divergence import profile, smallest_eta
from lengthwise.limit.norms import times
from lengthwise.limit.sensitivity import sensitivity
from lengthwise.limit.transformer import LimitTransformer


@dataclass(frozen=True)
class Tightness:
    """The true length of a pair, and what theorems say of it.

    - ``true``: the smallest N such that no input is further apart than the largest divergence up to length N,
      plus the tolerance: exact if ``exact``, otherwise a lower bound on it;
    - ``divergences``: sup |f - g| at the lengths 1, 2, .., ``up_to``;
    - ``supremum``: (low, high), between which the supremum over all lengths lies;
    - ``certified``: what Theorem C needs; ``order``: the paper's expression, constant 1, not certified.
    """

    tolerance: float
    up_to: int
    true: int
    exact: bool
    divergences: tuple[float, ...]
    supremum: tuple[float, float]
    certified: int | float
    order: int | float

    @property
    def certified_ratio(self) -> float:
        """How many times the true length the certified one is."""
        return self.certified / self.true

    @property
    def order_ratio(self) -> float:
        """How many times the true length the paper's expression is."""
        return self.order / self.true


def tightness(
    f: LimitTransformer, g: LimitTransformer, tolerance: float, up_to: int, *, supremum: float | None = None
) -> Tightness:
    """Compare the true length of two one-layer models with the bounds, by exact divergence up to a length.

    The true length N* is the smallest N with sup over all inputs <= max over lengths up to N, plus the
    tolerance. The supremum over all inputs is at least the largest divergence up to ``up_to``, so the
    smallest N that satisfies this with it is a lower bound on N*. It is N* itself if it also satisfies it
    with a proved upper bound on the supremum: that of ``limit_divergence``, or the ``supremum`` itself, where
    the caller knows it. If it is given and no length up to ``up_to`` comes within the tolerance of it,
    N* >= up_to + 1.
    """
    if not number(tolerance, "tolerance") >= 0:
        raise ValueError(f"tolerance must be a number of at least 0, got {tolerance}")
    divergences = tuple(float(one) for one in profile(f, g, up_to))
    running = list(accumulate(divergences, max))
    if supremum is None:
        low = running[-1]
        eta = smallest_eta(f, g, up_to, None)
        high = (
            math.inf
            if eta is None
            else low + times(sensitivity(f, hard=True) + sensitivity(g, hard=True), eta)
        )
    elif supremum < running[-1] - 1e-9:
        raise ValueError(f"supremum must be at least {running[-1]}, which is attained, got {supremum}")
    else:
        low = high = supremum
    enough = [length for length, size in enumerate(running, start=1) if size + tolerance >= low]
    true = enough[0] if enough else up_to + 1
    exact = bool(enough) and running[true - 1] + tolerance >= high
    found = bound(f, g, tolerance)
    order = found.order.length if found.order is not None else math.inf
    return Tightness(tolerance, up_to, true, exact, divergences, (low, high), found.length, order)
