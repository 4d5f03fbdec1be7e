"""Door: the text of C-RASP programs, and words of powers for them."""

import random
from pathlib import Path

import torch
from crasp_checks_common import Disagreement
from crasp_checks_texts import CHANGES, GOOD, compare_program

from fuzz_doors import guard
from fuzz_doors.door import Door, require
from lengthwise.crasp import compile, encode, evaluate_power, exact_length, parse, parse_power, trace
from lengthwise.crasp.syntax import SyntaxMistake

POWERS = [
    "a^3",
    "(ab)^(10^30)",
    "(ab)^1000 a",
    "a^(10^4000)",
    "a^(9^9)",
    "(a^2)^3",
    "((a))^2",
    "a^",
    "^3",
    "()",
]
POWERS += ["", "a^-1", "a^\u0663", "(ab", "0^5 1^(2^40)", "a" * 300, "a^(0^0)", "b^(10^5)", "\x00", "a b\n"]
NUMBERS = ["0", "1", "2", "3", "17", "9" * 30, "9" * 600, "9" * 601, "10001", "2147483648"]


def _formula(source: random.Random, depth: int) -> str:
    inner = lambda: _formula(source, depth - 1)  # noqa: E731
    if depth <= 0:
        return source.choice(
            ['"a"', '"b"', "true", f"i % {source.choice(NUMBERS)} == {source.choice('012')}"]
        )
    match source.randrange(7):
        case 0:
            return f"({inner()} && {inner()})"
        case 1:
            return f"({inner()} || {inner()})"
        case 2:
            return f"!{inner()}"
        case 3:
            return f"({source.choice(['prev', 'exists', 'forall'])} {inner()})"
        case _:
            sign = source.choice(["<", "<=", "==", "!=", ">=", ">"])
            return f"({_number(source, depth - 1)} {sign} {_number(source, depth - 1)})"


def _number(source: random.Random, depth: int) -> str:
    guards = [
        "",
        "",
        "[j < i] ",
        "[i - j == 2] ",
        f"[i - j < {source.choice(NUMBERS)}] ",
        "[1 <= i - j <= 3] ",
    ]
    if depth <= 0:
        return source.choice(NUMBERS)
    match source.randrange(6):
        case 0:
            return f"({_number(source, depth - 1)} {source.choice('+-')} {_number(source, depth - 1)})"
        case 1:
            return f"{source.choice(NUMBERS)} * {_number(source, depth - 1)}"
        case 2:
            first, second = _number(source, depth - 1), _number(source, depth - 1)
            return f"{source.choice(['min', 'max'])}({first}, {second})"
        case 3:
            return f"({_formula(source, depth - 1)} ? {_number(source, depth - 1)} : 2)"
        case _:
            return f"# {source.choice(guards)}{_formula(source, depth - 1)}"


def _doubling(source: random.Random) -> str:
    """Definitions each of which says the one before it twice."""
    joint = source.choice(["{0} && {0}", "{0} || !{0}", "# {0} > # {0}", "exists {0} && {0}", "# {0} >= 2"])
    levels = source.choice([5, 40, 120])
    lines = ['x0 = "a"'] + [f"x{at} = {joint.format(f'x{at - 1}')}" for at in range(1, levels)]
    counted = [f"n{at} = n{at - 1} + n{at - 1}" for at in range(1, levels)]
    if source.random() < 0.3:
        return "\n".join(['n0 = # "a"', *counted, f"accept = n{levels - 1} > 0"])
    return "\n".join([*lines, f"accept = x{levels - 1}"])


def draw(source: random.Random) -> tuple[str, str, str]:
    """A text, a word, and what is done with them."""
    kind = source.random()
    if kind < 0.62:
        text = source.choice(GOOD)
        for _ in range(source.choice([0, 1, 1, 1, 2, 3])):
            text = source.choice(CHANGES)(source, text)
    elif kind < 0.9:
        text = f"accept = {_formula(source, source.choice([1, 2, 3, 4]))}"
    elif kind < 0.93:
        text = _doubling(source)
    else:
        text = "".join(
            chr(source.choice([source.randrange(128), source.randrange(0x3000)])) for _ in range(40)
        )
    uses = ["print"] * 12 + ["power"] * 4 + ["trace", "compile", "relu"]
    return text, source.choice(POWERS), source.choice(uses)


def enter(given: tuple[str, str, str], folder: Path) -> None:
    """A text is refused at a place in it, or is a program that comes back from its own text."""
    text, word, use = given
    try:
        with guard.no_code():
            program = parse(text)
    except SyntaxMistake as mistake:
        lines = text.split("\n")
        require(1 <= mistake.line <= len(lines), "no such line", mistake)
        require(1 <= mistake.column <= len(lines[mistake.line - 1]) + 1, "no such column", mistake)
        raise
    if use == "print":
        try:
            compare_program(program)
        except Disagreement as other:
            require(False, other)
    elif use == "power":
        read = parse_power(word, program.alphabet)
        if program.accept is not None:
            require(evaluate_power(program, read) in (True, False), "no answer")
    elif use == "trace":
        found = trace(program, word)
        require(found is not None, "no trace")
    elif program.accept is not None:
        f = compile(program, "relu" if use == "relu" else "heaviside", longest=20)
        letters = [place % len(program.alphabet) for place in range(5)]
        output = f(torch.tensor(encode(program, letters)))
        exact = use == "relu" or exact_length(program) >= len(letters)
        require(
            not exact or abs(float(output[0]) - program(letters)) < 0.5,
            "compiled to",
            output,
            "is",
            program(letters),
        )


DOOR = Door(name="text", about="C-RASP text and power words", share=20, seconds=60.0, draw=draw, enter=enter)
