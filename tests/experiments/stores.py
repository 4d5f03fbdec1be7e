"""What tests of stores share: a small sweep, its results, and one of several ensembles as a file."""

from functools import cache
from pathlib import Path

import torch

import lengthwise as lw
from lengthwise.experiments.engine import run_ensemble

EVALUATION = lw.Evaluation(lengths=(10, 30, 100, 300, 1000), sequences=64)
BASELINE = lw.Run(
    lw.SimpleTask(), lw.LimitModel(width=4, hidden=8), lw.Training(length=4, steps=20, batch=8), EVALUATION
)
RUNS = lw.vary(BASELINE, length=[2, 5], seed=range(3))
DECODER = lw.Run(
    lw.task("binary-majority"),
    lw.DecoderModel(width=4, positions="learned"),
    lw.DecoderTraining(length=5, steps=4, batch=4),
    lw.DecoderEvaluation(ends=(5, 10), sequences=8, every=2, stop=False),
)

SWEEP = """
import lengthwise as lw
from lengthwise.experiments import engine, limits

evaluation = lw.Evaluation(lengths=(10, 30, 100, 300, 1000), sequences=64)
training = lw.Training(length=4, steps=60, batch=8)
baseline = lw.Run(lw.SimpleTask(), lw.LimitModel(width=4, hidden=8), training, evaluation)
runs = lw.vary(baseline, omega=[2, 4], length=range(3, 8), seed=range(SEEDS))
engine.CPU_MEMORY = 2 * limits.bytes_of(baseline)
"""
"""Of ten settings, two runs an ensemble."""


@cache
def results():
    """What the first two runs leave."""
    return run_ensemble(RUNS[:2], torch.device("cpu"))


@cache
def decoder_result():
    """What the decoder leaves."""
    return run_ensemble([DECODER], torch.device("cpu"))


def filled(folder: Path) -> lw.Store:
    """A store of the first two runs and of the decoder."""
    store = lw.Store(folder)
    with store.writing():
        store.add(results())
        store.add(decoder_result())
    return store


def files_of(folder: Path) -> dict[str, bytes]:
    """Rows and weights of every run in a store, by path."""
    names = ("metrics.parquet", "weights.safetensors")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for name in names
        for path in folder.glob(f"*/{name}")
    }
