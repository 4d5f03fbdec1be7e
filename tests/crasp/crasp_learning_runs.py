"""Searches for the tests of learning, run by themselves and printed as JSON.

While testing, every call has its types checked, which makes the many small calls of a search twenty times as
slow. So the tests run this file in a process of its own, once, and look at what it prints.
"""

import json
import random
import re
import time

from lengthwise.crasp import (
    DFA,
    Learned,
    Program,
    Q,
    Shape,
    compile_regex,
    count,
    decide,
    learn,
    parse,
    text_of,
)
from lengthwise.crasp.learning.deadline import Deadline, OutOfTime
from lengthwise.crasp.learning.following import follows
from lengthwise.crasp.learning.oracles import FunctionOracle
from lengthwise.crasp.learning.search import Search
from lengthwise.crasp.learning.simpler import smaller
from lengthwise.crasp.learning.teachers import Questions
from lengthwise.crasp.learning.walks import walks
from lengthwise.crasp.programs.outcome import Clock

SECONDS = 120.0
"""Far more than any of these needs: what is found is then a matter of the seed alone."""

SEED = 3


def nested(word, most):
    """Whether brackets a and b are balanced, and nested at most so deep."""
    depth = 0
    for letter in word:
        depth += 1 if letter == "a" else -1
        if not 0 <= depth <= most:
            return False
    return depth == 0


def matches(regex):
    return lambda word: re.fullmatch(regex, word) is not None


FUNCTIONS = {
    "majority": ("01", lambda word: word.count("1") > word.count("0"), {}),
    "1*": ("01", matches("1*"), {}),
    "a*b*": ("ab", matches("a*b*"), {}),
    "(ab)*": ("ab", matches("(ab)*"), {}),
    "dyck-1": ("ab", lambda word: nested(word, len(word)), {}),
    "D_2": ("ab", lambda word: nested(word, 2), {}),
    "{a,b}*d{b,c}*": ("abcd", matches("[ab]*d[bc]*"), {}),
    "tomita-4": ("01", lambda word: "000" not in word, {"distances": (1, 2)}),
    "(aa)*": ("ab", matches("(aa)*"), {"moduli": (2,)}),
}
"""Languages as functions: alphabet, function, shape."""

CONTROLS = {
    "parity": ("ab", lambda word: word.count("a") % 2 == 0),
    "S*aaS*": ("ab", lambda word: "aa" in word),
}
"""Languages that no program without positions accepts."""

PROGRAMS = {
    "majority": '%alphabet "0" "1"\naccept = # "1" > # "0"',
    "dyck-1": 'd = # "a" - # "b"\naccept = # (d < 0) == 0 && d == 0',
    "eos": '%alphabet "a" "b"\n%mode eos\naccept = # "a" > # "b"',
    "letters of two characters": '%alphabet "x1" "y"\naccept = # "x1" == 0',
}
"""Programs that must be learned, with a proof."""

FAR = '%alphabet "a" "b"\naccept = # "a" < {}'
"""A program that differs from true only on words with many a."""

FEW = 30
"""Words of the first sample have fewer letters."""

FOLLOWED = ("(ab)*", "0*1*0*1*", "(ab|ba)*")
"""Regular expressions whose programs are proved to follow their automata."""

REGULAR = {
    "1*": ("01", {}),
    "a*b*": ("ab", {}),
    "(ab)*": ("ab", {}),
    "(a(ab)*b)*": ("ab", {}),
    "(a|b)*d(b|c)*": ("abcd", {}),
    "(1|01|001)*(0|00)?": ("01", {"distances": (1,)}),
    "(aa)*": ("ab", {"moduli": (2,)}),
}
"""Regular expressions that have a program: alphabet, shape."""


def plain(learned: Learned):
    return {
        "found": learned.found,
        "known": learned.known,
        "proved": learned.proved,
        "checked": learned.checked,
        "program": learned.program and text_of(learned.program),
        "size": learned.program and learned.program.size,
        "errors": learned.errors,
        "counterexamples": learned.counterexamples,
        "rounds": learned.rounds,
        "moves": learned.moves,
        "details": learned.verdict and learned.verdict.details,
        "answer": learned.verdict and learned.verdict.answer,
    }


def timed(target, seconds, **more):
    begun = time.monotonic()
    learned = learn(target, seconds=seconds, **more)
    return {"limit": seconds, "took": time.monotonic() - begun, **plain(learned)}


def slow(word):
    time.sleep(0.003)
    return word.count("a") > word.count("b")


