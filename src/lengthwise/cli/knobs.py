"""Commands that take a task by its name, and its knobs as flags."""

from collections.abc import Sequence
from dataclasses import field, fields, make_dataclass
from typing import Annotated, Any, get_type_hints

import tyro

from lengthwise._messages import nearest
from lengthwise.tasks import PREDICTION_TASKS, TASKS, Task, task


def with_knobs(command: type[Any], arguments: Sequence[str]) -> type[Any]:
    """The command with a positional TASK, and a flag for each knob of the task that the arguments name."""
    about = f"one of {', '.join(TASKS)}; lengthwise COMMAND TASK --help tells its knobs"
    named = (
        "task",
        Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK", help=about)],
        field(),
    )
    knobs = []
    name = next((word for word in arguments if word in TASKS), None)
    if name is None and (other := next((word for word in arguments if word in PREDICTION_TASKS), None)):
        known = ", ".join(TASKS)
        raise ValueError(f"{other} is a task of decoders, which this command cannot train; it takes {known}")
    if name is None and arguments and not arguments[0].startswith("-"):
        raise ValueError(f"there is no task {arguments[0]!r}{nearest(arguments[0], list(TASKS))}")
    if name is not None:
        kind = TASKS[name]
        hints = get_type_hints(kind)
        for one in fields(kind):  # pyright: ignore[reportArgumentType]
            told = tyro.conf.arg(help=f"{kind.title}: {one.metadata.get('about', 'a knob')}.")
            knobs.append((one.name, Annotated[hints[one.name], told], field(default=one.default)))
    return make_dataclass(command.__name__, [named, *knobs], bases=(command,), frozen=True, kw_only=True)


def task_in(command: Any) -> Task:
    """The task that such a command names."""
    kind = TASKS[command.task]
    return task(command.task, **{one.name: getattr(command, one.name) for one in fields(kind)})  # pyright: ignore[reportArgumentType]
