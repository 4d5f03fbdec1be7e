"""The text syntax of C-RASP: what programs mean, and what is said of texts that are none."""

import itertools
import pickle

import pytest
from crasp_texts import (
    LANGUAGES,
    OTHER_TOOL,
    copy_text,
    majority_text,
    most_frequent,
    multisort_text,
    sort_text,
    truth,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.crasp import builder
from lengthwise.crasp.builder import Q, count, mod
from lengthwise.crasp.syntax import SyntaxMistake, parse

AB = '%alphabet "a" "b"\n'


def only(expression):
    """The node that an expression gives as the answer."""
    return parse(f"{AB}accept = {expression}").root()


@pytest.mark.parametrize("row", [*LANGUAGES.values(), *OTHER_TOOL.values()], ids=[*LANGUAGES, *OTHER_TOOL])
def test_programs_accept_their_languages(row):
    letters, text, belongs, longest = row
    program = parse("%alphabet " + " ".join(f'"{letter}"' for letter in letters) + "\n" + text)
    assert program.alphabet == tuple(letters)
    held = truth(program, itertools.product(letters, repeat=longest))
    for length in range(1, longest + 1):
        expected = [bool(belongs("".join(word))) for word in itertools.product(letters, repeat=length)]
        # A word of this length begins so many of the longest words.
        begun = len(letters) ** (longest - length)
        assert held[::begun, length - 1].tolist() == expected


def predicts(program, word, output):
    """Whether a program predicts exactly the output, then E, after B word S."""
    stream = ["B", *word, "S", *output]
    rows = {symbol: truth(program, [stream], symbol)[0] for symbol in program.outputs}
    expected = [*output, "E"]
    return all(
        {symbol for symbol, row in rows.items() if row[len(word) + 1 + step]} == {expected[step]}
        for step in range(len(expected))
    )


def words(letters, longest, distinct):
    """All words from 1 to some length."""
    choose = itertools.permutations if distinct else lambda s, n: itertools.product(s, repeat=n)
    return (word for n in range(1, longest + 1) for word in choose(letters, n))


@pytest.mark.parametrize(
    ("text", "letters", "longest", "distinct", "answer"),
    [
        (majority_text("ab"), "ab", 6, False, most_frequent),
        (majority_text("abc"), "abc", 4, False, most_frequent),
        (copy_text("abcd"), "abcd", 4, True, list),
        (sort_text("abcde"), "abcde", 4, True, sorted),
        (multisort_text("abc"), "abc", 4, False, sorted),
    ],
    ids=["majority of 2", "majority of 3", "unique copy", "sort distinct", "sort"],
)
def test_predictors_write_their_outputs(text, letters, longest, distinct, answer):
    program = parse(f'%alphabet "B" "S" {" ".join(map(chr_quoted, letters))}\n{text}')
    assert program.accept is None
    assert list(program.next) == [*letters, "E"]
    for word in words(letters, longest, distinct):
        assert predicts(program, word, answer(word)), word


def chr_quoted(letter):
    return f'"{letter}"'


# Random expressions: ("op", operands...) with meaning and writing straight from the grammar.
LEVELS = {"choice": 0, "or": 1, "and": 2, "compare": 3, "add": 4, "mul": 5, "unary": 6, "primary": 7}
RELATIONS = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}
GUARDS = {
    "": lambda d: True,
    "[j < i]": lambda d: d > 0,
    "[j<=i]": lambda d: True,
    "[j <= i - 2]": lambda d: d >= 2,
    "[i - j == 3]": lambda d: d == 3,
    "[i - j<2]": lambda d: d < 2,
    "[i - j <= 2]": lambda d: d <= 2,
    "[2 <= i - j <= 4]": lambda d: 2 <= d <= 4,
    "[i - j in {1, 4,2}]": lambda d: d in (1, 2, 4),
    "[pred]": lambda d: d == 1,
    "[pred2]": lambda d: d == 2,
}
FORMULA_LEAVES = st.one_of(
    st.sampled_from([("letter", "a"), ("letter", "b"), ("constant", True), ("constant", False), ("even",)]),
    st.sampled_from([("mod", 2, 1), ("mod", 3, 0), ("mod", 3, 2), ("mod", 1, 0)]),
)


