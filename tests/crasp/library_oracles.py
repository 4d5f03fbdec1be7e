"""What the entries of the library mean, in plain Python: no automaton, no program, no regular expression."""

from itertools import groupby, pairwise


def runs(word):
    """The letters of the runs of a word, with their lengths."""
    return [(letter, len(list(same))) for letter, same in groupby(word)]


def heights(word):
    """How many more a than b every prefix has, the empty one included."""
    found = [0]
    for letter in word:
        found.append(found[-1] + (1 if letter == "a" else -1))
    return found


def brackets(deepest):
    """Whether a and b are balanced, nested at most so deep."""
    return lambda word: min(heights(word)) >= 0 and max(heights(word)) <= deepest and heights(word)[-1] == 0


def blocks(*allowed):
    """Whether a word falls into blocks, of which none is the beginning of another."""

    def holds(word):
        while word:
            block = next((one for one in allowed if word.startswith(one)), None)
            if block is None:
                return False
            word = word[len(block) :]
        return True

    return holds


def repeated(part):
    """Whether a word is a power of a part."""
    return lambda word: word == part * (len(word) // len(part))


def tomita_3(word):
    """No odd run of 1 immediately before an odd run of 0."""
    return not any(
        one == "1" and length % 2 and after % 2 for (one, length), (_, after) in pairwise(runs(word))
    )


def tomita_3_later(word):
    """No odd run of 0 anywhere after an odd run of 1."""
    seen = False
    for letter, length in runs(word):
        if letter == "0" and length % 2 and seen:
            return False
        seen = seen or (letter == "1" and length % 2 == 1)
    return True


def tomita_7(word):
    """Four runs at most, of 0, 1, 0 and 1 in this order."""
    return len(runs(word)) <= (3 if word.startswith("1") else 4)


def one_d(word):
    """One d, a and b before it, b and c after it."""
    before, _, after = word.partition("d")
    return word.count("d") == 1 and set(before) <= set("ab") and set(after) <= set("bc")


LANGUAGES = {
    "binary-majority": ("01", lambda w: w.count("1") > w.count("0")),
    "parity": ("01", lambda w: w.count("1") % 2 == 0),
    "tomita-1": ("01", lambda w: "0" not in w),
    "tomita-2": ("01", repeated("10")),
    "tomita-3": ("01", tomita_3),
    "tomita-4": ("01", lambda w: "000" not in w),
    "tomita-5": ("01", lambda w: w.count("0") % 2 == w.count("1") % 2 == 0),
    "tomita-6": ("01", lambda w: (w.count("0") - w.count("1")) % 3 == 0),
    "tomita-7": ("01", tomita_7),
    "dyck-2": ("ab", brackets(2)),
    "dyck-3": ("ab", brackets(3)),
    "dyck-4": ("ab", brackets(4)),
    "dyck-12": ("ab", brackets(12)),
    "aa-star": ("a", lambda w: len(w) % 2 == 0),
    "aaaa-star": ("a", lambda w: len(w) % 4 == 0),
    "abab-star": ("ab", repeated("abab")),
    "aa-bb-cc-dd-ee": ("abcde", lambda w: [letter for letter, _ in runs(w)] == list("abcde")),
    "ab-d-bc": ("abcd", one_d),
    "012-02": ("012", lambda w: w.rstrip("2").endswith("0")),
    "dyck": ("ab", brackets(float("inf"))),
    "dyck-1": ("ab", repeated("ab")),
    "an-bn-cn": ("abc", lambda w: w == "".join(letter * (len(w) // 3) for letter in "abc")),
    "aa-star-ab": ("ab", repeated("aa")),
    "ab-ba-star": ("ab", blocks("ab", "ba")),
    "ab-bba-star": ("ab", blocks("ab", "bba")),
    "ab-bbaa-star": ("ab", blocks("ab", "bbaa")),
    "ab-aabb-star": ("ab", blocks("ab", "aabb")),
    "contains-a": ("ab", lambda w: "a" in w),
    "starts-with-a": ("ab", lambda w: w.startswith("a")),
    "ends-in-a": ("ab", lambda w: w.endswith("a")),
    "a-to-b": ("ab", lambda w: w.startswith("a") and w.endswith("b")),
    "contains-aa": ("ab", lambda w: "aa" in w),
    "contains-ab": ("ab", lambda w: "ab" in w),
    "contains-ab-abc": ("abc", lambda w: "ab" in w),
    "flip-flop": ("abe", lambda w: w.rstrip("e").endswith("b")),
    "tomita-3-later": ("01", tomita_3_later),
}
"""The alphabet of every language of the library, and whether a word is in it."""


def majority(word):
    """The most frequent letter, the first of the alphabet among equals."""
    return [max(sorted(set(word)), key=word.count)]


def three_majorities(word):
    """The majority bits of three interleaved strings, 0 for a tie."""
    strings = [list(word)[start::3] for start in range(3)]
    return ["1" if one.count("1") > one.count("0") else "0" for one in strings]


def copied(word):
    """The word again."""
    return list(word)


def in_order(word):
    """The tokens, which are numbers, in ascending order."""
    return [str(number) for number in sorted(map(int, word))]


# Where the languages of the table stand: in C-RASP accepting at an end mark, in C-RASP accepting at the last
# letter, in C-RASP[periodic,local].
TABLE = {
    "tomita-1": (1, 1, 1),
    "tomita-2": (1, 1, 1),
    "tomita-3": (0, 0, 0),
    "tomita-3-later": (0, 0, 1),
    "tomita-4": (0, 0, 1),
    "tomita-5": (0, 0, 0),
    "tomita-6": (0, 0, 0),
    "tomita-7": (1, 1, 1),
    "dyck-2": (1, 1, 1),
    "dyck-3": (1, 1, 1),
    "dyck-4": (1, 1, 1),
    "dyck-12": (1, 1, 1),
    "aa-star": (0, 0, 1),
    "aa-star-ab": (0, 0, 1),
    "aaaa-star": (0, 0, 1),
    "abab-star": (0, 0, 1),
    "aa-bb-cc-dd-ee": (1, 1, 1),
    "ab-d-bc": (1, 1, 1),
    "012-02": (0, 0, 0),
    "parity": (0, 0, 0),
    "ab-ba-star": (1, 1, 1),
    "ab-bba-star": (0, 0, 1),
    "ab-bbaa-star": (1, 1, 1),
    "ab-aabb-star": (0, 0, 1),
    "contains-a": (1, 1, 1),
    "starts-with-a": (1, 1, 1),
    "ends-in-a": (0, 1, 1),
    "contains-aa": (0, 0, 1),
    "contains-ab": (1, 1, 1),
    "contains-ab-abc": (0, 0, 1),
    "flip-flop": (0, 0, 0),
    "a-to-b": (0, 1, 1),
}

# What Huang et al. (ICLR 2025) report: a program was found in C-RASP (models without positions), in
# C-RASP[periodic,local] (models with positions).
PUBLISHED = {
    "binary-majority": (1, 1),
    "majority": (1, 1),
    "binary-majority-interleaved": (0, 1),
    "copy-unique": (0, 1),
    "copy-repeat": (0, 0),
    "sort": (1, 1),
    "parity": (0, 0),
    "addition": (0, 0),
    "tomita-1": (1, 1),
    "tomita-2": (1, 1),
    "tomita-3": (0, 0),
    "tomita-4": (0, 1),
    "tomita-5": (0, 0),
    "tomita-6": (0, 0),
    "tomita-7": (1, 1),
    "dyck-2": (1, 1),
    "dyck-3": (1, 1),
    "dyck-4": (1, 1),
    "dyck-12": (1, 1),
    "aa-star": (0, 1),
    "aaaa-star": (0, 1),
    "abab-star": (0, 1),
    "aa-bb-cc-dd-ee": (1, 1),
    "ab-d-bc": (1, 1),
    "012-02": (0, 0),
}
