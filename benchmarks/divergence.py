"""How fast exact divergence is: all configurations of two one-layer models at a length, on one core.

Vocabulary 3, period 1 and vocabulary 2, period 2, both with locality 1, one head, width 8 and 8 hidden
units, in both precisions, at the length given and at five times that.

    python benchmarks/divergence.py [LENGTH]
"""

import sys

import torch
from timing import medians

from lengthwise import Finite, Infinite, LimitLayer, LimitTransformer
from lengthwise.bounds.divergence import divergence
from lengthwise.limit.precision import Precision

WIDTH, HIDDEN = 8, 8


def main(length: int) -> None:
    print("| vocabulary | period | precision | length | configurations | seconds | millions a second |")
    print("|---|---|---|---|---|---|---|")
    for vocabulary, period in ((3, 1), (2, 2)):
        for precision in (Finite(16), Infinite()):
            f, g = (random_model(vocabulary, period, precision, seed) for seed in (0, 1))
            for size in (length, 5 * length):
                number = divergence(f, g, size).configurations
                (taken,) = medians(lambda f=f, g=g, size=size: divergence(f, g, size), repeats=3)
                print(
                    f"| {vocabulary} | {period} | {type(precision).__name__} | {size} | {number} | "
                    f"{taken:.3f} | {number / taken / 1e6:.1f} |"
                )


def random_model(vocabulary: int, period: int, precision: Precision, seed: int) -> LimitTransformer:
    random = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64) / WIDTH**0.5

    layer = LimitLayer(
        draw(1, WIDTH, WIDTH),
        draw(1, WIDTH, WIDTH),
        draw(1, 2),
        draw(HIDDEN, WIDTH),
        draw(HIDDEN),
        draw(WIDTH, HIDDEN),
    )
    return LimitTransformer(draw(vocabulary, WIDTH), draw(period, WIDTH), (layer,), draw(1, WIDTH), precision)


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 200)
