"""All that two one-layer models can see of the inputs of a length, evaluated at once.

One layer sees of a string its suffix and the counts of its far types, and the number of far positions with
each residue is fixed by the length. So S^T strings fall into

    S^min(T, tau + 1)  times the product over residues r of binomial(c_r + S - 1, S - 1)

configurations (c_r far positions with residue r), polynomially many in T.

Axes: B count matrix, N suffix, P set of present types, H head, K far type, W distance, A atom (far type or
distance: what attention is spread over), Q query type, x hidden unit or output, o output.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lengthwise._messages import shown
from lengthwise.limit.precision import Finite, Infinite
from lengthwise.limit.transformer import LimitTransformer
from lengthwise.sequences import BEFORE_START, Summary, check_length
from lengthwise.simulation.pair import Pair

WORKING_SET = 2**18
"""How many numbers of one model's attention are held at once, so that they stay in a cache."""


@contextmanager
def one_thread() -> Iterator[None]:
    """On a CPU, work on pieces that fit a cache is hardly faster with more threads, and many times slower on
    a busy machine, where they wait for each other.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class Configurations:
    """All that two one-layer models can see of the inputs of one length."""

    pair: Pair
    length: int

    @staticmethod
    def of(f: LimitTransformer, g: LimitTransformer, length: int) -> "Configurations":
        """Of f and g at a length, or what keeps them from being enumerated."""
        for name, model in (("f", f), ("g", g)):
            if len(model.layers) != 1:
                raise ValueError(f"{name} must have one layer to be enumerated, it has {len(model.layers)}")
        return Configurations(Pair.of(f, g), check_length(length))

    @property
    def window(self) -> int:
        """The length of the suffix, min(T, tau + 1)."""
        return min(self.length, self.pair.locality + 1)

    @cached_property
    def sizes(self) -> list[int]:
        """c_r: how many far positions have each residue."""
        far, period = self.length - self.window, self.pair.period
        return [far // period + (1 <= residue <= far % period) for residue in range(period)]

    @cached_property
    def number(self) -> int:
        """How many there are."""
        return self.pair.vocabulary**self.window * math.prod(self._matrices)

    @cached_property
    def _matrices(self) -> list[int]:
        parts = self.pair.vocabulary
        return [math.comb(size + parts - 1, parts - 1) for size in self.sizes]

    def formula(self) -> str:
        """What the number depends on, in words."""
        return (
            f"which grow like S^(tau + 1) (T/D)^(D (S - 1)) with vocabulary S = {self.pair.vocabulary}, "
            f"period D = {self.pair.period}, locality tau = {self.pair.locality}, length T = {self.length}"
        )

    def check(self, most: int) -> None:
        """Raise ``ValueError`` if there are more than that."""
        if self.number > most:
            raise ValueError(
                f"there are {shown(self.number)} configurations, more than {most}, {self.formula()}"
            )

    def distances(
        self,
    ) -> Iterator[tuple[Int[Tensor, "K B"], Int[Tensor, "N W"], Float[Tensor, "N B"]]]:
        """Every configuration once, in pieces: count matrices, suffixes, and |f - g| on each pair of them."""
        for counts_KB, suffix_NW, one, other in self.outputs():
            yield counts_KB, suffix_NW, torch.linalg.vector_norm(one - other, dim=1)

    def outputs(
        self,
    ) -> Iterator[
        tuple[Int[Tensor, "K B"], Int[Tensor, "N W"], Float[Tensor, "N o B"], Float[Tensor, "N o B"]]
    ]:
        """The same with the outputs of f and of g."""
        device = self.pair.f.embedding.device
        models = [OneLayer.of(model, self.length, self.window) for model in self.pair.models]
        rows = max(64, WORKING_SET // max(model.numbers for model in models))
        suffixes = self.pair.vocabulary**self.window
        near = torch.ones(self.window, 1, dtype=torch.long, device=device)
        for counts_KB in self._count_matrices(rows):
            counts_AB = torch.cat([counts_KB, near.expand(-1, counts_KB.shape[1])])
            present_AP, which_B = _supports(counts_AB)
            counts_AB = counts_AB.double()
            step = max(1, rows // counts_KB.shape[1])
            for start in range(0, suffixes, step):
                number = torch.arange(start, min(start + step, suffixes), device=device)
                suffix_NW = torch.stack(_digits(number, [self.pair.vocabulary] * self.window), -1)
                one, other = (model.outputs(counts_AB, present_AP, which_B, suffix_NW) for model in models)
                yield counts_KB, suffix_NW, one, other

    def _count_matrices(self, rows: int) -> Iterator[Int[Tensor, "K B"]]:
        device = self.pair.f.embedding.device
        edges = [[edge.to(device) for edge in _edges(size, self.pair.vocabulary)] for size in self.sizes]
        total = math.prod(self._matrices)
        for start in range(0, total, rows):
            number = torch.arange(start, min(start + rows, total), device=device)
            ranks = _digits(number, self._matrices)
            columns = [
                _compositions(rank, size, self.pair.vocabulary, edge)
                for rank, size, edge in zip(ranks, self.sizes, edges, strict=True)
            ]
            yield torch.stack(columns, 1).flatten(0, 1)

    def summary(self, counts_K: Int[Tensor, "K"], suffix_W: Int[Tensor, "W"]) -> Summary:
        """One configuration as the summary of a string."""
        before = self.pair.locality + 1 - self.window
        return Summary(
            counts_K.unflatten(0, (self.pair.vocabulary, self.pair.period)),
            torch.nn.functional.pad(suffix_W, (0, before), value=BEFORE_START),
            torch.tensor(self.length, device=counts_K.device),
        )


@dataclass(frozen=True)
class OneLayer:
    """One model at one length, ready to be evaluated on many configurations: the same computation as
    ``lengthwise.limit.counting.evaluate_summary``, with everything that is common to them taken out.

    - ``logits_QHK``: token logits of far keys by query type;
    - ``local_HW``: added to them at distances 0..tau;
    - ``values_xHK``: what a key adds to the pre-activations of hidden units and to the outputs;
    - ``own_Qx``: what the query itself adds, biases included;
    - ``out_om``: from hidden units to outputs.
    """

    f: LimitTransformer
    length: int
    residue_W: Int[Tensor, "W"]
    logits_QHK: Float[Tensor, "Q H K"]
    local_HW: Float[Tensor, "H W"]
    values_xHK: Float[Tensor, "x H K"]
    own_Qx: Float[Tensor, "Q x"]
    out_om: Float[Tensor, "o m"]

    @staticmethod
    def of(f: LimitTransformer, length: int, window: int) -> "OneLayer":
        """The tables of a one-layer model."""
        (layer,) = f.layers
        types = f.types()
        into_xd = torch.cat([layer.mlp_in, f.readout])
        own = types @ into_xd.mT + torch.nn.functional.pad(layer.mlp_bias, (0, f.outputs))
        scale = math.log(length) if isinstance(f.precision, Infinite) else 1.0
        return OneLayer(
            f=f,
            length=length,
            residue_W=(length - torch.arange(window, device=types.device)) % f.period,
            logits_QHK=torch.einsum("ke,hed,qd->qhk", types, layer.key_query, types),
            local_HW=layer.local[:, :window] * scale,
            values_xHK=torch.einsum("xd,hde,ke->xhk", into_xd, layer.value, types),
            own_Qx=own,
            out_om=f.readout @ layer.mlp_out,
        )

    @property
    def numbers(self) -> int:
        """How many numbers one configuration takes while it is evaluated."""
        heads, types = self.logits_QHK.shape[1:]
        return heads * (types + len(self.residue_W)) + self.own_Qx.shape[1]

    def outputs(
        self,
        counts_AB: Float[Tensor, "A B"],
        present_AP: Bool[Tensor, "A P"],
        which_B: Int[Tensor, "B"],
        suffix_NW: Int[Tensor, "N W"],
    ) -> Float[Tensor, "N o B"]:
        """The outputs for every suffix with every count matrix, whose present atoms are ``which_B``."""
        (layer,) = self.f.layers
        near_NW = suffix_NW * self.f.period + self.residue_W
        weights_NHAP = self._weights(near_NW, present_AP)
        attention_NHAB = weights_NHAP.index_select(-1, which_B) if present_AP.shape[1] > 1 else weights_NHAP
        attention_NHAB = attention_NHAB * counts_AB
        attention_NHAB.div_(attention_NHAB.sum(2, keepdim=True))
        near_xHNW = self.values_xHK[:, :, near_NW]
        far_xHNK = self.values_xHK.unsqueeze(2).expand(-1, -1, len(near_NW), -1)
        values_Nxa = torch.cat([far_xHNK, near_xHNW], -1).permute(2, 0, 1, 3).flatten(2)
        before_NxB = torch.baddbmm(
            self.own_Qx[near_NW[:, 0]].unsqueeze(-1), values_Nxa, attention_NHAB.flatten(1, 2)
        )
        hidden, direct = before_NxB.split([layer.hidden, self.f.outputs], 1)
        active = hidden.relu() if layer.activation == "relu" else (hidden >= 0).double()
        return direct + self.out_om @ active

    def _weights(
        self, near_NW: Int[Tensor, "N W"], present_AP: Bool[Tensor, "A P"]
    ) -> Float[Tensor, "N H A P"]:
        """The weight of one position of each atom before normalisation, 0 for atoms that are not there."""
        far_NHK = self.logits_QHK[near_NW[:, 0]]
        index = near_NW.unsqueeze(1).expand(-1, far_NHK.shape[1], -1)
        logits_NHA = torch.cat([far_NHK, far_NHK.gather(2, index) + self.local_HW], -1)
        logits = torch.where(present_AP, logits_NHA.unsqueeze(-1), -math.inf)
        below = logits - logits.amax(2, keepdim=True)
        if isinstance(self.f.precision, Finite) and self.length > 1:
            below = below * math.log2(self.length)
            below = (below * math.log(2)).masked_fill(below <= -self.f.precision.bits, -math.inf)
        elif isinstance(self.f.precision, Finite):
            below = torch.where(present_AP, 0.0, below)  # one position, to the power log 1 = 0
        return below.exp()


def _supports(counts_AB: Int[Tensor, "A B"]) -> tuple[Bool[Tensor, "A P"], Int[Tensor, "B"]]:
    """The different sets of present atoms, and which of them each column has."""
    present_AB = counts_AB > 0
    atoms, columns = present_AB.shape
    if atoms > 62:  # too many for one number: every column for itself
        return present_AB, torch.arange(columns, device=counts_AB.device)
    powers = 2 ** torch.arange(atoms, device=counts_AB.device)
    sets, which_B = (present_AB * powers.unsqueeze(1)).sum(0).unique(return_inverse=True)
    return (sets & powers.unsqueeze(1)) > 0, which_B


def _digits(number: Int[Tensor, "N"], bases: list[int]) -> list[Int[Tensor, "N"]]:
    """Numbers written in mixed bases, digit by digit, the last one changing fastest."""
    digits = []
    for base in reversed(bases):
        digits.append(number % base)
        number = number // base
    return digits[::-1]


def _edges(total: int, parts: int) -> list[Int[Tensor, "total_plus_one"]]:
    """For p = parts - 1 down to 2, by r = 0..total: in how many ways p parts add up to less than r."""
    return [
        torch.tensor([math.comb(r + p - 1, p) for r in range(total + 1)]) for p in range(parts - 1, 1, -1)
    ]


def _compositions(
    rank: Int[Tensor, "B"], total: int, parts: int, edges: list[Int[Tensor, "total_plus_one"]]
) -> Int[Tensor, "{parts} B"]:
    """The ways to write ``total`` as an ordered sum of parts of at least 0, by their ranks.

    They are ordered by what is left after the first part, then after the second, and so on.
    """
    result, left = [], torch.full_like(rank, total)
    for edge in edges:
        after = torch.searchsorted(edge, rank, right=True) - 1
        result.append(left - after)
        left, rank = after, rank - edge[after]
    if parts > 1:
        result.append(left - rank)
        left = rank
    return torch.stack([*result, left])
