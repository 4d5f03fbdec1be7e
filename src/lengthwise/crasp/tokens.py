r"""Words of the text syntax of C-RASP: letters, integers, names, symbols, each with its place in the text.

A letter stands in double quotes. Inside, a backslash begins an escape: ``\"``, ``\\``, ``\n``, ``\r``,
``\t``, and ``\u{1f600}`` for any code point. Comments run from ``//`` to the end of the line.
"""

import re
from dataclasses import dataclass
from typing import Literal, NoReturn

from lengthwise._messages import nearest

Kind = Literal["letter", "integer", "name", "symbol", "end"]

MOST_DIGITS = 600
"""Integers of a text have at most so many digits."""

LARGEST = 10**MOST_DIGITS
"""Integers of a text, and sums and products of them, are smaller than this in absolute value."""

MOST_DISTANCES = 10_000
"""A guard of a text holds at most so many distances."""

_TOKEN = re.compile(
    r"""
      (?P<blank>   [\s\ufeff]+ | //.* )
    | (?P<letter>  "[^"\\]*(?:\\.[^"\\]*)*" )
    | (?P<integer> [0-9]+ )
    | (?P<name>    [^\W\d]\w* )
    | (?P<symbol>  && | \|\| | [=!<>]= | [-+*!<>=()\[\]{},?:\#%] )
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r'\\(?:(["\\nrt])|u\{([0-9a-fA-F]{1,6})\}|.)')
_SHORT = {"n": "\n", "r": "\r", "t": "\t"}
_LONGEST_QUOTED = 40


class SyntaxMistake(ValueError):
    """A text that is not a C-RASP program: what is wrong, and at which line and column, both from 1."""

    def __init__(self, line: int, column: int, said: str) -> None:
        super().__init__(line, column, said)
        self.line, self.column, self.said = line, column, said

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.said}"


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a text. ``text`` is what is written there; of a letter, what it stands for."""

    kind: Kind
    text: str
    line: int
    column: int

    def wrong(self, said: str) -> NoReturn:
        """Raise the mistake that stands here."""
        raise SyntaxMistake(self.line, self.column, said)

    def unexpected(self, expected: str) -> NoReturn:
        """Raise the mistake that something else should stand here."""
        self.wrong(f"expected {expected}, got {self.shown}")

    def unknown(self, what: str, choices: list[str]) -> NoReturn:
        """Raise the mistake that this word is none of the choices, and tell the one that was meant."""
        if self.kind == "letter":
            choices = [quoted(letter)[1:-1] for letter in choices]
        hint = nearest(self.text[:_LONGEST_QUOTED], choices) if choices else ""
        self.wrong(f"unknown {what} {self.shown}" + (hint if len(hint) <= 2 * _LONGEST_QUOTED else ""))

    @property
    def shown(self) -> str:
        """The word as messages quote it."""
        if self.kind == "end":
            return "the end of the line"
        if self.kind == "letter":
            return quoted(_shortened(self.text))
        return repr(_shortened(self.text))

    @property
    def number(self) -> int:
        """The value of an integer."""
        return int(self.text.lstrip("0") or "0")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTED else text[: _LONGEST_QUOTED - 3] + "..."


def quoted(letter: str) -> str:
    """A letter as the text syntax writes it."""
    return '"' + "".join(map(_escaped, letter)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    short = next((key for key, value in _SHORT.items() if value == character), None)
    if short is not None:
        return "\\" + short
    return character if character.isprintable() else f"\\u{{{ord(character):x}}}"


def tokens_of(line: str, number: int) -> list[Token]:
    """The words of a line and, if there are any, the end of the line just after them."""
    found: list[Token] = []
    place = end = 0
    while place < len(line):
        match = _TOKEN.match(line, place)
        if match is None:
            _unreadable(line, number, place)
        kind, text = match.lastgroup, match.group()
        if kind != "blank":
            found.append(_token(kind, text, number, place + 1))
            end = match.end()
        place = match.end()
    return [*found, Token("end", "", number, end + 1)] if found else []


def _unreadable(line: str, number: int, place: int) -> NoReturn:
    character = line[place]
    if character == '"':
        raise SyntaxMistake(number, place + 1, "expected a closing quote, got the end of the line")
    hint = f"; write {2 * character}" if character in "&|" else ""
    raise SyntaxMistake(number, place + 1, f"unexpected character {character!a}{hint}")


def _token(kind: str | None, text: str, line: int, column: int) -> Token:
    if kind == "letter":
        if text == '""':
            raise SyntaxMistake(line, column, "expected a letter between the quotes, got nothing")
        return Token("letter", _unescaped(text, line, column), line, column)
    if kind == "integer":
        if len(text.lstrip("0")) > MOST_DIGITS:
            raise SyntaxMistake(line, column, f"an integer has more than {MOST_DIGITS} digits")
        return Token("integer", text, line, column)
    return Token("name" if kind == "name" else "symbol", text, line, column)


def _unescaped(text: str, line: int, column: int) -> str:
    written, end = "", 1
    for match in _ESCAPE.finditer(text):
        short, code = match.groups()
        if short is None and (code is None or int(code, 16) > 0x10FFFF):
            said = f"unknown escape \\{ascii(match.group()[1:])[1:-1]}: a backslash is written \\\\"
            raise SyntaxMistake(line, column + match.start(), said)
        meant = _SHORT.get(short, short) if short else chr(int(code or "0", 16))
        written += text[end : match.start()] + meant
        end = match.end()
    return written + text[end:-1]


class Cursor:
    """A place among the words of a line; ``here`` is the next word."""

    def __init__(self, line: list[Token]) -> None:
        self._line = line
        self._place = 0
        self.here = line[0]

    def sees(self, *texts: str) -> bool:
        """Whether the next words are these symbols and names."""
        ahead = self._line[self._place : self._place + len(texts)]
        return [one.text for one in ahead if one.kind in ("name", "symbol")] == list(texts)

    def take(self) -> Token:
        """The next word, and go on; the end of the line stays."""
        token = self.here
        if token.kind != "end":
            self._place += 1
            self.here = self._line[self._place]
        return token

    def accept(self, text: str) -> Token | None:
        """The next word if it is this symbol or name, and go on."""
        return self.take() if self.sees(text) else None

    def expect(self, text: str) -> Token:
        """The next word, which must be this symbol or name."""
        return self.accept(text) or self.here.unexpected(repr(text))

    def kind(self, kind: Kind, expected: str) -> Token:
        """The next word, which must be of this kind."""
        return self.take() if self.here.kind == kind else self.here.unexpected(expected)

    def integer(self) -> int:
        """The next word, which must be an integer."""
        return self.kind("integer", "an integer").number

    def finish(self) -> None:
        """There must be no further word."""
        if self.here.kind != "end":
            self.here.unexpected("the end of the line")