def formulas_over(numbers, formulas):
    return st.one_of(
        st.tuples(st.just("not"), formulas),
        st.tuples(st.sampled_from(["prev", "exists", "forall"]), formulas),
        st.tuples(st.sampled_from(["and", "or"]), formulas, formulas),
        st.tuples(st.just("compare"), st.sampled_from(list(RELATIONS)), numbers, numbers),
    )


def numbers_over(numbers, formulas):
    return st.one_of(
        st.tuples(st.just("count"), st.sampled_from(list(GUARDS)), formulas),
        st.tuples(st.just("negative"), numbers),
        st.tuples(st.sampled_from(["+", "-", "min", "max"]), numbers, numbers),
        st.tuples(st.sampled_from(["times", "timed"]), st.integers(0, 3), numbers),
        st.tuples(st.sampled_from(["if", "?"]), formulas, numbers, numbers),
    )


NUMBERS_0 = st.one_of(
    st.tuples(st.just("integer"), st.integers(0, 4)),
    st.tuples(st.just("count"), st.sampled_from(list(GUARDS)), FORMULA_LEAVES),
    st.just(("len",)),
)
FORMULAS_1 = st.one_of(FORMULA_LEAVES, formulas_over(NUMBERS_0, FORMULA_LEAVES))
NUMBERS_1 = st.one_of(NUMBERS_0, numbers_over(NUMBERS_0, FORMULAS_1))
FORMULAS_2 = formulas_over(NUMBERS_1, FORMULAS_1)
NUMBERS_2 = numbers_over(NUMBERS_1, FORMULAS_2)
FORMULAS_3 = formulas_over(NUMBERS_2, FORMULAS_2)


def meaning(tree, word, i):
    """The value of an expression at a position."""
    match tree:
        case ("letter", letter):
            return word[i - 1] == letter
        case ("constant", value) | ("integer", value):
            return value
        case ("even",):
            return (i - 1) % 2 == 0
        case ("len",):
            return i
        case ("mod", modulus, residue):
            return i % modulus == residue
        case ("not", one):
            return not meaning(one, word, i)
        case ("prev", one):
            return i > 1 and meaning(one, word, i - 1)
        case ("exists", one):
            return any(meaning(one, word, j) for j in range(1, i + 1))
        case ("forall", one):
            return all(meaning(one, word, j) for j in range(1, i + 1))
        case ("and", one, other):
            return meaning(one, word, i) and meaning(other, word, i)
        case ("or", one, other):
            return meaning(one, word, i) or meaning(other, word, i)
        case ("compare", relation, one, other):
            return RELATIONS[relation](meaning(one, word, i), meaning(other, word, i))
        case ("count", guard, one):
            return sum(GUARDS[guard](i - j) and meaning(one, word, j) for j in range(1, i + 1))
        case ("negative", one):
            return -meaning(one, word, i)
        case ("+", one, other):
            return meaning(one, word, i) + meaning(other, word, i)
        case ("-", one, other):
            return meaning(one, word, i) - meaning(other, word, i)
        case ("min" | "max" as kind, one, other):
            return {"min": min, "max": max}[kind](meaning(one, word, i), meaning(other, word, i))
        case ("times" | "timed", factor, one):
            return factor * meaning(one, word, i)
        case ("if" | "?", condition, one, other):
            return meaning(one if meaning(condition, word, i) else other, word, i)


