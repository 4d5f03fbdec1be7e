"""The values of nodes on a tile: all positions of some words, or a stretch of one after what was read before.

Integers are as narrow as bounds on them allow, and truth values are 0 and 1 in 8 bits: on a CPU, torch
compares into integers several times faster than into truth values. A sum starts from 0 in every tile, and
what it came to before is taken from the numbers that it is compared with.

Axes: B word, L position in the tile.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from lengthwise.crasp.batch_plan import AtLeast, Ever, Item, Plan, Sum, most
from lengthwise.crasp.nodes import And, Bool, Count, Ge, Mod, Not, Or, Sym

LONG_WINDOW = 8
"""More distances in a row than this are counted as a difference of running totals."""

_ENDS = {torch.int8: 2**7, torch.int16: 2**15, torch.int32: 2**31}

_Rule = Callable[[Mapping[Item, Tensor]], Tensor]
"""The value of an item on the current tile, from the values of what it reads."""

_Step = tuple[Item, _Rule, tuple[Item, ...]]


def narrowest(largest: int) -> torch.dtype:
    """The narrowest integers that hold all numbers up to this, and their opposites."""
    return next((kind for kind, end in _ENDS.items() if largest < end), torch.int64)


class Tiles:
    """Reads tiles of words at most ``width`` long; one that starts at 0 begins other words, any other goes on
    where the last one ended, and has one word.
    """

    def __init__(self, plan: Plan, alphabet: Sequence[str], width: int) -> None:
        self._plan, self._rules = plan, _Rules(plan, alphabet, width)
        self._reading: list[_Step] = []
        self._passing: list[_Step] = []

    def read(self, letters_BL: Tensor, start: int) -> dict[Item, Tensor]:
        """The values of what is wanted on a tile, whose first position is ``start`` (from 0): truth values of
        formulas, integers of counts.
        """
        if not self._reading:
            self._reading = [(item, self._rules.rule(item), done) for item, done in self._plan.steps]
        values = self._evaluated(self._reading, letters_BL, start)
        return {
            item: value_BL.view(torch.bool) if isinstance(item, Bool) else value_BL
            for item, value_BL in values.items()
        }

    def pass_over(self, letters_BL: Tensor, start: int) -> None:
        """Read a tile on which nobody asks for values, and behind which its word goes on."""
        if not self._passing:
            for item, done in self._plan.carrying:
                # What is done with at once is read by nobody.
                rule = self._rules.unread(item) if item in done else self._rules.rule(item)
                self._passing.append((item, rule, done))
        self._evaluated(self._passing, letters_BL, start)

    def _evaluated(self, steps: Iterable[_Step], letters_BL: Tensor, start: int) -> dict[Item, Tensor]:
        self._rules.turn_to(letters_BL, start)
        values: dict[Item, Tensor] = {}
        for item, rule, done in steps:
            values[item] = rule(values)
            for one in done:
                del values[one]
        return values


class _Rules:
    """Makes a rule for each item, once, so that reading a tile does not ask what kind an item is; and knows
    the tile that the rules are about, and what is carried over to it.
    """

    def __init__(self, plan: Plan, alphabet: Sequence[str], width: int) -> None:
        self._plan, self._width = plan, width
        self._number = {letter: index for index, letter in enumerate(alphabet)}
        # The tile: its letters, its first position, whether its word goes on behind it.
        self._letters_BL, self._start, self._goes_on = torch.empty(0, 0), 0, False
        # Running totals before and after it; the last values of what local counts look back at.
        self._before: dict[Item, int] = {}
        self._after: dict[Item, int] = {}
        self._past: dict[Item, Tensor] = {}

    def turn_to(self, letters_BL: Tensor, start: int) -> None:
        """From now on rules are about this tile."""
        if start == 0:
            self._before, self._after, self._past = {}, {}, {}
        self._letters_BL, self._start = letters_BL, start
        self._goes_on = start + letters_BL.shape[1] < self._width

    def rule(self, item: Item) -> _Rule:
        """The rule for an item."""
        known = self._plan.known.get(item)
        if known is not None:
            return lambda _: _everywhere(known, self._letters_BL)
        match item:
            case Sym():
                number = self._number[item.letter]
                return lambda _: _compared(torch.eq, self._letters_BL, number)
            case Not():
                operand = item.operand
                return lambda values: _compared(torch.eq, values[operand], 0)
            case And() | Or():
                joint = torch.bitwise_and if isinstance(item, And) else torch.bitwise_or
                return self._joined(self._plan.joined[item], joint)
            case Ge():
                answer, opposite = self._plan.answers[item]
                if opposite:
                    return lambda values: _compared(torch.eq, values[answer], 0)
                return lambda values: values[answer]
            case AtLeast():
                return self._at_least(item)
            case Ever():
                return self._ever(item)
            case Sum():
                return self._sum(item)
            case Count() if item.distances is None:
                return self._count(item)
            case Count():
                return self._window(item)
            case Mod():
                return lambda _: self._every(item.modulus, item.residue)
        raise AssertionError(f"the value of {type(item).__name__} is known")

    def unread(self, item: Item) -> _Rule:
        """The rule for an item that nobody reads: it only sees to what is carried on."""
        match item:
            case Ever():
                return self._seen(item)
            case Sum():
                return self._added(item, item.steps)
            case Count() if item.distances is None:
                return self._added(item, ((item.operand, 1),))
        return self.rule(item)

    def _seen(self, item: Ever) -> _Rule:
        operand = item.operand

        def rule(values: Mapping[Item, Tensor]) -> Tensor:
            held_BL = values[operand]
            if not self._after.get(item):
                self._after[item] = int(held_BL.amax())
            return held_BL

        return rule

    def _added(self, item: Item, steps: tuple[tuple[Bool, int], ...]) -> _Rule:
        kind = narrowest(sum(abs(alpha) for _, alpha in steps))

        def rule(values: Mapping[Item, Tensor]) -> Tensor:
            change_BL = _weighted([(values[one], alpha) for one, alpha in steps], kind)
            self._after[item] = self._after.get(item, 0) + int(change_BL.sum())
            return change_BL

        return rule

    def _joined(self, operands: Sequence[Item], joint: Callable[[Tensor, Tensor], Tensor]) -> _Rule:
        first, *others = operands

        def rule(values: Mapping[Item, Tensor]) -> Tensor:
            found_BL = values[first]
            for other in others:
                found_BL = joint(found_BL, values[other])
            return found_BL

        return rule

    def _every(self, modulus: int, residue: int) -> Tensor:
        """Where the position is the residue modulo the modulus."""
        length = self._letters_BL.shape[1]
        held_L = torch.zeros(length, dtype=torch.int8, device=self._letters_BL.device)
        first = (residue - self._start - 1) % modulus
        if first < length:
            held_L[first :: min(modulus, length)] = 1
        return held_L.expand(self._letters_BL.shape)

    def _at_least(self, item: AtLeast) -> _Rule:
        total, least, greatest = item.total, item.total.least, item.total.greatest

        def rule(values: Mapping[Item, Tensor]) -> Tensor:
            k = item.k - self._before.get(total, 0)
            if least < k <= greatest:
                return _compared(torch.ge, values[total], k)
            return _everywhere(k <= least, self._letters_BL)

        return rule

    def _ever(self, item: Ever) -> _Rule:
        kind = narrowest(self._width)

        def rule(values: Mapping[Item, Tensor]) -> Tensor:
            held_BL = values[item.operand]
            if self._after.get(item):
                return _everywhere(True, held_BL)
            # To look is faster than to sum; on a GPU it is not.
            if not held_BL.is_cuda and not int(held_BL.amax()):
                return _everywhere(False, held_BL)
            found_BL = _compared(torch.ge, held_BL.cumsum(1, dtype=kind), 1)
            if self._goes_on:
                self._after[item] = int(found_BL[0, -1])
            return found_BL

        return rule

    def _sum(self, item: Sum) -> _Rule:
        kind = narrowest(max(-item.least, item.greatest))
        narrow = narrowest(sum(abs(alpha) for _, alpha in item.steps))

        def rule(values: Mapping[Item, Tensor]) -> Tensor:
            parts = [(values[one], alpha) for one, alpha in item.counts]
            if item.steps:
                held = [(values[one], alpha) for one, alpha in item.steps]
                running_BL = _weighted(held, narrow).cumsum(1, dtype=kind)
                self._before[item] = self._after.get(item, 0)
                self._carry(item, running_BL)
                parts.append((running_BL, 1))
            return _weighted(parts, kind)

        return rule

    def _count(self, item: Count) -> _Rule:
        """A count over all positions, what it came to before included."""
        operand, kind = item.operand, narrowest(self._width)

        def rule(values: Mapping[Item, Tensor]) -> Tensor:
            running_BL = values[operand].cumsum(1, dtype=kind)
            before = self._after.get(item, 0)
            self._carry(item, running_BL)
            return running_BL.add_(before) if before else running_BL

        return rule

    def _carry(self, item: Item, running_BL: Tensor) -> None:
        """Keep what a running total has come to, if the word goes on."""
        if self._goes_on:
            self._after[item] = self._after.get(item, 0) + int(running_BL[0, -1])

    def _window(self, item: Count) -> _Rule:
        """A local count, without the distances that lead before the first position from everywhere."""
        operand, distances = item.operand, (item.distances or ())[: most(item, self._width)]
        if distances == (0,):
            return lambda values: values[operand]
        if not distances:
            return lambda values: torch.zeros_like(values[operand])
        reach, intervals, kind = distances[-1], _intervals(distances), narrowest(len(distances))

        def rule(values: Mapping[Item, Tensor]) -> Tensor:
            held_BL = values[operand]
            past = self._past.get(item)
            if past is None:
                past = held_BL.new_zeros(len(held_BL), reach)
            longer = torch.cat([past, held_BL], 1)
            if self._goes_on:
                self._past[item] = longer[:, held_BL.shape[1] :]
            return _windows(longer, intervals, held_BL.shape[1], kind)

        return rule


def _intervals(distances: tuple[int, ...]) -> list[tuple[int, int]]:
    """The first and the last of every run of distances in a row."""
    gaps = [(one, other) for one, other in pairwise(distances) if other > one + 1]
    firsts, lasts = [distances[0], *(other for _, other in gaps)], [*(one for one, _ in gaps), distances[-1]]
    return list(zip(firsts, lasts, strict=True))


def _windows(longer: Tensor, intervals: Sequence[tuple[int, int]], length: int, kind: torch.dtype) -> Tensor:
    """How many of the distances back from each of the last positions, so many, hold a 1.

    Running totals may be larger than what ``kind`` holds. They are cut to its bits, and so are sums: these
    are right modulo a power of 2, and the result, which ``kind`` holds, is right.
    """
    reach = longer.shape[1] - length
    parts: list[tuple[Tensor, int]] = []
    for nearest, farthest in intervals:
        if farthest - nearest < LONG_WINDOW:
            starts = range(reach - farthest, reach - nearest + 1)
            parts += [(longer[:, start : start + length], 1) for start in starts]
        else:
            total = longer[:, : reach - nearest + length].cumsum(1, dtype=narrowest(longer.shape[1]))
            parts.append((total[:, -length:], 1))
            if farthest < reach:
                parts.append((total[:, reach - farthest - 1 : reach - farthest - 1 + length], -1))
            else:
                parts.append((torch.nn.functional.pad(total[:, : length - 1], (1, 0)), -1))
    return _weighted(parts, kind)


def _weighted(parts: Iterable[tuple[Tensor, int]], kind: torch.dtype) -> Tensor:
    """The sum of alpha * value; it may be the only value itself."""
    values = ((value if value.dtype == kind else value.to(kind), alpha) for value, alpha in parts)
    first, alpha = next(values)
    total = first if alpha == 1 else first * alpha
    for value, alpha in values:
        total = torch.add(total, value, alpha=alpha)
    return total


def _compared(relation: Callable[..., Tensor], value: Tensor, k: int) -> Tensor:
    """Whether values are in a relation with k, which their type must hold."""
    if value.is_cuda:
        return relation(value, k).view(torch.int8)
    return relation(value, k, out=torch.empty_like(value, dtype=torch.int8))


def _everywhere(held: bool, like: Tensor) -> Tensor:
    return torch.full(like.shape, int(held), dtype=torch.int8, device=like.device)
