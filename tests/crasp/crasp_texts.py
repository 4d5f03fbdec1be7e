"""C-RASP programs as text, each with its language in plain Python, and values of programs by definition."""

import re
from collections import Counter

import numpy as np

from lengthwise.crasp import nodes

HEIGHT = 'd = # "a" - # "b"\n'


def truth(program, words, name="accept"):
    """Whether an output holds: a row for each of some words of the same length, a column for each position,
    and for one more under "eos".
    """
    letters = np.array([list(word) for word in words], dtype=object)
    if program.mode == "eos":
        letters = np.concatenate([letters, np.full((len(letters), 1), None)], axis=1)
    rows = {}
    for node in nodes.in_order([program.root(name)]):
        rows[node] = _values(node, rows, letters)
    return rows[program.root(name)]


def _values(node, rows, letters):
    match node:
        case nodes.True_():
            return np.ones(letters.shape, dtype=bool)
        case nodes.Sym():
            return letters == node.letter
        case nodes.Mod():
            positions = np.broadcast_to(np.arange(1, letters.shape[1] + 1), letters.shape)
            return positions % node.modulus == node.residue
        case nodes.Not():
            return ~rows[node.operand]
        case nodes.And():
            return np.all([rows[one] for one in node.operands], axis=0)
        case nodes.Or():
            return np.any([rows[one] for one in node.operands], axis=0)
        case nodes.Ge():
            return sum(alpha * rows[one] for one, alpha in node.terms) >= -node.constant
        case nodes.Count() if node.distances is None:
            return np.cumsum(rows[node.operand], axis=1)
        case nodes.Count():
            held = rows[node.operand].astype(int)
            return sum(np.pad(held, ((0, 0), (d, 0)))[:, : letters.shape[1]] for d in node.distances)


def dyck(highest):
    """Whether a and b nest like brackets, to at most so many levels."""

    def accepted(word):
        heights = [word[:i].count("a") - word[:i].count("b") for i in range(len(word) + 1)]
        return min(heights) >= 0 and max(heights) <= highest and heights[-1] == 0

    return accepted


def matches(pattern):
    """Membership in a regular expression."""
    return re.compile(f"({pattern})\\Z").match