class Writer:
    """Writes expressions with few brackets, and at times with needless ones, blanks and names."""

    def __init__(self, draw):
        self.draw, self.lines = draw, []

    def write(self, tree, level="choice"):
        text, own = self.plain(tree)
        whim = self.draw(st.integers(0, 11))
        if whim == 0:
            name = f"x{len(self.lines)}"
            self.lines.append(f"{name} = {text}")
            return name
        if LEVELS[own] < LEVELS[level] or whim == 1:
            return f"({text})" if whim % 2 else f"( {text} )"
        return text

    def binary(self, own, sign, one, other, right):
        blank = self.draw(st.sampled_from(["", " ", "  ", "\t"]))
        left = self.write(one, "add" if own == "compare" else own)
        return f"{left}{blank}{sign}{blank}{self.write(other, right)}", own

    def plain(self, tree):
        match tree:
            case ("letter", letter):
                return f'"{letter}"', "primary"
            case ("constant", value):
                return str(value).lower(), "primary"
            case ("integer", value):
                return str(value), "primary"
            case ("even",):
                return "pos_even", "primary"
            case ("len",):
                return "len", "primary"
            case ("mod", modulus, residue):
                return f"i % {modulus} == {residue}", "primary"
            case ("not", one):
                return "!" + self.write(one, "unary"), "unary"
            case ("negative", one):
                return "-" + self.write(one, "unary"), "unary"
            case ("prev" | "exists" | "forall" as kind, one):
                return f"{kind} {self.write(one, 'unary')}", "unary"
            case ("count", guard, one):
                return f"#{guard}{self.write(one, 'unary')}", "unary"
            case ("and", one, other):
                return self.binary("and", "&&", one, other, "compare")
            case ("or", one, other):
                return self.binary("or", "||", one, other, "and")
            case ("compare", relation, one, other):
                return self.binary("compare", relation, one, other, "add")
            case ("+" | "-" as sign, one, other):
                return self.binary("add", sign, one, other, "mul")
            case ("times", factor, one):
                return self.binary("mul", "*", ("integer", factor), one, "unary")
            case ("timed", factor, one):
                return self.binary("mul", "*", one, ("integer", factor), "unary")
            case ("min" | "max" as kind, one, other):
                return f"{kind}({self.write(one)}, {self.write(other)})", "primary"
            case ("if", condition, one, other):
                return (
                    f"{self.write(one, 'or')} if {self.write(condition, 'or')} else {self.write(other)}",
                    "choice",
                )
            case ("?", condition, one, other):
                return f"{self.write(condition, 'or')} ? {self.write(one)} : {self.write(other)}", "choice"


@settings(max_examples=200)
@given(st.data(), st.one_of(FORMULAS_2, FORMULAS_3), st.text("ab", min_size=1, max_size=7))
def test_expressions_mean_what_the_grammar_says(data, tree, word):
    writer = Writer(data.draw)
    answer = writer.write(tree)
    lines = [*writer.lines, f"accept = {answer}"]
    program = parse(
        "\n".join(['%alphabet "a" "b"', "#import pos_even", "#import pred", "#import pred2", *lines])
    )
    held = truth(program, [word])[0].tolist()
    assert held == [meaning(tree, word, i) for i in range(1, len(word) + 1)]


@pytest.mark.parametrize(
    ("loose", "bracketed"),
    [
        ('# "a" + # "b" > 3', '((# "a") + (# "b")) > 3'),
        ('# "a" - # "b" - 1 >= 0', '((# "a" - # "b") - 1) >= 0'),
        ('# "a" - 2 * # "b" >= 0', '(# "a" - (2 * # "b")) >= 0'),
        ('2 * # "a" * 3 >= 7', '((2 * # "a") * 3) >= 7'),
        ('-# "a" + 2 >= 0', '((-(# "a")) + 2) >= 0'),
        ('- 2 * - # "a" >= 5', '((-2) * (-(# "a"))) >= 5'),
        ('!"a" && "b" || "a"', '((!"a") && "b") || "a"'),
        ('"a" || "b" && !"a"', '"a" || ("b" && (!"a"))'),
        ('# !"a" == 0', '(# (!"a")) == 0'),
        ("# i % 2 == 1 >= 3", "(# (i % 2 == 1)) >= 3"),
        ('exists "a" && "b"', '(exists "a") && "b"'),
        ('!prev !"a" && "b"', '(!(prev (!"a"))) && "b"'),
        ('(1 if "a" else 2 if "b" else 3) > # "a"', '(1 if "a" else (2 if "b" else 3)) > # "a"'),
        ('("a" ? 1 : "b" ? 2 : 3) > # "a"', '("a" ? 1 : ("b" ? 2 : 3)) > # "a"'),
        ('("a" ? "b" ? 1 : 2 : 3) > # "a"', '("a" ? ("b" ? 1 : 2) : 3) > # "a"'),
        ('("a" ? 1 if "b" else 2 : 3) > # "a"', '("a" ? (1 if "b" else 2) : 3) > # "a"'),
        ('(# "a" if "a" || "b" else # "b" + 1) > 1', '((# "a") if ("a" || "b") else (# "b" + 1)) > 1'),
        ('(1 + 2 if "a" else 0) > # "a"', '((1 + 2) if "a" else 0) > # "a"'),
        ('"a" && # "a" > 1 || # "b" < 1', '("a" && (# "a" > 1)) || (# "b" < 1)'),
    ],
)
def test_operators_bind_as_the_grammar_says(loose, bracketed):
    assert only(loose) is only(bracketed)


