"""The suites in plain Python: languages as predicates, answers as functions of inputs, streams as lists."""

import re
from functools import cache
from itertools import groupby, product


def runs(word):
    return [(letter, len(list(group))) for letter, group in groupby(word)]


def tomita_3(word):
    pairs = list(zip(runs(word), runs(word)[1:], strict=False))
    return not any(a == "1" and m % 2 and n % 2 for (a, m), (_, n) in pairs)


def dyck(height):
    def member(word):
        depth = 0
        for letter in word:
            depth += 1 if letter == "a" else -1
            if not 0 <= depth <= height:
                return False
        return depth == 0

    return member


def around_d(word):
    before, found, after = word.partition("d")
    return bool(found) and set(before) <= set("ab") and set(after) <= set("bc")


LANGUAGES = {
    "tomita-1": ("01", lambda w: "0" not in w),
    "tomita-2": ("01", lambda w: w == "10" * (len(w) // 2)),
    "tomita-3": ("01", tomita_3),
    "tomita-4": ("01", lambda w: "000" not in w),
    "tomita-5": ("01", lambda w: w.count("0") % 2 == 0 and w.count("1") % 2 == 0),
    "tomita-6": ("01", lambda w: (w.count("0") - w.count("1")) % 3 == 0),
    "tomita-7": ("01", lambda w: len(runs("0" + w)) <= 4),
    "dyck-2": ("ab", dyck(2)),
    "dyck-3": ("ab", dyck(3)),
    "dyck-4": ("ab", dyck(4)),
    "dyck-12": ("ab", dyck(12)),
    "aa-star": ("a", lambda w: len(w) % 2 == 0),
    "aaaa-star": ("a", lambda w: len(w) % 4 == 0),
    "abab-star": ("ab", lambda w: w == "abab" * (len(w) // 4)),
    "aa-bb-cc-dd-ee": ("abcde", re.compile("a+b+c+d+e+").fullmatch),
    "ab-d-bc": ("abcd", around_d),
    "012-02": ("012", lambda w: w.rstrip("2").endswith("0")),
    "parity-language": ("01", lambda w: w.count("1") % 2 == 0),
}
"""Alphabet and membership."""

MORE = {"dyck-12": 9, "ab-d-bc": 1, "012-02": 1}
"""How many letters may be missing to a word, after at most 8 letters and one more: 9 brackets, one d
or one 0; at most 4 of the others.
"""


@cache
def strings(alphabet, length):
    return ["".join(letters) for letters in product(alphabet, repeat=length)]


@cache
def words(name, length):
    """All words of a length."""
    alphabet, member = LANGUAGES[name]
    return [word for word in strings(alphabet, length) if member(word)]


def following(name, prefix):
    """For every letter whether some word goes on with it, and whether the prefix is a word."""
    alphabet, member = LANGUAGES[name]
    more = range(MORE.get(name, 4) + 1)

    def goes_on(letter):
        return any(member(prefix + letter + rest) for length in more for rest in strings(alphabet, length))

    return [*map(goes_on, alphabet), bool(member(prefix))]


def majority_bit(bits):
    return "1" if 2 * bits.count("1") > len(bits) else "0"


def addition(symbols):
    first, second = "".join(symbols).split("+")
    return list(format(int(first, 2) + int(second, 2), "b"))


ANSWERS = {
    "binary-majority": lambda x: [majority_bit(x)],
    "majority": lambda x: [max(set(x), key=x.count)],
    "binary-majority-interleaved": lambda x: [majority_bit(x[start::3]) for start in range(3)],
    "copy-unique": list,
    "copy-repeat": list,
    "sort": lambda x: sorted(x, key=int),
    "parity": lambda x: ["odd" if x.count("1") % 2 else "even"],
    "addition": addition,
}
"""The answer to a list of symbols."""


def tie(bits):
    return 2 * bits.count("1") == len(bits)


def legal(name, symbols):
    """Whether a list of symbols is an input of the task."""
    if name == "binary-majority":
        return not tie(symbols)
    if name == "binary-majority-interleaved":
        whole = len(symbols) >= 3 and len(symbols) % 3 == 0
        return whole and not any(tie(symbols[start::3]) for start in range(3))
    if name == "majority":
        often = sorted((symbols.count(letter) for letter in set(symbols)), reverse=True)
        return len(often) == 1 or often[0] > often[1]
    if name in ("copy-unique", "sort"):
        return len(set(symbols)) == len(symbols)
    if name == "addition":
        numbers = "".join(symbols).split("+")
        return len(numbers) == 2 and all(number.startswith("1") for number in numbers)
    return True


def separator(name):
    return "=" if name == "addition" else "<sep>"


def stream(name, symbols):
    """All symbols of the stream of an input, and the places, from 0, after which one is predicted."""
    answer = ANSWERS[name](symbols)
    read = ["<bos>", *symbols, separator(name), *answer]
    return [*read, "<eos>"], list(range(len(symbols) + 1, len(read)))
