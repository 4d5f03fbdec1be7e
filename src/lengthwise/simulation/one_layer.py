"""Simulation of one-layer models in finite precision, from what they see of a string."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from lengthwise.limit.sensitivity import sensitivity
from lengthwise.sequences import Summary, string_of
from lengthwise.simulation.attended import Attended, attended
from lengthwise.simulation.counts import relevant_sets, shortened
from lengthwise.simulation.pair import Pair, distance
from lengthwise.simulation.result import Method, Simulation
from lengthwise.simulation.shortest import fewest_positions, shortest_of_all

WRITTEN_OUT = 2**24
"""A simulating string up to this length comes as tokens; a longer one as its summary alone."""

ROUNDING = 1 + Fraction(1, 10**9)
"""Sensitivities are taken this much larger: more than computing them can err."""


def attention_tolerance(pair: Pair, tolerance_f: float, tolerance_g: float) -> Fraction:
    """Eta <= 1/2: attention of all heads within eta in total variation keeps the outputs of f and g within
    their tolerances. 0 where a model has steps, and no attention is close enough.
    """
    eta = Fraction(1, 2)
    for model, tolerance in zip(pair.models, (tolerance_f, tolerance_g), strict=True):
        size = sensitivity(model, hard=True)
        if size == math.inf:
            return Fraction(0)
        if size > 0 and tolerance < math.inf:
            eta = min(eta, Fraction(tolerance) / (Fraction(size) * ROUNDING))
    return eta


def hardmax_length(pair: Pair) -> int | float:
    """The length from which on attention is hard in both models."""
    return max(model.hardmax_length() for model in pair.models)


def simulate_counts(
    pair: Pair, summary: Summary, word: Tensor | None, tolerance: float, method: Method, time_limit: float
) -> Simulation:
    """Methods "counts" and "shortest": see ``lengthwise.simulate``."""
    eta, hardmax = attention_tolerance(pair, tolerance, tolerance), hardmax_length(pair)
    given = [int(count) for count in summary.counts.flatten().tolist()]
    found, details = given, {"eta": float(eta), "hardmax_length": hardmax if hardmax < math.inf else None}
    if eta > 0 and int(summary.length) >= hardmax:
        assert isinstance(hardmax, int)
        heads = attended(pair, summary)
        sets = relevant_sets(heads, given)
        found = shortened(
            given, sets, period=pair.period, locality=pair.locality, eta=eta, hardmax_length=hardmax
        )
        if method == "shortest":
            found, told = _fewest(summary, given, found, heads, eta, hardmax, time_limit / 2)
            details |= told
        details["relevant_sets"] = len(sets)
        details["attention_moved"] = float(max((head.distance(given, found) for head in heads), default=0))
    short, same = _with_counts(summary, found), found == given
    guaranteed = [0.0 if same else float(eta) * sensitivity(model, hard=True) for model in pair.models]
    if method == "shortest":
        outputs = [model.evaluate_counts(summary) for model in pair.models]
        whole = int(short.length)
        trial = shortest_of_all(pair, outputs, [tolerance] * 2, below=whole, time_limit=time_limit / 2)
        details["all_strings_tried_up_to"] = trial.tried
        details["shortest_of_all"] = trial.summary is not None or trial.tried >= whole - 1
        if trial.summary is not None:
            short, same, guaranteed = trial.summary, False, None
    length = int(short.length)
    tokens = word if same else None
    if tokens is None and length <= WRITTEN_OUT:
        tokens = string_of(short)
    errors = [0.0 if same else distance(model, summary, short) for model in pair.models]
    return Simulation(
        tokens=tokens,
        length=length,
        error_f=errors[0],
        error_g=errors[1],
        method=method,
        guaranteed_f=guaranteed[0] if guaranteed else None,
        guaranteed_g=guaranteed[1] if guaranteed else None,
        guarantee="always" if guaranteed else "none",
        summary=short,
        details=details,
    )


def _fewest(
    summary: Summary,
    given: list[int],
    known: list[int],
    heads: Sequence[Attended],
    eta: Fraction,
    hardmax: int,
    time_limit: float,
) -> tuple[list[int], dict[str, Any]]:
    """The counts of the integer program where they are fewer than those known, and what it proved."""
    period = summary.period
    sizes, kept = ([sum(counts[residue::period]) for residue in range(period)] for counts in (given, known))
    surplus = sum(sizes) - period * min(sizes)  # positions besides c' in each residue
    near = int(summary.length) - sum(sizes)
    least = max(0, -(-(hardmax - near - surplus) // period))
    program = fewest_positions(
        given, heads, period=period, eta=eta, least=least, known=min(kept), time_limit=time_limit
    )
    found = known if program.counts is None or sum(program.counts) >= sum(known) else program.counts
    shortest = near + surplus + period * program.fewest
    length = near + sum(found)
    return found, {
        "shortest_with_this_attention": length <= shortest,
        "no_shorter_with_this_attention_than": min(shortest, length),
    }


def _with_counts(summary: Summary, counts: Sequence[int]) -> Summary:
    """The same suffix behind other far counts."""
    far = torch.tensor(counts, dtype=torch.float64, device=summary.counts.device)
    removed = int(summary.counts.sum()) - sum(counts)
    return Summary(far.reshape(summary.counts.shape), summary.suffix, summary.length - removed)