def test_expressions_are_what_the_builder_makes():
    a, b = Q("a"), Q("b")
    d = count(a) - count(b)
    assert only('# "a" - # "b" >= 3') is (d >= 3).node
    assert only('#[j < i] "a" > 2') is (count(a, strict=True) > 2).node
    assert only('#[j <= i - 2] "a" > 2') is (count(a, at_least=2) > 2).node
    assert only('min(# "a", # "b") == 2') is (builder.minimum(count(a), count(b)) == 2).node
    assert only('max(# "a", # "b") != 2') is (builder.maximum(count(a), count(b)) != 2).node
    assert only('("a" ? # "a" : 3) <= # "b"') is (a.ite(count(a), 3) <= count(b)).node
    assert only('forall ("a" || i % 3 == 2)') is builder.forall(a | mod(3, 2)).node
    assert only("len >= 2") is (count(a | b) >= 2).node
    assert only("false") is (~builder.TRUE).node


def test_a_text_gives_all_that_a_program_has():
    program = parse(
        "// a comment\n%mode eos\n\n%empty false // here too\n"
        ' x = "b" \r\ny = # x\naccept = y > 1 && "c"\nz = !x\n'
    )
    assert program.alphabet == ("b", "c")
    assert (program.mode, program.accepts_empty) == ("eos", False)
    assert program.root() is ((count(Q("b")) > 1) & Q("c")).node
    assert {name: one.node for name, one in program.names.items()} == {"x": Q("b").node, "z": (~Q("b")).node}
    plain = parse('x = "a"')
    assert (plain.mode, plain.accepts_empty, plain.root()) == ("last", None, Q("a").node)
    assert parse('%alphabet "z" "a"\nx = "a"').alphabet == ("z", "a")
    assert parse('NEXT["E"] = "a"\nNEXT["a"] = !"E"').alphabet == ("E", "a")
    assert parse('%alphabet "a"\nNEXT["E"] = "a"').alphabet == ("a",)
    assert parse('\ufeff x = "é" || "\\u{1F600}" || "\\"\\\\\\n\\t" || "//"').alphabet == (
        "é",
        "😀",
        '"\\\n\t',
        "//",
    )


def test_names_hold_their_value_until_they_get_another():
    program = parse('x = "a"\ny = x\nx = # y\nx = x + # "b"\nz = x > 2 && y')
    assert program.root() is ((count(Q("a")) + count(Q("b")) > 2) & Q("a")).node
    assert list(program.names) == ["y", "z"]
    assert parse('accept = "a"\naccept = !accept\nx = "a"').root() is (~Q("a")).node


def test_words_of_the_additions_are_still_names_where_a_program_makes_them_so():
    text = 'prev = # "a"\nexists = prev + 1\ni = "b"\nlen = 3\nin = "a"\n'
    text += "x = exists > prev + len || i && i % 2 == 0 || in"
    expected = (count(Q("a")) + 1 > count(Q("a")) + 3) | (Q("b") & mod(2, 0)) | Q("a")
    assert parse(text).root() is expected.node
    # Imports count wherever they stand.
    late = '#import pos_even\nx = #[pred3] "a" >= 1 && pos_even\n#import pred3'
    assert parse(late).root() is ((count(Q("a"), at=[3]) >= 1) & mod(2, 1)).node
    assert parse('#import pred0\nx = #[pred0] "a" >= 1').root() is Q("a").node


