"""The languages of the formal-language suite of Huang et al. (ICLR 2025), and the tasks of its algorithmic
suite that are languages.

Tomita 3 is read as in that suite: an odd run of 1 must not be *immediately* followed by an odd run of 0. The
other reading, that no odd run of 0 may come anywhere after one, is ``tomita-3-later``. Positions in programs
are counted from 1. Tasks of the suites whose answer is one bit, binary majority and parity, are languages
here: the words whose answer is 1, or "even"; ties, which the suite leaves out, are not accepted.
"""

from collections.abc import Sequence
from functools import partial

from lengthwise.crasp.library.entry import Entry, Suite
from lengthwise.crasp.program import Program
from lengthwise.crasp.syntax import parse
from lengthwise.crasp.tokens import quoted

HEIGHT = 'd = # "a" - # "b"\n'
"""How many more a than b there are, as the first line of a program."""


def language(
    name: str,
    title: str,
    says: str,
    alphabet: str,
    *,
    text: str | None = None,
    regex: str | None = None,
    suite: Suite | None = None,
) -> Entry:
    """A language of words over the characters of ``alphabet``, with the text of its program."""
    return Entry(
        name=name,
        title=title,
        says=says,
        alphabet=tuple(alphabet),
        write=None if text is None else partial(_program, alphabet, text),
        regex=regex,
        suite=suite,
    )


def _program(alphabet: Sequence[str], text: str) -> Program:
    return parse(f"%alphabet {' '.join(map(quoted, alphabet))}\n{text}")


def dyck(height: int) -> Entry:
    """D_n for n at least 1: D_0 has the empty word alone, and D_n = (a D_{n-1} b)*."""
    return language(
        f"dyck-{height}",
        f"D_{height}",
        f"brackets a and b, at most {height} deep",
        "ab",
        text=HEIGHT + f"bad = d < 0 || d > {height}\naccept = # bad == 0 && d == 0",
        regex="(a" * height + "b)*" * height,
        suite="formal" if height in (2, 3, 4, 12) else None,
    )


SUITE = (
    language("tomita-1", "1*", "there is no 0", "01", text='accept = # "0" == 0', regex="1*", suite="formal"),
    language(
        "tomita-2",
        "(10)*",
        "10 is repeated",
        "01",
        text='d = # "1" - # "0"\nbad = d < 0 || d > 1\naccept = # bad == 0 && d == 0',
        regex="(10)*",
        suite="formal",
    ),
    language(
        "tomita-3",
        "Tomita 3",
        "no odd run of 1 just before an odd run of 0",
        "01",
        regex="(0|1(00(00)*1)*1)*(()|1(00(00)*1)*(00)*)",
        suite="formal",
    ),
    language(
        "tomita-4",
        "no 000",
        "000 does not occur",
        "01",
        text='third = "0" && #[i - j in {1, 2}] "0" == 2\naccept = # third == 0',
        regex="(1|01|001)*(()|0|00)",
        suite="formal",
    ),
    language(
        "tomita-5",
        "#0, #1 even",
        "the numbers of 0 and of 1 are even",
        "01",
        regex="(00|11|(01|10)(00|11)*(01|10))*",
        suite="formal",
    ),
    language(
        "tomita-6",
        "#0 = #1 mod 3",
        "as many 0 as 1, modulo 3",
        "01",
        regex="(01|10|(00|1)(10|01)*(11|0))*",
        suite="formal",
    ),
    language(
        "tomita-7",
        "0*1*0*1*",
        "runs of 0, 1, 0 and 1, all may be empty",
        "01",
        text='second = "0" && exists "1"\nthird = "1" && exists second\nfourth = "0" && exists third\n'
        "accept = # fourth == 0",
        regex="0*1*0*1*",
        suite="formal",
    ),
    *map(dyck, (2, 3, 4, 12)),
    language(
        "aa-star",
        "(aa)*",
        "the length is even",
        "a",
        text="accept = i % 2 == 0",
        regex="(aa)*",
        suite="formal",
    ),
    language(
        "aaaa-star",
        "(aaaa)*",
        "the length is a multiple of 4",
        "a",
        text="accept = i % 4 == 0",
        regex="(aaaa)*",
        suite="formal",
    ),
    language(
        "abab-star",
        "(abab)*",
        "abab is repeated",
        "ab",
        text='bad = ("a" && i % 2 == 0) || ("b" && i % 2 == 1)\naccept = # bad == 0 && i % 4 == 0',
        regex="(abab)*",
        suite="formal",
    ),
    language(
        "aa-bb-cc-dd-ee",
        "aa*bb*cc*dd*ee*",
        "runs of a, b, c, d and e, none is empty",
        "abcde",
        text='late = ("a" && exists ("b" || "c" || "d" || "e")) || ("b" && exists ("c" || "d" || "e")) '
        '|| ("c" && exists ("d" || "e")) || ("d" && exists "e")\n'
        'accept = # late == 0 && exists "a" && exists "b" && exists "c" && exists "d" && exists "e"',
        regex="aa*bb*cc*dd*ee*",
        suite="formal",
    ),
    language(
        "ab-d-bc",
        "{a,b}*d{b,c}*",
        "one d, no c before it, no a after it",
        "abcd",
        text='bad = ("c" && # "d" == 0) || ("a" && exists "d")\naccept = # bad == 0 && # "d" == 1',
        regex="(a|b)*d(b|c)*",
        suite="formal",
    ),
    language(
        "012-02",
        "{0,1,2}*02*",
        "the last letter other than 2 is 0",
        "012",
        regex="(0|1|2)*02*",
        suite="formal",
    ),
)
"""The formal-language suite, but for parity."""

ONE_BIT = {
    "binary-majority": language(
        "binary-majority",
        "#1 > #0",
        "1 occurs more often than 0",
        "01",
        text='accept = # "1" > # "0"',
        suite="algorithmic",
    ),
    "parity": language(
        "parity", "PARITY", "the number of 1 is even", "01", regex="0*(10*10*)*", suite="both"
    ),
}
"""Tasks of the algorithmic suite whose answer is one bit."""
