"""Training throughput against the number of models in an ensemble, relative to one model alone."""

import sys

from timing import device, machine, seconds

from lengthwise import LimitModel, SimpleTask, Training
from lengthwise.training import start_ensemble, train_on_counts

STEPS = 256


def main(sizes: list[int]) -> None:
    print(f"{machine()}, SimpleTask, width 64, hidden 256, batch 256, float32")
    alone = 0.0
    for models in sizes:
        tasks = [SimpleTask()] * models
        trainings = [Training(length=16, steps=STEPS, seed=seed) for seed in range(models)]
        ensemble = start_ensemble(LimitModel(), tasks[0], range(models), device())

        def work(ensemble=ensemble, tasks=tasks, trainings=trainings):
            return train_on_counts(ensemble, tasks, trainings)

        work()
        rate = models * STEPS / min(seconds(work) for _ in range(3))
        alone = alone or rate
        print(f"{models:5d} models  {rate:10.0f} model-steps/s  {rate / alone:7.1f} times one model")


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [1, 4, 8, 16, 32, 64])
