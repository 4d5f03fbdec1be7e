"""``bound``: the best theorem that applies to a pair."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import torch

from lengthwise._checks import at_least_zero
from lengthwise.bounds.one_layer import certified_length, far_sets, joint_tolerance, order_one_layer
from lengthwise.bounds.result import Bound
from lengthwise.bounds.two_layers import TwoLayerLength, order_two_layers, two_layer_length
from lengthwise.limit import Finite, Infinite, LimitTransformer
from lengthwise.limit.complexity import TwoLayerConstants, complexity, two_layer_constants
from lengthwise.limit.sensitivity import sensitivity
from lengthwise.simulation.one_layer import hardmax_length
from lengthwise.simulation.pair import Pair


def bound(f: LimitTransformer, g: LimitTransformer | None, tolerance: float) -> Bound:
    """How long the inputs must be on which f and g agree, so that they agree, up to the tolerance more, at
    every length. Without g: for f and any model with the constants of f (one as complex, as certain).

    - Two models of one layer in finite precision: Theorem C.
    - Two of one or two layers in infinite precision: Theorem E.
    - Others: none is known; the length is infinite, and ``words`` says why.

    The paper's expression stands beside it, as ``order``.
    """
    tolerance = at_least_zero(tolerance, "tolerance")
    pair = Pair.of(f, f if g is None else g)
    if g is not None and _same(pair):
        words = "f and g have the same weights: they agree at every length."
        return Bound(1, {}, "equality", True, tolerance, {}, words)
    if all(len(model.layers) == 1 and isinstance(model.precision, Finite) for model in pair.models):
        return _one_layer(pair, tolerance, far_sets(pair) if g is not None else 2 * far_sets(pair))
    if pair.layers <= 2 and all(isinstance(model.precision, Infinite) for model in pair.models):
        return _two_layers(pair, tolerance)
    if pair.layers > 2:
        words = f"No bound is known for {pair.layers} layers: the theorems end at two."
    elif len({type(model.precision) for model in pair.models}) > 1:
        words = "No bound is known for one model in finite and one in infinite precision."
    else:
        words = "No bound is known for two layers in finite precision: the theorem is for infinite precision."
    return Bound(math.inf, {}, "none", False, tolerance, {}, words)


def _same(pair: Pair) -> bool:
    tensors, others = pair.f.tensors(), pair.g.tensors()
    return (
        pair.f.precision == pair.g.precision
        and [layer.activation for layer in pair.f.layers] == [layer.activation for layer in pair.g.layers]
        and tensors.keys() == others.keys()
        and all(torch.equal(tensor, others[name]) for name, tensor in tensors.items())
    )


def _one_layer(pair: Pair, tolerance: float, sets: int) -> Bound:
    """Theorem C: with eta = min(1/2, eps/(Lambda_f + Lambda_g)), agreement up to N_cert(eta) of Theorem B
    carries over to every length at the cost of eps. Proof: an x that is longer has a z that is not, in the
    hard regime like x, with |f(x) - f(z)| <= Lambda_f eta, the same for g, and the sum is at most eps.
    """
    sizes = [sensitivity(model, hard=True) for model in pair.models]
    eta = joint_tolerance(sizes, tolerance)
    hard = hardmax_length(pair)
    shape = pair.vocabulary, pair.period, pair.locality
    length = certified_length(*shape, sets, eta, hard)

    def grow() -> dict[str, float]:
        size, period, locality = shape
        assert isinstance(hard, int)
        worse = {
            "vocabulary": certified_length(2 * size, period, locality, sets, eta, hard),
            "period": certified_length(size, 2 * period, locality, sets, eta, hard),
            "locality": certified_length(size, period, 2 * locality + 1, sets, eta, hard),
            "far_sets": certified_length(*shape, 2 * sets, eta, hard),
            "sensitivity": certified_length(*shape, sets, eta / 2, hard),
            "margin": certified_length(*shape, sets, eta, hard**2),
        }
        return {name: _ratio(longer, length) for name, longer in worse.items()}

    terms: dict[str, int | float] = {
        "hardmax": pair.locality + 1 + hard + 2 * pair.period,
        "simulation": certified_length(*shape, sets, eta, 1),
    }
    parameters: dict[str, Any] = {
        "vocabulary": pair.vocabulary,
        "period": pair.period,
        "locality": pair.locality,
        "far_sets": sets,
        "sensitivity_f": sizes[0],
        "sensitivity_g": sizes[1],
        "margin_f": pair.f.logit_margin(),
        "margin_g": pair.g.logit_margin(),
        "hardmax_length": hard,
        "eta": float(eta),
    }
    beside = dict(
        zip(("hardmax", "simulation"), order_one_layer(*shape, max(sizes), tolerance, hard), strict=True)
    )
    order = Bound(
        max(beside.values()),
        {**beside},
        "Theorem 4.1 (order)",
        False,
        tolerance,
        {**parameters, "lipschitz": max(sizes)},
        "Of this order (paper), with constant 1; not certified.",
    )
    if math.inf in sizes:
        words = (
            "A model has steps (heaviside) that attention can cross: a small change may make its output jump."
        )
    elif tolerance == 0:
        words = "With tolerance 0 no length suffices by this theorem: attention is matched up to an error."
    elif hard == math.inf:
        words = (
            "The logit margin is so small that attention does not become hard at any length below 2^(2^20)."
        )
    else:
        largest = "hardmax length" if terms["hardmax"] >= terms["simulation"] else "simulation length"
        words = f"Certified (Theorem C); the {largest} decides."
    return Bound(length, terms, "Theorem C", length < math.inf, tolerance, parameters, words, order, grow)


def _ratio(longer: int | float, length: int | float) -> float:
    """How many times as long; infinite where a double cannot hold it."""
    ratio = Fraction(longer) / Fraction(length)
    return float(ratio) if ratio < 2**1000 else math.inf


def _two_layers(pair: Pair, tolerance: float) -> Bound:
    deep = pair.two_layers()
    constants = [two_layer_constants(model) for model in deep.models]
    nothing = TwoLayerLength(math.inf, math.inf, math.inf, math.inf, math.inf, {})
    found = two_layer_length(constants[0], constants[1], tolerance) if tolerance > 0 else nothing

    def grow() -> dict[str, float]:
        return {
            name: two_layer_length(worse(constants[0]), worse(constants[1]), tolerance).length / found.length
            for name, worse in WORSE.items()
        }

    complexities = [complexity(model) for model in deep.models]
    margin = min(constant.margin for constant in constants)
    parameters: dict[str, Any] = {
        "vocabulary": pair.vocabulary,
        "period": pair.period,
        "locality": pair.locality,
        "margin": margin,
        "complexity_f": complexities[0],
        "complexity_g": complexities[1],
        "runs": found.runs,
        "run_length": found.run_length,
        "error_f": found.error_f,
        "error_g": found.error_g,
    }
    order_length = math.inf
    if tolerance > 0:
        order_length = order_two_layers(complexities[0], complexities[1], margin, tolerance)
    order = Bound(
        order_length,
        {"simulation": order_length},
        "Theorem 5.2 (order)",
        False,
        tolerance,
        parameters,
        "Of this order (paper), with constant 1 and our C(f), theirs not being public; not certified.",
    )
    if found.length < math.inf:
        words = "Certified (Theorem E)."
    elif math.inf in complexities:
        words = (
            "The constants of Theorem E are infinite: steps (heaviside), or logits that vary by 700 or more."
        )
    elif tolerance == 0:
        words = "With tolerance 0 no length suffices by this theorem: strings are matched up to an error."
    else:
        words = "The length that Theorem E needs is beyond 10^300."
    certified = found.length < math.inf
    return Bound(found.length, found.terms, "Theorem E", certified, tolerance, parameters, words, order, grow)


def _heads(c: TwoLayerConstants, **factors: float) -> TwoLayerConstants:
    """The constants with some numbers of every second-layer head multiplied."""
    heads = [replace(h, **{name: getattr(h, name) * by for name, by in factors.items()}) for h in c.heads]
    return replace(c, heads=tuple(heads))


WORSE: dict[str, Callable[[TwoLayerConstants], TwoLayerConstants]] = {
    "vocabulary": lambda c: replace(c, vocabulary=2 * c.vocabulary),
    "period": lambda c: replace(c, period=2 * c.period),
    "locality": lambda c: replace(c, locality=2 * c.locality + 1),
    "first_layer": lambda c: replace(c, convergence=2 * c.convergence, histogram=2 * c.histogram),
    "second_layer_logits": lambda c: _heads(c, logits=2, oscillation=2),
    "second_layer_values": lambda c: _heads(c, values=2, moves=2),
    "margin": lambda c: _heads(replace(c, margin_first=c.margin_first / 2), margin=0.5),
}
"""What makes a pair of two-layer models twice as bad, one thing at a time."""
