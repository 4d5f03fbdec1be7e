"""Strings with independent tokens whose probabilities are themselves drawn from a Dirichlet prior.

The prior keeps long strings informative: with fixed probabilities the law of large numbers would make
all long strings alike.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengthwise.sequences import BEFORE_START, Summary, check_length, residue_sizes
from lengthwise.tasks._interface import CountTask, check_together


def token_probabilities(
    batch: int, vocabulary: int, concentration: float, generator: torch.Generator
) -> Float[Tensor, "{batch} {vocabulary}"]:
    """One draw from the symmetric Dir(concentration, ...) for each string, in float64.

    Gamma(a) is Gamma(a + 1) times U^(1/a); in logarithms, so that a small concentration does not
    underflow to 0/0.
    """
    shape = torch.full((batch, vocabulary), concentration, dtype=torch.float64, device=generator.device)
    # The public torch.distributions.Gamma takes no generator.
    gamma = torch._standard_gamma(shape + 1, generator=generator)  # pyright: ignore[reportPrivateImportUsage]
    uniform = torch.rand(shape.shape, dtype=torch.float64, device=generator.device, generator=generator)
    return torch.softmax(gamma.log() + uniform.log() / shape, -1)


def sample_tokens(
    probabilities: Float[Tensor, "batch vocabulary"], length: int, generator: torch.Generator
) -> Int[Tensor, "batch {length}"]:
    """Independent tokens, by inversion of the distribution function."""
    uniform = torch.rand(
        (probabilities.shape[0], length), dtype=torch.float64, device=generator.device, generator=generator
    )
    # Summed along a leading axis: a scan of many short rows is slow on a GPU.
    thresholds = probabilities.mT.contiguous().cumsum(0)[:-1].mT.contiguous()
    return torch.searchsorted(thresholds, uniform, right=True)


def sample_multinomial(
    trials: Float[Tensor, "*batch"],
    probabilities: Float[Tensor, "*batch vocabulary"],
    generator: torch.Generator,
) -> Float[Tensor, "*batch vocabulary"]:
    """Exact multinomial counts, one conditional binomial a token, whatever the number of trials."""
    drawn, left, mass = [], trials, torch.ones_like(trials)
    for probability in probabilities.unbind(-1)[:-1]:
        share = (probability / mass).nan_to_num(0.0).clamp(0.0, 1.0)
        drawn.append(torch.binomial(left, share, generator=generator))
        left, mass = left - drawn[-1], mass - probability
    return torch.stack([*drawn, left], -1)


def sample_counts(
    probabilities: Float[Tensor, "batch vocabulary"],
    length: int | Int[Tensor, "batch"],
    generator: torch.Generator,
    *,
    period: int,
    locality: int,
) -> Summary:
    """The summary of a string of independent tokens, drawn without making the string.

    Given the probabilities, the suffix is independent of the far part, and far counts of different
    residues are independent multinomials.
    """
    device, batch = generator.device, probabilities.shape[0]
    if isinstance(length, int):
        check_length(length)
        window, length = min(length, locality + 1), torch.full((), length, device=device)
    else:
        window = locality + 1
    near = sample_tokens(probabilities, window, generator)
    near = torch.nn.functional.pad(near, (0, locality + 1 - window), value=BEFORE_START)
    inside = torch.arange(locality + 1, device=device) < length.unsqueeze(-1)
    sizes = residue_sizes(length - locality - 1, period).double()
    far = sample_multinomial(
        sizes.expand(batch, -1), probabilities.unsqueeze(1).expand(-1, period, -1), generator
    )
    return Summary(far.transpose(1, 2), torch.where(inside, near, BEFORE_START), length)


CONCENTRATION = "of the symmetric Dirichlet prior of token probabilities"


class DirichletTask(CountTask):
    """A task over {0, 1} whose strings have token probabilities of their own, drawn from the symmetric
    Dirichlet prior of its knob ``concentration``, and independent tokens.
    """

    concentration: float

    @property
    def alphabet(self) -> tuple[str, ...]:
        """The two tokens."""
        return ("0", "1")

    def sample(self, batch: int, length: int, generator: torch.Generator) -> Int[Tensor, "{batch} {length}"]:
        """Strings with their own token probabilities."""
        self.check_length(length)
        check_together(batch, length)
        return sample_tokens(self._probabilities(batch, generator), length, generator)

    def sample_counts(
        self,
        batch: int,
        length: int | Int[Tensor, "{batch}"],
        generator: torch.Generator,
        *,
        period: int = 1,
        locality: int = 0,
    ) -> Summary:
        """Summaries of strings with their own token probabilities."""
        self.check_length(length if isinstance(length, int) else int(length.min()))
        check_together(batch, period * self.vocabulary + locality)
        probabilities = self._probabilities(batch, generator)
        return sample_counts(probabilities, length, generator, period=period, locality=locality)

    def _probabilities(self, batch: int, generator: torch.Generator) -> Float[Tensor, "{batch} 2"]:
        return token_probabilities(batch, 2, self.concentration, generator)
