"""Has attention become hard? Evidence from trained ModPTask models.

A model that generalises must attend, at every length, to the positions of the residue class alone and to each
of them alike.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.limit import Finite, LimitTransformer
from lengthwise.limit.reference import attentions
from lengthwise.tasks import ModPTask
from lengthwise.training.randomness import generator

BITS = 16
"""A model in infinite precision is read with so many bits for its hardmax length."""


@dataclass(frozen=True)
class Hardness:
    """Of one model, over strings whose last position has every residue:

    - ``off``: attention to positions off the class, in total: the mean, and the ``largest_off``;
    - ``spread``: how far attention on the class is from uniform (total variation): the mean, and the
      ``largest_spread``;
    - ``gap``: the smallest logit on the class minus the largest off it, over all queries and tokens;
    - ``margin``, ``log2_hardmax_length``: the logit margin gamma and bits/gamma, for a model in infinite
      precision as if it were read with 16 bits. The margin is the smallest difference between any two
      logits, also of the two tokens on the class, which hard attention would have to tell apart.
    """

    off: float
    largest_off: float
    spread: float
    largest_spread: float
    gap: float
    margin: float
    log2_hardmax_length: float


def hardness(
    f: LimitTransformer, task: ModPTask, *, length: int = 256, strings: int = 16, seed: int = 0
) -> Hardness:
    """Measure a one-layer model of one head at the ``period`` lengths up to ``length``."""
    if len(f.layers) != 1 or f.layers[0].heads != 1:
        raise ValueError("this evidence is for models of one layer with one head")
    random = generator(seed, "hardness", f.embedding.device)
    offs, spreads = [], []
    for shorter in range(task.period):
        tokens = task.sample(strings, length - shorter, random)
        weights_BT = attentions(f, tokens)[0][:, 0, -1]
        off_B, spread_B = class_attention(weights_BT, task)
        offs.append(off_B)
        spreads.append(spread_B)
    off, spread = torch.cat(offs), torch.cat(spreads)
    bits = f.precision.bits if isinstance(f.precision, Finite) else BITS
    margin = replace(f, precision=Finite(bits)).logit_margin()
    return Hardness(
        float(off.mean()),
        float(off.max()),
        float(spread.mean()),
        float(spread.max()),
        class_gap(f, task),
        margin,
        bits / margin if margin > 0 else math.inf,
    )


def class_attention(
    weights: Float[Tensor, "B T"], task: ModPTask
) -> tuple[Float[Tensor, "B"], Float[Tensor, "B"]]:
    """Attention off the class in total, and how far from uniform it is on the class."""
    position = torch.arange(1, weights.shape[-1] + 1, device=weights.device)
    inside = position % task.period == task.residue
    on = weights[:, inside]
    total = on.sum(-1, keepdim=True)
    spread = (on / total - 1 / on.shape[-1]).abs().sum(-1) / 2
    return weights[:, ~inside].sum(-1), spread


def class_gap(f: LimitTransformer, task: ModPTask) -> float:
    """The smallest logit of a key on the class minus the largest of one off it, over all query types."""
    types = f.types()
    logits_KQ = types @ f.layers[0].key_query[0] @ types.mT
    inside_K = torch.arange(len(types), device=types.device) % f.period % task.period == task.residue
    return float((logits_KQ[inside_K].amin(0) - logits_KQ[~inside_K].amax(0)).min())
