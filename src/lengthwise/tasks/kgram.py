"""In-context k-gram: what followed the last k tokens before (Izzo, Nichani and Lee, ICLR 2026)."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lengthwise.tasks import _dirichlet
from lengthwise.tasks._checks import positive, whole
from lengthwise.tasks._interface import SequentialTask, Theory

Data = Literal["markov", "dirichlet", "uniform"]


@dataclass(frozen=True, kw_only=True)
class KGramTask(SequentialTask):
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
        whole(self.k, "k", 1)
        whole(self.vocabulary, "vocabulary", 1)
        if self.data not in ("markov", "dirichlet", "uniform"):
            raise ValueError(f"data must be markov, dirichlet or uniform, got {self.data!r}")
        object.__setattr__(self, "concentration", positive(self.concentration, "concentration"))

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
        rows = {"markov": self.vocabulary**self.k, "dirichlet": 1, "uniform": 0}[self.data]
        size, alpha = self.vocabulary, self.concentration
        chances = _dirichlet.token_probabilities(batch * rows, size, alpha, generator)
        shape = length, batch
        uniform = torch.rand(shape, dtype=torch.float64, device=generator.device, generator=generator)
        return uniform.mT, chances.unflatten(0, (batch, rows))

    def strings(self, *noise: Tensor) -> Int[Tensor, "batch length"]:
        """The strings that this noise makes, one after the other token by token, all of them at once."""
        uniform, chances = noise
        size = self.vocabulary
        if self.data == "uniform":
            return (uniform * size).long().clamp_max(size - 1)
        thresholds = chances.cumsum(-1)[..., :-1]
        if self.data == "dirichlet":
            return (uniform.unsqueeze(-1) >= thresholds).sum(-1)
        contexts = size**self.k
        first = min(self.k, uniform.shape[1])
        tokens = [*(uniform[:, :first] * size).long().clamp_max(size - 1).unbind(1)]
        state = torch.zeros_like(tokens[0])
        for token in tokens:
            state = (state * size + token) % contexts
        for chance in uniform[:, first:].unbind(1):
            row = thresholds.gather(1, state.view(-1, 1, 1).expand(-1, 1, size - 1)).squeeze(1)
            tokens.append((chance.unsqueeze(-1) >= row).sum(-1))
            state = (state * size + tokens[-1]) % contexts
        return torch.stack(tokens, 1)

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
