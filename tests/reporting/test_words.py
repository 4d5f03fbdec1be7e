"""What is said follows from what was measured, and says no more."""

import io

from rich.console import Console

import lengthwise as lw
from laws import advice_of
from lengthwise.reporting.tasks import subject, tasks_table
from lengthwise.reporting.words import advice_sentence, advice_table, power_of_ten


def power_law(length, seed):
    return 0.05 * (7 / length) ** 3.5 * (1 + 0.02 * seed)


def shown(table):
    console = Console(file=io.StringIO(), width=100)
    console.print(table)
    return console.file.getvalue()


def test_the_answer_in_a_sentence():
    sentence = advice_sentence(advice_of(power_law))
    assert sentence.startswith(
        "For SimpleTask with omega = 8, training sequences of length 12 (predicted 12,"
    )
    assert "keep the loss under 0.01 at every length measured up to 10^9" in sentence
    assert sentence.endswith("the prediction came true.")


def test_a_prediction_that_failed_is_said_to_have_failed():
    sentence = advice_sentence(advice_of(power_law, more=(12, 24, 30), confirmed=30))
    assert "length 30" in sentence
    assert sentence.endswith("the prediction did not come true.")


def test_exceptions_are_named():
    def bumpy(length, seed):
        return 0.02 if length == 14 else power_law(length, seed)

    assert "Not every longer length measured did as well: 14 did not." in advice_sentence(advice_of(bumpy))


def test_a_loss_that_passes_the_tolerance_on_the_way_is_told():
    advice = advice_of(power_law)
    answer = advice.answer
    assert answer is not None
    assert answer.worst <= advice.tolerance

    def at_the_edge(length, seed):
        return 0.0101 if length == 12 else power_law(length, seed)

    sentence = advice_sentence(advice_of(at_the_edge))
    assert "keep the loss under" not in sentence
    assert "but the loss passes it at some test length (up to 0.01)" in sentence


def test_no_answer_without_a_prediction_or_a_confirmation():
    out_of_reach = advice_sentence(advice_of(power_law, tolerance=1e-6, more=(), confirmed=None))
    assert "no training length is advised" in out_of_reach
    assert "out of reach of a pilot up to length 10" in out_of_reach
    unconfirmed = advice_sentence(advice_of(power_law, confirmed=None))
    assert "no training length up to 14 brought the plateau of the loss under 0.01" in unconfirmed


def test_the_table_has_a_row_a_length_and_marks_the_answer():
    text = shown(advice_table(advice_of(power_law)))
    for length in (6, 7, 8, 10, 12, 14):
        assert f"{length} │" in text
    assert text.count("shortest") == 1
    assert text.count("3/3") == 6


def test_tasks_are_listed_with_their_theory():
    text = shown(tasks_table([lw.SimpleTask()]))
    assert "simple" in text
    assert "--omega (8)" in text
    assert "omega^2/(2 M^2)" in " ".join(text.split())


def test_numbers_as_people_write_them():
    assert power_of_ten(10**9) == "10^9"
    assert power_of_ten(1000) == "1000"
    assert power_of_ten(123_456) == "123456"
    assert (
        subject(lw.SimpleTask(omega=2.5, concentration=3))
        == "SimpleTask with omega = 2.5 and concentration = 3"
    )
