"""Predictions as a table and as Markdown: one row a task, nothing lost in the printing."""

from rich.console import Console

import lengthwise as lw
from lengthwise.experiments.predictions import predict, predictions
from lengthwise.reporting.predictions import predictions_markdown, predictions_table, reason
from lengthwise.tasks import ALGORITHMIC, FORMAL


def printed(table, width):
    console = Console(width=width, highlight=False)
    with console.capture() as found:
        console.print(table)
    return found.get().splitlines()


def test_a_row_a_task_with_its_answers():
    lines = printed(predictions_table(predictions()), 100)
    assert max(map(len, lines)) <= 100
    rows = {line.split()[0]: line.split()[1:3] for line in lines if line[1:2].strip()}
    assert set(ALGORITHMIC) | set(FORMAL) <= set(rows)
    assert rows["task"] == ["none", "learned"]
    assert rows["tomita-4"] == ["no", "yes"]
    assert rows["sort"] == rows["copy-unique"] == ["-", "-"]
    assert rows["parity"] == rows["parity-language"] == ["no", "no"]
    assert "Of sinusoidal, rotary, alibi, relative, randomised positions no theorem speaks." in lines[-1]


def test_markdown_has_knobs_and_escapes_what_would_end_a_cell():
    tasks = [lw.task("language", expression="a|(bb)*"), lw.task("majority", size=4)]
    lines = predictions_markdown(predictions(tasks, ["none", "learned"]))
    assert lines[:2] == ["| task | none | learned | why |", "| --- | --- | --- | --- |"]
    assert lines[2].startswith("| `language expression=a\\|(bb)*` | no | yes | none: no program does it (")
    assert lines[3] == "| `majority size=4` | yes | yes | a program does it (depth 1) |"


def test_reasons():
    def told(name, *schemes):
        return reason([predict(lw.task(name), scheme) for scheme in schemes])

    assert told("dyck-2", "none", "learned") == told("dyck-2", "none")
    # What fails with positions fails without.
    assert told("parity", "none", "learned") == told("parity", "learned") != told("parity", "none")
    assert told("aa-star", "none", "learned", "rotary").endswith(
        "; learned: a program does it (depth 0, period 2)"
    )
    assert told("aa-star", "rotary").startswith("no theorem covers these positions")
