"""Words to learn from: both classes, all lengths alike, and negatives that are nearly positive."""

from collections.abc import Iterable, Sequence
from random import Random

import numpy as np

from lengthwise.crasp.learning.deadline import Deadline
from lengthwise.crasp.learning.oracles import Oracle
from lengthwise.crasp.learning.values import Sample
from lengthwise.crasp.learning.words import Word, all_words

LONGEST = 24
"""Words of the first sample have at most so many letters, negatives made of them by an edit one more."""

ALL_UP_TO = 2**12
"""All words are asked about of lengths with at most so many words, to find the first positives."""

ALL_IN_SAMPLE = 2**5
"""All words are in the sample of the largest length with at most so many."""

EACH = 60
"""About so many positives and so many negatives are in the first sample."""

GENERATIONS, CHILDREN = 10, 300
"""How often, and how many, changed words are asked about, to find more of the rarer class."""

PATIENCE = 0.1
"""The share of the time that is spent at most on asking about words to find both classes."""

HEAVY = 3.0
"""A counterexample weighs so many times what another word weighs."""


def first_words(oracle: Oracle, source: Random, deadline: Deadline) -> list[Word]:
    """Words to begin with, none of them empty.

    All words of one short length; then for either class as many of each length as can be found, by changing
    words of that class, pieces repeated at up to three places above all; then for each positive a negative
    that differs from it by one edit, if there is one.
    """
    letters, patience = len(oracle.alphabet), deadline.part(PATIENCE)
    pools: tuple[dict[Word, None], dict[Word, None]] = {}, {}

    def ask(words: Sequence[Word]) -> None:
        new = list(dict.fromkeys(word for word in words if word))
        for start in range(0, len(new), CHILDREN):
            if patience.left() <= 0:
                return
            asked = new[start : start + CHILDREN]
            for word, label in zip(asked, oracle.labels(asked), strict=True):
                pools[bool(label)].setdefault(word)

    for length in range(1, longest(letters, ALL_UP_TO) + 1):
        ask([tuple(word) for word in all_words(letters, length).tolist()])
    ask([random_word(source, letters, source.randint(1, LONGEST)) for _ in range(CHILDREN)])
    for _ in range(GENERATIONS):
        for pool in pools:
            parents = _spread(pool, 4 * EACH, source)
            if parents:
                ask([changed(source, parents, letters) for _ in range(CHILDREN)])
    chosen = [word for pool in reversed(pools) for word in _spread(pool, EACH, source)]
    edits = [edited(source, word, letters) for word in _spread(pools[True], EACH, source) for _ in range(4)]
    near = [word for word, label in zip(edits, oracle.labels(edits), strict=True) if word and not label]
    short = [tuple(word) for word in all_words(letters, longest(letters, ALL_IN_SAMPLE)).tolist()]
    return list(dict.fromkeys([*short, *chosen, *near[:EACH]]))


def longest(letters: int, words: int, most: int = LONGEST) -> int:
    """The largest length, at least 1 and at most ``most``, with at most so many words."""
    return max(n for n in range(1, most + 1) if n == 1 or letters**n <= words)


def _spread(pool: Iterable[Word], number: int, source: Random) -> list[Word]:
    """So many words of a pool, all lengths alike as far as there are words."""
    by_length: dict[int, list[Word]] = {}
    for word in pool:
        by_length.setdefault(len(word), []).append(word)
    for words in by_length.values():
        source.shuffle(words)
    found: list[Word] = []
    while by_length and len(found) < number:
        for length in sorted(by_length, reverse=True):
            found.append(by_length[length].pop())
            if not by_length[length]:
                del by_length[length]
    return found[:number]


def random_word(source: Random, letters: int, length: int) -> Word:
    """A word of this length, each letter with the same chance."""
    return tuple(source.randrange(letters) for _ in range(length))


def changed(source: Random, parents: Sequence[Word], letters: int, most: int = LONGEST) -> Word:
    """A word made of one or two others: pieces repeated, removed or put in; possibly the empty word."""
    word = list(source.choice(parents))
    match source.randrange(5):
        case 0 | 1:
            width = source.randint(1, 2)
            for _ in range(source.randint(1, 3)):
                start = source.randint(0, max(0, len(word) - width))
                word[start:start] = word[start : start + width]
        case 2:
            for _ in range(source.randint(1, 3)):
                start = source.randint(0, len(word))
                del word[start : start + source.randint(1, 2)]
        case 3:
            start = source.randint(0, len(word))
            word[start:start] = source.choice(parents)
        case _:
            for _ in range(source.randint(1, 2)):
                word.insert(source.randint(0, len(word)), source.randrange(letters))
    return tuple(word[:most])


def edited(source: Random, word: Word, letters: int) -> Word:
    """A word, not the empty one, with one letter put in, taken out, changed, or exchanged with another."""
    found = list(word)
    at, other = source.randrange(len(word)), source.randrange(len(word))
    match source.randrange(5):
        case 0:
            found.insert(source.randint(0, len(word)), source.randrange(letters))
        case 1:
            del found[at]
        case 2:
            found[at] = source.randrange(letters)
        case 3:
            found[at : at + 2] = found[at : at + 2][::-1]
        case _:
            found[at], found[other] = found[other], found[at]
    return tuple(found)


def with_prefixes(words: Sequence[Word], labels: Sequence[np.ndarray], counterexamples: int) -> Sample:
    """A sample of words of which every prefix has a label; so many of the last are counterexamples.

    Half of all weight is that of whole words, half that of prefixes; each class has half of either, as far as
    both are there; the prefixes of a word share what a word has.
    """
    weights = np.ones(len(words))
    weights[len(words) - counterexamples :] = HEAVY
    lengths = np.array([len(word) for word in words])
    whole_N, label_N = _last(lengths), np.concatenate(labels)
    heavy_N, shared_N = np.repeat(weights, lengths), np.repeat(weights / lengths, lengths)
    return _sample(words, label_N, (_balanced(whole_N * heavy_N, label_N) + _balanced(shared_N, label_N)) / 2)


def with_labels(words: Sequence[Word], labels: Sequence[bool]) -> Sample:
    """A sample of words of which only the whole has a label; each class has half of the weight."""
    whole_N = _last(np.array([len(word) for word in words]))
    label_N = np.zeros(len(whole_N), dtype=bool)
    label_N[whole_N] = labels
    return _sample(words, label_N, _balanced(whole_N.astype(float), label_N))


def _last(lengths: np.ndarray) -> np.ndarray:
    """For every position of words, one behind the other, whether it is the last of its word."""
    found = np.zeros(lengths.sum(), dtype=bool)
    found[np.cumsum(lengths) - 1] = True
    return found


def _balanced(weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Weights scaled to a sum of 1, each class of labels having half of it, if both are there."""
    classes = [labels & (weights > 0), ~labels & (weights > 0)]
    kept = [one for one in classes if one.any()]
    found = np.zeros(len(weights))
    for one in kept:
        found[one] = weights[one] / weights[one].sum() / len(kept)
    return found


def _sample(words: Sequence[Word], labels: np.ndarray, weights: np.ndarray) -> Sample:
    ends = np.cumsum([len(word) for word in words])
    return Sample(
        symbols_N=np.concatenate([np.asarray(word, dtype=np.int64) for word in words]),
        starts_W=np.concatenate([[0], ends[:-1]]).astype(np.int64),
        labels_N=labels,
        weights_N=weights.astype(np.float32),
    )
