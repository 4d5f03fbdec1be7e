"""Training steps a second of the suites' decoders on a GPU, as ``lengthwise reproduce`` takes them.

Five seeds of a cell are few: beside them stand larger ensembles of the same, and one of all languages. Tells
how many kernels a step takes, and with --profile which of them take most of its time. Takes the names of
cases, by default all.
"""

import sys

import torch
from timing import machine, seconds

import lengthwise as lw
from lengthwise.experiments import huang
from lengthwise.tasks import FORMAL
from lengthwise.training.adam import StackAdam
from lengthwise.training.decoder_data import FreshData
from lengthwise.training.decoder_step import Backward
from lengthwise.training.decoders import BETAS, crew, start_decoders
from lengthwise.training.step import step_of

LONGEST = 150
CASES = {
    "dyck-4": ("formal", "learned", (5, 90)),
    "languages": ("formal", "learned", (90,)),
    "copy-repeat": ("algorithmic", "learned", (5, 16)),
    "copy-unique": ("algorithmic", "learned", (5, 64)),
    "parity": ("algorithmic", "learned", (5,)),
    "sort": ("algorithmic", "none", (5,)),
}
"""Tasks: their suite, a scheme of positions, and sizes of ensembles. "languages" stands for all of them."""

STEPS = 100


def steps(name: str, suite: huang.Suite, scheme: str, models: int):
    """What takes some steps of so many models of a cell, and their shape in words."""
    recipe = huang.Recipe(steps=30_000, until="perfect", clip=1.0, rounding="bfloat16")
    if suite == "formal":
        recipe = huang.RECIPES["formal", "paper"]
    names = list(FORMAL) if name == "languages" else [name]
    cells = huang.cells(
        suite, "paper", tasks=names, schemes=[scheme], seeds=models // len(names), recipe=recipe
    )
    runs = [run.decoder for cell in cells for run in cell.runs]
    _, model, training, _ = runs[0]
    tasks, seeds = [run.task for run in runs], [run.training.seed for run in runs]
    ensemble = start_decoders(model, tasks, seeds, LONGEST, "cuda")
    rates = [training.learning_rate] * models
    adam = StackAdam(ensemble.stack, rates, BETAS, training.weight_decay, training.clip)
    data = FreshData(ensemble, tasks, length=training.length, batch=training.batch, seeds=seeds)
    workers = crew(ensemble, tasks[0], training)
    step = step_of(adam, Backward(ensemble, tasks[0], 0.0, workers, training.rounding))

    def work(count: int) -> None:
        with workers:
            for _ in range(count):
                batch = data.take(workers)
                step(batch.parts(), 1.0, groups=data.groups())

    return work, f"{model.layers}/{model.heads}/{model.width}, positions {model.positions}"


def main(words: list[str]) -> None:
    if not torch.cuda.is_available():
        sys.exit("suite_steps.py needs a GPU")
    torch.set_float32_matmul_precision("high")
    print(machine())
    for name in [word for word in words if word != "--profile"] or CASES:
        suite, scheme, sizes = CASES[name]
        for models in sizes:
            work, shape = steps(name, suite, scheme, models)
            work(STEPS)
            taken = min(seconds(lambda work=work: work(STEPS)) for _ in range(3)) / STEPS
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
                work(STEPS)
            kernels = sum(event.count for event in found.key_averages()) / STEPS
            rate, milliseconds = models / taken, 1e3 * taken
            title = "All languages" if name == "languages" else lw.task(name).title
            print(f"{title}, {shape}: {models:3d} at once {rate:8.0f} model-steps/s,", end=" ")
            print(f"{milliseconds:7.3f} ms and {kernels:4.0f} kernels a step", flush=True)
            if "--profile" in words:
                print(found.key_averages().table(sort_by="self_cuda_time_total", row_limit=30))


if __name__ == "__main__":
    main(sys.argv[1:])
