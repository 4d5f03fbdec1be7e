"""Programs on many words at once, every position of each: exact integers, on any device.

A position sees only what is before it, so words may be padded on the right, and they are read in tiles that
fit a cache: some short words at once, or a stretch of one, with what counts have come to carried over.

Axes: B word, T position, L position in a tile.
"""

from collections.abc import Iterable, Iterator, Sequence

import torch
from jaxtyping import Bool as Truth
from jaxtyping import Integer
from torch import Tensor

from lengthwise.crasp.batch_plan import most, plan
from lengthwise.crasp.batch_tile import Tiles, narrowest
from lengthwise.crasp.nodes import Bool, Ge, Node, in_order
from lengthwise.crasp.program import Program
from lengthwise.sequences import whole_numbers

NO_LETTER = -1
"""Stands at the position after the end, and in the padding behind it."""

LARGEST = 2**62
"""Sums of counts must stay below this."""

TILE, TILE_ON_GPU = 2**18, 2**24
"""At most so many positions are evaluated at a time, over all words."""

UNSPLIT = 32_700
"""At most so many if torch has several threads. It splits tensors of 2^15 numbers and more among them, and on
a busy machine they wait for each other longer than they work; local counts need some room for what is before
a tile.
"""

_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def accepts(
    program: Program, tokens: Integer[Tensor, "B T"], lengths: Integer[Tensor, "B"] | None = None
) -> Truth[Tensor, "B"]:
    """Whether each word is accepted; word b is the first ``lengths[b]`` of its tokens (all, if not given).

    What is behind the end of a word does not matter, but must be numbers of letters too.
    """
    if program.accept is None:
        raise ValueError("this program predicts symbols, it does not accept words")
    tokens = _words(tokens)
    words, width = tokens.shape
    if lengths is None:
        lengths = torch.full((words,), width, device=tokens.device)
    lengths = whole_numbers(lengths)
    if lengths.shape != (words,):
        raise ValueError(f"lengths must be {words} numbers, one a word, got shape {tuple(lengths.shape)}")
    if words and (int(lengths.min()) < 0 or int(lengths.max()) > width):
        raise ValueError(f"lengths must be between 0 and the number of tokens, {width}")
    ends = lengths.to(tokens.device, torch.long)
    if program.mode == "eos":
        tokens, read, lowest = _with_end(tokens, ends, len(program.alphabet)), ends, NO_LETTER
    else:
        read, lowest = ends - 1, 0
    held = torch.full((words,), program.empty, device=tokens.device)
    root, first, last = program.root(), 0, 0
    reader, tiles = _reader((root,), tokens, program.alphabet, lowest)
    for rows, start, letters_BL in tiles:
        length = letters_BL.shape[1]
        if start == 0:
            first, last = int(read[rows].min()), int(read[rows].max())
        if start + length <= first:
            reader.pass_over(letters_BL, start)
        elif start <= last:
            here = read[rows] - start
            inside = (here >= 0) & (here < length)
            at = here.clamp(0, length - 1).unsqueeze(1)
            found = reader.read(letters_BL, start)[root].gather(1, at).squeeze(1)
            held[rows] = torch.where(inside, found, held[rows])
    return held


def outputs(program: Program, tokens: Integer[Tensor, "B T"]) -> dict[str, Truth[Tensor, "B T"]]:
    """The value of every output of a program (``accept``, or its predictions by symbol) at every position."""
    roots = {name: one.node for name, one in program.outputs.items()}
    found = _gathered(roots.values(), _words(tokens), program.alphabet, 0)
    return {name: found[root] for name, root in roots.items()}


def node_values(
    wanted: Iterable[Node], tokens: Integer[Tensor, "B T"], alphabet: Sequence[str]
) -> dict[Node, Tensor]:
    """The values of some nodes at every position: truth values of formulas, integers of counts. ``NO_LETTER``
    among the tokens is none of the letters.
    """
    return _gathered(wanted, tokens, alphabet, NO_LETTER)


def _words(tokens: Tensor) -> Integer[Tensor, "B T"]:
    """Tokens of a batch of words, or what is wrong with them."""
    tokens = whole_numbers(tokens)
    if tokens.dim() != 2:
        raise ValueError(f"tokens must have two axes, words and positions, got shape {tuple(tokens.shape)}")
    return tokens


def _gathered(
    wanted: Iterable[Node], tokens: Tensor, alphabet: Sequence[str], lowest: int
) -> dict[Node, Tensor]:
    kinds = {node: torch.bool if isinstance(node, Bool) else torch.long for node in wanted}
    found = {
        node: torch.empty(tokens.shape, dtype=kind, device=tokens.device) for node, kind in kinds.items()
    }
    reader, tiles = _reader(kinds, tokens, alphabet, lowest)
    for rows, start, letters_BL in tiles:
        values = reader.read(letters_BL, start)
        for node, whole in found.items():
            whole[rows, start : start + letters_BL.shape[1]] = values[node]
    return found


def _reader(
    wanted: Iterable[Node], tokens: Tensor, alphabet: Sequence[str], lowest: int
) -> tuple[Tiles, Iterator[tuple[slice, int, Tensor]]]:
    """What reads tiles for the values of some nodes; the tiles, each with its words and its first position
    (from 0).
    """
    chosen, (words, width) = list(wanted), tokens.shape
    _check_sums(in_order(chosen), width)
    size = TILE if torch.get_num_threads() == 1 else min(TILE, UNSPLIT)
    size = TILE_ON_GPU if tokens.is_cuda else size
    high = max(1, size // max(1, width))
    tiles = (
        (slice(row, row + high), start, tokens[row : row + high, start : start + size])
        for row in range(0, words, high)
        for start in range(0, width, size)
    )
    checked = ((rows, start, _letters(tile, len(alphabet), lowest)) for rows, start, tile in tiles)
    return Tiles(plan(chosen, width, size), alphabet, width), checked


def _letters(tokens: Tensor, letters: int, lowest: int) -> Tensor:
    """Tokens as narrow integers; raises ``ValueError`` unless they are from the lowest to the last letter."""
    if tokens.dtype not in _WHOLE:
        raise ValueError(f"tokens must be whole numbers, int64 or narrower, got {tokens.dtype}")
    if not tokens.numel():
        return tokens.to(narrowest(letters))
    low, high = (int(end) for end in tokens.aminmax())
    if low < lowest or high >= letters:
        raise ValueError(f"tokens must be between {lowest} and {letters - 1}, got {low} to {high}")
    return tokens.to(narrowest(letters))


def _with_end(tokens: Tensor, lengths: Tensor, letters: int) -> Tensor:
    """Tokens as narrow integers with no letter behind the end of each word."""
    words, width = tokens.shape
    found = torch.full((words, width + 1), NO_LETTER, dtype=narrowest(letters), device=tokens.device)
    if tokens.numel():
        found[:, :width] = _letters(tokens, letters, 0)
    return found.scatter_(1, lengths.unsqueeze(1), NO_LETTER)


def _check_sums(order: Iterable[Node], width: int) -> None:
    """Raise ``ValueError`` unless 64 bits hold every sum."""
    for node in order:
        if isinstance(node, Ge):
            largest = sum(abs(alpha) * most(one, width) for one, alpha in node.terms)
            if largest >= LARGEST:
                raise ValueError(
                    f"coefficients times the length {width} exceed 2^62: evaluate word by word instead"
                )
