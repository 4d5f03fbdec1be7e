"""The tasks of the algorithmic suite of Huang et al. (ICLR 2025), and their families.

Two arguments show what no program can do. Both look at what a program keeps while it reads a word letter by
letter: its global counts, the values of some formulas at the last few positions, and the position modulo its
period. Nothing else has a part in what it predicts from there on.

*Few states.* After n letters each of the G global counts is between 0 and n, so that there are at most
C (n + 1)^G such states, where C is a constant of the program. The state at the separator decides the whole
answer, since from there on the program reads what it has predicted. But words of n letters a and b have 2^n
different copies, and two numbers of n bits that begin with 1 have 2^n - 1 different sums. For large n that is
more than there are states. So neither copying with repetitions nor addition is in C-RASP[periodic,local].

*Equal counts.* Let a program have neither moduli nor distances; then it keeps its global counts alone. Write
A for 01 and B for 10, and let k and N be multiples of 3. After the inputs (A^k B)^N BAA 111 and
(A^k B)^N ABA 111 the program is in the same state if k is large enough for it, and then N for k. But of the
three strings that are interleaved in them, equally long and without a tie, the first has three 1 more than 0
in the first input, and one 1 less than 0 in the second. So the three majorities are not in C-RASP.

For the proof, let the type of a position before 111 be whether it is in an A or a B, and its first or second
letter there. *From some power of A^k B on, which may depend on k but not on N, the type decides every
formula.* This is so for letters. Let it be so for all that a comparison counts, and for all indicators in it.
Then from some power on its sum is c + a #A + b #B + f, where #A and #B are the numbers of blocks that have
been read, f depends on the type, c on k, and a, b and f are among finitely many, whatever k is: which types
satisfy what is counted determines them. Take k larger than all |b|. Then a k + b = 0 only if a = b = 0. In
this case the type decides the sum. In the other the sum grows or falls by a k + b with each power of A^k B,
and by a bounded number within one and in BAA or ABA; after enough powers it keeps its sign. In both inputs as
many positions of each type come before 111, so that all counts are equal there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from string import ascii_lowercase

from lengthwise.crasp.library import functions
from lengthwise.crasp.library.entry import Entry, Suite
from lengthwise.crasp.library.functions import stream_alphabet
from lengthwise.crasp.library.languages import ONE_BIT, dyck
from lengthwise.crasp.program import Program

TOKENS = 150
"""The suite's copying and sorting tasks have so many tokens, 0 to 149."""

MOST_TOKENS = 200
"""The families of copying and sorting go so far: the text of a sorting program grows with the square."""

_FEW_STATES = "a program has polynomially many states after n letters, the task exponentially many answers"
_EQUAL_COUNTS = (
    "with A = 01 and B = 10, (A^k B)^N BAA 111 and (A^k B)^N ABA 111 look the same for large k and N"
)


@dataclass(frozen=True)
class Family:
    """Entries ``name-N`` for N from ``least`` to ``most``, and ``about`` what they are."""

    name: str
    about: str
    least: int
    most: int
    make: Callable[[int], Entry]


def _numbers(size: int) -> tuple[str, ...]:
    return tuple(map(str, range(size)))


def _function(
    name: str,
    title: str,
    says: str,
    letters: Sequence[str],
    write: Callable[[Sequence[str]], Program],
    *,
    write_without: Callable[[Sequence[str]], Program] | None = None,
    finite: bool = False,
    suite: Suite | None = None,
) -> Entry:
    return Entry(
        name=name,
        title=title,
        says=says,
        alphabet=stream_alphabet(letters),
        write=partial(write, tuple(letters)),
        write_without=None if write_without is None else partial(write_without, tuple(letters)),
        finite=finite,
        suite=suite,
    )


def majority(size: int, name: str | None = None, suite: Suite | None = None) -> Entry:
    """The most frequent of some letters from a on."""
    says = f"the most frequent of {size} letters"
    letters = ascii_lowercase[:size]
    return _function(name or f"majority-{size}", "majority", says, letters, functions.majority, suite=suite)


def copy_unique(size: int, name: str | None = None, suite: Suite | None = None) -> Entry:
    """Copying an input without repetitions, by counting."""
    return _function(
        name or f"copy-unique-{size}",
        "copy, unique",
        f"the input again; {size} tokens, none twice",
        _numbers(size),
        functions.copy_unique,
        finite=True,
        suite=suite,
    )


def copy_unique_local(size: int) -> Entry:
    """Copying an input without repetitions, by looking up what followed the present token."""
    return _function(
        f"copy-unique-local-{size}",
        "copy, by bigrams",
        f"copy-unique-{size} by what followed each token",
        _numbers(size),
        functions.copy_unique_local,
        write_without=functions.copy_unique,
        finite=True,
    )


def sort(size: int, name: str | None = None, suite: Suite | None = None) -> Entry:
    """Sorting an input without repetitions."""
    return _function(
        name or f"sort-{size}",
        "sort",
        f"the input sorted; {size} tokens, none twice",
        _numbers(size),
        functions.sort_distinct,
        finite=True,
        suite=suite,
    )


def sort_repeat(size: int) -> Entry:
    """Sorting an input with repetitions."""
    says = f"the input sorted; {size} tokens that may repeat"
    return _function(f"sort-repeat-{size}", "sort, repeated", says, _numbers(size), functions.sort_repeated)


SUITE = (
    ONE_BIT["binary-majority"],
    majority(len(ascii_lowercase), "majority", "algorithmic"),
    Entry(
        name="binary-majority-interleaved",
        title="three majorities",
        says="the majority bits of three interleaved strings",
        alphabet=stream_alphabet("01"),
        write=functions.interleaved_majority,
        not_without=_EQUAL_COUNTS,
        suite="algorithmic",
    ),
    copy_unique(TOKENS, "copy-unique", "algorithmic"),
    Entry(
        name="copy-repeat",
        title="copy, repeated",
        says="the input again, a word of a and b",
        alphabet=stream_alphabet("ab"),
        not_with=_FEW_STATES,
        suite="algorithmic",
    ),
    sort(TOKENS, "sort", "algorithmic"),
    ONE_BIT["parity"],
    Entry(
        name="addition",
        title="x + y, binary",
        says="the sum of two binary numbers, high bit first",
        alphabet=(functions.BEGIN, "0", "1", "+", "="),
        not_with=_FEW_STATES,
        suite="algorithmic",
    ),
)
"""The algorithmic suite."""

OTHERS = (copy_unique_local(5), sort_repeat(3))
"""Tasks of no suite."""

FAMILIES = (
    Family("dyck", "brackets nested at most N deep", 1, 1000, dyck),
    Family("majority", "the most frequent of N letters", 2, len(ascii_lowercase), majority),
    Family("copy-unique", "copy N tokens, each at most once", 1, MOST_TOKENS, copy_unique),
    Family("copy-unique-local", "the same, by what followed", 1, 40, copy_unique_local),
    Family("sort", "sort N tokens, each at most once", 1, MOST_TOKENS, sort),
    Family("sort-repeat", "sort N tokens that may repeat", 1, MOST_TOKENS, sort_repeat),
)
"""The families, by the names that their members begin with."""
