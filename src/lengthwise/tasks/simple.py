"""SimpleTask: a wave of the difference of two proportions (Izzo, Nichani and Lee, ICLR 2026)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from lengthwise.sequences import Summary, check_length, counts
from lengthwise.tasks import _dirichlet
from lengthwise.tasks._interface import CountTask, Theory


@dataclass(frozen=True, kw_only=True)
class SimpleTask(CountTask):
    """f*(x) = sin(omega (c_0 - c_1) / (c_0 + c_1)), over the alphabet {0, 1}.

    - c_s: the number of tokens s in x;
    - ``omega``: the frequency, which is the Lipschitz constant that theory speaks of;
    - ``concentration``: of the symmetric Dirichlet prior from which each string's token probabilities are
      drawn (1: uniform), after which its tokens are independent.
    """

    name: ClassVar[str] = "simple"
    title: ClassVar[str] = "SimpleTask"

    omega: float = 8.0
    concentration: float = 1.0

    def __post_init__(self) -> None:
        for knob in ("omega", "concentration"):
            value = getattr(self, knob)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"{knob} must be a number, got {value!r}")
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{knob} must be positive and finite, got {value}")
            object.__setattr__(self, knob, float(value))

    @property
    def alphabet(self) -> tuple[str, ...]:
        """The two tokens whose proportions are compared."""
        return ("0", "1")

    @property
    def outputs(self) -> int:
        """One number."""
        return 1

    @property
    def theory(self) -> Theory:
        """One layer with M knots in its MLP reaches omega^2 / (2 M^2): see ``constructions.simple_task``."""
        return Theory(
            period=1,
            locality=0,
            in_crasp=None,
            statement="real-valued, so C-RASP does not apply; one layer without positions and with M + 1 "
            "hidden units comes within omega^2/(2 M^2) at every length (proved)",
        )

    def sample(self, batch: int, length: int, generator: torch.Generator) -> Int[Tensor, "{batch} {length}"]:
        """Strings with their own token probabilities."""
        check_length(length)
        return _dirichlet.sample_tokens(self._probabilities(batch, generator), length, generator)

    def target(self, tokens: Int[Tensor, "*batch length"]) -> Float[Tensor, "*batch 1"]:
        """The wave, from the tokens."""
        return self._wave(counts(tokens, self.vocabulary).squeeze(-1))

    def sample_counts(
        self, batch: int, length: int, generator: torch.Generator, *, period: int = 1, locality: int = 0
    ) -> Summary:
        """Summaries of strings with their own token probabilities."""
        probabilities = self._probabilities(batch, generator)
        return _dirichlet.sample_counts(probabilities, length, generator, period=period, locality=locality)

    def target_of_counts(self, summary: Summary) -> Float[Tensor, "*batch 1"]:
        """The wave, from the counts."""
        return self._wave(summary.token_counts())

    def _probabilities(self, batch: int, generator: torch.Generator) -> Float[Tensor, "{batch} 2"]:
        return _dirichlet.token_probabilities(batch, self.vocabulary, self.concentration, generator)

    def _wave(self, counts: Real[Tensor, "*batch 2"]) -> Float[Tensor, "*batch 1"]:
        zeros, ones = counts.double().unbind(-1)
        return torch.sin(self.omega * (zeros - ones) / (zeros + ones)).unsqueeze(-1)
