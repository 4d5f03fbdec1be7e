"""Programs on many words at once, every position of each: exact integers, on any device.

A position sees only what is before it, so words may be padded on the right, and they are read in stretches
that fit a cache, with what counts have come to carried over.

Axes: B word, T position, L position in a stretch.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from jaxtyping import Bool as Truth
from jaxtyping import Integer
from torch import Tensor

from lengthwise.crasp.nodes import And, Bool, Count, Ge, Mod, Node, Not, Or, Sym, in_order
from lengthwise.crasp.program import Program

NO_LETTER = -1
"""Stands at the position after the end, and in the padding behind it."""

LARGEST = 2**62
"""Sums of counts must stay below this."""

STRETCH, STRETCH_ON_GPU = 2**16, 2**24
"""About so many positions are evaluated at a time, over all words."""


def accepts(
    program: Program, tokens: Integer[Tensor, "B T"], lengths: Integer[Tensor, "B"] | None = None
) -> Truth[Tensor, "B"]:
    """Whether each word is accepted; word b is the first ``lengths[b]`` of its tokens (all, if not given)."""
    if program.accept is None:
        raise ValueError("this program predicts symbols, it does not accept words")
    words, width = tokens.shape
    if lengths is None:
        lengths = torch.full((words,), width, device=tokens.device)
    if words and (int(lengths.min()) < 0 or int(lengths.max()) > width):
        raise ValueError(f"lengths must be between 0 and the number of tokens, {width}")
    check_tokens(program, tokens)
    if program.mode == "eos":
        tokens = torch.nn.functional.pad(tokens, (0, 1), value=NO_LETTER)
        tokens = tokens.scatter(1, lengths.unsqueeze(1), NO_LETTER)
    held = torch.full((words,), program.empty, device=tokens.device)
    read = lengths if program.mode == "eos" else lengths - 1
    root = program.root()
    for start, values in stretches((root,), tokens, program.alphabet):
        held_BL = values[root]
        inside = (read >= start) & (read < start + held_BL.shape[1])
        here = (read - start).clamp(0, held_BL.shape[1] - 1)
        held = torch.where(inside, held_BL.gather(1, here.unsqueeze(1)).squeeze(1), held)
    return held


def outputs(program: Program, tokens: Integer[Tensor, "B T"]) -> dict[str, Truth[Tensor, "B T"]]:
    """The value of every output of a program (``accept``, or its predictions by symbol) at every position."""
    check_tokens(program, tokens)
    roots = {name: one.node for name, one in program.outputs.items()}
    found = node_values(roots.values(), tokens, program.alphabet)
    return {name: found[root] for name, root in roots.items()}


def node_values(
    wanted: Iterable[Node], tokens: Integer[Tensor, "B T"], alphabet: Sequence[str]
) -> dict[Node, Tensor]:
    """The values of some nodes at every position: truth values of formulas, integers of counts."""
    chosen = list(dict.fromkeys(wanted))
    parts = [values for _, values in stretches(chosen, tokens, alphabet)]
    if not parts:
        kind = {node: torch.bool if isinstance(node, Bool) else torch.long for node in chosen}
        return {node: torch.empty(tokens.shape, dtype=kind[node], device=tokens.device) for node in chosen}
    return {node: torch.cat([part[node] for part in parts], 1) for node in chosen}


def stretches(
    wanted: Iterable[Node], tokens: Integer[Tensor, "B T"], alphabet: Sequence[str]
) -> Iterator[tuple[int, dict[Node, Tensor]]]:
    """The values of some nodes, a stretch of positions at a time, each with its first position (from 0); what
    is below them is freed as soon as it was used. ``NO_LETTER`` is none of the letters.
    """
    chosen = dict.fromkeys(wanted)
    order = in_order(chosen)
    words, width = tokens.shape
    _check_sums(order, width)
    uses = Counter(child for node in order for child in node.children)
    size = max(1, (STRETCH_ON_GPU if tokens.is_cuda else STRETCH) // max(1, words))
    carried: dict[Node, Tensor] = {}
    for start in range(0, width, size):
        read_BL = tokens[:, start : start + size]
        values: dict[Node, Tensor] = {}
        left = Counter(uses)
        for node in order:
            if isinstance(node, Count):
                values[node] = _counted(node, values[node.operand], carried)
            else:
                values[node] = _value(node, values, read_BL, start, alphabet)
            for child in node.children:
                left[child] -= 1
                if not left[child] and child not in chosen:
                    del values[child]
        yield start, values


def check_tokens(program: Program, tokens: Tensor) -> None:
    """Raise ``ValueError`` unless the tokens are numbers of letters of the program."""
    if tokens.is_floating_point() or tokens.is_complex() or tokens.dtype == torch.bool:
        raise ValueError(f"tokens must be whole numbers, got {tokens.dtype}")
    if tokens.numel():
        low, high = (int(end) for end in tokens.aminmax())
        if low < 0 or high >= len(program.alphabet):
            raise ValueError(f"tokens must be between 0 and {len(program.alphabet) - 1}, got {low} to {high}")


def _check_sums(order: Iterable[Node], length: int) -> None:
    """Raise ``ValueError`` unless 64 bits hold every sum."""
    for node in order:
        if isinstance(node, Ge):
            most = length * sum(abs(alpha) for _, alpha in node.terms) + abs(node.constant)
            if most >= LARGEST:
                raise ValueError(
                    f"coefficients times the length {length} exceed 2^62: evaluate word by word instead"
                )


def _value(
    node: Node, values: Mapping[Node, Tensor], read_BL: Tensor, start: int, alphabet: Sequence[str]
) -> Tensor:
    if isinstance(node, Sym):
        return read_BL == alphabet.index(node.letter)
    if isinstance(node, Mod):
        place = torch.arange(start + 1, start + read_BL.shape[1] + 1, device=read_BL.device)
        return (place % node.modulus == node.residue).expand(read_BL.shape)
    if isinstance(node, Not):
        return ~values[node.operand]
    if isinstance(node, And | Or):
        first, *others = (values[operand] for operand in node.operands)
        for other in others:
            first = first & other if isinstance(node, And) else first | other
        return first
    if isinstance(node, Ge):
        return _compare(node, values)
    return torch.ones_like(read_BL, dtype=torch.bool)


def _counted(node: Count, held_BL: Tensor, carried: dict[Node, Tensor]) -> Tensor:
    """A count over the stretch; ``carried`` holds its total before, or the last values of its operand."""
    if node.distances is None:
        total_BL = held_BL.cumsum(1)
        if node in carried:
            total_BL += carried[node]
        carried[node] = total_BL[:, -1:].clone()
        return total_BL
    if node.distances == (0,):
        return held_BL.long()
    reach, length = node.distances[-1], held_BL.shape[1]
    before = carried.get(node)
    if before is None:
        before = torch.zeros(len(held_BL), reach, dtype=torch.bool, device=held_BL.device)
    longer = torch.cat([before, held_BL], 1)
    carried[node] = longer[:, length:]
    total_BL = torch.zeros(held_BL.shape, dtype=torch.long, device=held_BL.device)
    for distance in node.distances:
        total_BL += longer[:, reach - distance : reach - distance + length]
    return total_BL


def _compare(node: Ge, values: Mapping[Node, Tensor]) -> Tensor:
    """The sum over positive coefficients against that over negative ones, so that few need a product."""
    sides: list[Tensor | None] = [None, None]
    for one, alpha in node.terms:
        term = values[one] if abs(alpha) == 1 else values[one] * abs(alpha)
        side = sides[alpha < 0]
        sides[alpha < 0] = term if side is None else side + term
    plus, minus = sides
    if minus is None:
        assert plus is not None
        return plus >= -node.constant
    if plus is None:
        return minus <= node.constant
    return plus >= minus if node.constant == 0 else plus - minus >= -node.constant
