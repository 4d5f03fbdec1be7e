"""The cost of measuring models at test length 10^9 against that at length 10: sampling, forward, loss."""

from timing import device, machine, medians

from lengthwise import Evaluation, LimitModel, SimpleTask
from lengthwise.training import loss_at_length, start_ensemble

MODELS = 8


def main() -> None:
    tasks = [SimpleTask()] * MODELS
    ensemble = start_ensemble(LimitModel(), tasks[0], range(MODELS), device())

    def work(length):
        return lambda: loss_at_length(ensemble, tasks, length, Evaluation())

    lengths = [10, 10**3, 10**6, 10**9]
    taken = medians(*map(work, lengths), repeats=15)
    print(f"{machine()}, {MODELS} models, {Evaluation().sequences} sequences")
    for length, spent in zip(lengths, taken, strict=True):
        print(f"length {length:>10}  {spent * 1e3:7.1f} ms  ratio to length 10: {spent / taken[0]:.2f}")


if __name__ == "__main__":
    main()
