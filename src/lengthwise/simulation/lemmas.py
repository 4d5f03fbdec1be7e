"""What subsampling promises: the explicit forms of Lemma 5.3 and the error of a balanced subsample.

P(u, r, mu) is a function of a window of tau + 1 tokens, a residue and a histogram of types, with values in a
Hilbert space; ``spread`` Gam is the diameter of its range, ``size`` G a bound of |P|, ``lipschitz`` L its
Lipschitz constant in the histogram (total variation). J_x is its mean over the positions of x. A subsample z
consists of stretches of x, in order, and of the last e tokens of x, the ``end``.

The paper bounds |J_z - J_x| by a constant times (G + L)(tau + 1)/n^(1/3), for one way to subsample; all
constants here are ours.
"""

import math

from lengthwise.limit.complexity import TwoLayerConstants
from lengthwise.limit.norms import exp, times


def stratified_bound(
    *,
    spread: float,
    lipschitz: float,
    locality: int,
    vocabulary: int,
    runs: int,
    run_length: int,
    end: int | None = None,
) -> float:
    """Lemma S. With one of the M blocks of length l drawn from each of m strata, n = m l + e,

        E|J_z - J_x| <= 2 Gam e/n + Gam tau/l + L (sqrt(S/m) + (4 + 3 ln m)/m) + Gam/sqrt(2 m).

    ``end`` is e, by default its largest value 2 tau + l.

    Proof. J is a convex combination, so the end costs Gam e/T + Gam e/n. The first tau positions of a block
    have other windows: Gam tau/l. Histograms after k blocks are unbiased with TV sqrt(S/k)/2 in the mean, and
    partial blocks and strata add 3/k. Block means are m independent draws with variance at most Gam^2/2.
    """
    end = 2 * locality + run_length if end is None else end
    ends = times(spread, _share(end, runs * run_length) * 2 + locality / run_length)
    histograms = math.sqrt(vocabulary / runs) + (4 + 3 * math.log(runs)) / runs
    return ends + times(lipschitz, histograms) + spread / math.sqrt(2 * runs)


def markov_bound(
    *,
    spread: float,
    size: float,
    lipschitz: float,
    locality: int,
    vocabulary: int,
    kept: float,
    run_length: float,
    end: int = 0,
) -> float:
    """Lemma M. With units of D positions kept by a stationary two-state Markov chain, runs of mean length
    l >= 2 D, n = ``kept`` tokens in the mean, at most half of the string, and e more at the end,

        E|J_z - J_x| <= Gam tau (1/l + 1/n) + L (l/n + 4 sqrt(l S/n)) + 2 G sqrt(2 l/n) + 2 Gam e/n.

    Proof. Kept units have covariance pi (1 - pi) r^k with 1 - r = 1/(l (1 - pi)) in units, so a sum over kept
    positions has variance at most 2 n l G^2: the last term but one, once for the sum and once for |z| - n.
    There are at most 1 + n/l runs in the mean, each with tau positions that see another window. Given that
    position t is kept, the number of kept positions of a type up to t has mean square distance at most
    2 l (pi n_type + l_type)/D from pi times their number; over the S D types Cauchy-Schwarz gives
    sqrt(2 l S (pi t + l)), and the histogram is off by that over pi t, or by 1: in the mean over t by
    l/n + 4 sqrt(l S/n). The end is a share e/n of a convex combination.
    """
    share = run_length / kept
    windows = times(spread, locality * (1 / run_length + 1 / kept) + 2 * end / kept)
    return (
        windows
        + times(lipschitz, share + 4 * math.sqrt(share * vocabulary))
        + 2 * size * math.sqrt(2 * share)
    )


def balanced_bound(
    *,
    spread: float,
    size: float,
    lipschitz: float,
    locality: int,
    dimension: int,
    runs: int,
    run_length: int,
    end: int | None = None,
) -> float:
    """Lemma Bal, LB(Gam, G, L). For the one string z whose m blocks of length l balance the histograms and
    the means of P over the M blocks, d numbers a block, and n = m l + e,

        |J_z - J_x| <= 2 Gam e/n + Gam tau/l + L ((d + 1)(1 + ln+(m/(d + 1))) + 1)/m + G d/m.

    ``end`` is e, by default its largest value 2 tau + l.

    Proof. By prefix rounding (``prefix_rounding``) the chosen block means sum to m/M times all
    of them within d G. At the block chosen after k others, the histograms of both prefixes, scaled alike, are
    within d + 1 of each other (in L1) and weigh at least k: TV <= min(1, (d + 1)/k), averaged over k < m. The
    rest as for strata.
    """
    end = 2 * locality + run_length if end is None else end
    windows, histograms, averages = _factors(dimension, locality, runs, run_length, end)
    return times(spread, windows) + times(lipschitz, histograms) + times(size, averages)


def _factors(
    dimension: int, locality: int, runs: int, run_length: int, end: int
) -> tuple[float, float, float]:
    """By what LB multiplies Gam, L and G."""
    logarithm = 1 + max(0.0, math.log(runs / (dimension + 1)))
    return (
        2 * _share(end, runs * run_length) + locality / run_length,
        ((dimension + 1) * logarithm + 1) / runs,
        dimension / runs,
    )


