"""A run: everything that decides its result, frozen, with a name that follows from it alone.

What is trained is a limit transformer or a decoder. The task says which, and all parts of a run are of the
same family.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import product
from typing import Any, Literal, NamedTuple

from lengthwise._checks import several
from lengthwise._messages import nearest, one_line, shown
from lengthwise.limit import Finite, Infinite, Precision
from lengthwise.models import DecoderModel, LimitModel
from lengthwise.tasks import PREDICTION_TASKS, LanguageTask, PredictionTask, Task, task
from lengthwise.tasks.formal import define
from lengthwise.training import DecoderEvaluation, DecoderTraining, Evaluation, Training
from lengthwise.training.decoders import check_trainings

SPECIFICATION = {"limit": 4, "decoder": 1}
"""Raised whenever the same specification would give other results, so that old ones are not reused."""

LATER = {"training": {"clip": 0.0}, "model": {"spare_positions": 0}}
"""Entries that specifications did not always have, and what stands for how it was before. Ids leave this
out, so that older runs keep theirs."""

MOST_SEEDS = 10_000
"""No experiment repeats a run with more."""

Family = Literal["limit", "decoder"]


class LimitParts(NamedTuple):
    """The parts of a run of a limit transformer."""

    task: Task
    model: LimitModel
    training: Training
    evaluation: Evaluation


class DecoderParts(NamedTuple):
    """The parts of a run of a decoder."""

    task: PredictionTask
    model: DecoderModel
    training: DecoderTraining
    evaluation: DecoderEvaluation


@dataclass(frozen=True)
class Run:
    """One model, trained on one task in one way, then measured: a limit transformer on a ``Task``, or a
    decoder on a ``PredictionTask``. The evaluation is the family's own by default.
    """

    task: Task | PredictionTask
    model: LimitModel | DecoderModel
    training: Training | DecoderTraining
    evaluation: Evaluation | DecoderEvaluation = None  # pyright: ignore[reportAssignmentType]

    def __post_init__(self) -> None:
        kinds = KINDS[self.family]
        if self.evaluation is None:
            object.__setattr__(self, "evaluation", kinds["evaluation"]())
        for part, kind in kinds.items():
            if not isinstance(getattr(self, part), kind):
                raise ValueError(
                    f"{self.task.title} is a task of {FAMILIES[self.family]}: its {part} must be "
                    f"{_a(kind)}, got {_sort(getattr(self, part))}"
                )
        if self.family == "decoder":
            _check_decoder(self.decoder)

    @property
    def family(self) -> Family:
        """What is trained."""
        if isinstance(self.task, Task):
            return "limit"
        if isinstance(self.task, PredictionTask):
            return "decoder"
        raise ValueError(f"the task of a run must be one, as lw.task('simple') is, got {_sort(self.task)}")

    @property
    def limit(self) -> LimitParts:
        """The parts of a run that is known to be of a limit transformer."""
        assert self.family == "limit"
        return LimitParts(*(getattr(self, part) for part in PARTS))

    @property
    def decoder(self) -> DecoderParts:
        """The parts of a run that is known to be of a decoder."""
        assert self.family == "decoder"
        return DecoderParts(*(getattr(self, part) for part in PARTS))

    @property
    def id(self) -> str:
        """The hash of the specification: the same on every machine and in every process."""
        return identity(SPECIFICATION[self.family], self.specification())

    def is_told_by(self, specification: Any) -> bool:
        """Whether this is its specification, maybe an older version's."""
        return identity(SPECIFICATION[self.family], specification) == self.id

    @property
    def test_lengths(self) -> tuple[int, ...]:
        """Where this run is measured; of a decoder, the last length of each bin."""
        if isinstance(self.evaluation, DecoderEvaluation):
            return tuple(self.evaluation.ends)
        return self.evaluation.lengths_for(self.training.length)

    def but(self, **changes: Any) -> "Run":
        """The run with some things changed: whole parts (``task``, ``model``, ``training``, ``evaluation``),
        or fields of the first three by name. A name that several parts have, such as the ``period`` of a task
        and of its model, is changed in all of them.
        """
        parts = {name: changes.pop(name, getattr(self, name)) for name in PARTS}
        for name in PARTS[:3]:
            if not is_dataclass(parts[name]) or isinstance(parts[name], type):
                raise ValueError(f"the {name} of a run must be one, got {shown(parts[name])}")
        known = {name: [field.name for field in fields(parts[name])] for name in PARTS[:3]}
        for change in changes:
            if not any(change in names for names in known.values()):
                every = list(dict.fromkeys([name for names in known.values() for name in names] + [*PARTS]))
                raise ValueError(f"a run has nothing named {change!r} to change{nearest(change, every)}")
        for name, names in known.items():
            own = {change: value for change, value in changes.items() if change in names}
            parts[name] = replace(parts[name], **own) if own else parts[name]
        return Run(**parts)

    def specification(self) -> dict[str, dict[str, Any]]:
        """The run as plain JSON data; ``run_from`` reads it back."""
        return {
            "task": {"name": self.task.name, **self.task.knobs},
            "model": _plain(self.model),
            "training": _plain(self.training),
            "evaluation": _plain(self.evaluation),
        }


