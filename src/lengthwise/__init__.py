"""lengthwise: how long must the training sequences be, so that a transformer keeps working on longer ones?

The public names, each loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lengthwise._version import __version__

if TYPE_CHECKING:
    from lengthwise import crasp
    from lengthwise.bounds import Bound, Divergence, average_error, bound, divergence, tightness
    from lengthwise.experiments import Advice, Run, Store, accuracies, advise, plateaus, train, vary
    from lengthwise.experiments.predictions import Prediction, predict
    from lengthwise.limit import Finite, Infinite, LimitLayer, LimitTransformer, constructions
    from lengthwise.models import DecoderModel, LimitModel
    from lengthwise.sequences import Summary, summarize
    from lengthwise.simulation import Simulation, simulate
    from lengthwise.tasks import (
        CountTask,
        Examples,
        KGramTask,
        LanguageTask,
        ModPTask,
        PredictionTask,
        SimpleTask,
        Task,
        Theory,
        language,
        task,
    )
    from lengthwise.training import (
        AccuracyCurve,
        Decoder,
        DecoderEvaluation,
        DecoderTraining,
        Evaluation,
        LossCurve,
        Plateau,
        Training,
        effective_length,
        evaluate,
        plateau,
    )

_HOMES = {
    "bounds": ("Bound", "Divergence", "average_error", "bound", "divergence", "tightness"),
    "experiments": ("Advice", "Run", "Store", "accuracies", "advise", "plateaus", "train", "vary"),
    "experiments.predictions": ("Prediction", "predict"),
    "limit": ("Finite", "Infinite", "LimitLayer", "LimitTransformer"),
    "models": ("DecoderModel", "LimitModel"),
    "sequences": ("Summary", "summarize"),
    "simulation": ("Simulation", "simulate"),
    "tasks": (
        "CountTask",
        "Examples",
        "KGramTask",
        "LanguageTask",
        "ModPTask",
        "PredictionTask",
        "SimpleTask",
        "Task",
        "Theory",
        "language",
        "task",
    ),
    "training": (
        "AccuracyCurve",
        "Decoder",
        "DecoderEvaluation",
        "DecoderTraining",
        "Evaluation",
        "LossCurve",
        "Plateau",
        "Training",
        "effective_length",
        "evaluate",
        "plateau",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

_MODULES = {"constructions": "limit.constructions", "crasp": "crasp"}

__all__ = [
    "AccuracyCurve",
    "Advice",
    "Bound",
    "CountTask",
    "Decoder",
    "DecoderEvaluation",
    "DecoderModel",
    "DecoderTraining",
    "Divergence",
    "Evaluation",
    "Examples",
    "Finite",
    "Infinite",
    "KGramTask",
    "LanguageTask",
    "LimitLayer",
    "LimitModel",
    "LimitTransformer",
    "LossCurve",
    "ModPTask",
    "Plateau",
    "Prediction",
    "PredictionTask",
    "Run",
    "SimpleTask",
    "Simulation",
    "Store",
    "Summary",
    "Task",
    "Theory",
    "Training",
    "__version__",
    "accuracies",
    "advise",
    "average_error",
    "bound",
    "constructions",
    "crasp",
    "divergence",
    "effective_length",
    "evaluate",
    "language",
    "plateau",
    "plateaus",
    "predict",
    "simulate",
    "summarize",
    "task",
    "tightness",
    "train",
    "vary",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"{__name__}.{_MODULES[name]}")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
