"""Exact evaluation of limit transformers at great length.

One layer against a bare counting pass over the same array, in turns; two layers (vocabulary 4, period 3,
locality 3, 2 heads, width 16) in tokens per second, with the exponent of growth between two lengths and the
memory that the longer one needs beyond the shorter one.

    python benchmarks/limit_evaluation.py [LENGTH]
"""

import math
import resource
import sys

import torch
from timing import device, machine, medians

from lengthwise import Finite, Infinite, LimitLayer, LimitTransformer, constructions
from lengthwise.limit.precision import Precision

WIDTH, HEADS, HIDDEN = 16, 2, 16


def main(length: int) -> None:
    print(machine())
    random = torch.Generator(device()).manual_seed(0)
    tokens = torch.randint(2, (length,), generator=random, device=device())
    f = on_device(constructions.simple_task(8, 64))
    counted, evaluated = medians(lambda: torch.bincount(tokens, minlength=2), lambda: f(tokens), repeats=5)
    print(f"one layer, {length} tokens: {evaluated:.3f} s, {evaluated / counted:.2f} times a counting pass")

    short, long = length // 1000, length // 10
    texts = [torch.randint(4, (size,), generator=random, device=device()) for size in (short, long)]
    for precision in (Infinite(), Finite(16)):
        g = two_layers(precision)
        taken = medians(*(lambda text=text, g=g: g(text) for text in texts), repeats=3)
        exponent = math.log(taken[1] / taken[0]) / math.log(long / short)
        before = peak_memory()
        g(torch.cat([texts[1]] * 5))
        more = peak_memory() - before - 5 * long * 8
        print(f"two layers, {precision}, {long} tokens: {long / taken[1] / 1e6:.2f} million tokens/s")
        print(f"  growth exponent from {short} tokens: {exponent:.3f}")
        print(f"  five times as long: {max(more, 0) / 2**20:.0f} MiB more beside the tokens")


def peak_memory() -> int:
    """The most bytes that this process has held so far."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def on_device(f: LimitTransformer) -> LimitTransformer:
    tensors = {name: tensor.to(device()) for name, tensor in f.tensors().items()}
    return LimitTransformer.from_tensors(tensors, f.precision, [layer.activation for layer in f.layers])


def two_layers(precision: Precision) -> LimitTransformer:
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
    return on_device(LimitTransformer(draw(4, WIDTH), draw(3, WIDTH), layers, draw(1, WIDTH), precision))


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**8)
