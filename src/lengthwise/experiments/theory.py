"""What theory says beside an advice: of the model that was trained, and of the one written down by hand."""

import math
from dataclasses import dataclass, replace
from typing import Any

from lengthwise.bounds import Bound, bound
from lengthwise.experiments.advice import Advice
from lengthwise.limit import Finite, LimitTransformer, Precision, constructions
from lengthwise.tasks import KGramTask, ModPTask, SimpleTask, Task


@dataclass(frozen=True)
class TheoryOf:
    """One model: its margin (of logits in finite precision, positional in infinite), the length from which
    its attention is hard (finite precision alone), the complexity C(f) that
    bounds depend on, and a training-length bound.
    """

    margin: float
    hardmax_length: int | float | None
    complexity: float
    bound: Bound

    def to_json(self) -> dict[str, Any]:
        """Plain data; None stands for infinite."""
        numbers = {
            "margin": self.margin,
            "hardmax_length": self.hardmax_length,
            "complexity": self.complexity,
        }
        plain = {name: _plain(value) for name, value in numbers.items()}
        return {**plain, "bound": self.bound.to_json()}


@dataclass(frozen=True)
class BesideTheory:
    """Bounds in terms of the difference of outputs, whose ``tolerance`` is the square root of the advice's
    loss: for the ``trained`` model against the construction, and for the ``construction`` against any model
    with its constants. ``measured`` is the training length that sufficed, None where none did.
    """

    tolerance: float
    measured: int | None
    trained: TheoryOf
    construction: TheoryOf | None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "tolerance": self.tolerance,
            "trained": self.trained.to_json(),
            "construction": self.construction.to_json() if self.construction else None,
        }


def beside_theory(advice: Advice) -> BesideTheory | None:
    """Theory for the model trained at the confirmed length; None if there is none."""
    if advice.trained is None or advice.confirmed_length is None:
        return None
    return theory_beside(advice.task, advice.trained, advice.tolerance, advice.confirmed_length)


def theory_beside(task: Task, trained: LimitTransformer, loss: float, measured: int | None) -> BesideTheory:
    """Theory for a trained model and a tolerance of the loss, beside the training length that was measured to
    suffice for it.
    """
    tolerance = math.sqrt(loss)
    known = construction(task, tolerance, trained.precision)
    return BesideTheory(
        tolerance,
        measured,
        _theory_of(trained, known, tolerance),
        _theory_of(known, None, tolerance) if known else None,
    )


def construction(task: Task, tolerance: float, precision: Precision) -> LimitTransformer | None:
    """The limit transformer written down by hand for a task, within half the tolerance where it is not exact,
    in the precision of the model that it stands beside.
    """
    if isinstance(task, SimpleTask):
        knots = max(1, math.ceil(task.omega / math.sqrt(tolerance)))
        return replace(constructions.simple_task(task.omega, knots), precision=precision)
    if isinstance(task, ModPTask):
        return replace(constructions.mod_p(task.period, task.residue), precision=precision)
    if isinstance(task, KGramTask) and task.vocabulary > 1:
        return constructions.k_gram(task.k, task.vocabulary, tolerance)
    return None


def _theory_of(f: LimitTransformer, g: LimitTransformer | None, tolerance: float) -> TheoryOf:
    finite = isinstance(f.precision, Finite)
    found = bound(f, g, tolerance)
    return TheoryOf(
        f.logit_margin() if finite else f.positional_margin(),
        f.hardmax_length() if finite else None,
        found.parameters.get("sensitivity_f" if finite else "complexity_f", math.inf),
        found,
    )


def _plain(value: int | float | None) -> int | float | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return float(value) if isinstance(value, int) and value.bit_length() > 1000 else value
