"""In-context k-gram: what followed the last k tokens before (Izzo, Nichani and Lee, ICLR 2026)."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lengthwise._checks import check_concentration, whole
from lengthwise._messages import shown
from lengthwise.tasks import _dirichlet
from lengthwise.tasks._interface import StationaryTask, Theory, check_together

Data = Literal["markov", "dirichlet", "uniform"]

CHAINS = {"cpu": 0, "cuda": 2**21}
"""Up to how many chains a device follows at once by cutting strings into pieces. On a GPU a step of fewer is
all overhead; on a CPU more of them cost more than the steps that they save."""


MOST_CONTEXT, MOST_TOKENS, MOST_CONTEXTS, MOST_NUMBERED = 64, 2**16, 2**20, 2**62
"""A context has at most so many tokens, and there are so many of these; a chain goes through so many
contexts, and elsewhere so many are told apart by their numbers."""


@dataclass(frozen=True, kw_only=True)
class KGramTask(StationaryTask):
    """f*(x) = the empirical distribution of the token after earlier occurrences of the last k tokens.

    Strings are drawn in one of three ways (``data``): "markov", each from its own Markov chain of order k
    with Dirichlet rows, so that the target stays informative at every length; "dirichlet", independent tokens
    with probabilities of their own (the target tends to these); "uniform", independent uniform tokens (it
    tends to uniform).

    Where the last k tokens have not occurred before there is no target: it is NaN, and such strings have no
    loss; the loss of the others is weighted so that the mean over a batch is the mean over them.
    """

    name: ClassVar[str] = "kgram"
    title: ClassVar[str] = "in-context k-gram"

    k: int = field(default=2, metadata={"about": "the length of the context"})
    vocabulary: int = field(default=3, metadata={"about": "the number of tokens"})  # pyright: ignore[reportIncompatibleMethodOverride]
    data: Data = field(default="markov", metadata={"about": "how strings are drawn"})
    concentration: float = field(default=1.0, metadata={"about": "of the symmetric Dirichlet prior"})

    def __post_init__(self) -> None:
        whole(self.k, "k", 1, MOST_CONTEXT)
        whole(self.vocabulary, "vocabulary", 1, MOST_TOKENS)
        if not isinstance(self.data, str) or self.data not in ("markov", "dirichlet", "uniform"):
            raise ValueError(f"data must be markov, dirichlet or uniform, got {shown(self.data)}")
        most = MOST_CONTEXTS if self.data == "markov" else MOST_NUMBERED
        if self.vocabulary**self.k > most:
            told = f"{self.vocabulary}^{self.k} contexts, more than {most:,}"
            raise ValueError(f"there are {told}: take a smaller k or vocabulary")
        object.__setattr__(self, "concentration", check_concentration(self.concentration))

    @property
    def alphabet(self) -> tuple[str, ...]:
        """The tokens, numbered."""
        return tuple(str(token) for token in range(self.vocabulary))

    @property
    def outputs(self) -> int:
        """A distribution over the tokens."""
        return self.vocabulary

    @property
    def shortest(self) -> int:
        """A context and one token before it."""
        return self.k + 1

    @property
    def theory(self) -> Theory:
        """Two layers: see ``constructions.k_gram``."""
        return Theory(
            period=1,
            locality=self.k,
            in_crasp=None,
            statement="real-valued, so C-RASP does not apply; two layers, k heads in the first, come within "
            "any tolerance on long strings in which the context is not rare (proved)",
        )

    def noise(self, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Uniform numbers, one a token, and what the string's distribution is drawn from: this first, so that
        one generator gives strings of any length the same distributions.
        """
        self.check_length(length)
        check_together(batch, length)
        rows = {"markov": self.vocabulary**self.k, "dirichlet": 1, "uniform": 0}[self.data]
        size, alpha = self.vocabulary, self.concentration
        check_together(batch, rows * size)
        chances = _dirichlet.token_probabilities(batch * rows, size, alpha, generator)
        shape = length, batch
        uniform = torch.rand(shape, dtype=torch.float64, device=generator.device, generator=generator)
        return uniform.mT, chances.unflatten(0, (batch, rows))

    def strings(self, *noise: Tensor) -> Int[Tensor, "batch length"]:
        """The strings that this noise makes."""
        uniform, chances = noise
        size = self.vocabulary
        if self.data == "uniform":
            return (uniform * size).long().clamp_max(size - 1)
        thresholds = chances.cumsum(-1)[..., :-1]
        if self.data == "dirichlet":
            return (uniform.unsqueeze(-1) >= thresholds).sum(-1)
        first = (uniform[:, : self.k] * size).long().clamp_max(size - 1)
        return torch.cat([first, self._chains(first, uniform[:, self.k :], thresholds)], 1)

    def _chains(self, first: Tensor, uniform: Tensor, thresholds: Tensor) -> Tensor:
        """The tokens that follow the first k, for one uniform number each.

        Long chains are cut into pieces, which are followed at the same time: once from every context, to see
        in which context each piece ends, then from the one in which it begins.
        """
        batch, length = uniform.shape
        contexts = self.vocabulary**self.k
        most = CHAINS.get(uniform.device.type, 0) // (batch * contexts)
        pieces = max(1, min(math.isqrt(length), most))
        each = -(-length // pieces)
        missing = uniform.new_zeros(batch, pieces * each - length)
        uniform_BPT = torch.cat([uniform, missing], 1).unflatten(1, (pieces, each))
        powers = self.vocabulary ** torch.arange(self.k - 1, -1, -1, device=first.device)
        start_BP = (first * powers).sum(1, keepdim=True)
        if pieces > 1:
            ends_BPC = torch.arange(contexts, device=first.device).expand(batch, pieces, -1)
            for chance_BP in uniform_BPT.unbind(2):
                chance_BPC = chance_BP.unsqueeze(2).expand_as(ends_BPC)
                ends_BPC, _ = self._advance(ends_BPC.flatten(1), chance_BPC.flatten(1), thresholds)
                ends_BPC = ends_BPC.unflatten(1, (pieces, contexts))
            starts = [start_BP]
            for end_BC in ends_BPC[:, :-1].unbind(1):
                starts.append(end_BC.gather(1, starts[-1]))
            start_BP = torch.cat(starts, 1)
        tokens = []
        for chance_BP in uniform_BPT.unbind(2):
            start_BP, token_BP = self._advance(start_BP, chance_BP, thresholds)
            tokens.append(token_BP)
        return torch.stack(tokens, 2).flatten(1)[:, :length]

    def _advance(self, context: Tensor, chance: Tensor, thresholds: Tensor) -> tuple[Tensor, Tensor]:
        """The contexts after one more token, and the tokens, for any number of chains to a string."""
        size = self.vocabulary
        rows = thresholds.gather(1, context.unsqueeze(-1).expand(-1, -1, size - 1))
        token = (chance.unsqueeze(-1) >= rows).sum(-1)
        return (context * size + token) % size**self.k, token

    @property
    def context(self) -> int:
        """The k tokens."""
        return self.k

    def at_infinity(
        self, batch: int, width: int, generator: torch.Generator
    ) -> tuple[Float[Tensor, "{batch} windows"], Float[Tensor, "{batch} windows outputs"]]:
        """Frequencies of windows of at least k tokens, and the distribution of the token after each: what the
        estimator tends to, for every context recurs (its probability is positive, almost surely).
        """
        whole(width, "width", self.k)
        _, chances = self.noise(batch, self.shortest, generator)
        size, contexts = self.vocabulary, self.vocabulary**self.k
        if self.data == "uniform":
            chances = chances.new_full((batch, 1, size), 1 / size)
        follows_BCS = chances.expand(batch, contexts, size)
        often_BW = _stationary(follows_BCS)
        for _ in range(width - self.k):
            last_k = torch.arange(often_BW.shape[1], device=often_BW.device) % contexts
            often_BW = (often_BW.unsqueeze(2) * follows_BCS[:, last_k]).flatten(1)
        return often_BW, follows_BCS[:, torch.arange(size**width, device=often_BW.device) % contexts]

    def target(self, tokens: Int[Tensor, "*batch length"]) -> Float[Tensor, "*batch outputs"]:
        """The estimator, from the tokens; NaN where the context is new."""
        self.check_length(tokens.shape[-1])
        size, length = self.vocabulary, tokens.shape[-1]
        context = torch.zeros_like(tokens[..., self.k - 1 :])
        for t in range(self.k):
            context = context * size + tokens[..., t : length - self.k + t + 1]
        match = (context[..., :-1] == context[..., -1:]).double()
        zero = torch.zeros(*tokens.shape[:-1], size, dtype=torch.float64, device=tokens.device)
        counts = zero.scatter_add(-1, tokens[..., self.k :], match)
        return counts / counts.sum(-1, keepdim=True)

    def loss(
        self, output: Float[Tensor, "*batch outputs"], target: Float[Tensor, "*batch outputs"]
    ) -> Float[Tensor, "*batch"]:
        """Squared error, summed over the tokens; strings without a target weigh nothing."""
        known: Bool[Tensor, "*batch"] = ~target[..., 0].isnan()
        difference = torch.where(known.unsqueeze(-1), output - target, 0.0)
        weight = known.to(output.dtype)
        weight = weight / weight.mean(-1, keepdim=True).clamp_min(1.0 / weight.shape[-1])
        return difference.square().sum(-1) * weight


def _stationary(follows_BCS: Float[Tensor, "B C S"]) -> Float[Tensor, "B C"]:
    """The share of each context in an endless string: pi = pi P with sum 1, where P leads from a context to
    the one that each token makes of it.
    """
    contexts, size = follows_BCS.shape[1:]
    context = torch.arange(contexts, device=follows_BCS.device)
    after_CS = (context.unsqueeze(1) * size + torch.arange(size, device=context.device)) % contexts
    moves_BCC = torch.zeros(len(follows_BCS), contexts, contexts, dtype=torch.float64, device=context.device)
    moves_BCC.scatter_add_(2, after_CS.expand_as(follows_BCS), follows_BCS)
    # One of the equations pi (P - 1) = 0 follows from the others; the sum takes its place.
    system = moves_BCC.mT - torch.eye(contexts, dtype=torch.float64, device=context.device)
    system[:, -1] = 1.0
    right = torch.zeros(contexts, dtype=torch.float64, device=context.device)
    right[-1] = 1.0
    found = torch.linalg.solve(system, right.expand(len(system), -1)).clamp_min(0.0)
    return found / found.sum(-1, keepdim=True)
