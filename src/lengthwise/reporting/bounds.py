"""Bounds in words, as a table, and as a figure."""

import math
from collections.abc import Sequence

import matplotlib
from matplotlib.figure import Figure
from rich.table import Table

from lengthwise.bounds import Bound
from lengthwise.reporting.canvas import ANSWER, FIT, GREY, STYLE, new_figure
from lengthwise.reporting.inspection import number

LARGEST_WRITTEN = 10**15
"""Lengths up to here are written out."""


def length_words(length: int | float) -> str:
    """A length as a person would write it."""
    if length == math.inf:
        return "infinite"
    if length <= LARGEST_WRITTEN:
        return f"{math.ceil(length):,}"
    power = math.log10(length)
    return f"{10 ** (power - math.floor(power)):.2f}e{math.floor(power)}"


def certified_words(bound: Bound) -> str:
    """The certified length, if there is one."""
    return length_words(bound.length) if bound.certified else "none"


def bound_sentence(bound: Bound, *, alone: bool = False) -> str:
    """What a bound promises, or why it promises nothing; ``alone`` if there is no g."""
    if bound.theorem == "equality" or bound.length == math.inf:
        return bound.words
    return (
        f"If f and {'any g with its constants' if alone else 'g'} agree to within e on every input of at "
        f"most {length_words(bound.length)} tokens, "
        f"they agree to within e + {bound.tolerance:g} at every length. {bound.words} "
        f"It would grow most if {WORSE[max(bound.growth, key=lambda name: bound.growth[name])]}."
    )


def bound_table(bound: Bound) -> Table:
    """The terms of a bound beside those of the paper's order, and what went into them."""
    table = Table("", "certified (ours)", "order (paper, constant 1)")
    beside = bound.order
    table.add_row("theorem", bound.theorem if bound.certified else "none", beside.theorem if beside else "-")
    table.add_row(
        "training length",
        length_words(bound.length),
        length_words(beside.length) if beside else "-",
        style="bold",
    )
    if bound.theorem == "Theorem E":
        for name, value in bound.terms.items():
            table.add_row(f"  error from {name}", number(value), "")
    else:
        for name, value in bound.terms.items():
            table.add_row(
                f"  {name} term", length_words(value), length_words(beside.terms[name]) if beside else ""
            )
    table.add_section()
    for name, value in bound.growth.items():
        table.add_row(f"  longer if {WORSE[name]}", f"{number(value)} times", "")
    table.add_section()
    for name, value in bound.parameters.items():
        told = length_words(value) if isinstance(value, int) else number(value)
        table.add_row(name.replace("_", " "), told, "")
    return table


WORSE = {
    "vocabulary": "the vocabulary is twice as large",
    "period": "the period is twice as long",
    "locality": "the window is twice as long",
    "far_sets": "twice as many far sets compete",
    "sensitivity": "the sensitivities are twice as large",
    "margin": "the margins are half as large",
    "first_layer": "the first layer's constants are twice as large",
    "second_layer_logits": "the second layer's logits are twice as large",
    "second_layer_values": "the second layer's values are twice as large",
}
"""What ``Bound.growth`` speaks of, in words."""


def bound_figure(bounds: Sequence[Bound], chosen: Bound) -> Figure:
    """Training length against tolerance, certified and of the paper's order, the chosen tolerance marked."""
    with matplotlib.rc_context(STYLE):
        figure = new_figure(5.6, 4.0)
        axes = figure.subplots()
        tolerances = [bound.tolerance for bound in bounds]
        axes.plot(
            tolerances, [bound.length for bound in bounds], color=FIT, label=f"certified, {chosen.theorem}"
        )
        if chosen.order:
            order = [bound.order.length if bound.order else math.nan for bound in bounds]
            axes.plot(tolerances, order, "--", color=GREY, label="of the order of the paper, constant 1")
        axes.axvline(chosen.tolerance, color=ANSWER, linewidth=0.9)
        axes.plot(chosen.tolerance, chosen.length, "*", color=ANSWER, markersize=12, zorder=5)
        axes.annotate(
            f"{length_words(chosen.length)} tokens",
            (chosen.tolerance, chosen.length),
            xytext=(7, 6),
            textcoords="offset points",
            color=ANSWER,
        )
        axes.set(xscale="log", yscale="log", xlabel="tolerance", ylabel="training length that suffices")
        axes.legend()
    return figure