MISTAKES = [
    ("", 1, 1, 'expected a statement such as accept = # "a" >= 1, got the end of the text'),
    ("// nothing\n\n  ", 3, 3, 'expected a statement such as accept = # "a" >= 1, got the end of the text'),
    ('%alphabet "a"', 1, 14, 'expected a statement such as accept = # "a" >= 1, got the end of the text'),
    # Words.
    ('x = "a', 1, 5, "expected a closing quote, got the end of the line"),
    ('x = "a" // "\ny = "b\\"', 2, 5, "expected a closing quote, got the end of the line"),
    ('x = "a" & "b"', 1, 9, "unexpected character '&'; write &&"),
    ('x = "a" | "b"', 1, 9, "unexpected character '|'; write ||"),
    ("x = 3 \x00", 1, 7, "unexpected character '\\x00'"),
    ("x = 3 @", 1, 7, "unexpected character '@'"),
    ("x = \u0663", 1, 5, "unexpected character '\\u0663'"),
    ('x = ""', 1, 5, "expected a letter between the quotes, got nothing"),
    ('x = "ab\\q"', 1, 8, "unknown escape \\q: a backslash is written \\\\"),
    ('x = "\\u{110000}"', 1, 6, "unknown escape \\u{110000}: a backslash is written \\\\"),
    (f"x = 2 > 1{'0' * 600}", 1, 9, "an integer has more than 600 digits"),
    # Statements.
    ('"a"', 1, 1, 'expected a statement such as name = ..., got "a"'),
    ("x", 1, 2, "expected '=', got the end of the line"),
    ('x == "a"', 1, 3, "expected '=', got '=='"),
    ('if = "a"', 1, 1, "'if' cannot be a name"),
    ('x = "a"\nNEXT[a] = x', 2, 6, "expected a symbol such as \"a\", got 'a'"),
    ('NEXT["a"] = "a"\nNEXT["a"] = "b"', 2, 6, 'NEXT["a"] stands twice'),
    ('NEXT["a"] = "a"\n accept = "a"', 2, 2, "a program either accepts or predicts: it has NEXT already"),
    ('accept = "a"\nNEXT["a"] = "a"', 2, 1, "a program either accepts or predicts: it has accept already"),
    # Directives and imports.
    ('%mod last\nx = "a"', 1, 2, "unknown directive 'mod'; did you mean 'mode'?"),
    ('%mode first\nx = "a"', 1, 7, "expected 'last' or 'eos', got 'first'"),
    ('%mode eos eos\nx = "a"', 1, 11, "expected the end of the line, got 'eos'"),
    ('%mode eos\n%mode eos\nx = "a"', 2, 2, "%mode stands twice"),
    ('%empty 1\nx = "a"', 1, 8, "expected 'true' or 'false', got '1'"),
    ('%empty false\n%empty false\nx = "a"', 2, 2, "%empty stands twice"),
    ('%alphabet\nx = "a"', 1, 10, 'expected a letter such as "a", got the end of the line'),
    ('%alphabet "a" b\nx = "a"', 1, 15, "expected the end of the line, got 'b'"),
    ('%alphabet "a" "b" "a"\nx = "a"', 1, 19, 'the alphabet names the letter "a" twice'),
    ('%alphabet "a"\nx = # "b" > 1', 2, 7, 'unknown letter "b"; there are: a'),
    ('%alphabet "\u2028"\nx = "b"', 2, 5, 'unknown letter "b"; there are: \\u{2028}'),
    ("\nx = i % 2 == 0", 2, 1, 'no letter occurs: declare the alphabet, as in %alphabet "a" "b"'),
    ("#import prad\nx = true", 1, 9, "unknown predicate 'prad'; did you mean 'pred'?"),
    ("#import", 1, 8, "expected the name of a predicate, got the end of the line"),
    # Shapes of expressions.
    ("x =", 1, 4, "expected a formula or a count, got the end of the line"),
    ('x = "a" &&  // and', 1, 11, "expected a formula or a count, got the end of the line"),
    ('x = ("a" && "b"', 1, 16, "expected ')', got the end of the line"),
    ('x = ("a" "b")', 1, 10, "expected an operator or ')', got \"b\""),
    ('x = "a")', 1, 8, "expected an operator or the end of the line, got ')'"),
    ("x = ()", 1, 6, "expected a formula or a count, got ')'"),
    ('x = "a" = "b"', 1, 9, "expected an operator or the end of the line, got '='"),
    ('x = 1 < # "a" < 3', 1, 15, "comparisons do not chain: write two of them, joined by &&"),
    ("x = min(1)", 1, 10, "expected ',', got ')'"),
    ("x = min(1, 2, 3)", 1, 13, "expected an operator or ')', got ','"),
    ("x = min 1", 1, 9, "expected '(', got '1'"),
    ("x = (1, 2)", 1, 7, "expected an operator or ')', got ','"),
    ('x = 1 if "a"', 1, 13, "expected 'else', got the end of the line"),
    ('x = 1 if "a" 2', 1, 14, "expected an operator or 'else', got '2'"),
    ('x = 1 if "a" if "b" else 2 else 3', 1, 14, "expected 'else', got 'if'"),
    ("x = 1 else 2", 1, 7, "expected an operator or the end of the line, got 'else'"),
    ('x = "a" ? 1', 1, 12, "expected ':', got the end of the line"),
    ("x = else", 1, 5, "expected a formula or a count, got 'else'"),
    # Types.
    ('x = # "a" && "b"', 1, 5, "expected a formula, got a count: compare it with a number"),
    ('x = "a" && (# "b")', 1, 12, "expected a formula, got a count: compare it with a number"),
    ("x = !3", 1, 6, "expected a formula, got a count: compare it with a number"),
    ('x = # # "a"', 1, 7, "expected a formula, got a count: compare it with a number"),
    ('x = 1 if # "a" else 2', 1, 10, "expected a formula, got a count: compare it with a number"),
    ("x = exists len", 1, 12, "expected a formula, got a count: compare it with a number"),
    ('x = "b"\ny = 1 + # "a"', 2, 5, "expected a formula, got a count: compare it with a number"),
    ('accept = # "a"\ny = "a"', 1, 10, "expected a formula, got a count: compare it with a number"),
    ('NEXT["a"] = # "a"', 1, 13, "expected a formula, got a count: compare it with a number"),
    ('x = 2 > 1 + ("a")', 1, 13, "expected a count, got a formula: # counts where a formula holds"),
    ('x = -"a"', 1, 6, "expected a count, got a formula: # counts where a formula holds"),
    ('x = ("a" if "b" else 2) > 1', 1, 6, "expected a count, got a formula: # counts where a formula holds"),
    ('x = "a" == "b"', 1, 5, "expected a count, got a formula: # counts where a formula holds"),
    ('x = max(1, "b") > 1', 1, 12, "expected a count, got a formula: # counts where a formula holds"),
    (
        'n = # "a"\nx = 3 * n * # "b" > 1',
        2,
        11,
        "expected an integer on one side of '*', got a product of two counts",
    ),
    # Names.
    ('height = # "a"\nx = hight > 2', 2, 5, "unknown name 'hight'; did you mean 'height'?"),
    ('x = y && "a"\ny = "a"', 1, 5, "unknown name 'y'"),
    ('x = "a" && i', 1, 12, "the position stands only in a formula such as i % 2 == 0"),
    (
        '#import pred\nx = "a" && pred',
        2,
        12,
        "'pred' is a guard, not a formula: write #[pred] before a formula",
    ),
    # Positions.
    ('x = "a" && i % 0 == 0', 1, 16, "a modulus must be at least 1, got 0"),
    ('x = "a" && i % 2 == 2', 1, 21, "a residue must be less than its modulus, got '2'"),
    ('x = "a" && i % 2 > 0', 1, 18, "expected '==', got '>'"),
    ('x = "a" && i % m == 0', 1, 16, "expected an integer, got 'm'"),
    ('x = #[pred] "a" > 0', 1, 7, "unknown guard 'pred': #import pred defines it"),
    ('x = #[foo] "a" > 0', 1, 7, "unknown guard 'foo'"),
    ('#import pred2\nx = #[prod2] "a" > 0', 2, 7, "unknown guard 'prod2'; did you mean 'pred2'?"),
    ('x = #["a"] "a" > 0', 1, 7, 'expected a guard such as i - j == 1, got "a"'),
    ('x = #[i - j > 2] "a" > 0', 1, 13, "expected one of '==', '<', '<=' and 'in', got '>'"),
    ('x = #[1 <= i - j < 3] "a" > 0', 1, 18, "expected '<=', got '<'"),
    ('x = #[1 < i - j] "a" > 0', 1, 9, "expected '<=', got '<'"),
    ('x = #[i + j == 1] "a" > 0', 1, 9, "expected '-', got '+'"),
    ('x = #[j > i] "a" > 0', 1, 9, "expected '<' or '<=', got '>'"),
    ('x = #[j < i - 1] "a" > 0', 1, 13, "expected ']', got '-'"),
    ('x = #[i - j in {}] "a" > 0', 1, 17, "expected an integer, got '}'"),
    ('x = #[i - j in {1 2}] "a" > 0', 1, 19, "expected '}', got '2'"),
    ('x = #[i - j < 10001] "a" > 0', 1, 7, "a guard holds at most 10000 distances"),
    ('x = #[j <= i - 10001] "a" > 0', 1, 16, "a guard holds at most 10000 distances"),
    ('x = #[0 <= i - j <= 99999999999999999999] "a" > 0', 1, 7, "a guard holds at most 10000 distances"),
    ('x = 2 > #[i - j == 10001] "a"', 1, 9, "distances must be from 0 to 10000, got 10001"),
    ('#import pred99999\nx = #[pred99999] "a" > 0', 2, 5, "distances must be from 0 to 10000, got 99999"),
]


