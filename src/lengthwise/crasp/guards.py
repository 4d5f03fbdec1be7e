"""What the text syntax of C-RASP says of positions: guards of counts, residues, imported predicates.

A guard restricts the positions j that a count at position i looks at: ``j < i``, ``j <= i - 3``,
``i - j == 2``, ``i - j < 4``, ``1 <= i - j <= 3``, ``i - j in {1, 4}``, or the name of an imported one.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial

from lengthwise.crasp import builder
from lengthwise.crasp.builder import Formula, Number
from lengthwise.crasp.tokens import MOST_DIGITS, MOST_DISTANCES, Cursor, Token

Guard = Callable[[Formula], Number]
"""A way to count where a formula holds."""

_IMPORTS = ["pred", "pred2", "pos_even"]


def imported(token: Token) -> Formula | int:
    """What ``#import`` gives to a name: a formula, or the distance of a guard.

    Positions of imported predicates begin at 0, so ``pos_even`` holds where i, from 1, is odd.
    """
    if token.text == "pos_even":
        return builder.mod(2, 1)
    match = re.fullmatch("pred([0-9]*)", token.text)
    if match is None:
        token.unknown("predicate", _IMPORTS)
    if len(match[1]) > MOST_DIGITS:
        token.wrong(f"an integer has more than {MOST_DIGITS} digits")
    return int(match[1] or "1")


def residue(cursor: Cursor) -> Formula:
    """The formula ``i % m == r`` that begins here."""
    cursor.expect("i")
    cursor.expect("%")
    place = cursor.here
    modulus = cursor.integer()
    if modulus < 1:
        place.wrong(f"a modulus must be at least 1, got {modulus}")
    cursor.expect("==")
    place = cursor.here
    value = cursor.integer()
    if value >= modulus:
        place.wrong(f"a residue must be less than its modulus, got {place.shown}")
    return builder.mod(modulus, value)


def guard(cursor: Cursor, known: Mapping[str, int]) -> Guard:
    """The guard that begins here, after its opening bracket, up to its closing one."""
    first = cursor.here
    if cursor.sees("i") or first.kind == "integer":
        found = _local(_distances(cursor), first)
    elif cursor.sees("j"):
        found = _past(cursor)
    elif first.kind == "name":
        if first.text not in known:
            hint = f": #import {first.text} defines it" if re.fullmatch("pred[0-9]*", first.text) else ""
            if hint or not known:
                first.wrong(f"unknown guard {first.shown}{hint}")
            first.unknown("guard", list(known))
        cursor.take()
        found = _local([known[first.text]], first)
    else:
        first.unexpected("a guard such as i - j == 1")
    cursor.expect("]")
    return found


def _local(distances: range | list[int], place: Token) -> Guard:
    most = distances[-1] - distances[0] if isinstance(distances, range) and distances else 0
    if most >= MOST_DISTANCES or len(set(distances)) > MOST_DISTANCES:
        place.wrong(f"a guard holds at most {MOST_DISTANCES} distances")
    return partial(builder.count, at=distances)


def _past(cursor: Cursor) -> Guard:
    """``j < i``, ``j <= i``, ``j <= i - d``."""
    cursor.expect("j")
    if cursor.accept("<"):
        cursor.expect("i")
        return partial(builder.count, strict=True)
    if not cursor.accept("<="):
        cursor.here.unexpected("'<' or '<='")
    cursor.expect("i")
    if not cursor.accept("-"):
        return builder.count
    place = cursor.here
    back = cursor.integer()
    if back > MOST_DISTANCES:
        place.wrong(f"a guard holds at most {MOST_DISTANCES} distances")
    return partial(builder.count, at_least=back)


def _distances(cursor: Cursor) -> range | list[int]:
    """``i - j == d``, ``i - j < d``, ``i - j <= d``, ``i - j in {d, e}``, ``c <= i - j <= d``."""
    least = 0
    between = cursor.here.kind == "integer"
    if between:
        least = cursor.integer()
        cursor.expect("<=")
    for word in ("i", "-", "j"):
        cursor.expect(word)
    if cursor.accept("<="):
        return range(least, cursor.integer() + 1)
    if between:
        cursor.here.unexpected("'<='")
    if cursor.accept("<"):
        return range(cursor.integer())
    if cursor.accept("=="):
        return [cursor.integer()]
    if cursor.accept("in"):
        return _members(cursor)
    cursor.here.unexpected("one of '==', '<', '<=' and 'in'")


def _members(cursor: Cursor) -> list[int]:
    cursor.expect("{")
    found = [cursor.integer()]
    while cursor.accept(","):
        found.append(cursor.integer())
    cursor.expect("}")
    return found
