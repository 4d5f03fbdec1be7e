"""Curves: how good a model is against test length."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pandas as pd

from lengthwise.training.plateaus import Plateau, plateau


@dataclass(frozen=True)
class LossCurve:
    """Loss against test length: mean over the test sequences, its standard error, and the loss of the best
    constant answer (``baselines``).
    """

    test_lengths: tuple[int, ...]
    losses: tuple[float, ...]
    errors: tuple[float, ...]
    baselines: tuple[float, ...]

    @property
    def plateau(self) -> Plateau:
        """Where the curve ends."""
        return plateau(self.test_lengths, self.losses, self.errors)

    def frame(self) -> pd.DataFrame:
        """One row a test length."""
        return pd.DataFrame(
            {
                "test_length": self.test_lengths,
                "loss": self.losses,
                "loss_error": self.errors,
                "baseline": self.baselines,
            }
        )


@dataclass(frozen=True)
class AccuracyCurve(LossCurve):
    """Loss and accuracy on a task of decoders, against test length or bins of test lengths.

    - ``test_lengths``: the longest length of each bin, ``shortest`` the shortest; equal where one length was
      asked for;
    - ``losses``: means over all scored places;
    - ``accuracies``: the share of the sequences that are right at every scored place, with standard errors.
    """

    shortest: tuple[int, ...]
    accuracies: tuple[float, ...]
    accuracy_errors: tuple[float, ...]

    def frame(self) -> pd.DataFrame:
        """One row a bin."""
        rows = super().frame()
        rows.insert(0, "shortest", self.shortest)
        return rows.assign(accuracy=self.accuracies, accuracy_error=self.accuracy_errors)


@runtime_checkable
class HasLosses(Protocol):
    """A curve: losses at increasing test lengths."""

    @property
    def test_lengths(self) -> Sequence[int]:
        """The lengths."""
        ...

    @property
    def losses(self) -> Sequence[float]:
        """The loss at each."""
        ...


def effective_length(curve: HasLosses, threshold: float) -> int | None:
    """The longest test length up to and with which the loss stays within the threshold; None if it is above
    it from the first one on.
    """
    within = None
    for length, loss in zip(curve.test_lengths, curve.losses, strict=True):
        if not loss <= threshold:
            break
        within = length
    return within
