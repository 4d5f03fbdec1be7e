"""Many runs: their specifications, the store, the engine, and advice from them."""

from lengthwise.experiments.advice import Advice, advise
from lengthwise.experiments.engine import train
from lengthwise.experiments.results import Result, accuracies, plateaus
from lengthwise.experiments.run import Run, vary
from lengthwise.experiments.store import Store

__all__ = ["Advice", "Result", "Run", "Store", "accuracies", "advise", "plateaus", "train", "vary"]
