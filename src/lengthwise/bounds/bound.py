"""``bound``: the best theorem that applies to a pair."""

import math
from typing import Any

import torch

from lengthwise.bounds.one_layer import certified_length, far_sets, joint_tolerance, order_one_layer
from lengthwise.bounds.result import Bound
from lengthwise.bounds.two_layers import TwoLayerLength, order_two_layers, two_layer_length
from lengthwise.limit import Finite, Infinite, LimitTransformer
from lengthwise.limit.norms import complexity, sensitivity, two_layer_constants
from lengthwise.simulation.one_layer import hardmax_length
from lengthwise.simulation.pair import Pair


def bound(f: LimitTransformer, g: LimitTransformer, tolerance: float) -> Bound:
    """How long the inputs must be on which f and g agree, so that they agree, up to the tolerance more, at
    every length.

    - Two models of one layer in finite precision: Theorem C.
    - Two of one or two layers in infinite precision: Theorem E.
    - Others: none is known; the length is infinite, and ``words`` says why.

    The paper's expression stands beside it, as ``order``.
    """
    if not tolerance >= 0:
        raise ValueError(f"tolerance must be a number of at least 0, got {tolerance}")
    pair = Pair.of(f, g)
    if _same(pair):
        words = "f and g have the same weights: they agree at every length."
        return Bound(1, {}, "equality", True, tolerance, {}, words)
    if all(len(model.layers) == 1 and isinstance(model.precision, Finite) for model in pair.models):
        return _one_layer(pair, tolerance)
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


def _one_layer(pair: Pair, tolerance: float) -> Bound:
    """Theorem C: with eta = min(1/2, eps/(Lambda_f + Lambda_g)), agreement up to N_cert(eta) of Theorem B
    carries over to every length at the cost of eps. Proof: an x that is longer has a z that is not, in the
    hard regime like x, with |f(x) - f(z)| <= Lambda_f eta, the same for g, and the sum is at most eps.
    """
    sizes = [sensitivity(model, hard=True) for model in pair.models]
    eta = joint_tolerance(sizes, tolerance)
    hard, sets = hardmax_length(pair), far_sets(pair)
    shape = pair.vocabulary, pair.period, pair.locality
    length = certified_length(*shape, sets, eta, hard)
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
    return Bound(length, terms, "Theorem C", True, tolerance, parameters, words, order)


def _two_layers(pair: Pair, tolerance: float) -> Bound:
    deep = pair.two_layers()
    constants = [two_layer_constants(model) for model in deep.models]
    nothing = TwoLayerLength(math.inf, math.inf, math.inf, math.inf, math.inf, {})
    found = two_layer_length(constants[0], constants[1], tolerance) if tolerance > 0 else nothing
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
    return Bound(found.length, found.terms, "Theorem E", True, tolerance, parameters, words, order)
