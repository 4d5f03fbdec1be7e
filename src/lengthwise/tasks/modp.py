"""ModPTask: a proportion among the positions of one residue class (Izzo, Nichani and Lee, ICLR 2026)."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from lengthwise._checks import check_concentration, whole
from lengthwise.sequences import Summary, counts
from lengthwise.tasks._dirichlet import CONCENTRATION, DirichletTask
from lengthwise.tasks._interface import Theory

MOST_PERIOD = 2**16
"""Counts are by residues modulo at most this."""


@dataclass(frozen=True, kw_only=True)
class ModPTask(DirichletTask):
    """f*(x) = the fraction of 1s among the positions t (from 1) with t = residue (mod period).

    A string needs one of these positions, so at least ``shortest`` tokens. Token probabilities are drawn from
    a symmetric Dirichlet prior for each string (concentration 1: uniform), then tokens are independent.
    """

    name: ClassVar[str] = "modp"
    title: ClassVar[str] = "ModPTask"

    period: int = field(default=3, metadata={"about": "positions that count are this far apart"})
    residue: int = field(default=0, metadata={"about": "they are this modulo the period"})
    concentration: float = field(default=1.0, metadata={"about": CONCENTRATION})

    def __post_init__(self) -> None:
        whole(self.period, "period", 1, MOST_PERIOD)
        whole(self.residue, "residue", 0, self.period - 1)
        object.__setattr__(self, "concentration", check_concentration(self.concentration))

    @property
    def shortest(self) -> int:
        """The first position that counts."""
        return self.residue or self.period

    @property
    def outputs(self) -> int:
        """One number."""
        return 1

    @property
    def theory(self) -> Theory:
        """One layer with this period, exactly: see ``constructions.mod_p``."""
        return Theory(
            period=self.period,
            locality=0,
            in_crasp=None,
            statement="real-valued, so C-RASP does not apply; one layer with positions of this period and "
            "hard attention is exact at every length (proved)",
        )

    def target(self, tokens: Int[Tensor, "*batch length"]) -> Float[Tensor, "*batch 1"]:
        """The fraction, from the tokens."""
        self.check_length(tokens.shape[-1])
        return self._fraction(counts(tokens, 2, self.period))

    def target_of_counts(self, summary: Summary) -> Float[Tensor, "*batch 1"]:
        """The fraction, from counts by a multiple of the period."""
        if summary.period % self.period:
            raise ValueError(f"counts by period {summary.period} do not tell residues modulo {self.period}")
        return self._fraction(summary.folded(self.period).type_counts())

    def _fraction(self, counts: Real[Tensor, "*batch 2 period"]) -> Float[Tensor, "*batch 1"]:
        zeros, ones = counts[..., self.residue].double().unbind(-1)
        return torch.unsqueeze(ones / (zeros + ones), -1)
