"""Limit transformers written down by hand, each with the error that it is proved to stay within."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Integer
from torch import Tensor

from lengthwise._checks import number, positive, whole
from lengthwise._messages import nearest, shown
from lengthwise.limit.precision import Finite, Infinite
from lengthwise.limit.transformer import LimitLayer, LimitTransformer
from lengthwise.sequences import check_tokens

MOST_WEIGHTS, MOST_KNOTS = 2**27, 2**24
"""No construction has more weights (a gigabyte), and SimpleTask no more knots."""


def simple_task(omega: float, knots: int, *, bits: float = 16) -> LimitTransformer:
    """f(x) = the piecewise linear interpolation of sin(omega u), u = (c_0 - c_1)/T, between ``knots`` equal
    steps of [-1, 1].

    Attention is uniform at every length, so it averages the values +1 of token 0 and -1 of token 1; the MLP
    has a unit for the left end of each step and one for the constant. Within ``simple_task_error`` of
    SimpleTask on every string of every length, in every precision (``bits=math.inf``: infinite).
    """
    omega = positive(omega, "omega")
    whole(knots, "knots", 1, MOST_KNOTS)
    precision = _precision(bits)
    value, mean, out = range(3)
    embedding, positions, key_query, to_mean, readout = _zeros((2, 3), (1, 3), (1, 3, 3), (1, 3, 3), (1, 3))
    embedding[0, value], embedding[1, value] = 1.0, -1.0
    to_mean[0, mean, value] = 1.0
    readout[0, out] = 1.0
    knot = torch.linspace(-1, 1, knots + 1, dtype=torch.float64)
    slope = torch.sin(omega * knot).diff() * knots / 2
    mlp_in, mlp_bias, mlp_out = _zeros((knots + 1, 3), (knots + 1,), (3, knots + 1))
    mlp_in[:knots, mean], mlp_bias[:knots] = 1.0, -knot[:-1]
    mlp_out[out, :knots] = slope.diff(prepend=slope.new_zeros(1))
    mlp_bias[knots], mlp_out[out, knots] = 1.0, math.sin(-omega)
    (no_local,) = _zeros((1, 1))
    layer = LimitLayer(key_query, to_mean, no_local, mlp_in, mlp_bias, mlp_out)
    return LimitTransformer(embedding, positions, (layer,), readout, precision)


def simple_task_error(omega: float, knots: int) -> float:
    """Sup |f - f*| <= omega^2 / (2 knots^2): linear interpolation with steps h = 2/knots errs by at most
    h^2/8 times the largest second derivative, omega^2.
    """
    return omega**2 / (2 * knots**2)


def mod_p(period: int, residue: int, *, bits: float = 16, margin: float | None = None) -> LimitTransformer:
    """f(x) = the fraction of 1s among the positions t with t = residue (mod period).

    The head's logit is ``margin`` on these positions and 0 elsewhere, so that attention is hard from length
    2^(bits/margin) on: from there, the output is exact (error 0) on every string that has such a position.
    Without a margin it is ``bits``, and that length 2. In infinite precision (``bits=math.inf``) attention
    is never hard: every other position keeps e^-margin of the weight of one of these.
    """
    whole(period, "period", 1)
    whole(residue, "residue", 0, period - 1)
    precision = _precision(bits)
    if margin is None:
        if isinstance(precision, Infinite):
            raise ValueError(
                "in infinite precision (bits=inf) the construction needs a margin, as in margin=8"
            )
        margin = bits
    positive(margin, "margin")
    one, constant, out, first = range(4)
    width = first + period
    embedding, positions, key_query, to_out, readout = _zeros(
        (2, width), (period, width), (1, width, width), (1, width, width), (1, width)
    )
    embedding[1, one] = 1.0
    embedding[:, constant] = 1.0
    positions[:, first:] = torch.eye(period, dtype=torch.float64)
    key_query[0, first + residue, constant] = margin
    to_out[0, out, one] = 1.0
    readout[0, out] = 1.0
    no_local, mlp_in, mlp_bias, mlp_out = _zeros((1, 1), (0, width), (0,), (width, 0))
    layer = LimitLayer(key_query, to_out, no_local, mlp_in, mlp_bias, mlp_out)
    return LimitTransformer(embedding, positions, (layer,), readout, precision)


def k_gram(k: int, vocabulary: int, tolerance: float, *, margin: float | None = None) -> LimitTransformer:
    """f(x) ~ the distribution of the tokens that followed earlier occurrences of the last k tokens.

    Two layers in infinite precision, without MLP, in k + 2 blocks of ``vocabulary`` coordinates. Block 0
    holds the token; head t of layer 1 has phi(t) = 2, so it copies the token t positions back to block t;
    layer 2 compares the k tokens before a position with the last k, by logit beta for each that agrees, and
    copies the token there to the last block; with k = 1 this is an induction head.
    beta = ln(2 vocabulary^k / tolerance): for a context that makes up at least vocabulary^-k of the string,
    the part of the error that does not fall with the length is at most half the tolerance.
    ``k_gram_error`` bounds the whole of it for a given string. A ``margin`` stands in place of this beta.
    """
    beta = _k_gram_beta(k, vocabulary, tolerance)
    if margin is not None:
        positive(margin, "margin")
        beta = margin
    width = (k + 2) * vocabulary
    embedding, positions, readout = _zeros((vocabulary, width), (1, width), (vocabulary, width))
    block = [slice(t * vocabulary, (t + 1) * vocabulary) for t in range(k + 2)]
    eye = torch.eye(vocabulary, dtype=torch.float64)
    embedding[:, block[0]] = eye
    readout[:, block[k + 1]] = eye
    no_logits, copy, local = _zeros((k, width, width), (k, width, width), (k, k + 1))
    compare, follow, no_local = _zeros((1, width, width), (1, width, width), (1, 1))
    for t in range(1, k + 1):
        copy[t - 1, block[t], block[0]] = eye
        local[t - 1, t] = 2.0
        compare[0, block[t], block[t - 1]] = beta * eye
    follow[0, block[k + 1], block[0]] = eye
    mlp_in, mlp_bias, mlp_out = _zeros((0, width), (0,), (width, 0))
    layers = (
        LimitLayer(no_logits, copy, local, mlp_in, mlp_bias, mlp_out),
        LimitLayer(compare, follow, no_local, mlp_in, mlp_bias, mlp_out),
    )
    return LimitTransformer(embedding, positions, layers, readout, Infinite())


def induction_head(vocabulary: int, tolerance: float) -> LimitTransformer:
    """After ... a b ... a, say b: the k-gram construction with k = 1."""
    return k_gram(1, vocabulary, tolerance)


def k_gram_error(tokens: Integer[Tensor, "T"], k: int, vocabulary: int, tolerance: float) -> float:
    """A bound on the total variation between ``k_gram`` and the exact estimator on a string in which the
    last k tokens have occurred before; infinite if they have not.

    With J the positions whose k predecessors are the last k tokens, delta_i = (i - 1)/(i^2 + i - 1) the
    attention of a layer-1 head that misses its position, and Delta_j = beta (k delta_j + (k - 1) delta_T),
    it is

        max( sum over J of 1 - e^-Delta_j,  k + sum over other j > k of min(1, e^(Delta_j - beta)) ) / |J|.

    Proof: compare with weights e^(beta k) on J and 0 elsewhere. Inner products of substochastic vectors move
    by at most delta_j + delta_T, those of block 0 with itself by delta_j; matches only lose weight, others
    gain at most up to e^(beta k).
    """
    check_tokens(tokens, vocabulary)
    beta, length = _k_gram_beta(k, vocabulary, tolerance), len(tokens)
    if length <= k:
        return math.inf
    context = sum(tokens[t : length - k + t + 1] * vocabulary ** (k - 1 - t) for t in range(k))
    assert isinstance(context, Tensor)
    match = context[:-1] == context[-1]  # entry i: the tokens i + 1 .. i + k, before position i + k + 1
    found = int(match.sum())
    if found == 0:
        return math.inf
    position = torch.arange(k + 1, length + 1, dtype=torch.float64, device=tokens.device)
    missed = (position - 1) / (position**2 + position - 1)
    move = beta * (k * missed + (k - 1) * missed[-1])
    lost = float((1 - torch.exp(-move[match])).sum())
    gained = k + float(torch.exp(move[~match] - beta).clamp_max(1.0).sum())
    return max(lost, gained) / found


def lower_bound_family(k: int, slope: float, *, bits: float = 16) -> LimitTransformer:
    """A model that is 0 on all inputs of length at most (k L)^k, L = ``slope``, and comes as close to 1 as
    one likes on longer ones: at a tolerance below 1, no shorter training length can do for all models of
    k + 1 heads and slope L.

    Tokens 0..k, and the nested sets A_j = {0, .., j}. Head j = 0..k attends uniformly to the tokens of A_j if
    there are any (logit ``bits`` on A_j and 0 elsewhere, so hard from length 2^(bits/bits) = 2 on, and at
    length 1 there is nothing to choose from); its value is 0 on token j and 1 on every other. The output is

        f = relu(1 - h_0 - L (h_1 + .. + h_k)).

    Write N_j for the number of positions with a token of A_j, so N_k = T. If token 0 does not occur, h_0 = 1
    and f = 0. If it occurs, every A_j is met, h_0 = 0 and h_j = N_(j-1)/N_j for j >= 1.

    Proof that f = 0 up to (k L)^k. f > 0 means L sum_j N_(j-1)/N_j < 1. The product of these k ratios is
    N_0/T >= 1/T, so by the inequality of the means their sum is at least k T^(-1/k), and T > (k L)^k.

    Proof that f comes close to 1. N_j = M^j gives f = 1 - k L/M.

    If M = k L is a whole number, the first length with f > 0 is M^k + 1: N_j = M^j for j < k and
    N_k = M^k + 1 make the sum smaller than k/M = 1/L.
    """
    whole(k, "k", 1)
    slope = positive(slope, "slope")
    precision = Finite(bits)
    heads = k + 1
    width = 2 * heads + 1  # which token, what each head says, and the output
    embedding, positions, key_query, value, readout = _zeros(
        (heads, width), (1, width), (heads, width, width), (heads, width, width), (1, width)
    )
    embedding[:, :heads] = torch.eye(heads, dtype=torch.float64)
    readout[0, -1] = 1.0
    no_local, mlp_in, mlp_bias, mlp_out = _zeros((heads, 1), (1, width), (1,), (width, 1))
    for head in range(heads):
        key_query[head, : head + 1, :heads] = bits  # the query is one of the tokens
        value[head, heads + head, :heads] = 1.0
        value[head, heads + head, head] = 0.0
        mlp_in[0, heads + head] = -slope if head else -1.0
    mlp_bias[0], mlp_out[-1, 0] = 1.0, 1.0
    layer = LimitLayer(key_query, value, no_local, mlp_in, mlp_bias, mlp_out)
    return LimitTransformer(embedding, positions, (layer,), readout, precision)


def constant(vocabulary: int, outputs: int = 1, value: float = 0.0, *, bits: float = 16) -> LimitTransformer:
    """f(x) = ``value`` in each of its outputs, on every string: without heads and hidden units."""
    whole(vocabulary, "vocabulary", 1)
    whole(outputs, "outputs", 1)
    precision = Finite(bits)
    embedding, readout, positions, no_heads, no_local, mlp_in, mlp_bias, mlp_out = _zeros(
        (vocabulary, 1), (outputs, 1), (1, 1), (0, 1, 1), (0, 1), (0, 1), (0,), (1, 0)
    )
    embedding += 1.0
    readout += number(value, "value")
    layer = LimitLayer(no_heads, no_heads, no_local, mlp_in, mlp_bias, mlp_out)
    return LimitTransformer(embedding, positions, (layer,), readout, precision)


CONSTRUCTIONS: dict[str, tuple[Callable[..., LimitTransformer], dict[str, int | float | None]]] = {
    "simple": (simple_task, {"omega": 8.0, "knots": 64, "bits": 16.0}),
    "modp": (mod_p, {"period": 3, "residue": 0, "bits": 16.0, "margin": None}),
    "kgram": (k_gram, {"k": 2, "vocabulary": 3, "tolerance": 0.01, "margin": None}),
    "induction": (induction_head, {"vocabulary": 3, "tolerance": 0.01}),
    "lower-bound": (lower_bound_family, {"k": 2, "slope": 2.0}),
    "zero": (constant, {"vocabulary": 2}),
}
"""Every construction by the name that users type, with its parameters and their defaults; None is for a
number that follows from the others.
"""


def named(text: str) -> LimitTransformer:
    """The construction that a text names, such as "simple" or "modp:period=5,residue=2"."""
    name, _, given = text.partition(":")
    if name not in CONSTRUCTIONS:
        raise ValueError(f"there is no construction {shown(name)}{nearest(name, list(CONSTRUCTIONS))}")
    make, defaults = CONSTRUCTIONS[name]
    parameters = dict(defaults)
    for part in given.split(",") if given else []:
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"expected {name}:NAME=NUMBER,..., got {shown(part)} in {shown(text)}")
        if key not in defaults:
            raise ValueError(
                f"construction {name!r} has no parameter {shown(key)}{nearest(key, list(defaults))}"
            )
        kind = int if isinstance(defaults[key], int) else float
        try:
            parameters[key] = kind(value)
        except ValueError:
            sort = "a whole number" if kind is int else "a number"
            raise ValueError(f"{key} of construction {name!r} must be {sort}, got {shown(value)}") from None
    return make(**parameters)


def _k_gram_beta(k: int, vocabulary: int, tolerance: float) -> float:
    whole(k, "k", 1)
    whole(vocabulary, "vocabulary", 1)
    positive(tolerance, "tolerance")
    return k * math.log(vocabulary) + math.log(2) - math.log(min(tolerance, 1.0))


def _precision(bits: float) -> Finite | Infinite:
    return Infinite() if number(bits, "bits") == math.inf else Finite(bits)


def _zeros(*shapes: tuple[int, ...]) -> list[Tensor]:
    size = sum(math.prod(shape) for shape in shapes)
    if size > MOST_WEIGHTS:
        raise ValueError(f"this model would have {shown(size)} weights, more than {MOST_WEIGHTS:,}")
    return [torch.zeros(shape, dtype=torch.float64) for shape in shapes]
