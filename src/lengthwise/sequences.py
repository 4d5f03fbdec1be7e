"""The statistics of a string that everything rests on: counts, prefix counts, suffixes.

Positions are counted from 1, as in the papers, and position i has residue ``i % period``. A *type* is a
pair (token, residue). One layer of a limit transformer sees a string only through its ``Summary``: the
counts of types far from the end, the suffix near it, and the length.

All functions take any number of leading batch axes and work on any device.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Integer, Real
from torch import Tensor

from lengthwise._checks import whole
from lengthwise._messages import shown

BEFORE_START = -1
"""Stands in a suffix for positions before the first one, where the string is shorter than the window."""

PIECE, PIECE_ON_GPU = 2**16, 2**26
"""How many tokens are counted at once."""

MOST_TYPES = 2**24
"""A summary counts at most so many types."""

LONGEST_WRITTEN = 2**28
"""Strings up to this length are written out from their summaries."""

LARGEST_SEED = 2**63 - 1
"""Random streams take seeds up to this."""

LONGEST = 2**53
"""Counts travel as float64 where they are sampled: every integer up to here is exact."""


@dataclass(frozen=True)
class Summary:
    """What one layer with this period and locality can see of a string x of length T.

    - ``counts[..., s, r]``: number of positions j <= T - locality - 1 with token s and residue r (the far
      part; integers, possibly held as float64);
    - ``suffix[..., t]``: the token at distance t = 0..locality from the end, ``BEFORE_START`` if T <= t;
    - ``length``: T, broadcastable to the batch axes.
    """

    counts: Real[Tensor, "*batch vocabulary period"]
    suffix: Integer[Tensor, "*batch window"]
    length: Integer[Tensor, "*#batch"]

    @property
    def locality(self) -> int:
        """The largest distance from the end that the suffix holds."""
        return self.suffix.shape[-1] - 1

    @property
    def period(self) -> int:
        """The number of residues."""
        return self.counts.shape[-1]

    def token_counts(self) -> Real[Tensor, "*batch vocabulary"]:
        """How often each token occurs in the whole string, near part included."""
        return self.type_counts().sum(-1)

    def type_counts(self) -> Real[Tensor, "*batch vocabulary period"]:
        """How often each type occurs in the whole string, near part included."""
        vocabulary, period = self.counts.shape[-2:]
        distance = torch.arange(self.suffix.shape[-1], device=self.suffix.device)
        residue = (self.length.unsqueeze(-1) - distance) % period
        tokens = torch.arange(vocabulary, device=self.suffix.device)
        residues = torch.arange(period, device=self.suffix.device)
        is_token = self.suffix.unsqueeze(-1) == tokens
        is_residue = (residue.unsqueeze(-1) == residues).expand(*is_token.shape[:-1], period)
        near = torch.einsum("...ws,...wr->...sr", is_token.double(), is_residue.double())
        return self.counts + near.to(self.counts.dtype)

    def folded(self, period: int) -> "Summary":
        """The same for a period that divides this one: residues that it does not tell apart, added."""
        assert self.period % period == 0
        if period == self.period:
            return self
        return Summary(self.counts.unflatten(-1, (-1, period)).sum(-2), self.suffix, self.length)


def check_length(length: int, name: str = "length") -> int:
    """Return a length that is a whole number from 1 to ``LONGEST``, or say what is wrong with it."""
    if isinstance(length, bool) or not isinstance(length, int):
        raise ValueError(f"{name} must be a whole number, got {shown(length)}")
    if not 1 <= length <= LONGEST:
        raise ValueError(f"{name} must be between 1 and 2^53, got {shown(length)}")
    return length


def check_seed(seed: int) -> int:
    """Return a seed that random streams take, or say what is wrong with it."""
    return whole(seed, "seed", 0, LARGEST_SEED)


def _holds_arrays(given: object) -> bool:
    """Whether something is an array of NumPy's or a list with one in it."""
    if isinstance(given, list | tuple):
        return any(map(_holds_arrays, given))
    return isinstance(given, np.ndarray)


def whole_numbers(
    tokens: Tensor | np.ndarray | Sequence[int], device: torch.device | str | None = None
) -> Integer[Tensor, "..."]:
    """Tokens, however they are given, as a tensor of whole numbers; ``ValueError`` if they are not that."""
    try:
        if not isinstance(tokens, np.ndarray) and _holds_arrays(tokens):
            tokens = np.array(tokens)  # which torch would do with a warning
        found = torch.as_tensor(tokens, device=device)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ValueError(f"tokens must be an array of whole numbers, got {shown(tokens)}") from None
    if found.numel() == 0:
        return found.long()  # an empty list is of no kind
    if found.is_floating_point() or found.is_complex() or found.dtype == torch.bool:
        raise ValueError(f"tokens must be whole numbers, got {found.dtype}")
    # Torch computes little with the wide unsigned kinds; what does not fit becomes negative, and is refused.
    return found.long() if found.dtype in (torch.uint16, torch.uint32, torch.uint64) else found


def check_tokens(tokens: Integer[Tensor, "*batch length"], vocabulary: int) -> None:
    """Raise ``ValueError`` unless every token is one of 0 .. vocabulary - 1."""
    if tokens.numel() == 0:
        return
    low, high = (int(value) for value in tokens.aminmax())
    if low < 0 or high >= vocabulary:
        raise ValueError(
            f"tokens must be between 0 and {vocabulary - 1} (vocabulary {vocabulary}), got {low} to {high}"
        )


