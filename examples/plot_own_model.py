"""
Your own model, your own task
=============================

Any function from tokens to outputs can be measured at lengths far beyond its training, on any task: a task is
a class with an alphabet, a sampler and a target. Here: the share of 1s, and a model that sees a window.
"""

import torch

import lengthwise as lw


class ShareOfOnes(lw.Task):
    """f*(x) = the share of 1s, in strings with a probability of their own."""

    alphabet = ("0", "1")  # pyright: ignore

    def sample(self, batch: int, length: int, generator: torch.Generator) -> torch.Tensor:
        chance = torch.rand(batch, 1, generator=generator)
        return (torch.rand(batch, length, generator=generator) < chance).long()

    def target(self, tokens: torch.Tensor) -> torch.Tensor:
        return tokens.double().mean(-1, keepdim=True)


class Window(torch.nn.Module):
    """The mean of the last 20 tokens: exact up to length 20."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return tokens[:, -20:].double().mean(-1, keepdim=True)


curve = lw.evaluate(Window(), ShareOfOnes(), lengths=[5, 10, 20, 40, 100, 1000, 10_000])
print(curve.frame().to_string(index=False, float_format="{:.5f}".format))
print("works, at a loss of at most 0.001, up to length", lw.effective_length(curve, 0.001))