@pytest.mark.parametrize(("text", "line", "column", "said"), MISTAKES)
def test_mistakes_are_told_with_their_place(text, line, column, said):
    with pytest.raises(SyntaxMistake) as caught:
        parse(text)
    mistake = caught.value
    assert (str(mistake), mistake.line, mistake.column) == (
        f"line {line}, column {column}: {said}",
        line,
        column,
    )
    assert str(pickle.loads(pickle.dumps(mistake))) == str(mistake)


def test_messages_stay_short():
    name = "x" * 10**5
    texts = [
        f"y = {name}",
        f'y = "a" && "{name}" 3',
        f"{name}",
        "\n".join(f"v{n} = 1" for n in range(99)) + "\ny = q",
    ]
    for text in texts:
        with pytest.raises(SyntaxMistake) as caught:
            parse(text)
        assert len(str(caught.value)) < 250


def test_large_numbers_are_exact_or_refused():
    most = 10**600 - 1
    close = parse(f'x = {most - 2} * # "a" > {most - 1} * # "b" - 1').root()
    assert close is ((most - 2) * count(Q("a")) > (most - 1) * count(Q("b")) - 1).node
    assert only(f'# "a" >= {"0" * 9999}7') is (count(Q("a")) >= 7).node
    for text, column in [
        (f'x = {most} + 1 > # "a"', 606),
        (f'x = {10**300} * {10**300} * # "a" > 0', 307),
        (f'x = {most} * # "a" + # "b" > 0', 622),
        (f'x = # "a" + {most} > 0 - {most}', 614),
    ]:
        with pytest.raises(SyntaxMistake, match="a number here has more than 600 digits") as caught:
            parse(text)
        assert (caught.value.line, caught.value.column) == (1, column)
    # Squaring again and again must not take memory without end.
    with pytest.raises(SyntaxMistake, match="line 11, column 7"):
        parse("x = 10\n" + "x = x * x\n" * 60 + 'y = x > # "a"')


def test_conditions_may_not_multiply_without_end():
    one = " + ".join(f'(1 if # "a" > {k} else 2)' for k in range(13))
    with pytest.raises(SyntaxMistake, match="more than 4096 combinations of conditions"):
        parse(f"x = {one} > 3")
    half = [" + ".join(f'(1 if # "{letter}" > {k} else 2)' for k in range(9)) for letter in "ab"]
    with pytest.raises(
        SyntaxMistake, match="line 3, column 7: a count depends on more than 4096 combinations"
    ):
        parse(f"x = {half[0]}\ny = {half[1]}\nz = x + y\nw = z > 3")
    sums = " + ".join(f"#[i - j == 0] (i % {k} == 0)" for k in range(2, 302))
    with pytest.raises(SyntaxMistake, match="a comparison of 300 indicators has too many cases"):
        parse(f'x = "a" && {sums} > 3')