def types(
    tokens: Integer[Tensor, "*batch length"], period: int, before: int = 0
) -> Integer[Tensor, "*batch length"]:
    """The type of every position as one number, ``token * period + residue``, of tokens that stand after
    ``before`` others.
    """
    positions = torch.arange(before + 1, before + tokens.shape[-1] + 1, device=tokens.device)
    return tokens.long() * period + positions % period


def counts(
    tokens: Integer[Tensor, "*batch length"], vocabulary: int, period: int = 1
) -> Integer[Tensor, "*batch {vocabulary} {period}"]:
    """Number of positions with each (token, residue).

    One pass, in pieces that stay in a cache: beside the tokens it needs no memory that grows with them.
    """
    batch, size = tokens.shape[:-1], vocabulary * period
    rows = tokens.reshape(batch.numel(), tokens.shape[-1])
    first = size * torch.arange(batch.numel(), device=tokens.device).unsqueeze(-1)
    flat = torch.zeros(batch.numel() * size, dtype=torch.long, device=tokens.device)
    piece = max(1, (PIECE_ON_GPU if tokens.is_cuda else PIECE) // max(1, batch.numel()))
    for start in range(0, tokens.shape[-1], piece):
        part = rows[:, start : start + piece]
        check_tokens(part, vocabulary)
        kinds = types(part, period, start) if period > 1 else part
        kinds = kinds + first if batch.numel() > 1 else kinds
        flat += torch.bincount(kinds.reshape(-1), minlength=batch.numel() * size)
    return flat.reshape(*batch, vocabulary, period)


def prefix_counts(
    tokens: Integer[Tensor, "*batch length"], vocabulary: int, period: int = 1
) -> Integer[Tensor, "*batch length {vocabulary} {period}"]:
    """Counts of every prefix: row i - 1 (from 0) holds the counts of positions 1..i."""
    check_tokens(tokens, vocabulary)
    size = vocabulary * period
    indicator = torch.nn.functional.one_hot(types(tokens, period), size)
    return indicator.cumsum(-2).unflatten(-1, (vocabulary, period))


def suffix(tokens: Integer[Tensor, "*batch length"], window: int) -> Integer[Tensor, "*batch {window}"]:
    """The last ``window`` tokens by distance from the end: index 0 is the last one."""
    near = tokens[..., max(0, tokens.shape[-1] - window) :].flip(-1).long()
    return torch.nn.functional.pad(near, (0, window - near.shape[-1]), value=BEFORE_START)


def residue_sizes(length: Integer[Tensor, "*batch"], period: int) -> Integer[Tensor, "*batch {period}"]:
    """How many of the positions 1..length have each residue; none if the length is negative."""
    length = length.clamp_min(0).unsqueeze(-1)
    residues = torch.arange(period, device=length.device)
    return length // period + ((residues >= 1) & (residues <= length % period)).long()


def summarize(
    tokens: Integer[Tensor, "*batch length"], vocabulary: int, period: int = 1, locality: int = 0
) -> Summary:
    """One pass over the tokens, after which one layer needs nothing else of them."""
    tokens = whole_numbers(tokens)
    if tokens.dim() == 0:
        raise ValueError("tokens must have at least one axis, the positions, got a single number")
    whole(vocabulary, "vocabulary", 1, MOST_TYPES)
    whole(period, "period", 1, MOST_TYPES // vocabulary)
    whole(locality, "locality", 0, LONGEST_WRITTEN)
    check_length(tokens.shape[-1])
    far, near = tokens.tensor_split([max(0, tokens.shape[-1] - locality - 1)], -1)
    check_tokens(near, vocabulary)
    return Summary(
        counts(far, vocabulary, period),
        suffix(tokens, locality + 1),
        torch.full((), tokens.shape[-1], device=tokens.device),
    )


def string_of(summary: Summary) -> Integer[Tensor, "length"]:
    """A string with this summary (one without batch axes): far tokens of each residue in order, then the
    suffix.
    """
    vocabulary, period = summary.counts.shape
    length = int(summary.length)
    if length > LONGEST_WRITTEN:
        raise ValueError(f"a string of {length} tokens is too long to write out: use its summary")
    near = min(length, summary.locality + 1)
    tokens = torch.empty(length, dtype=torch.long)
    for residue in range(period):
        first = (residue - 1) % period
        column = torch.repeat_interleave(torch.arange(vocabulary), summary.counts[:, residue].cpu().long())
        tokens[first : length - near : period] = column
    tokens[length - near :] = summary.suffix[:near].cpu().flip(0)
    return tokens


def draw_summary(vocabulary: int, period: int, locality: int, length: int, seed: int) -> Summary:
    """The summary of a random string: token probabilities uniform on the simplex, then independent tokens."""
    random = np.random.default_rng(seed)
    drawn = draw_summaries(random.dirichlet(np.ones(vocabulary), 1), period, locality, length, random)
    return Summary(drawn.counts[0], drawn.suffix[0], drawn.length)


def draw_summaries(
    probabilities: Float[np.ndarray, "B S"],
    period: int,
    locality: int,
    length: int,
    random: np.random.Generator,
) -> Summary:
    """The summaries of random strings of independent tokens, each with its own probabilities.

    Nothing is drawn token by token, so any length up to ``LONGEST`` costs the same.
    """
    check_length(length)
    near = min(length, locality + 1)
    sizes = residue_sizes(torch.tensor(length - near), period).tolist()
    columns = [random.multinomial(size, probabilities) for size in sizes]
    steps = probabilities.cumsum(-1)[:, None, :-1]
    tokens = torch.from_numpy((random.random((len(probabilities), near, 1)) >= steps).sum(-1))
    padded = torch.nn.functional.pad(tokens, (0, locality + 1 - near), value=BEFORE_START)
    return Summary(torch.from_numpy(np.stack(columns, -1)), padded, torch.tensor(length))
