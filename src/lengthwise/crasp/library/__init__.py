"""Programs by name, for the tasks and languages of the suites of Huang et al. (ICLR 2025) and some others.

::

    entry = named("dyck-2")
    entry.program("aabb")          # True
    entry.in_crasp.answer          # True: a program without positions does it
    named("aa-star").in_crasp      # no, by the decision procedure; in_positional: yes
    named("parity").program        # None, and in_positional.method says why

``names()`` has every name of its own; families go on with other numbers, as in dyck-7 (also D_7), majority-5
and sort-20. ``dyck-N`` has brackets at most N deep, so that dyck-1 is (ab)*; ``dyck`` has them of any depth.
"""

import re
from difflib import get_close_matches
from functools import cache

from lengthwise.crasp.library import borders, languages, tasks
from lengthwise.crasp.library.entry import Entry
from lengthwise.crasp.library.tasks import FAMILIES, Family

__all__ = ["FAMILIES", "Entry", "Family", "named", "names"]

_ENTRIES = {
    entry.name: entry for entry in (*tasks.SUITE, *languages.SUITE, *borders.LANGUAGES, *tasks.OTHERS)
}


def names() -> list[str]:
    """The names of the library: those of the suites first, then the others."""
    return list(_ENTRIES)


@cache
def named(name: str) -> Entry:
    """The entry of this name; ``ValueError``, with the name that was meant, if there is none."""
    if name in _ENTRIES:
        return _ENTRIES[name]
    found = re.fullmatch(r"D_([0-9]+)|([a-z-]+)-([0-9]+)", name)
    if found:
        first, digits = found[2] or "dyck", found[1] or found[3]
        family = next((family for family in FAMILIES if family.name == first), None)
        if family is not None:
            return _member(family, digits)
    close = get_close_matches(name, _meant(name), n=1, cutoff=0.5)
    raise ValueError(f"the library has no {name!r}{f'; did you mean {close[0]!r}?' if close else ''}")


def _member(family: Family, digits: str) -> Entry:
    if len(digits) > len(str(family.most)) or not family.least <= int(digits) <= family.most:
        raise ValueError(
            f"the programs {family.name}-N go from {family.name}-{family.least} to "
            f"{family.name}-{family.most}, got {family.name}-{digits}"
        )
    own = f"{family.name}-{int(digits)}"
    return _ENTRIES[own] if own in _ENTRIES else family.make(int(digits))


def _meant(name: str) -> list[str]:
    """All names, and those members of families that have the number of a name."""
    number = re.search(r"[0-9]+\Z", name)
    return names() + [f"{family.name}-{number[0]}" for family in FAMILIES if number]
