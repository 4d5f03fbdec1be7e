"""The shortest simulating string for inputs of length 10^6: 20 random pairs, seconds and lengths.

Pairs of one-layer models with whole-number weights (so that logits tie often): vocabulary 2 or 3, periods 1
to 3, localities 0 to 2, 1 or 2 heads, 3 bits.

    python benchmarks/shortest.py
"""

import random
import time

import torch
from timing import machine

from lengthwise import Finite, LimitLayer, LimitTransformer, simulate
from lengthwise.sequences import draw_summary
from lengthwise.simulation import Pair

LENGTH, INSTANCES, TOLERANCE, WIDTH, HIDDEN = 10**6, 20, 0.05, 4, 6


def main() -> None:
    print(machine())
    print("instance  seconds  counts  shortest with this attention  shortest found  of all strings")
    slowest = 0.0
    for seed in range(INSTANCES):
        f, g = pair(seed)
        shape = Pair.of(f, g)
        x = draw_summary(shape.vocabulary, shape.period, shape.locality, LENGTH, seed)
        known = simulate(f, g, x, TOLERANCE)
        started = time.perf_counter()
        found = simulate(f, g, x, TOLERANCE, "shortest")
        taken = time.perf_counter() - started
        slowest = max(slowest, taken)
        assert found.length <= known.length
        assert max(found.error_f, found.error_g) <= TOLERANCE
        least = found.details.get("no_shorter_with_this_attention_than", "-")
        proved = "" if found.details.get("shortest_with_this_attention", True) else " (at least)"
        all_strings = "yes" if found.details["shortest_of_all"] else "not all tried"
        row = f"{seed:8d}  {taken:7.2f}  {known.length:6d}  {least}{proved}"
        print(f"{row:56s}  {found.length:14d}  {all_strings}")
    print(f"slowest: {slowest:.2f} s")


def pair(seed: int) -> tuple[LimitTransformer, LimitTransformer]:
    draw = random.Random(seed)
    vocabulary = draw.choice((2, 3))
    return model(draw, vocabulary), model(draw, vocabulary)


def model(draw: random.Random, vocabulary: int) -> LimitTransformer:
    heads, period, locality = draw.choice((1, 2)), draw.choice((1, 2, 3)), draw.choice((0, 1, 2))

    def whole(*shape: int) -> torch.Tensor:
        numbers = [draw.randint(-1, 1) for _ in range(torch.Size(shape).numel())]
        return torch.tensor(numbers, dtype=torch.float64).reshape(shape)

    layer = LimitLayer(
        whole(heads, WIDTH, WIDTH),
        whole(heads, WIDTH, WIDTH) / WIDTH,
        whole(heads, locality + 1),
        whole(HIDDEN, WIDTH) / 2,
        whole(HIDDEN) / 2,
        whole(WIDTH, HIDDEN) / HIDDEN,
    )
    return LimitTransformer(
        whole(vocabulary, WIDTH), whole(period, WIDTH), (layer,), whole(1, WIDTH) / WIDTH, Finite(3)
    )


if __name__ == "__main__":
    main()
