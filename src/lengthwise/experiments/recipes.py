"""What is trained on a task unless the user says otherwise: the shape of the model, and how it is trained.

Each recipe is the model that theory asks for, with constants found on seeds that no published figure uses.
"""

from dataclasses import dataclass

from lengthwise.experiments.run import Run
from lengthwise.models import DecoderModel, LimitModel
from lengthwise.tasks import CountTask, KGramTask, ModPTask, PredictionTask, Task
from lengthwise.tasks.algorithmic import BinaryMajorityTask, CopyUniqueTask, MajorityTask
from lengthwise.training import DecoderEvaluation, DecoderTraining, Evaluation, Training, length_grid

LONGEST_STRINGS = 10**4
"""Where test strings must be made, they are no longer than this unless the user says otherwise."""


@dataclass(frozen=True)
class Recipe:
    """A model for a task, its training (whose length and seed are placeholders), and test lengths that show
    where the loss ends.
    """

    model: LimitModel
    training: Training
    evaluation: Evaluation

    def run(self, task: Task) -> Run:
        """A baseline to be changed: ``recipe(task).run(task).but(length=32, seed=1)``."""
        return Run(task, self.model, self.training, self.evaluation)


def recipe(task: Task | PredictionTask) -> Recipe:
    """The recipe of a task:

    - ModPTask: one layer with its period, no MLP, and training lengths that vary, since a model with
      positions that is always read at one residue learns nothing of the others;
    - in-context k-gram: two layers without MLP; k heads that may single out one of the last k positions, and
      one that attends by tokens alone, since a local logit of its own comes to rest near 1, where the limit
      of the loss is out of reach; fewer and smaller steps, since some seeds drift off to worse models later;
    - any other: one layer with an MLP and the period and locality that theory names.
    """
    if isinstance(task, PredictionTask):
        raise ValueError(
            f"{task.title} is a task of decoders: there is no recipe of a limit transformer for it"
        )
    theory = task.theory
    if isinstance(task, KGramTask):
        model = LimitModel(
            width=32, hidden=0, heads=task.k + 1, layers=2, locality=task.k, local_heads=task.k
        )
        training = Training(length=task.shortest, batch=128, steps=2000, learning_rate=5e-4)
        strings = Evaluation(lengths=length_grid(LONGEST_STRINGS, each=4), sequences=512)
        return Recipe(model, training, strings)
    if isinstance(task, ModPTask):
        model = LimitModel(period=task.period, hidden=0)
        training = Training(length=task.shortest, shortest=task.shortest)
        return Recipe(model, training, Evaluation())
    model = LimitModel(period=theory.period or 1, locality=theory.locality or None)
    longest = 10**9 if isinstance(task, CountTask) else LONGEST_STRINGS
    return Recipe(model, Training(length=task.shortest), Evaluation(lengths=length_grid(longest)))


def decoder_run(task: PredictionTask) -> Run:
    """A baseline for a task of decoders, to be changed, which takes a minute or two on two CPU cores.

    - Two layers of two heads, of width 64; a majority, which needs no more than counts, has one layer;
    - positions that are learned, or none where a program without positions does the task; to copy takes far
      more steps without them.

    It is no published setting: those train for longer.
    """
    without = task.theory.in_crasp and not isinstance(task, CopyUniqueTask)
    model = DecoderModel(
        layers=1 if isinstance(task, BinaryMajorityTask | MajorityTask) else 2,
        heads=2,
        positions="none" if without else "learned",
    )
    return Run(task, model, DecoderTraining(steps=3000), DecoderEvaluation(sequences=500, every=250))