PARTS = ("task", "model", "training", "evaluation")

FAMILIES: dict[Family, str] = {"limit": "limit transformers", "decoder": "decoders"}
"""What is trained, in words."""

KINDS: dict[Family, dict[str, type[Any]]] = {
    "limit": {"model": LimitModel, "training": Training, "evaluation": Evaluation},
    "decoder": {"model": DecoderModel, "training": DecoderTraining, "evaluation": DecoderEvaluation},
}
"""Of what kind the parts of a run are, beside its task."""


def identity(version: int, specification: Any) -> str:
    """The id of a run with this specification, by the rules of this version of them."""
    text = json.dumps([version, _as_before(specification)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _as_before(specification: Any) -> Any:
    """A specification without what is left out of ids; anything else as it is."""
    if not isinstance(specification, Mapping):
        return specification
    told = dict(specification)
    for part, later in LATER.items():
        if isinstance(entries := told.get(part), Mapping):
            told[part] = {k: value for k, value in entries.items() if k not in later or value != later[k]}
    return told


def vary(baseline: Run, **changes: Iterable[Any]) -> list[Run]:
    """The baseline with every combination of some changes, the last one changing fastest:
    ``vary(baseline, omega=[4, 8], length=[16, 32], seed=range(5))``. Names are those of ``Run.but``.
    """
    values = [several(choices, f"the choices of {name}") for name, choices in changes.items()]
    return [baseline.but(**dict(zip(changes, chosen, strict=True))) for chosen in product(*values)]


def run_from(specification: Mapping[str, Mapping[str, Any]]) -> Run:
    """The run of a specification; ``ValueError`` if it is not one."""
    try:
        chosen = _task_from(specification["task"])
        kinds = KINDS["decoder" if isinstance(chosen, PredictionTask) else "limit"]
        model: dict[str, Any] = dict(specification["model"])
        if kinds["model"] is LimitModel:
            model["precision"] = _precision_from_json(model["precision"])
        return Run(
            chosen,
            kinds["model"](**model),
            kinds["training"](**specification["training"]),
            kinds["evaluation"](**specification["evaluation"]),
        )
    except KeyError as error:
        raise ValueError(f"not the specification of a run: it lacks {shown(error.args[0])}") from error
    except (TypeError, AttributeError) as error:
        raise ValueError(f"not the specification of a run: {one_line(error)}") from error


def _task_from(told: Mapping[str, Any]) -> Any:
    """The task of these knobs. A language that has a name is told by its expression and letters, so that
    a process which does not know the name, or has given it to another language, can read it.
    """
    knobs = dict(told)
    name = knobs.pop("name")
    if name != LanguageTask.name and set(knobs) == {"expression", "letters"}:
        known = PREDICTION_TASKS.get(name)
        if known is None or known().knobs != knobs:
            return define(name, **knobs)()
    return task(name, **knobs)


def _check_decoder(run: DecoderParts) -> None:
    """Raise ``ValueError`` unless this run can be trained and measured."""
    task, model, training, evaluation = run
    check_trainings(model, [training], [task])
    if training.length < task.shortest:
        shortest = f"the shortest has {task.shortest}"
        raise ValueError(f"{task.title} has no inputs of a length up to {training.length}: {shortest}")
    evaluation.bins(task)
    model.span(task.stream_length(max(training.length, *evaluation.ends)))


def _plain(part: Any) -> dict[str, Any]:
    """A part of a run as plain JSON data."""
    entries: dict[str, Any] = {}
    for one in fields(part):
        value = getattr(part, one.name)
        if isinstance(value, Finite | Infinite):
            value = _precision_to_json(value)
        entries[one.name] = list(value) if isinstance(value, tuple) else value
    return entries


def _precision_to_json(precision: Precision) -> dict[str, Any]:
    if isinstance(precision, Finite):
        return {"kind": "finite", "bits": precision.bits}
    return {"kind": "infinite"}


def _precision_from_json(data: Mapping[str, Any]) -> Precision:
    if data["kind"] == "finite":
        return Finite(data["bits"])
    if data["kind"] == "infinite":
        return Infinite()
    raise ValueError(f"precision must be finite or infinite, got {shown(data['kind'])}")


def _sort(value: object) -> str:
    """What somebody gave in place of something else."""
    return _a(type(value)) if is_dataclass(value) and not isinstance(value, type) else shown(value)


def _a(kind: type[Any]) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
