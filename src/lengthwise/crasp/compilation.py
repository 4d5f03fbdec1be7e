"""From a program to the weights of a limit transformer that computes it.

The input is a beginning mark, the letters, and under "eos" an end mark (``encode``). In the stream every
formula that is needed has a coordinate that is exactly 0 or 1. A layer of attention holds

- one uniform head for all counts over positions: it averages, over the i + 1 positions up to position i of
  the word (the mark included), which of them satisfy a formula, and the mark itself: u = 1/(i + 1);
- one head for each distance d that is looked back by: the logit of that distance is twice ``bits``, that of
  the mark ``bits``, all others 0, so that with precision ``bits`` everything but position i - d, or the mark
  where that is before the start, has weight exactly 0.

A comparison sum alpha count + c >= 0 becomes sum alpha count/(i + 1) + (c + 1/2) u >= 0, whose left side is
never within u/2 of 0. What is 0 or 1 already (indicators, local counts) enters it as u times itself, which is
relu(u + x - 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from lengthwise._checks import positive
from lengthwise._messages import shown
from lengthwise.crasp.exactness import ramp_error, ramp_slope
from lengthwise.crasp.nodes import FALSE, TRUE, And, Bool, Count, Ge, Mod, Node, Not, Or, Sym, in_order
from lengthwise.crasp.program import Program
from lengthwise.limit import Activation, Finite, LimitLayer, LimitTransformer
from lengthwise.sequences import check_length

Form = Literal["heaviside", "relu"]

MOST_NUMBERS = 2**27
"""The weights of a compiled program are at most so many numbers: 1 GiB."""


LARGEST = 2**900
"""Coefficients and constants from here on are not compiled: sums of them would not be finite."""


def encode(program: Program, word: str | Sequence[str] | Sequence[int]) -> list[int]:
    """The tokens that a compiled program reads for a word: mark, letters, and the end mark under "eos"."""
    letters = len(program.alphabet)
    return [letters, *program.symbols(word), *([letters + 1] if program.mode == "eos" else [])]


def compile(
    program: Program, form: Form = "heaviside", *, longest: int = 1000, bits: float = 16
) -> LimitTransformer:
    """A limit transformer whose output on ``encode(program, word)`` is 1 if the word is accepted, else 0.

    - "heaviside": comparisons by steps: exact at every length in exact arithmetic, and up to ``exact_length``
      in float64;
    - "relu": by ramps of slope 4 (``longest`` + 2): exact on words of at most ``longest`` letters, no longer,
      for no fixed ramp is steep enough for all of them. ``ValueError`` if float64 is too coarse for them.
    """
    if program.accept is None:
        raise ValueError("only programs that accept words are compiled, this one predicts symbols")
    if not isinstance(form, str) or form not in ("heaviside", "relu"):
        raise ValueError(f"form must be heaviside or relu, got {shown(form)}")
    check_length(longest, "longest")
    positive(bits, "bits")
    if program.precision >= LARGEST:
        raise ValueError("a number of the program is too large to be a weight in float64")
    if form == "relu" and ramp_error(program, longest) > 0.25:
        raise ValueError(
            f"float64 is too coarse for ramps that are exact up to {longest:,} letters with the numbers of "
            "this program: choose a smaller longest, or the form heaviside"
        )
    return _Compiler(program, form, ramp_slope(longest), bits).transformer()


@dataclass
class _Coordinates:
    """Names for the coordinates of the stream, in the order in which they are first used."""

    index: dict[object, int] = field(default_factory=dict)

    def __getitem__(self, name: object) -> int:
        return self.index.setdefault(name, len(self.index))

    def __contains__(self, name: object) -> bool:
        return name in self.index


@dataclass
class _Unit:
    """A hidden unit: act(weights . y + bias), added to the ``out`` coordinate with a factor."""

    weights: dict[int, float]
    bias: float
    out: int
    factor: float = 1.0


@dataclass
class _Layer:
    """A layer in the making: what the uniform head copies, what each distance copies, and hidden units."""

    uniform: list[tuple[int, int]] = field(default_factory=list)
    local: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    units: list[_Unit] = field(default_factory=list)
    activation: Activation = "relu"


MARK, END, ONE, SHARE = "mark", "end", "one", "share"


class _Compiler:
    """Lays out the stream and the layers of one program."""

    def __init__(self, program: Program, form: Form, slope: float, bits: float) -> None:
        self.program, self.form, self.slope, self.bits = program, form, slope, bits
        self.at = _Coordinates()
        self.layers: list[_Layer] = []
        self.embedded: dict[Bool, Tensor] = {}
        letters = len(program.alphabet)
        self.tokens = letters + (2 if program.mode == "eos" else 1)
        for name in (ONE, MARK):
            self.at[name]
        self.order = [node for node in in_order((program.root(),)) if node not in (TRUE, FALSE)]
        for node in self.order:
            if isinstance(node, Mod):
                self.at[node]
            elif isinstance(node, Bool) and node.rank == 0 and node.period == 1 and not isinstance(node, Not):
                self.at[node]
                self.embedded[node] = self._by_token(node)

    def transformer(self) -> LimitTransformer:
        """Schedule everything, then write the weights."""
        waiting = [node for node in self.order if node not in self.at and not isinstance(node, Not)]
        while waiting:
            done = self._booleans(waiting) or self._counting(waiting)
            assert done, "a program is a graph without cycles"
            waiting = [node for node in waiting if node not in done]
        if not self.layers:
            self.layers.append(_Layer())
        answer = self._answer()
        return self._weights(answer)

    def _answer(self) -> dict[int, float]:
        """The readout: the coordinate of the formula, or 1 minus that of its opposite; on the mark alone, the
        empty word, what the program says of it.
        """
        root = self.program.root()
        literal = self._literal(root) if root not in (TRUE, FALSE) else None
        told = {self.at[ONE]: float(root is TRUE)}
        if literal is not None:
            told = {literal[0]: float(literal[1]), self.at[ONE]: float(literal[1] < 0)}
        default = replace(self.program, accepts_empty=None).empty
        if self.program.mode == "eos" or self.program.empty == default:
            return told
        bias = told.pop(self.at[ONE])
        unit = _Unit({**told, self.at[MARK]: -1.0}, bias, self.at["answer"])
        self._append(_Layer(units=[unit]))
        return {self.at["answer"]: 1.0, self.at[MARK]: float(self.program.empty)}

    def _by_token(self, node: Bool) -> Tensor:
        """The value of a formula over letters alone, for every token."""
        values: dict[Node, Tensor] = {TRUE: torch.ones(self.tokens, dtype=torch.bool)}
        for below in in_order((node,)):
            if isinstance(below, Sym):
                letter = self.program.alphabet.index(below.letter)
                values[below] = torch.arange(self.tokens) == letter
            elif isinstance(below, Not):
                values[below] = ~values[below.operand]
            elif isinstance(below, And | Or):
                stacked = torch.stack([values[operand] for operand in below.operands])
                values[below] = stacked.all(0) if isinstance(below, And) else stacked.any(0)
        return values[node]

    def _literal(self, node: Bool) -> tuple[int, int] | None:
        """(coordinate, sign) of a formula that is known, or of the opposite of one; None if it is not yet."""
        if isinstance(node, Not):
            return (self.at[node.operand], -1) if node.operand in self.at else None
        return (self.at[node], 1) if node in self.at else None

    def _booleans(self, waiting: Sequence[Node]) -> list[Node]:
        """A layer without attention for all conjunctions and disjunctions of what is known."""
        layer, done = _Layer(), []
        for node in waiting:
            if not isinstance(node, And | Or):
                continue
            literals = [self._literal(operand) for operand in node.operands]
            if None not in literals:
                done.append((node, self._gate(node, [one for one in literals if one])))
        for node, unit in done:
            unit.out = self.at[node]
            layer.units.append(unit)
            if isinstance(node, Or):
                layer.units.append(_Unit({}, 1.0, unit.out))
        if done:
            self.layers.append(layer)
        return [node for node, _ in done]

    def _gate(self, node: And | Or, literals: list[tuple[int, int]]) -> _Unit:
        """And: relu(sum of k literals - k + 1); Or: 1 - relu(1 - sum), the 1 from a unit of its own."""
        positive = isinstance(node, And)
        weights: dict[int, float] = {}
        bias = 1.0 - len(literals) if positive else 1.0
        for coordinate, sign in literals:
            weights[coordinate] = weights.get(coordinate, 0.0) + (sign if positive else -sign)
            bias += (sign < 0) if positive else -(sign < 0)
        return _Unit(weights, bias, -1, 1.0 if positive else -1.0)

    def _counting(self, waiting: Sequence[Node]) -> list[Node]:
        """Attention for all counts of what is known, then the comparisons that have all their counts."""
        ready = [
            node
            for node in waiting
            if isinstance(node, Count)
            and (node.operand in (TRUE, FALSE) or self._literal(node.operand) is not None)
        ]
        attention, gates, compare = _Layer(), _Layer(), _Layer(activation=self._step)
        if ready and SHARE not in self.at:
            attention.uniform.append((self.at[MARK], self.at[SHARE]))
        seen = self._seen([node.operand for node in ready])
        for node in ready:
            self._attend(node, seen, attention, gates)
        known = {*(n for n in self.order if isinstance(n, Count) and n in self.at), *ready}
        done: list[Node] = list(ready)
        for node in waiting:
            if isinstance(node, Ge) and all(one in known for one, _ in node.terms):
                self._comparison(node, compare)
                done.append(node)
        if attention.uniform or attention.local:
            self.layers.append(attention)
        for layer in (gates, compare):
            if layer.units:
                self._append(layer)
        return done

    def _seen(self, operands: Sequence[Bool]) -> dict[Bool, int]:
        """A coordinate for each operand that is its value on letters and 0 on the mark; a layer makes those
        that are not 0 there by themselves.
        """
        layer, seen = _Layer(), {}
        for operand in dict.fromkeys(operands):
            if operand in self.embedded and not bool(self.embedded[operand][len(self.program.alphabet)]):
                seen[operand] = self.at[operand]
                continue
            name = ("seen", operand)
            seen[operand] = self.at.index.get(name, -1)
            if seen[operand] >= 0:
                continue
            seen[operand] = self.at[name]
            weights, bias = {self.at[MARK]: -1.0}, 0.0
            literal = self._literal(operand)
            if literal is None:
                bias = 1.0  # always true
            else:
                weights[literal[0]] = float(literal[1])
                bias = float(literal[1] < 0)
            layer.units.append(_Unit(weights, bias, seen[operand]))
        if layer.units:
            self.layers.append(layer)
        return seen

    def _attend(self, node: Count, seen: dict[Bool, int], attention: _Layer, gates: _Layer) -> None:
        """Average a global count; fetch the bits of a local one, and multiply each by the share."""
        source = seen[node.operand]
        if node.distances is None:
            attention.uniform.append((source, self.at[node]))
            return
        self.at[node]
        for distance in node.distances:
            bit = source
            if distance:
                bit = self.at["bit", node.operand, distance]
                copies = attention.local.setdefault(distance, [])
                if (source, bit) not in copies:
                    copies.append((source, bit))
            gates.units.append(_Unit({self.at[SHARE]: 1.0, bit: 1.0}, -1.0, self.at[node]))

    def _comparison(self, node: Ge, layer: _Layer) -> None:
        """A step, or a ramp of two units, of the sum divided by i + 1."""
        weights = {self.at[SHARE]: node.constant + 0.5}
        for one, alpha in node.terms:
            weights[self.at[one]] = weights.get(self.at[one], 0.0) + alpha
        out = self.at[node]
        if self.form == "heaviside":
            layer.units.append(_Unit(weights, 0.0, out))
            return
        steep = {coordinate: self.slope * weight for coordinate, weight in weights.items()}
        layer.units += [_Unit(steep, 0.5, out), _Unit(dict(steep), -0.5, out, -1.0)]

    @property
    def _step(self) -> Activation:
        return "heaviside" if self.form == "heaviside" else "relu"

    def _append(self, layer: _Layer) -> None:
        """Put hidden units behind the last attention if none are there yet, else in their own layer."""
        last = self.layers[-1] if self.layers else None
        if last is not None and not last.units and (last.uniform or last.local):
            last.units, last.activation = layer.units, layer.activation
        else:
            self.layers.append(layer)

    def _weights(self, answer: dict[int, float]) -> LimitTransformer:
        width = len(self.at.index)
        self._check_size(width)
        letters = len(self.program.alphabet)
        embedding = torch.zeros(self.tokens, width, dtype=torch.float64)
        embedding[:, self.at[ONE]] = 1.0
        embedding[letters, self.at[MARK]] = 1.0
        for node, values in self.embedded.items():
            embedding[:, self.at[node]] = values.double()
        positions = torch.zeros(self.program.period, width, dtype=torch.float64)
        for node in self.order:
            if isinstance(node, Mod):
                for row in range(self.program.period):
                    # The mark stands at position 1, so that letter i of the word stands at i + 1.
                    positions[row, self.at[node]] = float((row - 1) % node.modulus == node.residue)
        readout = torch.zeros(1, width, dtype=torch.float64)
        for coordinate, weight in answer.items():
            readout[0, coordinate] = weight
        layers = tuple(self._layer_weights(layer, width) for layer in self.layers)
        return LimitTransformer(embedding, positions, layers, readout, Finite(self.bits))

    def _check_size(self, width: int) -> None:
        numbers = self.program.period * width
        for layer in self.layers:
            heads = bool(layer.uniform) + len(layer.local)
            numbers += heads * (2 * width**2 + max(layer.local, default=0) + 1) + 2 * len(layer.units) * width
        if numbers > MOST_NUMBERS:
            raise ValueError(
                f"the weights would be {numbers} numbers, more than {MOST_NUMBERS}: "
                "use a program with smaller moduli, or with fewer distances"
            )

    def _layer_weights(self, layer: _Layer, width: int) -> LimitLayer:
        heads = [layer.uniform] if layer.uniform else []
        distances = sorted(layer.local)
        heads += [layer.local[distance] for distance in distances]
        reach = max(distances, default=0)
        key_query, value = (torch.zeros(len(heads), width, width, dtype=torch.float64) for _ in range(2))
        local = torch.zeros(len(heads), reach + 1, dtype=torch.float64)
        for index, copies in enumerate(heads):
            for source, target in copies:
                value[index, target, source] = 1.0
        for index, distance in enumerate(distances, start=len(heads) - len(distances)):
            local[index, distance] = 2 * self.bits
            key_query[index, self.at[MARK], self.at[ONE]] = self.bits
        units = layer.units
        into, bias = torch.zeros(len(units), width, dtype=torch.float64), torch.zeros(len(units)).double()
        out = torch.zeros(width, len(units), dtype=torch.float64)
        for index, unit in enumerate(units):
            for coordinate, weight in unit.weights.items():
                into[index, coordinate] = weight
            bias[index] = unit.bias
            out[unit.out, index] = unit.factor
        return LimitLayer(key_query, value, local, into, bias, out, layer.activation)
