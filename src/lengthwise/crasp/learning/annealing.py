"""Simulated annealing over slot programs.

The temperature falls geometrically with the number of moves made, never with the clock, so that a search is
the same each time that it is made with the same seed.
"""

import math
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from lengthwise.crasp.learning.moves import Moves
from lengthwise.crasp.learning.slots import Rule, Shape, Slots, mentioned, reached, weight
from lengthwise.crasp.learning.values import Sample, Values
from lengthwise.crasp.learning.words import Word

HOT, COLD = 0.008, 0.0005
"""The first and the last temperature of a stage, in units of the cost."""

SMALL_HOT, SMALL_COLD = 1.5, 0.2
"""The first and the last temperature of shrinking, in units of size."""

PER_SIZE = 0.0001
"""What one unit of size costs; an error on a whole word costs about 0.003."""

ON_REACHED = 0.85
"""The share of moves that change a slot on which the output depends."""

TICK = 16
"""So many moves are made from one look at the clock to the next."""


class _Move(NamedTuple):
    """Another rule for a slot, and the values and the error that the program then has."""

    place: int
    rule: Rule
    numbers: list[int]
    error: float


class Annealing:
    """A slot program on a sample, and moves on it.

    ``error`` is the weighted share of wrong labels of the current program, 0 only if there are none, and
    ``size`` its size; ``best`` is a program of least error on this sample so far, ``best_error`` its error.
    """

    def __init__(self, letters: int, shape: Shape, source: Random) -> None:
        self._letters, self._shape, self._chance = letters, shape, source.random
        self._bases = shape.bases(letters)
        self._moves = Moves(shape, self._bases, source)
        self._slots: list[Rule] = []
        self.moves = 0
        self.best: Slots | None = None
        self.best_error = math.inf

    @property
    def current(self) -> Slots:
        """The current program."""
        return tuple(self._slots)

    def use(self, sample: Sample) -> None:
        """Take another sample; a program must be begun with anew."""
        self._sample = sample
        self._values = Values(sample, self._letters, self._shape)
        self.best, self.best_error = None, math.inf

    def restart(self) -> None:
        """Begin with random rules."""
        self.begin(tuple(self._moves.rule(place) for place in range(self._shape.slots)))

    def begin(self, slots: Slots) -> None:
        """Begin with these rules."""
        self._slots = list(slots)
        self._mentions = [mentioned(rule, self._bases) for rule in slots]
        self._weights = [weight(rule) for rule in slots]
        self._look()
        self._settle()

    def errors(self, slots: Slots) -> list[Word]:
        """The prefixes in the sample that have the wrong label, each once, short ones first."""
        held_N = self._values.held(self._values.of(slots)[-1])
        wrong_N = (held_N != self._sample.labels_N) & (self._sample.weights_N > 0)
        words = {self._sample.prefix(int(at)) for at in wrong_N.nonzero()[0]}
        return sorted(words, key=lambda word: (len(word), word))

    def stage(self, moves: int, tick: Callable[[], None]) -> bool:
        """Make so many moves; whether a program without errors was found, where the stage ends.

        A move that raises the cost by r is made with chance exp(-r / temperature). ``tick`` is called now and
        then.
        """
        cooling = (COLD / HOT) ** (1 / moves)
        temperature = HOT
        for step in range(moves):
            if not self.error:
                break
            # The chance is drawn first: most moves are then turned down by their error, their size unseen.
            limit = self.error + PER_SIZE * self.size - temperature * math.log(1 - self._chance())
            move = self._drawn()
            if move is not None and self._is_taken(move, limit):
                self._make(move)
            temperature *= cooling
            if step % TICK == 0:
                tick()
        return not self.error

    def shrink(self, moves: int, tick: Callable[[], None]) -> None:
        """Make so many moves that keep the error at 0, smaller and smaller programs preferred; the smallest
        one met becomes the current one.
        """
        assert not self.error
        smallest, least = self.current, self.size
        cooling = (SMALL_COLD / SMALL_HOT) ** (1 / moves)
        temperature = SMALL_HOT
        for step in range(moves):
            move = self._drawn()
            if move is not None and not move.error:
                rise = self._size_after(move) - self.size
                if rise <= -temperature * math.log(1 - self._chance()):
                    self._make(move)
                    if self.size < least:
                        smallest, least = self.current, self.size
            temperature *= cooling
            if step % TICK == 0:
                tick()
        self.begin(smallest)

    def _is_taken(self, move: _Move, limit: float) -> bool:
        """Whether the cost after a move is within a limit; a program without errors always is."""
        return not move.error or (
            move.error <= limit and move.error + PER_SIZE * self._size_after(move) <= limit
        )

    def _look(self) -> None:
        self._numbers = self._values.of(self._slots)
        self.error = self._values.cost(self._numbers[-1])

    def _settle(self) -> None:
        """After a change of rules: which are reached, how large the program is, whether it is the best."""
        bits = reached(self._mentions)
        self._reached = [place for place in range(len(self._slots)) if bits >> place & 1]
        self.size = sum(self._weights[place] for place in self._reached)
        if self.error < self.best_error:
            self.best, self.best_error = self.current, self.error

    def _drawn(self) -> _Move | None:
        """A random move, or None where it changes nothing."""
        self.moves += 1
        if self._chance() < ON_REACHED:
            place = self._reached[int(self._chance() * len(self._reached))]
        else:
            place = int(self._chance() * len(self._slots))
        rule = self._moves.changed(self._slots[place], place)
        if rule == self._slots[place]:
            return None
        numbers = self._after(place, rule)
        return _Move(place, rule, numbers, self._values.cost(numbers[-1]))

    def _after(self, place: int, rule: Rule) -> list[int]:
        """The values once the rule of a slot is another; only what depends on it is computed."""
        value = self._values.made(rule, self._numbers)
        if value == self._numbers[self._bases + place]:
            return self._numbers
        numbers = self._numbers.copy()
        numbers[self._bases + place] = value
        new = 1 << place
        for later in range(place + 1, len(self._slots)):
            if self._mentions[later] & new:
                at = self._bases + later
                numbers[at] = self._values.made(self._slots[later], numbers)
                if numbers[at] != self._numbers[at]:
                    new |= 1 << later
        return numbers

    def _size_after(self, move: _Move) -> int:
        mentions = self._mentions.copy()
        mentions[move.place] = mentioned(move.rule, self._bases)
        bits = reached(mentions)
        rest = sum(one for at, one in enumerate(self._weights) if bits >> at & 1 and at != move.place)
        return rest + (weight(move.rule) if bits >> move.place & 1 else 0)

    def _make(self, move: _Move) -> None:
        place, rule, self._numbers, self.error = move
        self._slots[place], self._weights[place] = rule, weight(rule)
        self._mentions[place] = mentioned(rule, self._bases)
        self._settle()
        if self._values.full:
            self._values = Values(self._sample, self._letters, self._shape)
            self._look()
