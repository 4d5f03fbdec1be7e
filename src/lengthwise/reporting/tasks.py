"""Tasks in words and as tables."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from lengthwise.crasp import library
from lengthwise.experiments.predictions import COVERED, Prediction, finite, predict
from lengthwise.reporting.library import SUITES, entry_data, plain_table, uses
from lengthwise.tasks import ALGORITHMIC, FORMAL, LanguageTask, PredictionTask, Task

PREDICTED = {True: "yes", False: "no", None: "-"}
"""Whether models are predicted to generalise to longer inputs; a dash where nothing is predicted."""

ANSWERED = {
    "algorithmic": "the answer to an input, symbol by symbol",
    "formal": "what may follow each prefix of a word, where",
    None: "what may follow each prefix of a word, where",
}
"""What the tasks of a suite have in common."""

ASKS = {
    "binary-majority": "the more frequent bit",
    "parity": "whether the number of 1 is even or odd",
    "parity-language": "the number of 1 is even",
    LanguageTask.name: "an expression of one's own describes the words",
}
"""What tasks ask for of which the library has a language, or nothing, under their name."""


def tasks_table(tasks: Iterable[Task]) -> Table:
    """The tasks of limit transformers, with their knobs and what theory says of each."""
    table = plain_table("Tasks of limit transformers")
    table.add_column("name", no_wrap=True)
    table.add_column("knobs (default)", no_wrap=True)
    table.add_column("what theory says", ratio=1)
    for task in tasks:
        theory = task.theory
        knobs = "\n".join(f"--{name} ({knob(value)})" for name, value in task.knobs.items())
        member = {True: ", in C-RASP", False: ", not in C-RASP", None: ""}[theory.in_crasp]
        form = f"period {theory.period}, locality {theory.locality}{member}"
        table.add_row(task.name, knobs, f"{form}; {theory.statement}", end_section=True)
    return table


def decoder_tasks_table(tasks: Iterable[PredictionTask]) -> Table:
    """The tasks of decoders: what each asks for, its knobs, and whether theory predicts that models
    generalise, by their positions.
    """
    table = plain_table("Tasks of decoders: does theory predict that models generalise to longer inputs?")
    table.add_column("name", no_wrap=True)
    table.add_column("what it asks for", ratio=1)
    table.add_column("without\npositions", no_wrap=True)
    table.add_column("learned\npositions", no_wrap=True)
    last = ""
    for task in tasks:
        if suite(task) != last:
            last = suite(task)
            table.add_section()
            table.add_row(f"[italic]{SUITES[last]}", f"[italic]{ANSWERED[last]}")
        without, learned = by_scheme(task).values()
        told = PREDICTED[learned.answer]
        if learned.answer and learned.program is not None:
            told = "\n".join(uses(learned.program)) or told
        table.add_row(*map(escape, (task.name, asks(task), PREDICTED[without.answer], told)))
    return table


def decoder_tasks_notes(tasks: Iterable[PredictionTask]) -> list[str]:
    """What a reader of the table must know beside it."""
    few = ", ".join(task.name for task in tasks if finite(task))
    return [
        "A period or a distance stands for yes: a program does it that uses them. A dash stands where "
        f"nothing is predicted: there are finitely many inputs ({few}). No theorem covers other positions.",
        "parity and parity-language are two tasks; the library has the language, under the name of parity.",
        "To train on one: lengthwise train dyck-2, or lengthwise train language --expression '(ab)*c'",
    ]


def by_scheme(task: PredictionTask) -> dict[str, Prediction]:
    """What theory predicts of a task under each scheme of positions that it covers."""
    return {scheme: predict(task, scheme) for scheme in COVERED}


def reason(predictions: Sequence[Prediction]) -> str:
    """Why theory predicts what it does of one task; of schemes that no theorem covers only if there are no
    others. What no program with positions does none does without.
    """
    covered = [one for one in predictions if one.positions in COVERED] or predictions
    answers = {one.answer for one in covered}
    if len(answers) == 1:
        return covered[-1].why if answers == {False} else covered[0].why
    return "; ".join(f"{one.positions}: {one.why}" for one in covered)


def suite(task: PredictionTask) -> str | None:
    """The suite that a task was published in; None if in none."""
    return "algorithmic" if task.name in ALGORITHMIC else "formal" if task.name in FORMAL else None


def asks(task: PredictionTask) -> str:
    """What a task asks for, with its knobs."""
    told = task.title
    if task.name in ASKS:
        told = ASKS[task.name]
    elif task.name in library.names():
        told = library.named(task.name).says
    return "\n".join([told, *(f"--{name} ({knob(value)})" for name, value in settings(task).items())])


def settings(task: Task | PredictionTask) -> dict[str, object]:
    """The knobs that can be set: a language with a name of its own has none."""
    fixed = isinstance(task, LanguageTask) and type(task) is not LanguageTask
    return {} if fixed else task.knobs


def task_data(task: Task) -> dict[str, Any]:
    """A task of limit transformers as plain data, with the keys that scripts rely on."""
    return {
        "name": task.name,
        "knobs": task.knobs,
        "period": task.theory.period,
        "locality": task.theory.locality,
        "in_crasp": task.theory.in_crasp,
        "statement": task.theory.statement,
        "trainable": True,
        "model": "limit transformer",
        "program": None,
    }


def decoder_task_data(task: PredictionTask) -> dict[str, Any]:
    """A task of decoders as plain data, with the keys that scripts rely on, and with what the library has
    under its name. Period, locality and membership are those of the task, which for a language may be less
    than to tell it.
    """
    known = entry_data(library.named(task.name)) if task.name in library.names() else {"program": None}
    found = by_scheme(task)
    without, learned = found.values()
    return known | {
        "name": task.name,
        "knobs": settings(task),
        "period": learned.program and learned.program.period,
        "locality": learned.program and learned.program.locality,
        "in_crasp": without.member,
        "in_crasp_positional": learned.member,
        "statement": reason([without, learned]),
        "trainable": True,
        "model": "decoder",
        "asks": asks(task).partition("\n")[0],
        "suite": suite(task),
        "finite": finite(task),
        "predictions": {
            scheme: {"answer": one.answer, "why": one.why, "method": one.method}
            for scheme, one in found.items()
        },
    }


def subject(task: Task | PredictionTask) -> str:
    """The task and its knobs, as the subject of a sentence; knobs at their default are left out, but for
    the first of a task of limit transformers.
    """
    default = type(task)().knobs
    told = [
        (name, value)
        for place, (name, value) in enumerate(task.knobs.items())
        if value != default[name] or (place == 0 and isinstance(task, Task))
    ]
    settings = " and ".join(f"{name} = {knob(value)}" for name, value in told)
    return f"{task.title} with {settings}" if told else task.title


def knob(value: object) -> str:
    """A knob's value as a person would write it."""
    return f"{value:g}" if isinstance(value, float) else str(value)
