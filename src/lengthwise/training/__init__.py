"""How models are trained and measured: the ensemble loop, evaluation over lengths, plateaus."""

from lengthwise.training.config import Evaluation, Training, length_grid
from lengthwise.training.curves import AccuracyCurve, LossCurve, effective_length
from lengthwise.training.decoder_config import DecoderEvaluation, DecoderTraining
from lengthwise.training.decoders import DecoderResult, start_decoders, train_decoders
from lengthwise.training.evaluation import LossAtLength, loss_at_length
from lengthwise.training.infinity import loss_at_infinity
from lengthwise.training.loop import (
    Progress,
    TrainingCurve,
    start_ensemble,
    train_on_counts,
    train_on_tokens,
)
from lengthwise.training.measure import evaluate
from lengthwise.training.plateaus import Plateau, plateau
from lengthwise.training.trained import Decoder

__all__ = [
    "AccuracyCurve",
    "Decoder",
    "DecoderEvaluation",
    "DecoderResult",
    "DecoderTraining",
    "Evaluation",
    "LossAtLength",
    "LossCurve",
    "Plateau",
    "Progress",
    "Training",
    "TrainingCurve",
    "effective_length",
    "evaluate",
    "length_grid",
    "loss_at_infinity",
    "loss_at_length",
    "plateau",
    "start_decoders",
    "start_ensemble",
    "train_decoders",
    "train_on_counts",
    "train_on_tokens",
]
