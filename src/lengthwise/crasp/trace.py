"""What a program sees as it reads a word: every named part at every position."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lengthwise.crasp.batch import NO_LETTER, node_values
from lengthwise.crasp.nodes import Bool, Count, Ge, Node
from lengthwise.crasp.printer import show
from lengthwise.crasp.program import Program


@dataclass(frozen=True)
class Trace:
    """Rows of values by position: ``letters`` at each (None at the end mark of "eos"), and for each part its
    text, whether it is a count, and its values.
    """

    letters: tuple[str | None, ...]
    parts: tuple[str, ...]
    counts: tuple[bool, ...]
    values: tuple[tuple[int, ...], ...]


def trace(program: Program, word: str | Sequence[str] | Sequence[int]) -> Trace:
    """Counts, comparisons, named formulas and outputs of a program on a word, inner ones first."""
    symbols = program.symbols(word)
    letters: list[str | None] = [program.alphabet[symbol] for symbol in symbols]
    if program.mode == "eos":
        symbols, letters = [*symbols, NO_LETTER], [*letters, None]
    own = {one.node: name for name, one in (*program.names.items(), *program.outputs.items())}
    chosen = [node for node in program.nodes if isinstance(node, Count | Ge) or node in own]
    tokens = torch.tensor(symbols, dtype=torch.long).reshape(1, -1)
    found = node_values(chosen, tokens, program.alphabet)
    return Trace(
        tuple(letters),
        tuple(_title(node, own) for node in chosen),
        tuple(isinstance(node, Count) for node in chosen),
        tuple(tuple(int(value) for value in found[node][0].tolist()) for node in chosen),
    )


def _title(node: Node, own: dict[Bool, str]) -> str:
    assert isinstance(node, Bool | Count)
    text = show(node)
    return f"{own[node]} = {text}" if isinstance(node, Bool) and node in own else text
