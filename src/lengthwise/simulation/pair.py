"""Two models side by side: written with one period and one locality, so that one string serves both."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Integer
from torch import Tensor

from lengthwise.limit import LimitTransformer
from lengthwise.sequences import Summary, check_tokens, whole_numbers


@dataclass(frozen=True)
class Pair:
    """f and g over one vocabulary, extended to their common period (lcm) and locality (maximum)."""

    f: LimitTransformer
    g: LimitTransformer

    @staticmethod
    def of(f: LimitTransformer, g: LimitTransformer) -> "Pair":
        """The two models, or what keeps them from being compared."""
        if f.vocabulary != g.vocabulary:
            raise ValueError(
                f"f and g must have one vocabulary, got {f.vocabulary} and {g.vocabulary} tokens"
            )
        if f.outputs != g.outputs:
            raise ValueError(f"f and g must have as many outputs, got {f.outputs} and {g.outputs}")
        if f.embedding.device != g.embedding.device:
            devices = f"{f.embedding.device} and {g.embedding.device}"
            raise ValueError(f"f and g must be on one device, got {devices}")
        period, locality = math.lcm(f.period, g.period), max(f.locality, g.locality)
        return Pair(f.extended(period, locality), g.extended(period, locality))

    @property
    def models(self) -> tuple[LimitTransformer, LimitTransformer]:
        """f, then g."""
        return self.f, self.g

    @property
    def vocabulary(self) -> int:
        """S."""
        return self.f.vocabulary

    @property
    def period(self) -> int:
        """D, the least common multiple of the two periods."""
        return self.f.period

    @property
    def locality(self) -> int:
        """tau, the larger of the two localities."""
        return self.f.locality

    @property
    def layers(self) -> int:
        """The number of layers of the deeper one."""
        return max(len(self.f.layers), len(self.g.layers))

    def word(self, tokens: Tensor | Sequence[int]) -> Integer[Tensor, "T"]:
        """The tokens as one string over the vocabulary, or what keeps them from being one."""
        word = whole_numbers(tokens, self.f.embedding.device)
        if word.dim() != 1 or word.numel() == 0:
            raise ValueError(
                f"tokens must be one string of at least one token, got shape {tuple(word.shape)}"
            )
        check_tokens(word, self.vocabulary)
        return word.long()

    def two_layers(self) -> "Pair":
        """The pair with a second layer that does nothing behind every model of one layer."""
        return Pair(*(_deepened(model) for model in self.models))


def _deepened(f: LimitTransformer) -> LimitTransformer:
    if len(f.layers) != 1:
        return f
    layer, none = f.layers[0], slice(0, 0)
    empty = replace(
        layer,
        key_query=layer.key_query[none],
        value=layer.value[none],
        local=layer.local[none],
        mlp_in=layer.mlp_in[none],
        mlp_bias=layer.mlp_bias[none],
        mlp_out=layer.mlp_out[:, none],
    )
    return replace(f, layers=(layer, empty))


def distance(f: LimitTransformer, one: Tensor | Summary, other: Tensor | Summary) -> float:
    """The Euclidean distance between a model's outputs on two strings, or on what one layer sees of them."""
    outputs = [f.evaluate_counts(given) if isinstance(given, Summary) else f(given) for given in (one, other)]
    return float(torch.linalg.vector_norm(outputs[0] - outputs[1]))
