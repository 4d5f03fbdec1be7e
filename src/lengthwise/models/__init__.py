"""What is trained: ensembles of limit transformers."""

from lengthwise.models.limit import LimitEnsemble, LimitModel

__all__ = ["LimitEnsemble", "LimitModel"]
