"""Answers in words and tables, for a terminal."""

import math
from collections.abc import Callable

from rich.table import Table

from lengthwise.experiments import Advice
from lengthwise.experiments.theory import BesideTheory, TheoryOf
from lengthwise.reporting.bounds import certified_words, length_words
from lengthwise.reporting.inspection import number
from lengthwise.reporting.tasks import subject
from lengthwise.sequences import LONGEST


def advice_sentence(advice: Advice) -> str:
    """The answer in one or two sentences, saying no more than was measured."""
    name = f"For {subject(advice.task)}"
    if advice.predicted_length is None:
        return f"{name}, no training length is advised: {advice.prediction.reason}."
    predicted = f"the pilot predicted {advice.predicted_length}, {interval_words(advice)}"
    if advice.answer is None:
        tried = advice.lengths[-1].training_length
        return (
            f"{name}, no training length up to {tried} brought the plateau of the loss under "
            f"{advice.tolerance:g}, although {predicted}."
        )
    longest = power_of_ten(advice.longest_test)
    if advice.answer.worst <= advice.tolerance:
        kept = f"keep the loss under {advice.tolerance:g} at every length measured up to {longest}"
    else:
        kept = (
            f"bring the plateau of the loss under {advice.tolerance:g}, measured up to length {longest}, but "
            f"the loss passes it at some test length (up to {advice.answer.worst:.2g})"
        )
    outcome = "the prediction came true" if advice.confirmed else "the prediction did not come true"
    sentence = (
        f"{name}, training sequences of length {advice.confirmed_length} (predicted "
        f"{advice.predicted_length}, {interval_words(advice)}) {kept}; {outcome}."
    )
    if advice.exceptions:
        several = ", ".join(map(str, advice.exceptions))
        sentence += f" Not every longer length measured did as well: {several} did not."
    return sentence


def interval_words(advice: Advice) -> str:
    """The interval of a prediction, which may have no upper end."""
    low, high = advice.interval or (advice.predicted_length,) * 2
    return f"at least {low}" if high and high > LONGEST // 2 else f"interval {low} to {high}"


def advice_table(advice: Advice) -> Table:
    """One row a training length."""
    table = Table(title=f"{subject(advice.task)}: plateau of the test loss", title_justify="left")
    table.add_column("trained at", justify="right")
    table.add_column("stage")
    table.add_column("plateau", justify="right")
    table.add_column("lowest, highest seed", justify="right")
    table.add_column("level", justify="right")
    table.add_column(f"within {advice.tolerance:g}")
    for at in advice.lengths:
        answer = at.training_length == advice.confirmed_length
        seeds = [curve.plateau.value for curve in at.curves]
        table.add_row(
            str(at.training_length),
            at.stage,
            f"{at.plateau:.2g}",
            f"{min(seeds):.2g}, {max(seeds):.2g}",
            f"{at.level}/{len(seeds)}",
            "shortest" if answer else ("yes" if advice.within(at) else "no"),
            style="bold" if answer else None,
        )
    table.caption = "plateau: median over seeds; level: seeds whose curve has levelled off"
    table.caption_justify = "left"
    return table


def power_of_ten(number: int) -> str:
    """10^9 rather than 1000000000, where it is one."""
    exponent = len(str(number)) - 1
    return f"10^{exponent}" if number == 10**exponent and exponent > 3 else str(number)


def theory_table(theory: BesideTheory) -> Table:
    """What theory says, beside what was measured."""
    table = Table(title="what theory says", title_justify="left")
    table.add_column("")
    table.add_column("trained model", justify="right")
    table.add_column("construction", justify="right")
    columns = [theory.trained, theory.construction]
    finite = theory.trained.hardmax_length is not None

    def row(name: str, tell: Callable[[TheoryOf], str], style: str | None = None) -> None:
        table.add_row(name, *(tell(one) if one else "-" for one in columns), style=style)

    row("logit margin" if finite else "positional margin", lambda one: number(one.margin))
    if finite:
        row("attention is hard from", lambda one: length_words(one.hardmax_length or math.inf))
    row("complexity C(f)", lambda one: number(one.complexity))
    row("certified training length", lambda one: certified_words(one.bound), "bold")
    row(
        "of this order (paper)",
        lambda one: length_words(one.bound.order.length) if one.bound.order else "-",
    )
    table.caption = (
        f"bounds for outputs that differ by {theory.tolerance:.2g} (a loss of {theory.tolerance**2:.2g}) at "
        f"any input of any length; measured on average: {theory.measured or 'no length that sufficed'}"
    )
    table.caption_justify = "left"
    return table
