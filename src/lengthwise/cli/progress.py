"""Progress bars, on stderr so that stdout holds the result alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from lengthwise.experiments.advice import Stage


@contextmanager
def progress_bars() -> Iterator[Stage]:
    """A bar for each stage, with the time that is left."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("model-steps"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    bars = Progress(*columns, console=Console(stderr=True))

    def stage(title: str, total: int) -> Callable[[int], None]:
        bars.start()  # not before: a mistake found before any work leaves one line alone
        bar = bars.add_task(title, total=total)
        return lambda done: bars.update(bar, advance=done)

    try:
        yield stage
    finally:
        if bars.live.is_started:
            bars.stop()
