"""What is trained: ensembles of limit transformers, ensembles of decoders."""

from lengthwise.models.decoder import DecoderEnsemble, DecoderModel
from lengthwise.models.limit import LimitEnsemble, LimitModel

__all__ = ["DecoderEnsemble", "DecoderModel", "LimitEnsemble", "LimitModel"]
