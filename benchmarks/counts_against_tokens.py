"""Training on counts against training on tokens: the same models, the same task, length 64.

Prints model-steps per second of both and their ratio.
"""

from timing import device, machine, medians

from lengthwise import LimitModel, SimpleTask, Training
from lengthwise.training import start_ensemble, train_on_counts, train_on_tokens

MODELS, LENGTH, STEPS = 4, 64, 256


def main() -> None:
    tasks = [SimpleTask()] * MODELS
    trainings = [Training(length=LENGTH, steps=STEPS, seed=seed) for seed in range(MODELS)]

    def work(train):
        return lambda: train(
            start_ensemble(LimitModel(), tasks[0], range(MODELS), device()), tasks, trainings
        )

    tokens, counts = medians(work(train_on_tokens), work(train_on_counts), repeats=3)
    print(f"{machine()}, {MODELS} models, length {LENGTH}, batch {trainings[0].batch}")
    print(f"tokens  {MODELS * STEPS / tokens:10.0f} model-steps/s")
    print(f"counts  {MODELS * STEPS / counts:10.0f} model-steps/s")
    print(f"ratio   {tokens / counts:10.1f}")


if __name__ == "__main__":
    main()
