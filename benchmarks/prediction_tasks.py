"""Examples of the suites' tasks for many models: made together, against model by model."""

import sys

import torch
from timing import device, machine, medians

import lengthwise as lw
from lengthwise.tasks import ALGORITHMIC, FORMAL

MODELS, BATCH, LONGEST = 128, 64, 50


def main(names: list[str]) -> None:
    print(f"{machine()}, {MODELS} models with a batch of {BATCH} each, lengths up to {LONGEST}")
    print(f"{'task':28}  {'together':>12}  {'a sequence':>11}  times model by model")
    for name in names:
        task = lw.task(name)
        generators = [torch.Generator(device()).manual_seed(model) for model in range(MODELS)]

        def together(task=task, generators=generators):
            noises = [task.noise(BATCH, task.shortest, LONGEST, own) for own in generators]
            return task.examples(*(torch.cat(part) for part in zip(*noises, strict=True)), high=LONGEST)

        def apart(task=task, generators=generators):
            return [task.sample(BATCH, task.shortest, LONGEST, own) for own in generators]

        one, other = medians(together, apart)
        each = one / (MODELS * BATCH) * 1e6
        print(f"{name:28}  {one * 1e6:9.0f} us  {each:8.2f} us  {other / one:7.1f}")


if __name__ == "__main__":
    main(sys.argv[1:] or [*ALGORITHMIC, *FORMAL])