def followed(dfa, most):
    """Programs for an automaton, right or wrong, each with whether it was proved to follow it: the one that
    ``decide`` finds; one that is right only on words with few letters; and so many smaller ones.
    """
    program, words = decide(dfa).witness, walks(dfa, seed=0)
    few = count(Q(dfa.alphabet[0])) <= 100
    limited = Program(
        dfa.alphabet, (program.accept & few) | ~(program.accept | few), accepts_empty=program.empty
    )
    candidates = [program, limited, *(one for one, _ in zip(smaller(program), range(most), strict=False))]
    return [(text_of(one), follows(one, dfa, words, Clock(20))) for one in candidates]


def random_automata(number):
    """Small automata that have a program, with programs and proofs as above."""
    source = random.Random(0)
    found = []
    while len(found) < number:
        states = source.randint(2, 4)
        rows = tuple(tuple(source.randrange(states) for _ in "ab") for _ in range(states))
        accepting = frozenset(q for q in range(states) if source.random() < 0.5)
        dfa = DFA(("a", "b"), rows, 0, accepting).minimal()
        if len(dfa.states) > 1 and decide(dfa).answer:
            found.append((dfa.transitions, sorted(dfa.accepting), followed(dfa, 6)))
    return found


refuted = []
"""Programs that were refuted, with the words, in the order in which that happened."""


class Recorder(Questions):
    """Remembers every program that was refuted."""

    def refute(self, program):
        words = super().refute(program)
        if words:
            refuted.append((text_of(program), [word.blocks for word in words]))
        return words


def until(**numbers):
    """Ends a search as its time limit does, once these numbers of its progress are reached."""

    def progress(now):
        if all(getattr(now, name) >= number for name, number in numbers.items()):
            raise OutOfTime

    return progress


def search(name, **more):
    letters, function, shape = FUNCTIONS[name]
    return plain(learn(function, letters, seconds=SECONDS, shape=Shape(**shape), **more))


def large_automaton():
    """One for which it takes long to decide whether there is a program with positions."""
    source = random.Random(0)
    rows = tuple(tuple(source.randrange(8) for _ in range(4)) for _ in range(8))
    return DFA(tuple("abcd"), rows, 0, frozenset({0, 3, 5}))


def limits():
    """Hard targets and too little time."""
    hard = parse('%alphabet "a" "b" "c"\nd = 3 * # "a" - 2 * # "b"\naccept = # (d > # "c") > 2 * # (d == 5)')
    long = {"a" * 400_000: True, "b" * 400_000: False, "ab" * 200_000: True, "ba" * 200_000: False}
    return {
        "a slow function": timed(slow, 1.0, alphabet="ab"),
        "a hard program": timed(hard, 1.0),
        "long examples": timed(long, 1.0),
        "almost no time": timed(hard, 0.001),
        "an automaton": timed(compile_regex("(ab|bbaa)*"), 1.0),
        # Last, because it goes on for some time by itself.
        "a large automaton": timed(large_automaton(), 0.5, shape=Shape(distances=(1,))),
    }


def main():
    """Run all and print."""
    found = {
        "functions": {name: search(name, seed=SEED) for name in FUNCTIONS},
        "again": search("D_2", seed=SEED),
        "programs": {name: plain(learn(parse(text), seconds=SECONDS)) for name, text in PROGRAMS.items()},
        "regular": {
            regex: plain(learn(compile_regex(regex, letters), seconds=SECONDS, shape=Shape(**shape)))
            for regex, (letters, shape) in REGULAR.items()
        },
        "controls": {
            name: plain(learn(function, letters, seconds=SECONDS, progress=until(moves=30_000)))
            for name, (letters, function) in CONTROLS.items()
        },
        "far": {
            number: plain(
                learn(parse(FAR.format(number)), seconds=SECONDS, progress=until(counterexamples=1))
            )
            for number in (300, 7000)
        },
    }
    deadline = Deadline(SECONDS)
    oracle = FunctionOracle(lambda word: word.count("a") < FEW, "ab", deadline)
    Search(Recorder(oracle, SEED, deadline), Shape(), SEED, deadline, until(counterexamples=3)).run()
    found["refuted"] = refuted
    found["followed"] = {regex: followed(compile_regex(regex), 8) for regex in FOLLOWED}
    found["random automata"] = random_automata(10)
    try:
        learn(3, "ab")
    except ValueError as error:
        found["no target"] = str(error)
    found["limits"] = limits()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