def balanced_error(
    c: TwoLayerConstants, *, dimension: int, locality: int, runs: int, run_length: int
) -> float:
    """eps_f(m, l) of Theorem E: how far the output of a two-layer model on the balanced subsample z can be
    from its output on x, for every x longer than m l + 2 tau + l.

    ``dimension`` is the number d of quantities that are balanced (``balanced_dimension`` of all models that z
    serves), ``locality`` tau the largest of any of them, ``runs`` m and ``run_length`` l, a multiple of every
    period and at least tau + 1.

    Statement. With n_ = m l + 2 tau + 1 <= |z|, delta_t = min(diam1, C1 t^-gamma1), dbar the mean of
    delta_t over t <= n_ (diam1 for t <= tau), theta = min(1, (d + (2 tau + l)/l)/m), kappa = |key_query|,

        eps = L_out { 2 delta_n_ + L_Phi theta + sum over heads h of [
                2 dv min(1, (tau + 1) e^omega n_^-gamma_h) + 2 e1
                + (kappa diam1 dv + |V| + kappa Y1 dv) L_Phi theta
                + e^omega (LB(2 dv, dv, (|V| + kappa Y1 dv) L_Phi) + dv LB(1, 1, kappa Y1 L_Phi)) ] },
        e1  = |V| (1 + kappa Y1 diam1) (e^omega dbar + delta_(n_ - tau)) + kappa dv diam1 delta_n_,

    where for heads with phi* > 1 the last line of the sum and e^omega dbar are left out.

    Proof. (1) Replacing the second layer's positional weights by their limit costs dv times
    (tau + 1) e^omega n^-gamma_h on either string. (2) Replacing the stream by its limit moves values and
    logits; along the straight line the softmax average moves by E[dv] + Cov(da, v), and no far position has
    more weight than e^omega/n: e1. (3) The query and the near keys have the same windows and residues in both
    strings, and histograms within theta. (4) With a common query, numerator and denominator of the far part
    are means of w = exp(logit - sup) and of w times centred values, which were balanced: LB, divided by at
    least e^-omega. (5) The residual path moves by 2 delta_n_ + L_Phi theta. All terms fall with the length.
    """
    return sum(
        balanced_terms(c, dimension=dimension, locality=locality, runs=runs, run_length=run_length).values()
    )


def balanced_terms(
    c: TwoLayerConstants, *, dimension: int, locality: int, runs: int, run_length: int
) -> dict[str, float]:
    """The parts of which ``balanced_error`` is the sum.

    - "positions": of the second layer, its positional weights before their limit;
    - "convergence": the first layer before its limit;
    - "query": the histogram at the query and at the near keys;
    - "windows": the ends of runs, where windows differ, and the end of the string;
    - "histograms": prefix histograms at the far keys;
    - "averages": balanced means that are not quite equal.
    """
    at_least = runs * run_length + 2 * locality + 1
    last, near = _delta(c, at_least), _delta(c, at_least - locality)
    mean = _mean_delta(c, at_least, locality)
    theta = min(1.0, (dimension + (2 * locality + run_length) / run_length) / runs)
    terms = {
        "positions": 0.0,
        "convergence": 2 * last,
        "query": times(c.histogram, theta),
        "windows": 0.0,
        "histograms": 0.0,
        "averages": 0.0,
    }

    windows, histograms, averages = _factors(dimension, locality, runs, run_length, 2 * locality + run_length)
    for h in c.heads:
        e, dv = exp(h.oscillation), h.moves
        keys = h.values + times(h.logits, c.norm, dv)
        terms["positions"] += 2 * times(dv, min(1.0, (locality + 1) * times(e, at_least**-h.margin)))
        weight = times(0.0 if h.positional else e, mean) + near
        terms["convergence"] += 2 * times(h.values, 1 + times(h.logits, c.norm, c.diameter), weight)
        terms["convergence"] += 2 * times(h.logits, dv, c.diameter, last)
        terms["query"] += times(times(h.logits, c.diameter, dv) + keys, c.histogram, theta)
        if not h.positional:
            # LB(2 dv, dv, keys L_Phi) + dv LB(1, 1, kappa Y1 L_Phi)
            terms["windows"] += 3 * times(e, dv, windows)
            terms["histograms"] += times(e, keys + times(h.logits, c.norm, dv), c.histogram, histograms)
            terms["averages"] += 2 * times(e, dv, averages)
    return {name: times(c.out, value) for name, value in terms.items()}


def _share(part: int, rest: int) -> float:
    return part / (part + rest)


def _delta(c: TwoLayerConstants, position: int) -> float:
    """delta_t: how far the stream after the first layer can be from its limit at position t > tau."""
    return min(c.diameter, times(c.convergence, position**-c.margin_first))


def _mean_delta(c: TwoLayerConstants, length: int, locality: int) -> float:
    """dbar: a bound on the mean of delta_t over the positions of a string, falling with its length."""
    if c.margin_first < 1:
        total = length ** (1 - c.margin_first) / (1 - c.margin_first)
    else:
        total = 1 + math.log(length)
    early = times(locality, c.diameter)
    return min(c.diameter, (early + times(c.convergence, total)) / length)
