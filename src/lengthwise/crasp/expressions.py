"""Expressions of the text syntax of C-RASP, read into formulas and counts by the strength of operators.

From the weakest to the strongest:

- ``x if P else y`` and ``P ? x : y``, which group to the right;
- ``||``, then ``&&``;
- the comparisons, which do not chain;
- ``+`` and ``-``, then ``*``;
- ``! - # #[guard] prev exists forall`` before their operand.

Operands and pending operators are kept on stacks, so that nesting may be as deep as memory allows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lengthwise.crasp import builder, nodes
from lengthwise.crasp.builder import Formula, formula, number
from lengthwise.crasp.guards import Guard, guard, residue
from lengthwise.crasp.operations import Operand, Value, applied
from lengthwise.crasp.tokens import Cursor, SyntaxMistake, Token

RESERVED = frozenset(("true", "false", "if", "else", "min", "max"))
"""Words that are never names."""

_WORDS = ("prev", "exists", "forall")

SPECIAL = frozenset((*_WORDS, "i", "j", "in", "len", "NEXT", "accept"))
"""Words that are names only where a program makes them so, or that say what a program computes."""

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_OPEN, _CHOICE, _COMPARED, _PREFIX = 0, 1, 4, 7
_STRENGTH = {"||": 2, "&&": 3, **dict.fromkeys(_COMPARISONS, _COMPARED), "+": 5, "-": 5, "*": 6}


@dataclass(frozen=True)
class Scope:
    """What an expression may mention: names, guards by their distance, and letters."""

    letters: Mapping[str, None]
    names: dict[str, Value] = field(default_factory=dict)
    guards: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Pending:
    """An operator or an opening bracket that waits for what follows."""

    token: Token
    kind: str
    strength: int
    operands: int = 2
    counted: Guard = builder.count


def expression(cursor: Cursor, scope: Scope) -> Operand:
    """The expression that the rest of a line is."""
    return _Reader(cursor, scope).read()


class _Reader:
    def __init__(self, cursor: Cursor, scope: Scope) -> None:
        self.cursor, self.scope = cursor, scope
        self.operands: list[Operand] = []
        self.pending: list[_Pending] = []

    def read(self) -> Operand:
        """Operands and operators in turn."""
        while True:
            while not self._operand():
                pass
            while (more := self._operator()) is None:
                pass
            if not more:
                (whole,) = self.operands
                return whole

    def _push(
        self, token: Token, kind: str, strength: int, operands: int = 2, counted: Guard = builder.count
    ) -> None:
        self.pending.append(_Pending(token, kind, strength, operands, counted))

    def _operand(self) -> bool:
        """Read one word where an operand may begin; whether it completes one."""
        cursor, token = self.cursor, self.cursor.here
        if token.kind == "letter":
            if token.text not in self.scope.letters:
                token.unknown("letter", list(self.scope.letters))
            return self._found(builder.Q(token.text))
        if token.kind == "integer":
            return self._found(number(token.number))
        if token.kind == "name" and not self._operator_word(token):
            return self._named(token)
        cursor.take()
        if token.text == "(":
            self._push(token, "(", _OPEN)
        elif token.text in ("min", "max"):
            cursor.expect("(")
            self._push(token, token.text, _OPEN, 1)
        elif token.text == "#":
            counted = guard(cursor, self.scope.guards) if cursor.accept("[") else builder.count
            self._push(token, "#", _PREFIX, 1, counted)
        elif token.text in ("!", "-") or token.kind == "name":
            self._push(token, token.text, _PREFIX, 1)
        else:
            token.unexpected("a formula or a count")
        return False

    def _operator_word(self, token: Token) -> bool:
        """Whether a name is an operator before its operand."""
        return token.text in ("min", "max") or (token.text in _WORDS and token.text not in self.scope.names)

    def _found(self, value: Value) -> bool:
        self.operands.append(Operand(value, self.cursor.take()))
        return True

    def _named(self, token: Token) -> bool:
        names, cursor = self.scope.names, self.cursor
        if token.text in ("true", "false"):
            return self._found(formula(token.text == "true"))
        if token.text in RESERVED:
            token.unexpected("a formula or a count")
        if cursor.sees("i", "%"):
            self.operands.append(Operand(residue(cursor), token))
            return True
        if token.text in names:
            return self._found(names[token.text])
        if token.text == "len":
            letters = nodes.disjunction(map(nodes.sym, self.scope.letters))
            return self._found(builder.count(Formula(letters)))
        if token.text == "i":
            token.wrong("the position stands only in a formula such as i % 2 == 0")
        if token.text in self.scope.guards:
            token.wrong(f"{token.shown} is a guard, not a formula: write #[{token.text}] before a formula")
        token.unknown("name", [*names, "len"] if names else [])

    def _operator(self) -> bool | None:
        """Read one word after an operand: whether an operand must follow, or None if not yet."""
        token = self.cursor.here
        word = token.text if token.kind in ("symbol", "name") else ""
        if word in _STRENGTH:
            self._binary(self.cursor.take())
            return True
        if word in ("if", "?"):
            self._reduce(_CHOICE + 1)
            if self.pending and self.pending[-1].kind == "if":
                token.unexpected("'else'")
            self._push(self.cursor.take(), word, _OPEN, 3)
            return True
        self._reduce(_CHOICE)
        top = self.pending[-1] if self.pending else None
        if top is None:
            if token.kind != "end":
                token.unexpected("an operator or the end of the line")
            return False
        if (top.kind, word) in (("if", "else"), ("?", ":")):
            self.cursor.take()
            top.kind, top.strength = "else" if word == "else" else ":", _CHOICE
            return True
        if top.kind in ("min", "max") and top.operands == 1 and word == ",":
            self.cursor.take()
            top.operands = 2
            return True
        if top.kind == "(" or top.kind in ("min", "max"):
            return self._close(top, token, word)
        expected = "'else'" if top.kind == "if" else "':'"
        token.unexpected(expected if token.kind == "end" else f"an operator or {expected}")

    def _close(self, top: _Pending, token: Token, word: str) -> None:
        closing = "','" if top.kind != "(" and top.operands == 1 else "')'"
        if word != ")" or closing == "','":
            token.unexpected(closing if token.kind == "end" or word == ")" else f"an operator or {closing}")
        self.cursor.take()
        self.pending.pop()
        if top.kind == "(":
            self.operands[-1] = Operand(self.operands[-1].value, top.token)
        else:
            self._apply(top)

    def _binary(self, token: Token) -> None:
        strength = _STRENGTH[token.text]
        grouped = token.text in ("&&", "||") or strength == _COMPARED
        self._reduce(strength + 1 if grouped else strength)
        top = self.pending[-1] if self.pending else None
        if top is None or top.strength != strength:
            self._push(token, token.text, strength)
        elif strength == _COMPARED:
            token.wrong("comparisons do not chain: write two of them, joined by &&")
        else:
            # One node for a whole conjunction, so that long ones take linear time.
            top.operands += 1

    def _reduce(self, least: int) -> None:
        """Apply the pending operators that are at least so strong."""
        while self.pending and self.pending[-1].strength >= least:
            self._apply(self.pending.pop())

    def _apply(self, pending: _Pending) -> None:
        operands = self.operands[-pending.operands :]
        del self.operands[-pending.operands :]
        prefix = pending.strength == _PREFIX or pending.kind in ("min", "max")
        start = pending.token if prefix else operands[0].start
        try:
            value = applied(pending.kind, operands, pending.counted)
        except SyntaxMistake:
            raise
        except ValueError as mistake:
            pending.token.wrong(str(mistake))
        self.operands.append(Operand(value, start))
