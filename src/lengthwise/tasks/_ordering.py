"""Rows of numbers in order, and rows in random order.

On a CPU numpy sorts: it uses vector instructions, and takes a fifth of the time that torch does.
"""

import numpy as np
import torch
from jaxtyping import Float64, Int
from torch import Tensor


def ascending(numbers: Int[Tensor, "*B N"]) -> Int[Tensor, "*B N"]:
    """Every row in ascending order."""
    if numbers.device.type == "cpu":
        return torch.from_numpy(np.sort(numbers.numpy(), -1))
    return numbers.sort(-1).values


def permutations(chances: Float64[Tensor, "*B N"]) -> Int[Tensor, "*B N"]:
    """The places of the smallest number, of the next, ...: a uniform permutation, if the numbers of a row are
    independent and uniform.
    """
    if chances.device.type == "cpu":
        return torch.from_numpy(np.argsort(chances.numpy(), -1))
    return chances.argsort(-1)


def shuffled(
    symbols: Int[Tensor, "*B N"], sizes: Int[Tensor, "*B"], chances: Float64[Tensor, "*B N"]
) -> Int[Tensor, "*B N"]:
    """The first ``sizes`` symbols of every row in random order; the others stay behind them."""
    outside = torch.arange(symbols.shape[-1], device=symbols.device) >= sizes.unsqueeze(-1)
    places = permutations(chances.masked_fill(outside, 1.0))
    return torch.empty_like(symbols).scatter(-1, places, symbols)
