"""What the training of decoders and their evaluation are told."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from lengthwise._checks import at_least_zero, positive, several, whole
from lengthwise._messages import shown
from lengthwise.sequences import check_seed
from lengthwise.tasks import PredictionTask
from lengthwise.tasks._prediction import LONGEST_INPUT
from lengthwise.training.config import MOST_SEQUENCES, MOST_STEPS

Rounding = Literal["none", "tf32", "bfloat16"]
"""What a GPU may round while it trains, to be faster; a CPU rounds nothing.

- "none": all is float32;
- "tf32": factors of matrix products, to 11 bits;
- "bfloat16": factors and results of the layers' products, to 8 bits, and what goes from one to the next; not
  the residual stream, LayerNorm, the readout, the loss and the weights, nor what is computed from counts."""


@dataclass(frozen=True, kw_only=True)
class DecoderTraining:
    """AdamW on fresh data, with a learning rate that falls linearly to 0.

    - ``length``: inputs have lengths that are uniform among those of the task up to this;
    - ``weight_decay``: of matrices and tables (embeddings among them), not of biases and LayerNorm weights;
    - ``regulariser``: the factor on ``DecoderEnsemble.position_logits`` that is added to the loss;
    - ``clip``: a model's gradient, that of the regulariser included, is shortened to this norm if it is
      longer; 0 for never;
    - ``rounding``: what a GPU may round, see ``Rounding``;
    - ``seed`` decides both the first weights and the data.
    """

    length: int = 50
    steps: int = 30_000
    batch: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    regulariser: float = 0.0
    rounding: Rounding = "none"
    seed: int = 0
    clip: float = 0.0

    def __post_init__(self) -> None:
        whole(self.length, "training length", 0, LONGEST_INPUT)
        whole(self.steps, "steps", 1, MOST_STEPS)
        whole(self.batch, "batch", 1, MOST_SEQUENCES)
        check_seed(self.seed)
        object.__setattr__(self, "learning_rate", positive(self.learning_rate, "learning_rate"))
        for name in ("weight_decay", "regulariser", "clip"):
            object.__setattr__(self, name, at_least_zero(getattr(self, name), name))
        if not isinstance(self.rounding, str) or self.rounding not in get_args(Rounding):
            known = ", ".join(get_args(Rounding))
            raise ValueError(f"rounding must be one of {known}, got {shown(self.rounding)}")


@dataclass(frozen=True, kw_only=True)
class DecoderEvaluation:
    """When and where decoders are measured: in bins of input lengths that never overlap.

    - ``ends``: the longest length of each bin; the first bin starts at the task's shortest input, each other
      one behind the end of the bin before it;
    - ``sequences``: how many each bin has, the same for all models;
    - ``every``: so many steps lie between two evaluations; there is one after the last step too;
    - ``stop``: a model that is perfect on the first bin is trained no further.
    """

    ends: Sequence[int] = (50, 100, 150)
    sequences: int = 2000
    every: int = 3000
    stop: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", several(self.ends, "the ends of the bins"))
        for end in self.ends:
            whole(end, "the end of a bin", 0, LONGEST_INPUT)
        if not self.ends or list(self.ends) != sorted(set(self.ends)):
            raise ValueError(f"the ends of the bins must be given and increase, got {shown(list(self.ends))}")
        whole(self.sequences, "sequences", 1, MOST_SEQUENCES)
        whole(self.every, "every", 1)
        check_seed(self.seed)
        if not isinstance(self.stop, bool):
            raise ValueError(f"stop must be true or false, got {shown(self.stop)}")

    def bins(self, task: PredictionTask) -> tuple[tuple[int, int], ...]:
        """The shortest and the longest length of each bin; ``ValueError`` if a task has no input in one."""
        starts = (task.shortest, *(end + 1 for end in self.ends[:-1]))
        bins = tuple(zip(starts, self.ends, strict=True))
        for low, high in bins:
            if low > high or not task.lengths(low, high):
                raise ValueError(f"{task.title} has no inputs of a length from {low} to {high}")
        return bins
