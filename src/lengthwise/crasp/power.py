"""Words too long to be read: C-RASP programs on power words, exactly.

A power word is v_1^N_1 v_2^N_2 ... with words v and whole numbers N, such as (ab)^1000000000000 a b^3. How
many steps it takes to evaluate a program on it has a bound that does not depend on the numbers N.

A block v^N is read in iterations of v' = v^t. Here t is the least number for which the period of the program
divides |v'|, so that an offset in v' always has the same letter and the same phase. With the locality L of
the program, a local count looks back into at most w = ceil(L / |v'|) earlier iterations.

*Jumps.* Suppose that in w + 1 iterations in a row every comparison had the same truth value at the same
offset. So had every formula then, since letters, phases and comparisons decide it. Let C be what the last of
these iterations added to the global counts, and D what C adds to the sum, or margin, of a comparison. While
iterations keep these truth values, each adds C between one visit to an offset and the next, since every
offset lies between once; local counts stay, since all that they look back at repeats. So a margin that was s
at some offset in the last iteration is s + j D there, j iterations later. By induction over the positions,
and at one position over the nodes from the bottom up, the truth values are indeed kept for T iterations if no
s + j D with j <= T differs in sign from s: if s >= 0 > D, for T = floor(s / -D), if s < 0 < D, for T =
ceil(-s / D) - 1, else for ever. The largest T is skipped at once: T C is added to the global counts and T
|v'| to the position. All else, also what local counts will look back at, is as it was. Nothing is rounded:
the result is exact, for every program.

*How many.* A block takes at most as many jumps as the product over all ranks e of 1 + |v'| G_e, where G_e is
the number of comparisons of rank e. Consider a longest run of iterations in which no comparison of rank below
e changes. From its iteration w + 1 on, the margins of rank e are affine, and change sign at most once at each
offset. So the run falls into at most 1 + |v'| G_e runs of rank e that end there, and some that end earlier;
these have at most w iterations, too few for a jump. A run of the highest rank has at most one jump, which
ends it or the block. With the short runs, at most w + 1 times the product of 1 + w + |v'| G_e iterations are
read letter by letter.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from lengthwise._messages import one_line, shown
from lengthwise.crasp.nodes import Node
from lengthwise.crasp.program import Program
from lengthwise.crasp.stream import Stream, Value

MOST_LETTERS = 10_000_000
"""An iteration v' of a block may have at most so many letters."""

MOST_DIGITS = 4000
"""A number in the text of a power word may have at most about so many digits."""


@dataclass(frozen=True)
class PowerWord:
    """A word v_1^N_1 v_2^N_2 ...: ``blocks`` are pairs of a word, as symbol numbers, and its repetitions."""

    blocks: tuple[tuple[tuple[int, ...], int], ...]

    def __post_init__(self) -> None:
        for symbols, repetitions in self.blocks:
            if repetitions < 0:
                raise ValueError(f"repetitions must not be negative, got {repetitions}")
            if any(symbol < 0 for symbol in symbols):
                raise ValueError(f"symbol numbers must not be negative, got {min(symbols)}")

    @property
    def length(self) -> int:
        """The number of letters."""
        return sum(len(symbols) * repetitions for symbols, repetitions in self.blocks)


def evaluate_power(program: Program, word: PowerWord) -> bool:
    """Whether a program accepts a power word."""
    return read_power(program, word).accepted()


def power_values(program: Program, word: PowerWord) -> dict[Node, Value]:
    """The value of every node at the last letter of a power word; at position 0 if it has none."""
    return read_power(program, word).values


def read_power(program: Program, word: PowerWord) -> Stream:
    """A stream that has read a power word, and can go on."""
    stream = Stream(program)
    for symbols, repetitions in word.blocks:
        if symbols and repetitions:
            _read_block(stream, symbols, repetitions)
    return stream


