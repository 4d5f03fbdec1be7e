"""Learning C-RASP programs: functions that are asked about words, and regular expressions.

Prints a row a task: whether a program was found, what is known of it, how long that took, its size, and the
program. The last two functions are controls: no program without positions accepts them.

    python benchmarks/crasp_learning.py [SECONDS] [SEED]

SECONDS, 30 if not given, is the time limit of a task.
"""

import re
import sys
from collections.abc import Callable

from lengthwise.crasp import Learned, Shape, compile_regex, learn, text_of

Language = Callable[[str], bool]


def matches(regex: str) -> Language:
    """Whether a word matches an expression of Python's."""
    compiled = re.compile(regex)
    return lambda word: compiled.fullmatch(word) is not None


def nested(most: int | None = None) -> Language:
    """Whether brackets a and b are balanced, nested at most so deep."""

    def holds(word: str) -> bool:
        depth = 0
        for letter in word:
            depth += 1 if letter == "a" else -1
            if depth < 0 or (most is not None and depth > most):
                return False
        return depth == 0

    return holds


def three_alike(word: str) -> bool:
    """Whether a word is a^n b^n c^n."""
    third = len(word) // 3
    return word == "a" * third + "b" * third + "c" * third


FUNCTIONS: dict[str, tuple[str, Language, Shape]] = {
    "majority": ("01", lambda word: word.count("1") > word.count("0"), Shape()),
    "1*": ("01", matches("1*"), Shape()),
    "a*b*": ("ab", matches("a*b*"), Shape()),
    "(ab)*": ("ab", matches("(ab)*"), Shape()),
    "Dyck-1": ("ab", nested(), Shape()),
    "D_2": ("ab", nested(2), Shape()),
    "D_3": ("ab", nested(3), Shape()),
    "a^n b^n c^n": ("abc", three_alike, Shape()),
    "{a,b}*d{b,c}*": ("abcd", matches("[ab]*d[bc]*"), Shape()),
    "Tomita 4, distances 1 2": ("01", lambda word: "000" not in word, Shape(distances=(1, 2))),
    "(aa)* over a b, modulus 2": ("ab", matches("(aa)*"), Shape(moduli=(2,))),
    "control: PARITY": ("ab", lambda word: word.count("a") % 2 == 0, Shape()),
    "control: S*aaS*": ("ab", lambda word: "aa" in word, Shape()),
}

REGULAR: dict[str, tuple[str, Shape]] = {
    "a*b*": ("ab", Shape()),
    "(ab)*": ("ab", Shape()),
    "(a(ab)*b)*": ("ab", Shape()),
    "(a(a(ab)*b)*b)*": ("ab", Shape()),
    "(ab|ba)*": ("ab", Shape()),
    "(ab|bbaa)*": ("ab", Shape()),
    "0*1*0*1*": ("01", Shape()),
    "(a|b)*d(b|c)*": ("abcd", Shape()),
    "(1|01|001)*(0|00)?": ("01", Shape(distances=(1,))),
    "b*(ab*ab*)*": ("ab", Shape()),
}


def row(name: str, learned: Learned, size: str) -> str:
    """A line of the table."""
    known = f"up to {learned.checked}" if learned.known == "checked" else learned.known
    text = ""
    if learned.found and learned.program is not None:
        lines = text_of(learned.program).strip().split("\n")
        text = "; ".join(line for line in lines if not line.startswith("%"))
    return (
        f"{name:<27}{'yes' if learned.found else 'no':<7}{known:<11}{learned.seconds:>7.1f}  {size:<9}{text}"
    )


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    print(f"{'function':<27}{'found':<7}{'known':<11}{'seconds':>7}  {'size':<9}program")
    for name, (letters, function, shape) in FUNCTIONS.items():
        learned = learn(function, letters, seconds=seconds, seed=seed, shape=shape)
        size = str(learned.program.size) if learned.found and learned.program is not None else ""
        print(row(name, learned, size), flush=True)
    print(f"\n{'regular expression':<27}{'found':<7}{'known':<11}{'seconds':>7}  {'size':<9}program")
    for regex, (letters, shape) in REGULAR.items():
        learned = learn(compile_regex(regex, letters), seconds=seconds, seed=seed, shape=shape)
        size = ""
        if learned.program is not None and learned.verdict is not None:
            size = f"{learned.verdict.details['extracted_size']} > {learned.program.size}"
        print(row(regex, learned, size), flush=True)


if __name__ == "__main__":
    main()