def a_power_n(letters):
    """Whether a word is a^n b^n c^n, for these letters."""
    return lambda word: word == "".join(letter * (len(word) // len(letters)) for letter in letters)


def in_order_each(letters):
    """aa*bb*cc*..., as text."""
    late = [
        f'("{letter}" && exists ({" || ".join(map(_letter, letters[place:]))}))'
        for place, letter in enumerate(letters[:-1], start=1)
    ]
    all_there = " && ".join(f'# "{letter}" >= 1' for letter in letters)
    return f"bad = {' || '.join(late)}\naccept = # bad == 0 && {all_there}"


def _letter(letter):
    return f'"{letter}"'


LANGUAGES = {
    "binary majority": ("01", 'accept = # "1" > # "0"', lambda w: w.count("1") > w.count("0"), 9),
    "Dyck-1": ("ab", HEIGHT + "accept = # (d < 0) == 0 && d == 0", dyck(99), 11),
    **{
        f"D_{n}": ("ab", HEIGHT + f"accept = # (d < 0 || d > {n}) == 0 && d == 0", dyck(n), 10)
        for n in (1, 2, 3, 4, 12)
    },
    "a^n b^n c^n": (
        "abc",
        'late = ("a" && exists ("b"||"c")) || ("b" && exists "c")\n'
        'accept = # late == 0 && # "a" == # "b" && # "b" == # "c"',
        a_power_n("abc"),
        7,
    ),
    "(aa)* of one letter": ("a", "accept = i % 2 == 0", lambda w: len(w) % 2 == 0, 14),
    "(aa)* of two letters": ("ab", 'accept = # "b" == 0 && i % 2 == 0', matches("(aa)*"), 9),
    "(aaaa)*": ("a", "accept = i % 4 == 0", lambda w: len(w) % 4 == 0, 14),
    "(abab)*": (
        "ab",
        'bad = ("a" && i % 2 == 0) || ("b" && i % 2 == 1)\naccept = # bad == 0 && i % 4 == 0',
        matches("(abab)*"),
        10,
    ),
    "Tomita 1": ("01", 'accept = # "0" == 0', matches("1*"), 9),
    "Tomita 2": (
        "01",
        'd = # "1" - # "0"\naccept = # (d < 0 || d > 1) == 0 && d == 0',
        matches("(10)*"),
        10,
    ),
    "Tomita 4": (
        "01",
        'z = "0" && # [i - j in { 1 , 2 }] "0" == 2\naccept = # z == 0',
        lambda w: "000" not in w,
        10,
    ),
    "Tomita 7": (
        "01",
        'a1 = "0" && exists "1"\nb1 = "1" && exists a1\nc1 = "0" && exists b1\naccept = # c1 == 0',
        matches("0*1*0*1*"),
        10,
    ),
    "aa*bb*cc*dd*ee*": ("abcde", in_order_each("abcde"), matches("a+b+c+d+e+"), 6),
    "{a,b}*d{b,c}*": (
        "abcd",
        'bad = ("c" && # "d" == 0) || ("a" && exists "d")\naccept = # bad == 0 && # "d" == 1',
        matches("[ab]*d[bc]*"),
        6,
    ),
    "contains aa": ("ab", 'p = "a" && prev "a"\naccept = exists p', lambda w: "aa" in w, 10),
    "(ab+ba)*": (
        "ab",
        HEIGHT + "accept = # (d > 1 || d < 0 - 1) == 0 && d == 0",
        matches("(ab|ba)*"),
        10,
    ),
    "(ab+ba)*, unary minus": (
        "ab",
        HEIGHT + "accept = # (d > 1 || d < -1) == 0 && d == 0",
        matches("(ab|ba)*"),
        10,
    ),
    "(ab+bbaa)*": (
        "ab",
        HEIGHT + 'bad = d < -2 || d > 1 || (d == 0 && # (d == -1 && "b") != # (d == -2))\n'
        "accept = # bad == 0 && d == 0",
        matches("(ab|bbaa)*"),
        12,
    ),
}
"""Name: alphabet, text, whether a word belongs, and the length up to which all words are tried."""

OTHER_TOOL = {
    "brackets": (
        "()",
        'up = # "("\ndown = # ")"\nbelow = up < down\nnever = (# below == 0)\n'
        "// balanced in the end\nsame = (up == down)\nanswer = never && same\n",
        lambda w: dyck(99)(w.replace("(", "a").replace(")", "b")),
        10,
    ),
    "even length, positions from 0": (
        "a",
        '\n\n#import pos_even\nothers = # !"a"\nall_a = (others == 0)\nlast = !pos_even && all_a\n',
        lambda w: len(w) % 2 == 0,
        9,
    ),
    "contains ab": (
        "ab",
        '#import pred\nafter = #[pred] "a"\nhere = "b" && (after >= 1)\nfound = (#here >= 1)',
        lambda w: "ab" in w,
        9,
    ),
    "every letter three places later again": (
        "ab",
        '#import pred3\na3 = "a" && ((#[pred3] "a") == 1)\nb3 = "b" && ((#[pred3] "b") == 1)\n'
        "all = #true\ncopied = #a3 + #b3\nx = (copied + 3 == all)\n",
        lambda w: len(w) >= 3 and w[3:] == w[:-3],
        9,
    ),
    "conditional, minimum and maximum": (
        "ab",
        'here = (1 if "a" else 0)\nbefore = #"a" - here\nmost = max(#"a", #"b")\nleast = min(#"a", #"b")\n'
        'x = (most - least <= 1) && !(before != #true - 1 - #"b" + (1 if "b" else 0))',
        lambda w: abs(w.count("a") - w.count("b")) <= 1,
        9,
    ),
}
"""Programs in the forms of the coli-saar tool alone; columns as in ``LANGUAGES``."""


def _any(parts):
    return "(" + " || ".join(parts) + ")" if parts else "false"


def _all(parts):
    return " && ".join(parts) if parts else "true"


def majority_text(letters):
    """The most frequent letter of B x S, the first one among equals."""
    lines = []
    for place, a in enumerate(letters):
        most = [
            f'# "{a}" {">" if at < place else ">="} # "{b}"' for at, b in enumerate(letters) if at != place
        ]
        lines.append(f'NEXT["{a}"] = "S" && {_all(most)}')
    lines.append(f'NEXT["E"] = # "S" == 1 && {_any([_letter(a) for a in letters])}')
    return "\n".join(lines)


def copy_text(letters):
    """x again after B x S, where no letter of x occurs twice."""

    def follows(a, b):
        return f'exists ("{b}" && prev "{a}")'

    lines = ['once = # "S" == 1']
    for a in letters:
        after = [f'("S" && {follows("B", a)})', *(f'("{s}" && {follows(s, a)})' for s in letters)]
        lines.append(f'NEXT["{a}"] = once && {_any(after)}')
    ends = [f'("{s}" && {follows(s, "S")})' for s in letters]
    lines.append(f'NEXT["E"] = once && {_any(ends)}')
    return "\n".join(lines)


def sort_text(letters):
    """The letters of x in order after B x S, where no letter of x occurs twice."""
    lines = []
    for place, a in enumerate(letters):
        none_below = _all([f'# "{b}" == 0' for b in letters[:place]])
        ways = [f'("S" && {none_below})']
        for at, c in enumerate(letters[:place]):
            none_between = _all([f'# "{b}" == 0' for b in letters[at + 1 : place]])
            ways.append(f'("{c}" && {none_between})')
        lines.append(f'NEXT["{a}"] = # "S" == 1 && # "{a}" >= 1 && {_any(ways)}')
    ends = [
        f'("{c}" && {_all([f"# {_letter(b)} == 0" for b in letters[at + 1 :]])})'
        for at, c in enumerate(letters)
    ]
    lines.append(f'NEXT["E"] = # "S" == 1 && {_any(ends)}')
    return "\n".join(lines)


def multisort_text(letters):
    """The letters of x in order after B x S, as often as they occur."""
    lines = []
    for a in letters:
        lines.append(f'pre_{a} = # ("{a}" && # "S" == 0)')
        lines.append(f'post_{a} = # ("{a}" && # "S" == 1)')
    for place, a in enumerate(letters):
        done = _all([f"post_{b} >= pre_{b}" for b in letters[:place]])
        lines.append(f'NEXT["{a}"] = # "S" == 1 && post_{a} < pre_{a} && {done}')
    done = _all([f"post_{b} >= pre_{b}" for b in letters])
    lines.append(f'NEXT["E"] = # "S" == 1 && {done}')
    return "\n".join(lines)


def most_frequent(word):
    """The expected output of ``majority_text``."""
    counts = Counter(word)
    return [min(counts, key=lambda letter: (-counts[letter], letter))]


PREDICTORS = {
    "majority": majority_text("ab"),
    "unique copy": copy_text("abc"),
    "sort distinct": sort_text("abcd"),
    "sort": multisort_text("abc"),
}

ALL_TEXTS = [
    *(f"%alphabet {' '.join(map(_letter, row[0]))}\n{row[1]}" for row in LANGUAGES.values()),
    *(row[1] for row in OTHER_TOOL.values()),
    *PREDICTORS.values(),
]
"""All of them, as whole programs."""
