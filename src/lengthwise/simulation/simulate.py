"""``simulate``: one door to all methods."""

from collections.abc import Sequence

from torch import Tensor

from lengthwise._checks import number, whole
from lengthwise._messages import shown
from lengthwise.limit import Finite, Infinite, LimitTransformer
from lengthwise.limit.counting import check_summary
from lengthwise.sequences import Summary, check_length, check_seed, summarize
from lengthwise.simulation.one_layer import simulate_counts
from lengthwise.simulation.pair import Pair
from lengthwise.simulation.result import Method, Simulation


def simulate(
    f: LimitTransformer,
    g: LimitTransformer,
    tokens: Tensor | Sequence[int] | Summary,
    tolerance: float,
    method: Method | None = None,
    *,
    length: int | None = None,
    draws: int = 8,
    seed: int = 0,
    time_limit: float = 8.0,
) -> Simulation:
    """A short string z on which f and g have nearly the outputs that they have on x.

    For one-layer models in finite precision (x may be given by its ``Summary`` with the common period and
    locality of f and g, so that its length is limited by 2^53 alone):

    - "counts" (the default): the deterministic construction of Theorem B, errors guaranteed to be within the
      tolerance;
    - "shortest": an integer program for the shortest z with the suffix of x and the attention of every head
      within the same distance; then, as far as ``time_limit`` seconds allow, all strings shorter than that
      are tried, so that z is the shortest of all.

    For models of one or two layers in infinite precision:

    - "balanced" (the default): runs of x, chosen deterministically so that their statistics balance;
    - "stratified": one run from each of equal parts of x; "markov": runs kept by a two-state chain; both the
      best of ``draws`` draws.

    There z has at most ``length`` tokens if that is given, otherwise the fewest on a grid of lengths for
    which the measured errors are within the tolerance. If nothing shorter than x serves, z is x.
    """
    tolerance = number(tolerance, "tolerance")
    if not tolerance >= 0:
        raise ValueError(f"tolerance must be a number of at least 0, got {tolerance}")
    if not number(time_limit, "time_limit") > 0:
        raise ValueError(f"time_limit must be a positive number of seconds, got {time_limit}")
    check_seed(seed)
    whole(draws, "draws", 1)
    if length is not None:
        check_length(length)
    pair = Pair.of(f, g)
    finite = all(len(model.layers) == 1 and isinstance(model.precision, Finite) for model in pair.models)
    infinite = pair.layers <= 2 and all(isinstance(model.precision, Infinite) for model in pair.models)
    if not finite and not infinite:
        raise ValueError(
            "simulation needs two models of one layer in finite precision, or of one or two layers in "
            f"infinite precision; got {_kind(f)} and {_kind(g)}"
        )
    method = ("counts" if finite else "balanced") if method is None else method
    methods = ("counts", "shortest") if finite else ("markov", "stratified", "balanced")
    if not isinstance(method, str) or method not in methods:
        raise ValueError(f"method must be one of {', '.join(methods)} for {_kind(f)}, got {shown(method)}")
    if infinite:
        from lengthwise.simulation.runs import simulate_runs

        if isinstance(tokens, Summary):
            raise ValueError("a string must be given by its tokens here: runs cannot be taken from counts")
        word = pair.word(tokens)
        assert method in ("markov", "stratified", "balanced")
        return simulate_runs(
            pair.two_layers(), word, tolerance, method, length=length, draws=draws, seed=seed
        )
    if isinstance(tokens, Summary):
        summary, word = _one(check_summary(pair.f, tokens)), None
    else:
        word = pair.word(tokens)
        summary = summarize(word, pair.vocabulary, pair.period, pair.locality)
    return simulate_counts(pair, summary, word, tolerance, method, time_limit)


def _kind(f: LimitTransformer) -> str:
    precision = "finite" if isinstance(f.precision, Finite) else "infinite"
    return f"{len(f.layers)} layer{'s'[: len(f.layers) - 1]} in {precision} precision"


def _one(summary: Summary) -> Summary:
    if len(summary.suffix) != 1:
        raise ValueError(f"simulate takes one summary, got {len(summary.suffix)}")
    return Summary(summary.counts[0], summary.suffix[0], summary.length[0])
