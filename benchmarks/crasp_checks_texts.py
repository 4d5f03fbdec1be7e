"""Malformed programs: each is refused with its line and column, or is a program, within a time limit."""

import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import torch
from crasp_checks_common import Disagreement, Progress, agree, helper

from lengthwise.crasp import Program, Stream, outputs, parse, text_of
from lengthwise.crasp.syntax import SyntaxMistake

printer = helper("test_crasp_printer")
GOOD: list[str] = helper("crasp_texts").ALL_TEXTS
ODD = [*"()[]{}\"'\\#%&|!<>=+-*/?:;,.@$^~`ij09aZ_", " ", "\t", "\n", "\r", "\x00", "\x85", "\ufeff"]
ODD += [
    "\u2028",
    "\u200b",
    "\u0301",
    "\u0663",
    "\u00b2",
    "\uff11",
    "\u03b1",
    "\U0001f600",
    "\ud800",
    "\u202e",
]
TO_PARSE, TO_USE = 2.0, 20.0
"""A text is read, and a program is printed and evaluated on a few letters, in so many processor seconds."""

Change = Callable[[random.Random, str], str]


def malformed(*, quick: bool) -> Progress:
    """Good programs with changes to characters and words, cut short, nested deeply, with huge numbers."""
    told, source = Progress("texts"), random.Random(0)
    for text in nested():
        compare(text, told)
    for _ in range(500 if quick else 10_000):
        text = source.choice(GOOD)
        for _ in range(source.choice([1, 1, 1, 2, 3])):
            text = source.choice(CHANGES)(source, text)
        compare(text, told)
    return told


def compare(text: str, told: Progress) -> None:
    """A text is refused at a place in it, or is a program that is printed, read again and evaluated."""
    shown = text if len(text) < 2000 else f"{text[:1000]} ... {text[-1000:]}"
    try:
        with limited(TO_PARSE):
            program = parse(text)
    except SyntaxMistake as mistake:
        lines = text.split("\n")
        inside = 1 <= mistake.line <= len(lines) and 1 <= mistake.column <= len(lines[mistake.line - 1]) + 1
        agree(inside, "not a place of the text", str(mistake), shown)
        agree(str(mistake).startswith(f"line {mistake.line}, column {mistake.column}: "), mistake, shown)
        agree(len(str(mistake).splitlines()) == 1, "more than one line", mistake, shown)
        told.add("texts refused with line and column")
    except Exception as other:
        raise Disagreement("neither a program nor a place", type(other).__name__, shown) from other
    else:
        try:
            with limited(TO_USE):
                compare_program(program)
        except Exception as other:
            raise Disagreement("a program that cannot be used", type(other).__name__, shown) from other
        told.add("texts that are programs")


def compare_program(program: Program) -> None:
    """The text of a program is that program, and a batch and a stream agree on a few letters."""
    again = parse(text_of(program))
    agree(list(again.alphabet) == list(program.alphabet) and again.mode == program.mode, "other program")
    roots = {name: one.node for name, one in program.outputs.items()}
    agree({name: one.node for name, one in again.outputs.items()} == roots, "other nodes")
    word = [place % len(program.alphabet) for place in range(7)]
    try:
        found = outputs(program, torch.tensor([word]))
    except ValueError as refused:
        agree("exceed 2^62" in str(refused), refused)
        return
    reader = Stream(program)
    for place, symbol in enumerate(word):
        reader.step(symbol)
        for name, root in roots.items():
            agree(reader.value(root) == bool(found[name][0, place]), "other values", name, place)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise ``TimeoutError`` inside after so much time of the processor."""

    def over(number: int, frame: FrameType | None) -> NoReturn:
        raise TimeoutError(f"more than {seconds} s")

    signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def characters(source: random.Random, text: str) -> str:
    """Some characters out, in, or instead of others."""
    at = source.randint(0, len(text))
    end = source.choice([at, at + 1, at + 1, at + source.randint(0, 9)])
    return text[:at] + "".join(source.choices(ODD, k=source.choice([0, 1, 1, 2]))) + text[end:]


def words(source: random.Random, text: str) -> str:
    """A word out, in, twice, elsewhere, or two lines exchanged, as in the tests."""
    return printer.mutated(text, source)


def cut(source: random.Random, text: str) -> str:
    """The beginning or the end of a text."""
    at = source.randint(0, len(text))
    return source.choice([text[:at], text[at:]])


def numbers(source: random.Random, text: str) -> str:
    """A huge number for a number, or before a word."""
    huge = source.choice(["9" * 600, "9" * 601, "1" + "0" * 599, "0" * 5000 + "3", str(2**63), "10001", "-1"])
    found = printer.BROKEN_INTO.findall(text) or [text]
    places = [at for at, word in enumerate(found) if word.isdigit()] or [source.randrange(len(found))]
    found[source.choice(places)] = huge
    return "".join(found)


def deep(source: random.Random, text: str) -> str:
    """Something many times in a row."""
    at, part = source.randint(0, len(text)), source.choice(["(", ")", "!", "# ", "prev ", *printer.WORDS])
    return text[:at] + part * source.choice([10, 300, 5000]) + text[at:]


CHANGES: list[Change] = [characters, characters, words, words, words, cut, numbers, deep]


def nested() -> Iterator[str]:
    """Expressions nested to many levels, closed and not."""
    shapes = [
        ("(", '"a"', ")"),
        ("!", '"a"', ""),
        ("!(", '"a"', ")"),
        ("prev ", '"a"', ""),
        ("exists (", '"a"', ' && "b")'),
        ("(# (", '"a"', ") >= 2)"),
        ("0 < -(", '# "a"', ")"),
        ("- ", '# "a"', ""),
        ("min(1, ", '# "a"', ")"),
        ('"a" ? 1 : ', "2", ""),
        ("1 if (", '"a"', " > 0) else 2"),
        ("", '"a"', ' || ("b" && # "a" > 3)'),
        ("", '# "a"', ' + # "b"'),
    ]
    for before, inside, after in shapes:
        for times in (100, 1000, 10_000):
            whole = before * times + inside + after * times
            for end in ("", " >= 3"):
                yield f"accept = {whole}{end}"
                yield f"accept = {whole[: -len(whole) // 7]}{end}"
