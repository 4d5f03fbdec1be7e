"""A run: everything that decides its result, frozen, with a name that follows from it alone."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import product
from typing import Any

from lengthwise._messages import nearest
from lengthwise.limit import Finite, Infinite, Precision
from lengthwise.models import LimitModel
from lengthwise.tasks import Task, task
from lengthwise.training import Evaluation, Training

SPECIFICATION = 4
"""Raised whenever the same specification would give other results, so that old ones are not reused."""


@dataclass(frozen=True)
class Run:
    """One model, trained on one task in one way, then measured."""

    task: Task
    model: LimitModel
    training: Training
    evaluation: Evaluation = field(default_factory=Evaluation)

    @property
    def id(self) -> str:
        """The hash of the specification: the same on every machine and in every process."""
        text = json.dumps([SPECIFICATION, self.specification()], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def test_lengths(self) -> tuple[int, ...]:
        """Where this run is measured."""
        return self.evaluation.lengths_for(self.training.length)

    def but(self, **changes: Any) -> "Run":
        """The run with some things changed: whole parts (``task``, ``model``, ``training``, ``evaluation``),
        or fields of the first three by name. A name that several parts have, such as the ``period`` of a task
        and of its model, is changed in all of them.
        """
        parts = {name: changes.pop(name, getattr(self, name)) for name in PARTS}
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
        model = {name: getattr(self.model, name) for name in self.model.__dataclass_fields__}
        return {
            "task": {"name": self.task.name, **self.task.knobs},
            "model": {**model, "precision": _precision_to_json(self.model.precision)},
            "training": asdict(self.training),
            "evaluation": {**asdict(self.evaluation), "lengths": list(self.evaluation.lengths)},
        }


PARTS = ("task", "model", "training", "evaluation")


def vary(baseline: Run, **changes: Iterable[Any]) -> list[Run]:
    """The baseline with every combination of some changes, the last one changing fastest:
    ``vary(baseline, omega=[4, 8], length=[16, 32], seed=range(5))``. Names are those of ``Run.but``.
    """
    values = [list(choices) for choices in changes.values()]
    return [baseline.but(**dict(zip(changes, chosen, strict=True))) for chosen in product(*values)]


def run_from(specification: Mapping[str, Mapping[str, Any]]) -> Run:
    """The run of a specification; ``ValueError`` if it is not one."""
    try:
        model: dict[str, Any] = dict(specification["model"])
        model["precision"] = _precision_from_json(model["precision"])
        return Run(
            task(**specification["task"]),
            LimitModel(**model),
            Training(**specification["training"]),
            Evaluation(**specification["evaluation"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not the specification of a run: {error}") from error


def _precision_to_json(precision: Precision) -> dict[str, Any]:
    if isinstance(precision, Finite):
        return {"kind": "finite", "bits": precision.bits}
    return {"kind": "infinite"}


def _precision_from_json(data: Mapping[str, Any]) -> Precision:
    if data["kind"] == "finite":
        return Finite(data["bits"])
    if data["kind"] == "infinite":
        return Infinite()
    raise ValueError(f"precision must be finite or infinite, got {data['kind']!r}")
