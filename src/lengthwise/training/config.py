"""What a training run and its evaluation are told."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lengthwise._checks import positive, several, whole
from lengthwise._messages import shown
from lengthwise.sequences import check_length, check_seed

MOST_STEPS, MOST_SEQUENCES = 2**40, 2**24
"""No training has more steps, and no batch or test more sequences."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """Adam on fresh data, with a learning rate that falls to 0 along a half cosine.

    - ``length``: of the training strings; with ``shortest``, their lengths are uniform from that to it. A
      model with positions is read at the last one, so at one length it meets one residue alone as a query:
      it needs lengths that vary to work at others;
    - ``seed`` decides both the first weights and the data.
    """

    length: int
    shortest: int | None = None
    steps: int = 5000
    batch: int = 256
    learning_rate: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        check_length(self.length, "training length")
        if self.shortest is not None:
            check_length(self.shortest, "shortest training length")
            if self.shortest > self.length:
                most = f"at most the longest, {self.length}"
                raise ValueError(f"shortest training length must be {most}, got {self.shortest}")
        whole(self.steps, "steps", 1, MOST_STEPS)
        whole(self.batch, "batch", 1, MOST_SEQUENCES)
        check_seed(self.seed)
        object.__setattr__(self, "learning_rate", positive(self.learning_rate, "learning_rate"))


def length_grid(longest: int = 10**9, each: int = 2) -> tuple[int, ...]:
    """Test lengths up to and with the longest: eight to a factor of ten until 100, where curves rise, and
    ``each`` from there on, where they should not.
    """
    check_length(longest, "longest test length")
    grid = [round(10 ** (step / 8)) for step in range(5, 16)] + [
        round(10 ** (step / each)) for step in range(2 * each, 16 * each + 1)
    ]
    return (*(length for length in grid if length < longest), longest)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Where a trained model is measured: at its training length and at each of ``lengths`` above it.

    The same ``sequences`` token distributions, drawn from ``seed``, are used at every length and for every
    run, so that two points of a curve, or two curves, differ by the models and the length and hardly by
    the luck of the draw.
    """

    lengths: Sequence[int] = field(default_factory=length_grid)
    sequences: int = 4096
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", several(self.lengths, "test lengths"))
        for length in self.lengths:
            check_length(length, "test length")
        if list(self.lengths) != sorted(set(self.lengths)):
            raise ValueError(f"test lengths must increase, got {shown(list(self.lengths))}")
        whole(self.sequences, "sequences", 2, MOST_SEQUENCES)
        check_seed(self.seed)

    def lengths_for(self, training_length: int) -> tuple[int, ...]:
        """The test lengths of a run."""
        return (training_length, *(length for length in self.lengths if length > training_length))
