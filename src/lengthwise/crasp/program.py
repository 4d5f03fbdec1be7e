"""A program: formulas over an alphabet, and what their values mean for a word."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import lcm
from operator import index
from typing import Literal

from lengthwise._checks import several
from lengthwise._messages import one_line, shown
from lengthwise.crasp.builder import Formula, formula
from lengthwise.crasp.nodes import And, Bool, Count, Ge, Mod, Node, Not, Or, Sym, True_, in_order

Mode = Literal["last", "eos"]

BEGIN, SEPARATOR, END = "<bos>", "<sep>", "<eos>"
"""The symbols of a stream that belong to no input and to no answer: what predictors read first, between an
input and its answer, and predict at the end.
"""


@dataclass(frozen=True, eq=False)
class Program:
    """A C-RASP program over an alphabet, of one of two kinds:

    - an acceptor: a word belongs to its language if ``accept`` holds at the last position (``mode`` "last"),
      or at one more position, which has no letter (``mode`` "eos");
    - a predictor: ``next`` has a formula for each symbol of its output; at every position it predicts the set
      of symbols whose formula holds.

    ``accepts_empty`` says whether the empty word is accepted under "last", where it has no position; None
    means the value of ``accept``, in its normal form, at a position 0 with no letter and all counts 0.
    ``names`` are for printing.
    """

    alphabet: Sequence[str]
    accept: Formula | None = None
    next: Mapping[str, Formula] = field(default_factory=dict)
    mode: Mode = "last"
    accepts_empty: bool | None = None
    names: Mapping[str, Formula] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alphabet", tuple(self.alphabet))
        if not self.alphabet:
            raise ValueError("the alphabet is empty: a program needs at least one letter")
        if len(set(self.alphabet)) != len(self.alphabet):
            raise ValueError(f"the alphabet names a letter twice: {shown(self.alphabet)}")
        if not all(isinstance(letter, str) and letter for letter in self.alphabet):
            raise ValueError("a letter is a string that is not empty")
        if self.mode not in ("last", "eos"):
            raise ValueError(f"mode must be last or eos, got {self.mode!r}")
        if (self.accept is None) == (not self.next):
            raise ValueError("a program either accepts (accept) or predicts (next)")
        if not all(isinstance(symbol, str) and symbol for symbol in self.next):
            raise ValueError("a symbol to predict is a string that is not empty")
        for one in self.outputs.values():
            formula(one)
        unknown = sorted({n.letter for n in self.nodes if isinstance(n, Sym)} - set(self.alphabet))
        if unknown:
            known = one_line(" ".join(self.alphabet))
            raise ValueError(f"letter {shown(unknown[0])} is not in the alphabet {known}")

    @property
    def outputs(self) -> dict[str, Formula]:
        """What a program computes: ``accept``, or the formulas of ``next`` by their symbols."""
        return {"accept": self.accept} if self.accept is not None else dict(self.next)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node, children before parents."""
        return tuple(in_order(one.node for one in self.outputs.values()))

    @cached_property
    def counts(self) -> tuple[Count, ...]:
        """Every count that is not an indicator."""
        return tuple(n for n in self.nodes if isinstance(n, Count) and n.distances != (0,))

    @property
    def depth(self) -> int:
        """How deeply counts are nested."""
        return max(one.node.depth for one in self.outputs.values())

    @property
    def rank(self) -> int:
        """The largest number of comparisons inside each other."""
        return max(one.node.rank for one in self.outputs.values())

    @cached_property
    def period(self) -> int:
        """The least common multiple of its moduli."""
        return lcm(*(one.node.period for one in self.outputs.values()))

    @cached_property
    def locality(self) -> int:
        """The largest distance that it looks back by itself."""
        return max((max(n.distances) for n in self.nodes if isinstance(n, Count) and n.distances), default=0)

    @cached_property
    def precision(self) -> int:
        """The largest coefficient or constant, in absolute value."""
        sizes = [abs(number) for n in self.nodes if isinstance(n, Ge) for number in n.data]
        return max(sizes, default=0)

    @cached_property
    def size(self) -> int:
        """Nodes, plus bits of all coefficients and constants, plus distances of local counts."""
        bits = sum(abs(number).bit_length() for n in self.nodes if isinstance(n, Ge) for number in n.data)
        looked_at = sum(len(n.distances) for n in self.nodes if isinstance(n, Count) and n.distances)
        return len(self.nodes) + bits + looked_at

    @cached_property
    def fragment(self) -> str:
        """The smallest class of the literature that it is seen to be in by its form.

        "C-RASP_1": depth at most 1, no positions; "C-RASP_+": no positions, no indicators, and one sign in
        every comparison; "C-RASP": no positions; "C-RASP[periodic,local]": any.
        """
        counts = [n for n in self.nodes if isinstance(n, Count)]
        if self.period > 1 or any(n.distances not in (None, (0,)) for n in counts):
            return "C-RASP[periodic,local]"
        if self.depth <= 1 and all(n.operand.rank == 0 for n in counts):
            return "C-RASP_1"
        signs = [{alpha > 0 for _, alpha in n.terms} for n in self.nodes if isinstance(n, Ge)]
        if all(len(one) == 1 for one in signs) and all(n.distances is None for n in counts):
            return "C-RASP_+"
        return "C-RASP"

    def symbols(self, word: str | Sequence[str] | Sequence[int]) -> list[int]:
        """The letters of a word as their numbers in the alphabet."""
        number = {letter: index for index, letter in enumerate(self.alphabet)}
        found = []
        for place, letter in enumerate(word if isinstance(word, str) else several(word, "a word"), start=1):
            if isinstance(letter, str):
                if letter not in number:
                    known = one_line(" ".join(self.alphabet))
                    raise ValueError(
                        f"letter {shown(letter)} at position {place} is not in the alphabet {known}"
                    )
                found.append(number[letter])
            else:
                found.append(self._symbol(letter, place))
        return found

    def _symbol(self, letter: object, place: int) -> int:
        """A symbol number that is not text: a whole number of Python's, NumPy's or PyTorch's."""
        try:
            symbol = index(letter)  # pyright: ignore[reportArgumentType]
        except (TypeError, ValueError, RuntimeError):
            raise ValueError(f"symbol {shown(letter)} at position {place} is no whole number") from None
        if not 0 <= symbol < len(self.alphabet):
            most = len(self.alphabet) - 1
            raise ValueError(f"symbol {shown(letter)} at position {place} is not between 0 and {most}")
        return symbol

    def __call__(self, word: str | Sequence[str] | Sequence[int]) -> bool:
        """Whether a word, of letters or of symbol numbers, is accepted."""
        from lengthwise.crasp.stream import Stream

        if self.accept is None:
            raise ValueError("this program predicts symbols, it does not accept words: use predictions")
        stream = Stream(self)
        for symbol in self.symbols(word):
            stream.step(symbol)
        return stream.accepted()

    @cached_property
    def empty(self) -> bool:
        """Whether the empty word is accepted under "last"."""
        if self.accepts_empty is not None:
            return self.accepts_empty
        held: dict[Node, bool] = {}
        for node in self.nodes:
            if isinstance(node, Mod):
                held[node] = node.residue == 0
            elif isinstance(node, Not):
                held[node] = not held[node.operand]
            elif isinstance(node, And):
                held[node] = all(held[one] for one in node.operands)
            elif isinstance(node, Or):
                held[node] = any(held[one] for one in node.operands)
            elif isinstance(node, Ge):
                held[node] = node.constant >= 0
            else:
                held[node] = isinstance(node, True_)
        return held[self.root()]

    def root(self, name: str = "accept") -> Bool:
        """The node of an output."""
        return self.outputs[name].node
