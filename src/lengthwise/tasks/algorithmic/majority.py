"""Majority over an alphabet of letters, without a tie at the top.

Axes: B batch, N letters of a string, K letters of the alphabet, C counts of one letter.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from string import ascii_lowercase
from typing import ClassVar

import torch
from jaxtyping import Float64, Int
from torch import Tensor
from torch.nn.functional import pad

from lengthwise._checks import whole
from lengthwise.tasks._interface import Theory
from lengthwise.tasks._ordering import shuffled
from lengthwise.tasks._prediction import standing
from lengthwise.tasks._streams import StreamTask, chosen, uniform


@dataclass(frozen=True, kw_only=True)
class MajorityTask(StreamTask):
    """The most frequent letter. Strings are uniform among those of their length in which one letter is more
    frequent than every other: what is left of independent, equally likely letters without the ties.

    Most short strings have a tie (25 of 26 of length 2), so they are not drawn until there is none. The
    counts are drawn instead, one letter after the other, each exactly as likely as the strings that it
    leaves possible are many, and the letters then shuffled.
    """

    name: ClassVar[str] = "majority"
    title: ClassVar[str] = "majority"

    size: int = field(default=26, metadata={"about": "how many letters there are, from a on"})

    def __post_init__(self) -> None:
        whole(self.size, "size", 2, len(ascii_lowercase))

    @property
    def letters(self) -> tuple[str, ...]:
        """From a on."""
        return tuple(ascii_lowercase[: self.size])

    @property
    def theory(self) -> Theory:
        """Counts of all letters, compared in pairs."""
        return standing(True, True, 1, 0)

    def longest_answer(self, length: int) -> int:
        """One letter."""
        return 1

    def chances(self, batch: int, high: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """For which letter is the most frequent and the count of each, and for the order of the letters."""
        return uniform(batch, self.size, generator=generator), uniform(batch, high, generator=generator)

    def inputs(self, *noise: Tensor, high: int) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B"]]:
        """Letters."""
        lengths, counts, order = noise
        up_to_BK = self._counts(lengths, counts, high).cumsum(1)
        place_BN = torch.arange(high, device=lengths.device).expand(len(lengths), -1).contiguous()
        letters_BN = torch.searchsorted(up_to_BK, place_BN, right=True) + 1
        return shuffled(letters_BN, lengths, order), lengths

    def answer(
        self, inputs: Int[Tensor, "B N"], sizes: Int[Tensor, "B"]
    ) -> tuple[Int[Tensor, "B W"], Int[Tensor, "B"]]:
        """The most frequent letter, the first of them among equals."""
        inside = torch.arange(inputs.shape[1], device=inputs.device) < sizes.unsqueeze(1)
        none = torch.zeros(len(inputs), self.vocabulary, dtype=torch.int64, device=inputs.device)
        often = none.scatter_add_(1, inputs, inside.long())
        return often.argmax(1, keepdim=True), torch.ones_like(sizes)

    def _counts(
        self, lengths: Int[Tensor, "B"], chances: Float64[Tensor, "B draws"], high: int
    ) -> Int[Tensor, "B K"]:
        """How often each letter occurs."""
        shares_KNC, below_KMNC, most_NM = _tables(self.size, high, lengths.device)
        winner_B, most_B, *chances_KB = chances.unbind(1)
        most_B = _drawn(most_NM.index_select(0, lengths), most_B)
        fewer_BC = (torch.arange(shares_KNC.shape[2], device=lengths.device) < most_B.unsqueeze(1)).double()
        left_B, counts = lengths - most_B, []
        for letters, chance_B in zip(range(self.size - 1, 1, -1), chances_KB, strict=True):
            share_BC = shares_KNC[letters].index_select(0, left_B)
            rest_BC = below_KMNC[letters - 1][most_B, high - left_B]
            counts.append(_drawn(share_BC * rest_BC * fewer_BC, chance_B))
            left_B = left_B - counts[-1]
        others_BK = torch.stack([*counts, left_B], 1)
        letter_K = torch.arange(self.size, device=lengths.device)
        winner_B1 = chosen(winner_B, self.size).unsqueeze(1)
        other_BK = (letter_K - (letter_K > winner_B1).long()).clamp_max(self.size - 2)
        return torch.where(letter_K == winner_B1, most_B.unsqueeze(1), others_BK.gather(1, other_BK))


def _drawn(weights: Float64[Tensor, "B C"], chances: Float64[Tensor, "B"]) -> Int[Tensor, "B"]:
    """Columns, each with the probability that its weight has in its row."""
    up_to = weights.cumsum(1)
    return torch.searchsorted(up_to, chances.unsqueeze(1) * up_to[:, -1:], right=True).squeeze(1)


@lru_cache(maxsize=16)
def _tables(size: int, high: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Of independent letters, each equally likely:

    - ``shares[k, r, c]``: the probability that among r letters of k kinds there are c of the first kind;
    - ``below[k, m, high - r, c]``: that among r - c letters of k kinds there are fewer than m of every kind;
      0 if c is larger than r;
    - ``most[n, m]``: that among n letters of ``size`` kinds there are m of the first kind, and fewer of every
      other.

    All are sums of positive terms, so every one is as exact as the rounding of floats; a probability below
    10^-300 may become 0.
    """
    counts = (high + 1) // 2  # of a letter that is less frequent than another
    kinds = torch.arange(1, size + 1, dtype=torch.float64)
    shares = torch.zeros(size + 1, high + 1, high + 1, dtype=torch.float64)
    shares[1:, 0, 0] = 1.0
    for total in range(1, high + 1):
        shares[1:, total] = shares[1:, total - 1] * (1 - 1 / kinds).unsqueeze(1)
        shares[1:, total, 1:] += shares[1:, total - 1, :-1] / kinds.unsqueeze(1)
    below = torch.zeros(size, high + 1, high + 1, dtype=torch.float64)
    below[0, :, 0] = 1.0
    for letters in range(1, size):
        for count in range(counts):
            rest = below[letters - 1, count + 1 :, : high + 1 - count]
            below[letters, count + 1 :, count:] += shares[letters, count:, count] * rest
    most = torch.zeros(high + 1, high + 1, dtype=torch.float64)
    for count in range(1, high + 1):
        most[count:, count] = shares[size, count:, count] * below[size - 1, count, : high + 1 - count]
    # Windows of the reversed rows share their memory, where copies would take high times as much.
    windows = pad(below.flip(2), (0, counts - 1)).to(device).unfold(2, counts, 1)
    return shares[:, :, :counts].contiguous().to(device), windows, most.to(device)
