"""Calls with what users give by mistake, and what each must be told; as a script, what each is told.

Shapes and kinds are not checked here, as they are not where users are.
"""

import json
import sys

import numpy as np
import torch

import lengthwise as lw

F = lw.constructions.simple_task(4, 8)
G = lw.constructions.mod_p(2, 1)
TWO = lw.constructions.k_gram(1, 2, 0.1)
MAJORITY = lw.crasp.parse('accept = # "1" > # "0"')
RUN = lw.Run(lw.task("simple"), lw.LimitModel(), lw.Training(length=8))
CURVE = {"lengths": [1, 2, 4], "losses": [0.1] * 3, "errors": [0.0] * 3}

CASES = {
    "text for tokens": (lambda: F("0101"), "tokens must be an array of whole numbers, got '0101'"),
    "None among tokens": (lambda: F([0, None]), r"array of whole numbers, got \[0, None\]"),
    "a token beyond 64 bits": (lambda: F([0, 10**30]), "tokens must be an array of whole numbers"),
    "a token of uint64": (
        lambda: F(torch.tensor([2**63], dtype=torch.uint64)),
        "tokens must be between 0 and 1",
    ),
    "a method that is a list": (
        lambda: F.evaluate([0], ["fast"]),
        "method must be 'fast' or 'reference', got",
    ),
    "a list of arrays": (lambda: F([np.array([0, 2])]), "tokens must be between 0 and 1"),
    "a tolerance that is text": (
        lambda: lw.simulate(F, G, [0, 1], "x"),
        "tolerance must be a number, got 'x'",
    ),
    "a tolerance without bound": (lambda: lw.bound(F, G, 10**400), r"tolerance must be less than 10\^308"),
    "no draws": (
        lambda: lw.simulate(TWO, TWO, [0, 1], 0.1, draws=0),
        "draws must be a whole number of at least 1",
    ),
    "a length of True": (lambda: lw.divergence(F, G, True), "length must be a whole number, got True"),
    "no concentration": (lambda: lw.average_error(F, G, 3, None), "concentration must be a list, got None"),
    "a tiny concentration": (
        lambda: lw.average_error(F, G, 3, 5e-324),
        "concentration must be at least 1e-300",
    ),
    "a huge concentration": (
        lambda: lw.average_error(F, G, 8, 1e15),
        "cannot be summed in float64: give samples",
    ),
    "bits without end": (lambda: lw.Finite(2**64), "bits must be at most 1,048,576"),
    "samples without end": (
        lambda: lw.average_error(F, G, 3, 1.0, samples=2**53),
        "samples must be at most 100,000,000",
    ),
    "lengths that are one": (lambda: lw.evaluate(F, RUN.task, 3), "test lengths must be a list, got 3"),
    "half a sequence": (
        lambda: lw.evaluate(F, RUN.task, [3], sequences=0.5),
        "sequences must be a whole number",
    ),
    "a seed beyond 64 bits": (lambda: lw.Training(length=8, seed=2**63), "seed must be at most 9,223,372"),
    "strings beyond memory": (
        lambda: lw.evaluate(TWO, lw.task("kgram", k=1, vocabulary=2), [2**50], sequences=2),
        "too many to be made at once",
    ),
    "words beyond counting": (
        lambda: lw.evaluate(F, lw.task("tomita-1"), [10**6]),
        "words of up to 20,000 letters are counted, got 1,000,000",
    ),
    "an empty curve": (lambda: lw.plateau([], [], []), "at least one, got 0, 0 and 0"),
    "a curve that goes back": (
        lambda: lw.plateau(**{**CURVE, "lengths": [4, 2, 1]}),
        "must be finite and increase",
    ),
    "losses of another curve": (
        lambda: lw.plateau(**{**CURVE, "losses": [0.1]}),
        "as many losses and errors",
    ),
    "a symbol that is none": (lambda: MAJORITY([0, None]), "symbol None at position 2 is no whole number"),
    "a word that is a number": (lambda: MAJORITY(3), "a word must be a list, got 3"),
    "an expression that is a number": (
        lambda: lw.crasp.decide(3),
        "a regular expression must be text, got 3",
    ),
    "letters that are numbers": (
        lambda: lw.crasp.decide("a", [1]),
        "a letter of a regular expression is one char",
    ),
    "a period that is text": (
        lambda: lw.crasp.decide("a", positional=True, most_period="x"),
        "most_period must be a whole number of at least 1, got 'x'",
    ),
    "a weight that is too large": (
        lambda: lw.crasp.compile(lw.crasp.parse(f'accept = # "a" > {"9" * 400}')),
        "too large to be a weight in float64",
    ),
    "a task without a name": (lambda: lw.task(None), "there is no task None; there are: simple, modp"),
    "a language without a name": (lambda: lw.language(None, "a"), "a name has small letters, .* got None"),
    "contexts without end": (
        lambda: lw.task("kgram", k=64, vocabulary=3),
        r"there are 3\^64 contexts, more than",
    ),
    "a period without end": (lambda: lw.task("modp", period=10**30), "period must be at most 65,536"),
    "a locality of True": (
        lambda: lw.LimitModel(locality=True),
        "locality must be None or a whole number",
    ),
    "a precision that is a number": (
        lambda: lw.LimitModel(precision=8),
        r"precision must be Finite\(bits\) or",
    ),
    "positions that are a list": (
        lambda: lw.DecoderModel(positions=["none"]),
        "positions must be one of none",
    ),
    "ends that are one": (
        lambda: lw.DecoderEvaluation(ends=50),
        "the ends of the bins must be a list, got 50",
    ),
    "test lengths that are one": (lambda: lw.Evaluation(lengths=50), "test lengths must be a list, got 50"),
    "a batch without end": (lambda: lw.Training(length=8, batch=10**12), "batch must be at most 16,777,216"),
    "a model that is a number": (lambda: RUN.but(model=3), "the model of a run must be one, got 3"),
    "choices that are one": (lambda: lw.vary(RUN, omega=4), "the choices of omega must be a list, got 4"),
    "knots without end": (
        lambda: lw.constructions.simple_task(2, 10**12),
        "knots must be at most 16,777,216",
    ),
    "weights without end": (
        lambda: lw.constructions.k_gram(2**31, 3, 0.1),
        "this model would have 45097156650 weig",
    ),
    "knots that are halves": (lambda: lw.constructions.simple_task(2, 1.5), "knots must be a whole number"),
}


def answers():
    """What each call says: the kind of its error, and the message."""
    found = {}
    for case, (call, _) in CASES.items():
        try:
            call()
        except Exception as error:
            found[case] = type(error).__name__, str(error)
        else:
            found[case] = "nothing", ""
    return found


if __name__ == "__main__":
    json.dump(answers(), sys.stdout)
