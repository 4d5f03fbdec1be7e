"""Commands that take a task by its name, and its knobs as flags."""

from collections.abc import Mapping, Sequence
from dataclasses import Field, field, fields, make_dataclass
from itertools import pairwise
from typing import Annotated, Any, get_type_hints

import tyro

from lengthwise._messages import nearest
from lengthwise.tasks import PREDICTION_TASKS, TASKS, LanguageTask, PredictionTask, Task, task

Kinds = Mapping[str, type[Task] | type[PredictionTask]]
"""Tasks by their names."""


def with_knobs(
    command: type[Any],
    arguments: Sequence[str],
    kinds: Kinds = TASKS,
    defaults: Mapping[str, object] | None = None,
) -> type[Any]:
    """The command with a positional TASK, and a flag for each knob of the task that the arguments name; with
    other defaults for some of its own flags.
    """
    name = named_task(command, arguments, kinds)
    known = ", ".join(kinds) if len(kinds) < 10 else "lengthwise tasks lists them"
    about = f"a task by its name ({known}); with it, --help tells its knobs too"
    told = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK", help=about)]
    flags: list[tuple[str, Any, Any]] = [("task", told, field())]
    hints = get_type_hints(command, include_extras=True)
    flags += [(flag, hints[flag], field(default=value)) for flag, value in (defaults or {}).items()]
    if name is not None:
        kind = kinds[name]
        hints = get_type_hints(kind)
        for one in _knobs(kind):
            told = tyro.conf.arg(help=f"{kind.title}: {one.metadata.get('about', 'a knob')}.")
            flags.append((one.name, Annotated[hints[one.name], told], field(default=one.default)))
    return make_dataclass(command.__name__, flags, bases=(command,), frozen=True, kw_only=True)


def named_task(command: type[Any], arguments: Sequence[str], kinds: Kinds = TASKS) -> str | None:
    """The task that the arguments name: the first word that is one, and no value of a flag. None if they only
    ask for help, or begin with other flags; ``task_in`` then tells what is wrong.
    """
    switches = {
        f"--{name.replace('_', '-')}" for name, hint in get_type_hints(command).items() if hint is bool
    }
    words = [
        word
        for before, word in pairwise(["", *arguments])
        if not word.startswith("-") and (not before.startswith("--") or before in switches or "=" in before)
    ]
    for word in words:
        if word in kinds:
            return word
    others = [word for word in words if word in PREDICTION_TASKS]
    if others:
        takes = f"which this command does not advise on; it takes {', '.join(kinds)}"
        raise ValueError(
            f"{others[0]} is a task of decoders, {takes} (lengthwise train {others[0]} trains one)"
        )
    if arguments and not arguments[0].startswith("-"):
        raise ValueError(f"there is no task {arguments[0]!r}{nearest(arguments[0], list(kinds))}")
    return None


def task_in(command: Any) -> Any:
    """The task that such a command names."""
    kind = TASKS.get(command.task) or PREDICTION_TASKS.get(command.task)
    chosen = _knobs(kind) if kind else ()
    return task(command.task, **{one.name: getattr(command, one.name) for one in chosen})


def _knobs(kind: type[Task] | type[PredictionTask]) -> tuple["Field[Any]", ...]:
    """The fields of a task that can be chosen: all, unless they are those of a language that has a name."""
    if issubclass(kind, LanguageTask) and kind is not LanguageTask:
        return ()
    return fields(kind)  # pyright: ignore[reportArgumentType]
