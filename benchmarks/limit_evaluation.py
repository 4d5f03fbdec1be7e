"""Exact evaluation of limit transformers at great length.

One layer against a bare counting pass over the same array, in turns; two layers (vocabulary 4, period 3,
locality 3, 2 heads, width 16) in tokens per second, with the exponent of growth between two lengths.

    python benchmarks/limit_evaluation.py [LENGTH]
"""

import math
import sys

import torch
from timing import device, machine, medians

from lengthwise import Infinite, LimitLayer, LimitTransformer, constructions

WIDTH, HEADS, HIDDEN = 16, 2, 16


def main(length: int) -> None:
    print(machine())
    random = torch.Generator(device()).manual_seed(0)
    tokens = torch.randint(2, (length,), generator=random, device=device())
    f = on_device(constructions.simple_task(8, 64))
    counted, evaluated = medians(lambda: torch.bincount(tokens, minlength=2), lambda: f(tokens), repeats=5)
    print(f"one layer, {length} tokens: {evaluated:.3f} s, {evaluated / counted:.2f} times a counting pass")

    short, long = length // 100, length // 10
    g = two_layers()
    texts = [torch.randint(4, (size,), generator=random, device=device()) for size in (short, long)]
    taken = medians(*(lambda text=text: g(text) for text in texts), repeats=3)
    exponent = math.log(taken[1] / taken[0]) / math.log(long / short)
    print(
        f"two layers, {long} tokens: {long / taken[1] / 1e6:.2f} million tokens/s, "
        f"growth exponent from {short}: {exponent:.3f}"
    )


def on_device(f: LimitTransformer) -> LimitTransformer:
    tensors = {name: tensor.to(device()) for name, tensor in f.tensors().items()}
    return LimitTransformer.from_tensors(tensors, f.precision, [layer.activation for layer in f.layers])


def two_layers() -> LimitTransformer:
    random = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64) / WIDTH**0.5

    layers = tuple(
        LimitLayer(
            draw(HEADS, WIDTH, WIDTH),
            draw(HEADS, WIDTH, WIDTH),
            draw(HEADS, 4),
            draw(HIDDEN, WIDTH),
            draw(HIDDEN),
            draw(WIDTH, HIDDEN),
        )
        for _ in range(2)
    )
    return on_device(LimitTransformer(draw(4, WIDTH), draw(3, WIDTH), layers, draw(1, WIDTH), Infinite()))


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**8)
