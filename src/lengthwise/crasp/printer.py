"""C-RASP programs and expressions as text, in the syntax that ``lengthwise.crasp.syntax`` reads.

The text of a program parses back to the same nodes. A part that is long, or that is used more than once and
not short, gets a name and stands in the text once, so that the text is linear in the size of the program.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from lengthwise.crasp.builder import Formula
from lengthwise.crasp.expressions import RESERVED, SPECIAL
from lengthwise.crasp.nodes import FALSE, And, Bool, Count, Ge, Mod, Node, Not, Or, Sym, in_order
from lengthwise.crasp.program import Program
from lengthwise.crasp.sums import Pair, Texts, compared, equated, integer, paired
from lengthwise.crasp.tokens import LARGEST, MOST_DIGITS, MOST_DISTANCES, quoted

LONGEST_SHOWN = 2000
"""``show`` writes ``...`` for parts of an expression that are longer."""

_LONGEST_PART = 80
_LONGEST_SHARED = 24
_SHORT_SUM = 3

# How tightly the text of a node holds together.
_JOINED, _COMPARED, _PREFIXED, _WHOLE = range(4)
_Text = tuple[str, int]
_Piece = Bool | Pair


def show(node: Bool | Count) -> str:
    """One formula or count as one expression; parts of more than 2000 characters are written as ``...``."""
    texts: dict[Node, _Text] = {}
    for one in in_order([node]):
        text, strength = _text(one, _pieces(one, lambda _: True), texts)
        texts[one] = (text, strength) if one is node or len(text) <= LONGEST_SHOWN else ("...", _WHOLE)
    return texts[node][0]


def text_of(program: Program) -> str:
    """A program as text that ``parse`` reads; ``ValueError`` if it holds numbers too large for the syntax."""
    _check_size(program.nodes)
    lines = ["%alphabet " + " ".join(map(quoted, program.alphabet))]
    if program.mode == "eos":
        lines.append("%mode eos")
    if program.accepts_empty is not None:
        lines.append(f"%empty {str(program.accepts_empty).lower()}")
    definitions, texts = _named(program)
    lines += definitions
    for name, one in program.outputs.items():
        left = "accept" if program.accept is not None else f"NEXT[{quoted(name)}]"
        lines.append(f"{left} = {texts[one.node][0]}")
    return "\n".join(lines) + "\n"


def _check_size(nodes: Iterable[Node]) -> None:
    for node in nodes:
        numbers = node.data if isinstance(node, Ge | Mod | Count) and node.data else ()
        limit = LARGEST - 1 if isinstance(node, Ge) else LARGEST
        if any(abs(number) >= limit for number in numbers):
            raise ValueError(
                f"a number has more than {MOST_DIGITS} digits: the text syntax has no such numbers"
            )
        if isinstance(node, Count) and len(numbers) > MOST_DISTANCES:
            raise ValueError(f"a count has more than {MOST_DISTANCES} distances: the text syntax does not")


def _named(program: Program) -> tuple[list[str], dict[Node, _Text]]:
    """Definitions of names, in order, and what stands for each node where it is used."""
    roots = [one.node for one in program.outputs.values()]
    own = _own_names(program)
    # A comparison that has a name stays alone; so does a long one that is used more than once, which would
    # otherwise be written out at each use.
    degrees = Counter(child for node in program.nodes for child in node.children)
    joins = {n for n in program.nodes if n not in own and (degrees[n] == 1 or len(n.children) <= _SHORT_SUM)}
    pieces = {node: _pieces(node, joins.__contains__) for node in program.nodes}
    uses = Counter[Node](roots)
    for node in reversed(program.nodes):
        if uses[node]:
            uses.update(_mentioned(node, pieces[node]))
    outputs = {node for node in roots if uses[node] == 1}
    fresh = _Fresh(program.names)
    definitions: list[str] = []
    texts: dict[Node, _Text] = {}
    for node in program.nodes:
        if not uses[node]:
            continue
        text, strength = _text(node, pieces[node], texts)
        long = len(text) > (_LONGEST_SHARED if uses[node] > 1 else _LONGEST_PART)
        if node not in outputs and (node in own or long):
            name = own.get(node) or fresh.name("c" if isinstance(node, Count) else "f")
            definitions.append(f"{name} = {text}")
            text, strength = name, _WHOLE
        texts[node] = text, strength
    return definitions, texts


class _Fresh:
    """Names that nothing has."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._numbers = Counter[str]()

    def name(self, letter: str) -> str:
        while True:
            self._numbers[letter] += 1
            found = f"{letter}{self._numbers[letter]}"
            if found not in self._taken:
                return found


def _own_names(program: Program) -> dict[Node, str]:
    """The names that a program gives, to formulas that are not names or letters themselves."""
    own: dict[Node, str] = {}
    for name, value in program.names.items():
        readable = re.fullmatch(r"[^\W\d]\w*", name) and name not in RESERVED | SPECIAL
        if readable and isinstance(value, Formula) and value.node.children and value.node is not FALSE:
            own.setdefault(value.node, name)
    return own


def _pieces(node: Node, joins: Callable[[Bool], bool]) -> list[_Piece]:
    """The operands of a conjunction or disjunction, with opposite comparisons joined where they may be."""
    if not isinstance(node, And | Or):
        return []
    found: list[_Piece] = []
    operands = node.operands
    place = 0
    while place < len(operands):
        one, other = operands[place], operands[min(place + 1, len(operands) - 1)]
        pair = paired(one, other, "==" if isinstance(node, And) else "!=")
        if pair is not None and joins(one) and joins(other):
            found.append(pair)
            place += 2
        else:
            found.append(one)
            place += 1
    return found


def _mentioned(node: Node, pieces: Sequence[_Piece]) -> Sequence[Node]:
    """The nodes whose text is part of the text of a node."""
    if not pieces:
        return node.children
    return [one for piece in pieces for one in (piece.counts if isinstance(piece, Pair) else (piece,))]


def _text(node: Node, pieces: Sequence[_Piece], texts: Texts) -> _Text:
    """A node as text, from the texts of what it is made of."""
    match node:
        case Sym():
            return quoted(node.letter), _WHOLE
        case Mod():
            return f"i % {integer(node.modulus)} == {integer(node.residue)}", _COMPARED
        case Not():
            return ("false", _WHOLE) if node is FALSE else ("!" + _inside(node.operand, texts), _PREFIXED)
        case Ge():
            return compared(node, texts), _COMPARED
        case Count():
            return f"#{_guard(node.distances)} {_inside(node.operand, texts)}", _PREFIXED
        case And() | Or():
            parts = [_part(piece, texts) for piece in pieces]
            joint = " && " if isinstance(node, And) else " || "
            return joint.join(parts), _JOINED if len(parts) > 1 else _COMPARED
        case _:
            return "true", _WHOLE


def _inside(node: Node, texts: Texts, least: int = _PREFIXED) -> str:
    text, strength = texts[node]
    return text if strength >= least else f"({text})"


def _part(piece: _Piece, texts: Texts) -> str:
    return equated(piece, texts) if isinstance(piece, Pair) else _inside(piece, texts, _COMPARED)


def _guard(distances: tuple[int, ...] | None) -> str:
    if distances is None:
        return ""
    first, last = distances[0], distances[-1]
    if len(distances) == 1:
        return f"[i - j == {integer(first)}]"
    if last - first + 1 == len(distances) and len(distances) > 3:
        return (
            f"[i - j <= {integer(last)}]" if first == 0 else f"[{integer(first)} <= i - j <= {integer(last)}]"
        )
    return f"[i - j in {{{', '.join(map(integer, distances))}}}]"
