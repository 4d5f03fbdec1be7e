"""Progress bars, on stderr so that stdout holds the result alone."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from lengthwise.experiments import Run
from lengthwise.experiments.advice import Stage
from lengthwise.experiments.results import Measured, Row
from lengthwise.training import Progress as Steps


@contextmanager
def progress_bars(unit: str = "model-steps") -> Iterator[Stage]:
    """A bar for each stage, with the time that is left."""
    bars = Progress(*_columns(unit), console=Console(stderr=True))

    def stage(title: str, total: int) -> Callable[[int], None]:
        bars.start()  # not before: a mistake found before any work leaves one line alone
        bar = bars.add_task(title, total=total)
        return lambda done: bars.update(bar, advance=done)

    try:
        yield stage
    finally:
        if bars.live.is_started:
            bars.stop()


@contextmanager
def run_progress(run: Run) -> Iterator[tuple[Steps, Measured]]:
    """A bar for the steps of one run, with the time that is left, and below it what was measured last."""
    console, bars, below = Console(stderr=True), Progress(*_columns("steps")), Text()
    bar = bars.add_task(escape(run.task.title), total=run.training.steps)
    live = Live(Group(bars, below), console=console)

    def advance(done: int) -> None:
        live.start()
        bars.update(bar, advance=done)

    def tell(_: Run, rows: Sequence[Row]) -> None:
        below.plain = measured_words(rows)

    try:
        yield advance, tell
    finally:
        if live.is_started:
            live.stop()
            if not console.is_terminal:
                console.line()


def measured_words(rows: Sequence[Row]) -> str:
    """What was measured last, in one line."""
    last = {(metric, length): value for _, length, metric, value in rows}
    training = [value for (metric, _), value in last.items() if metric == "training_loss"]
    said = [f"training loss {training[-1]:.3g}"] if training else []
    said += [f"loss {value:.3g} at length {at}" for (metric, at), value in last.items() if metric == "loss"]
    rights = [f"{value:.3f} to {at}" for (metric, at), value in last.items() if metric == "accuracy"]
    return "; ".join([*said, *([f"accuracy {', '.join(rights)}"] if rights else [])])


def _columns(unit: str):
    return (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