def _read_block(stream: Stream, symbols: tuple[int, ...], repetitions: int) -> None:
    """Reads v^N: as many whole iterations as there are, then what is left."""
    length = lcm(stream.program.period, len(symbols))
    iterations, rest = divmod(repetitions, length // len(symbols))
    if length > MOST_LETTERS and len(symbols) * repetitions > MOST_LETTERS:
        raise ValueError(
            f"one iteration of this power has {length} letters, more than {MOST_LETTERS}: "
            "use a program with smaller moduli, or a shorter block"
        )
    # So many iterations must be the same before a jump; if there are no more, plain reading is faster.
    settled = -(-stream.program.locality // length) + 1
    if iterations <= settled:
        iterations, rest = 0, repetitions
    if iterations:
        _iterate(stream, symbols * (length // len(symbols)), iterations, settled)
    for _ in range(rest):
        for symbol in symbols:
            stream.step(symbol)


def _iterate(stream: Stream, letters: tuple[int, ...], iterations: int, settled: int) -> None:
    """Reads the letters so many times, with jumps."""
    signs: list[int] = []
    same = 0
    while iterations:
        before, last = stream.counters(), signs
        signs, room = _read_once(stream, letters)
        iterations -= 1
        same = same + 1 if signs == last else 1
        if same >= settled:
            increments = [after - value for after, value in zip(stream.counters(), before, strict=True)]
            jump = iterations
            for index, slope in enumerate(stream.slopes(increments)):
                if slope and (index, slope < 0) in room:
                    jump = min(jump, room[index, slope < 0] // abs(slope))
            stream.advance(increments, jump)
            iterations -= jump


def _read_once(stream: Stream, letters: tuple[int, ...]) -> tuple[list[int], dict[tuple[int, bool], int]]:
    """Reads the letters once. Returns the signs of all margins at every offset, as the bits of a number; and
    for every comparison, how far those of its margins that are at least 0 can go down (True), and how far the
    others can go up (False), before the first of them changes its sign.
    """
    signs: list[int] = []
    room: dict[tuple[int, bool], int] = {}
    for symbol in letters:
        stream.step(symbol)
        bits = 0
        for index, margin in enumerate(stream.margins()):
            holds = margin >= 0
            bits = 2 * bits + holds
            free = margin if holds else -margin - 1
            room[index, holds] = min(free, room.get((index, holds), free))
        signs.append(bits)
    return signs, room


def parse_power(text: str, alphabet: Sequence[str]) -> PowerWord:
    """The power word that a text such as ``(ab)^1000000000000 a b^3 (aab)^(10^12)`` says.

    Letters stand side by side, and where several fit the longest is read. Spaces do not matter, except that
    they end a number. A power belongs to the letter or the parentheses before it.
    """
    for letter in alphabet:
        if re.search(r"[()^\s]", letter):
            raise ValueError(
                f"letter {shown(letter)} has no place between ( ) ^ and spaces: make a PowerWord instead"
            )
    blocks: list[tuple[tuple[int, ...], int]] = []
    plain: list[int] = []
    at = _past_spaces(text, 0)
    while at < len(text):
        if text[at] == "(":
            group, at = _group(text, at, alphabet)
        elif text[at] in ")^":
            raise ValueError(f"{text[at]} at place {at + 1} follows nothing that it could belong to")
        else:
            symbol, at = _letter(text, at, alphabet)
            group = [symbol]
        repetitions, at = _repetitions(text, _past_spaces(text, at))
        if repetitions is None:
            plain += group
        else:
            blocks += [(tuple(plain), 1)] * bool(plain) + [(tuple(group), repetitions)]
            plain = []
    return PowerWord((*blocks, (tuple(plain), 1)) if plain else tuple(blocks))


def _past_spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _letter(text: str, at: int, alphabet: Sequence[str]) -> tuple[int, int]:
    """The number of the letter here, and the place after it."""
    fits = [letter for letter in alphabet if text.startswith(letter, at)]
    if not fits:
        known = one_line(" ".join(alphabet))
        raise ValueError(f"letter {text[at]!r} at place {at + 1} is not in the alphabet {known}")
    letter = max(fits, key=len)
    return list(alphabet).index(letter), at + len(letter)


def _group(text: str, at: int, alphabet: Sequence[str]) -> tuple[list[int], int]:
    """The letters in the parentheses that open here, and the place after them."""
    end = text.find(")", at)
    inside = text[at + 1 : end]
    if end < 0:
        raise ValueError(f"the parenthesis at place {at + 1} is not closed")
    if "(" in inside or "^" in inside:
        raise ValueError(f"nested powers are not supported: parentheses at place {at + 1} hold letters only")
    group: list[int] = []
    place = _past_spaces(text, at + 1)
    while place < end:
        symbol, place = _letter(text, place, alphabet)
        group.append(symbol)
        place = _past_spaces(text, place)
    if not group:
        raise ValueError(f"the parentheses at place {at + 1} are empty")
    return group, end + 1


def _repetitions(text: str, at: int) -> tuple[int | None, int]:
    """The power that starts here, or None if none does, and the place after it."""
    if not text.startswith("^", at):
        return None, at
    found = re.compile(r"\^\s*(?:([0-9]+)|\(\s*([0-9]+)\s*(?:\^\s*([0-9]+)\s*)?\))").match(text, at)
    if not found:
        raise ValueError(f"the power at place {at + 1} needs a whole number, as in a^3 or a^(10^12)")
    if text.startswith("^", after := _past_spaces(text, found.end())):
        raise ValueError(
            f"nested powers are not supported: at place {after + 1}, write a^(10^12) for numbers"
        )
    base, exponent = found[1] or found[2], found[3] or "1"
    if max(len(base), len(exponent)) <= MOST_DIGITS:
        number, times = int(base), int(exponent)
        if times * number.bit_length() <= 4 * MOST_DIGITS:
            return number**times, after
    raise ValueError(f"the power at place {at + 1} has more than {MOST_DIGITS} digits")
