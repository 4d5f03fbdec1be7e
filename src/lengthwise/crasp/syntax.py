"""The text syntax of C-RASP: one statement a line, comments after ``//``.

::

    %alphabet "a" "b"             // otherwise the letters that occur, in this order
    %mode last                    // or eos
    %empty true                   // whether the empty word is accepted
    d = # "a" - # "b"
    bad = d < 0 || d > 3
    accept = # bad == 0 && d == 0

The answer is the value of ``accept``, otherwise of the last statement. A program that predicts symbols has
statements ``NEXT["a"] = ...`` instead. A formula is a letter, ``true``, ``false``, ``i % 2 == 0`` for the
position i from 1, or made from others by ``! && ||``, ``prev exists forall`` and comparisons of counts. A
count is an integer, ``# P``, ``#[i - j in {1, 2}] P`` with a guard, ``len`` for the number of letters, or
made from others by ``+ -``, ``*`` with an integer, ``min(x, y)``, ``max(x, y)``, ``x if P else y`` and
``P ? x : y``.

The statements ``#import pred``, ``#import pred4`` and ``#import pos_even`` define the guards of distance 1
and 4 and the formula that holds at positions 1, 3, 5, ..., as in the tool of coli-saar, which counts from 0.
"""

from dataclasses import dataclass, field

from lengthwise.crasp.builder import Formula
from lengthwise.crasp.expressions import RESERVED, Scope, expression
from lengthwise.crasp.guards import imported
from lengthwise.crasp.operations import Operand, Value
from lengthwise.crasp.program import Mode, Program
from lengthwise.crasp.tokens import Cursor, SyntaxMistake, Token, quoted, tokens_of

__all__ = ["SyntaxMistake", "parse"]

_DIRECTIVES = ["alphabet", "mode", "empty"]


@dataclass
class _Header:
    """What directives and imports say."""

    letters: dict[str, None] | None = None
    mode: Mode | None = None
    empty: bool | None = None
    names: dict[str, Value] = field(default_factory=dict)
    guards: dict[str, int] = field(default_factory=dict)


@dataclass
class _Body:
    """What the other statements define: names, symbols that are predicted, and the last of the values."""

    scope: Scope
    formulas: dict[str, Formula] = field(default_factory=dict)
    predicted: dict[str, Formula] = field(default_factory=dict)
    accept: Operand | None = None
    last: Operand | None = None


def parse(text: str) -> Program:
    """The program that a text describes; raises ``SyntaxMistake``, which tells the line and the column."""
    rows = text.split("\n")
    lines = [tokens for number, row in enumerate(rows, start=1) if (tokens := tokens_of(row, number))]
    header = _Header()
    statements = [line for line in lines if not _read_header(line, header)]
    if not statements:
        said = 'expected a statement such as accept = # "a" >= 1, got the end of the text'
        raise SyntaxMistake(len(rows), len(rows[-1]) + 1, said)
    letters = header.letters
    if letters is None:
        letters = {token.text: None for line in statements for token in line if token.kind == "letter"}
    body = _Body(Scope(letters, header.names, header.guards))
    for line in statements:
        _read_statement(line, body)
    answer = None if body.predicted else _answer(body)
    if not letters:
        statements[0][0].wrong('no letter occurs: declare the alphabet, as in %alphabet "a" "b"')
    return Program(
        tuple(letters),
        accept=answer,
        next=body.predicted,
        mode=header.mode or "last",
        accepts_empty=header.empty,
        names=body.formulas,
    )


def _answer(body: _Body) -> Formula:
    answer = body.accept or body.last
    assert answer is not None
    return answer.formula


def _read_header(line: list[Token], header: _Header) -> bool:
    """Take in a directive or an import; whether the line is one."""
    cursor = Cursor(line)
    if cursor.accept("%"):
        name = cursor.kind("name", "a directive such as %mode")
        if name.text not in _DIRECTIVES:
            name.unknown("directive", _DIRECTIVES)
        _read_directive(name, cursor, header)
    elif cursor.sees("#", "import"):
        cursor.take()
        cursor.take()
        name = cursor.kind("name", "the name of a predicate")
        value = imported(name)
        if isinstance(value, Formula):
            header.names[name.text] = value
        else:
            header.guards[name.text] = value
    else:
        return False
    cursor.finish()
    return True


def _read_directive(name: Token, cursor: Cursor, header: _Header) -> None:
    known = {"alphabet": header.letters, "mode": header.mode, "empty": header.empty}
    if known[name.text] is not None:
        name.wrong(f"%{name.text} stands twice")
    if name.text == "alphabet":
        header.letters = _alphabet(cursor)
    elif name.text == "mode":
        header.mode = "eos" if _choice(cursor, "last", "eos") == "eos" else "last"
    else:
        header.empty = _choice(cursor, "true", "false") == "true"


def _alphabet(cursor: Cursor) -> dict[str, None]:
    letters: dict[str, None] = {}
    while not letters or cursor.here.kind == "letter":
        token = cursor.kind("letter", 'a letter such as "a"')
        if token.text in letters:
            token.wrong(f"the alphabet names the letter {token.shown} twice")
        letters[token.text] = None
    return letters


def _choice(cursor: Cursor, one: str, other: str) -> str:
    token = cursor.here
    if not cursor.sees(one) and not cursor.sees(other):
        token.unexpected(f"{one!r} or {other!r}")
    return cursor.take().text


def _read_statement(line: list[Token], body: _Body) -> None:
    cursor = Cursor(line)
    if cursor.sees("NEXT", "["):
        _read_next(cursor, body)
        return
    name = cursor.kind("name", "a statement such as name = ...")
    if name.text in RESERVED:
        name.wrong(f"{name.shown} cannot be a name")
    cursor.expect("=")
    value = expression(cursor, body.scope)
    body.scope.names[name.text] = value.value
    body.last = value
    if name.text == "accept":
        if body.predicted:
            name.wrong("a program either accepts or predicts: it has NEXT already")
        body.accept = value
    elif isinstance(value.value, Formula):
        body.formulas[name.text] = value.value
    else:
        body.formulas.pop(name.text, None)


def _read_next(cursor: Cursor, body: _Body) -> None:
    place = cursor.expect("NEXT")
    cursor.expect("[")
    symbol = cursor.kind("letter", 'a symbol such as "a"')
    if symbol.text in body.predicted:
        symbol.wrong(f"NEXT[{quoted(symbol.text)}] stands twice")
    if body.accept is not None:
        place.wrong("a program either accepts or predicts: it has accept already")
    cursor.expect("]")
    cursor.expect("=")
    body.predicted[symbol.text] = expression(cursor, body.scope).formula
