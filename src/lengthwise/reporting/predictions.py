"""Predictions of theory as a table and as Markdown."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from lengthwise.experiments.predictions import COVERED, Prediction
from lengthwise.reporting.library import plain_table
from lengthwise.reporting.tasks import PREDICTED, knob, reason
from lengthwise.tasks import PredictionTask


def predictions_table(predictions: Sequence[Prediction]) -> Table:
    """A row a task, a column a scheme of positions, and why; schemes that no theorem covers stand below."""
    table = plain_table("Do models generalise to longer inputs? What theory predicts, by positions")
    table.add_column("task", no_wrap=True)
    for scheme in _schemes(predictions):
        table.add_column(scheme, no_wrap=True)
    table.add_column("why", ratio=1)
    for row in _rows(predictions):
        table.add_row(*map(escape, row))
    others = [scheme for scheme in _asked(predictions) if scheme not in _schemes(predictions)]
    if others:
        table.caption = f"Of {', '.join(others)} positions no theorem speaks."
        table.caption_justify = "left"
    return table


def predictions_markdown(predictions: Sequence[Prediction]) -> list[str]:
    """The rows of the same table in Markdown, its head first."""
    schemes = _schemes(predictions)
    lines = [["task", *schemes, "why"], ["---"] * (len(schemes) + 2)]
    lines += [[f"`{name}`", *cells] for name, *cells in _rows(predictions)]
    escaped = [[cell.replace("|", r"\|") for cell in cells] for cells in lines]
    return [f"| {' | '.join(cells)} |" for cells in escaped]


def _schemes(predictions: Sequence[Prediction]) -> list[str]:
    """Those that a theorem covers; all, if it covers none."""
    return [one for one in _asked(predictions) if one in COVERED] or _asked(predictions)


def _asked(predictions: Sequence[Prediction]) -> list[str]:
    return list(dict.fromkeys(one.positions for one in predictions))


def _rows(predictions: Sequence[Prediction]) -> list[list[str]]:
    by_task: dict[PredictionTask, dict[str, Prediction]] = {}
    for one in predictions:
        by_task.setdefault(one.task, {})[one.positions] = one
    return [
        [
            _called(task),
            *(PREDICTED[found[scheme].answer] if scheme in found else "" for scheme in _schemes(predictions)),
            reason(list(found.values())),
        ]
        for task, found in by_task.items()
    ]


def _called(task: PredictionTask) -> str:
    """The name, with the knobs that are not at their default."""
    default = type(task)().knobs
    told = [f"{name}={knob(value)}" for name, value in task.knobs.items() if value != default[name]]
    return " ".join([task.name, *told])
