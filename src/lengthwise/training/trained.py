"""One decoder of an ensemble by itself: a function from tokens to logits, as any other model is.

Axes: B stream, T position, C class.
"""

from collections.abc import Mapping
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengthwise.models.decoder import DecoderEnsemble, DecoderModel
from lengthwise.models.positions import drawn_positions
from lengthwise.tasks import PredictionTask
from lengthwise.training.randomness import generator


class Decoder:
    """A decoder of this shape for a task, with the weights that training left.

    Positions count from 0; where the scheme is "randomised" they are drawn for every stream, from ``seed``.
    """

    def __init__(
        self,
        model: DecoderModel,
        task: PredictionTask,
        weights: Mapping[str, Tensor],
        *,
        device: torch.device | str = "cpu",
        seed: int = 0,
    ) -> None:
        self.model, self.task, self.device = model, task, torch.device(device)
        # Every position was trained, so all are there for streams.
        self._shape = replace(model, spare_positions=0)
        self._weights = dict(weights)
        self._random = generator(seed, "positions of a decoder", self.device)
        learned = self._weights.get("positions")
        self._ensemble = self._of(1 if learned is None else len(learned))

    @property
    def longest(self) -> int | None:
        """The most tokens that it can read; None if there is no such number."""
        return {"learned": self._ensemble.longest, "randomised": self.model.position_range}.get(
            self.model.positions
        )

    def __call__(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T C"]:
        """Logits after every token."""
        width = tokens.shape[1]
        if self.longest is not None and width > self.longest:
            raise ValueError(f"the decoder has {self.longest} positions, got streams of {width} tokens")
        if width > self._ensemble.longest:
            self._ensemble = self._of(2 * width if self.longest is None else self.longest)
        positions = None
        if self.model.positions == "randomised":
            chances = torch.rand(
                tokens.shape, dtype=torch.float64, generator=self._random, device=self.device
            )
            lengths = torch.full((len(tokens),), width, device=self.device)
            span = self._ensemble.span
            positions = drawn_positions("randomised", lengths, chances, width=width, span=span).unsqueeze(0)
        places = torch.arange(width, device=self.device).expand_as(tokens)
        with torch.no_grad():
            return self._ensemble.forward(tokens.unsqueeze(0), places.unsqueeze(0), positions).squeeze(0)

    def _of(self, longest: int) -> DecoderEnsemble:
        """The ensemble of it alone, for streams of up to this many tokens."""
        found = DecoderEnsemble(
            self._shape,
            vocabulary=self.task.vocabulary,
            classes=None if self.task.kind == "token" else self.task.classes,
            longest=longest,
            generators=[torch.Generator()],
            device=self.device,
        )
        found.stack.load(0, self._weights)
        return found
