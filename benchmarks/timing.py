"""Times taken side by side, so that a noisy machine disturbs both alike."""

import statistics
import time
from collections.abc import Callable

import torch


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock seconds of one call, the device's work included."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def medians(*works: Callable[[], object], repeats: int = 7) -> list[float]:
    """Median seconds of each, in turns, after one call to warm up."""
    for work in works:
        work()
    taken = [[seconds(work) for work in works] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]


def device() -> str:
    """Where the benchmarks run."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def machine() -> str:
    """The device in words."""
    return (
        torch.cuda.get_device_name()
        if torch.cuda.is_available()
        else f"CPU, {torch.get_num_threads()} threads"
    )
