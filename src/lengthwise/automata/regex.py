"""Regular expressions, compiled to their minimal automata.

Every character is a symbol, except ``|`` (or), ``*`` (any number), ``+`` (at least one), ``?`` (at most one)
and parentheses; ``()`` is the empty word.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lengthwise._checks import several
from lengthwise._messages import one_line, shown
from lengthwise.automata.automaton import DFA

OPERATORS = "|*+?()"
FOREIGN = ".[]{}^$\\"
"""What other dialects give a meaning: a symbol here only if the alphabet names it."""

MOST_STATES = 10_000
"""The subset construction stops here."""


@dataclass
class _Graph:
    """A nondeterministic automaton: from each state, the silent steps and the steps that read a letter."""

    silent: list[list[int]] = field(default_factory=list)
    reads: list[tuple[str, int] | None] = field(default_factory=list)

    def state(self) -> int:
        self.silent.append([])
        self.reads.append(None)
        return len(self.silent) - 1

    def part(self) -> tuple[int, int]:
        return self.state(), self.state()


_Part = tuple[int, int]
"""A piece of the graph: its first and its last state."""


@dataclass
class _Group:
    """What stands between two parentheses, as far as it has been read."""

    column: int
    alternatives: list[_Part] = field(default_factory=list)
    factors: list[_Part] = field(default_factory=list)


def compile_regex(text: str, alphabet: Sequence[str] | None = None) -> DFA:
    """The minimal automaton of a regular expression, over the alphabet or else over its own symbols, sorted.

    The automaton of subsets may be exponentially large; beyond ``MOST_STATES`` states a ValueError says so.
    """
    if not isinstance(text, str):
        raise ValueError(f"a regular expression must be text, got {shown(text)}")
    if alphabet is None:
        symbols = sorted(set(text) - set(OPERATORS))
    else:
        symbols = list(alphabet if isinstance(alphabet, str) else several(alphabet, "the alphabet"))
    for letter in symbols if alphabet is not None else ():
        if not isinstance(letter, str) or len(letter) != 1 or letter in OPERATORS:
            raise ValueError(f"a letter of a regular expression is one character other than {OPERATORS}")
    for column, letter in enumerate(text, start=1):
        if letter in OPERATORS or (alphabet is not None and letter in symbols):
            continue
        if letter.isspace():
            raise ValueError(f"column {column}: a space is no symbol: leave it out")
        if letter in FOREIGN:
            raise ValueError(f"column {column}: {letter!r} has no meaning here: write alternatives with |")
        if alphabet is not None:
            raise ValueError(
                f"column {column}: {letter!r} is not in the alphabet {one_line(' '.join(symbols))}"
            )
    if not symbols:
        raise ValueError("the expression has no symbols: name an alphabet")
    graph = _Graph()
    first, last = _parse(text, graph)
    return _determined(graph, first, last, tuple(symbols)).minimal()


def _parse(text: str, graph: _Graph) -> _Part:
    """The graph of an expression."""
    groups = [_Group(0)]
    for column, letter in enumerate(text, start=1):
        group = groups[-1]
        if letter == "(":
            groups.append(_Group(column))
        elif letter == ")":
            if len(groups) == 1:
                raise ValueError(f"column {column}: this parenthesis closes nothing")
            groups.pop()
            is_empty = column == group.column + 1
            groups[-1].factors.append(_empty(graph) if is_empty else _closed(group, column, graph))
        elif letter == "|":
            group.alternatives.append(_joined(group.factors, column, graph))
            group.factors = []
        elif letter in "*+?":
            if not group.factors:
                raise ValueError(f"column {column}: {letter!r} has nothing before it to repeat")
            group.factors[-1] = _repeated(group.factors[-1], letter, graph)
        else:
            first, last = graph.part()
            graph.reads[first] = letter, last
            group.factors.append((first, last))
    if len(groups) > 1:
        raise ValueError(f"column {groups[-1].column}: this parenthesis is never closed")
    return _closed(groups[0], len(text) + 1, graph)


def _empty(graph: _Graph) -> _Part:
    first, last = graph.part()
    graph.silent[first].append(last)
    return first, last


def _joined(factors: list[_Part], column: int, graph: _Graph) -> _Part:
    """One after the other."""
    if not factors:
        raise ValueError(f"column {column}: an alternative is missing before this; the empty word is ()")
    for (_, last), (first, _) in pairwise(factors):
        graph.silent[last].append(first)
    return factors[0][0], factors[-1][1]


def _closed(group: _Group, column: int, graph: _Graph) -> _Part:
    """All alternatives of a group that ends here."""
    parts = [*group.alternatives, _joined(group.factors, column, graph)]
    if len(parts) == 1:
        return parts[0]
    first, last = graph.part()
    for begin, end in parts:
        graph.silent[first].append(begin)
        graph.silent[end].append(last)
    return first, last


def _repeated(part: _Part, operator: str, graph: _Graph) -> _Part:
    first, last = graph.part()
    graph.silent[first].append(part[0])
    graph.silent[part[1]].append(last)
    if operator in "*?":
        graph.silent[first].append(last)
    if operator in "*+":
        graph.silent[part[1]].append(part[0])
    return first, last


def _determined(graph: _Graph, first: int, last: int, alphabet: tuple[str, ...]) -> DFA:
    """The automaton of subsets. Only states that read a letter, and the last one, tell subsets apart."""
    start = _reading(graph, (first,), last)
    number = {start: 0}
    subsets, rows = [start], []
    for subset in subsets:
        row = []
        for letter in alphabet:
            steps = (graph.reads[state] for state in subset)
            after = _reading(graph, [step[1] for step in steps if step and step[0] == letter], last)
            if after not in number:
                if len(number) == MOST_STATES:
                    raise ValueError(f"the automaton of this expression has more than {MOST_STATES} states")
                number[after] = len(number)
                subsets.append(after)
            row.append(number[after])
        rows.append(tuple(row))
    accepting = frozenset(index for subset, index in number.items() if last in subset)
    return DFA(alphabet, tuple(rows), 0, accepting)


def _reading(graph: _Graph, states: Iterable[int], last: int) -> frozenset[int]:
    """The states that silent steps lead to, of those that read a letter, and the last one."""
    stack = list(states)
    found = set(stack)
    while stack:
        for after in graph.silent[stack.pop()]:
            if after not in found:
                found.add(after)
                stack.append(after)
    return frozenset(state for state in found if state == last or graph.reads[state])
