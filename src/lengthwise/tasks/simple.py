"""SimpleTask: a wave of the difference of two proportions (Izzo, Nichani and Lee, ICLR 2026)."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from lengthwise._checks import check_concentration, positive
from lengthwise.sequences import Summary, counts
from lengthwise.tasks._dirichlet import CONCENTRATION, DirichletTask
from lengthwise.tasks._interface import Theory


@dataclass(frozen=True, kw_only=True)
class SimpleTask(DirichletTask):
    """f*(x) = sin(omega (c_0 - c_1) / (c_0 + c_1)), over the alphabet {0, 1}.

    c_s is the number of tokens s in x. Token probabilities are drawn from a symmetric Dirichlet prior for
    each string (concentration 1: uniform), then tokens are independent.
    """

    name: ClassVar[str] = "simple"
    title: ClassVar[str] = "SimpleTask"

    omega: float = field(
        default=8.0,
        metadata={"about": "the frequency, which is the Lipschitz constant that theory speaks of"},
    )
    concentration: float = field(default=1.0, metadata={"about": CONCENTRATION})

    def __post_init__(self) -> None:
        object.__setattr__(self, "omega", positive(self.omega, "omega"))
        object.__setattr__(self, "concentration", check_concentration(self.concentration))

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

    def target(self, tokens: Int[Tensor, "*batch length"]) -> Float[Tensor, "*batch 1"]:
        """The wave, from the tokens."""
        return self._wave(counts(tokens, self.vocabulary).squeeze(-1))

    def target_of_counts(self, summary: Summary) -> Float[Tensor, "*batch 1"]:
        """The wave, from the counts."""
        return self._wave(summary.token_counts())

    def _wave(self, counts: Real[Tensor, "*batch 2"]) -> Float[Tensor, "*batch 1"]:
        zeros, ones = counts.double().unbind(-1)
        return torch.sin(self.omega * (zeros - ones) / (zeros + ones)).unsqueeze(-1)
