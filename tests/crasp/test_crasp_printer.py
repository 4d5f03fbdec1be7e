"""Texts of C-RASP programs: they parse back to the same nodes, or to a mistake with a place."""

import random
import re
from collections import Counter

import pytest
from crasp_programs import RECIPES, build_program
from crasp_texts import ALL_TEXTS
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lengthwise.crasp.builder import TRUE, Formula, Q, count, exists, ind, mod, prev
from lengthwise.crasp.nodes import in_order
from lengthwise.crasp.printer import LONGEST_SHOWN, show, text_of
from lengthwise.crasp.program import Program
from lengthwise.crasp.syntax import SyntaxMistake, parse

A, B = Q("a"), Q("b")


def check_round_trip(program):
    """The text of a program gives the same program: nodes are shared, so equal ones are identical."""
    text = text_of(program)
    again = parse(text)
    assert again.alphabet == program.alphabet
    assert (again.mode, again.accepts_empty) == (program.mode, program.accepts_empty)
    assert (again.accept is None) == (program.accept is None)
    assert list(again.outputs) == list(program.outputs)
    for name in program.outputs:
        assert again.root(name) is program.root(name), text
    check_defined_once(text)
    return text


def check_defined_once(text):
    """Every name is defined once, and is used."""
    defined = re.findall(r"^([^\W\d]\w*) =", text, re.MULTILINE)
    assert len(set(defined)) == len(defined)
    words = Counter(re.findall(r"\w+", re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)))
    assert [name for name in defined if words[name] < 2 and name != "accept"] == []


def check_any(text):
    """A text is a program that comes back, or a mistake inside the text; whether it is a program."""
    program, mistake = read(text)
    if program is not None:
        check_round_trip(program)
        return True
    lines = text.split("\n")
    assert 1 <= mistake.line <= len(lines)
    assert 1 <= mistake.column <= len(lines[mistake.line - 1]) + 1
    assert str(mistake).startswith(f"line {mistake.line}, column {mistake.column}: ")
    assert len(str(mistake).splitlines()) == 1
    return False


def read(text):
    """A program or a mistake; any other exception is an error of the parser."""
    try:
        return parse(text), None
    except SyntaxMistake as mistake:
        return None, mistake


@pytest.mark.parametrize("text", ALL_TEXTS)
def test_known_programs_come_back(text):
    program = parse(text)
    again = check_round_trip(program)
    # Names that were there, and only such, are kept; and a printed program prints as itself.
    assert text_of(parse(again)) == again


@settings(max_examples=100)
@given(RECIPES)
def test_random_programs_come_back(recipe):
    check_round_trip(build_program(recipe))


NAMES = st.one_of(
    st.sampled_from(["f1", "f2", "c1", "accept", "i", "if", "NEXT", "true", "a b", "", "é", "len"])
)
SYMBOLS = st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=3, unique=True)


@settings(max_examples=60)
@given(RECIPES, st.lists(st.tuples(NAMES, st.integers(0, 99)), max_size=4), SYMBOLS, st.booleans())
def test_names_symbols_and_letters_may_be_anything(recipe, named, symbols, predicts):
    formulas = [Formula(node) for node in build_program(recipe).nodes if not hasattr(node, "distances")]
    letters = ["a", "b", "c", *(symbol for symbol in symbols if symbol not in "abc")]
    extra = formulas[-1] | prev(Q(symbols[0]))
    outputs = {symbol: formulas[-1 - place % len(formulas)] for place, symbol in enumerate(symbols)}
    outputs[symbols[-1]] = extra
    check_round_trip(
        Program(
            letters,
            accept=None if predicts else extra,
            next=outputs if predicts else {},
            mode=recipe["mode"],
            accepts_empty=recipe["accepts_empty"],
            names={name: formulas[place % len(formulas)] for name, place in named},
        )
    )


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (count(A) - count(B) >= 2, '# "a" - # "b" >= 2'),
        (count(A) > count(B), '# "a" > # "b"'),
        (count(A) >= 2 * count(B), '# "a" >= 2 * # "b"'),
        (count(A) <= count(B), '# "b" >= # "a"'),
        (count(A) - count(B) < 0, '# "a" - # "b" < 0'),
        (count(A) <= 3, '# "a" <= 3'),
        (count(A) == 3, '# "a" == 3'),
        (3 - count(A) == 0, '3 == # "a"'),
        (count(A) != count(B) + 1, '# "a" != # "b" + 1'),
        (count(A) + 1 == count(B), '# "a" == # "b" - 1'),
        (3 * count(A) - 5 * count(B) + count(~A) >= -7, '3 * # "a" - 5 * # "b" + # !"a" >= -7'),
        ((count(A) == 1) & (count(B) == 2), '# "a" == 1 && # "b" == 2'),
        ((count(A) == 1) | B, '# "a" == 1 || "b"'),
        (~(count(A) == 1) | (A & B), '!(# "a" == 1) || ("a" && "b")'),
        (count(A, at=[1, 2]) >= 1, '#[i - j in {1, 2}] "a" >= 1'),
        (prev(A | B), '#[i - j == 1] ("a" || "b") >= 1'),
        (ind(exists(A)) + count(B) >= 3, '#[i - j == 0] (# "a" >= 1) + # "b" >= 3'),
        (count(A, at=range(5)) >= 1, '#[i - j <= 4] "a" >= 1'),
        (count(A, at=range(2, 9)) >= 1, '#[2 <= i - j <= 8] "a" >= 1'),
        (count(mod(3, 1)) + count(TRUE) >= 9, "# (i % 3 == 1) + # true >= 9"),
        (~mod(2, 0) & Q('"\n'), '!(i % 2 == 0) && "\\"\\n"'),
        (~TRUE, "false"),
    ],
)
def test_expressions_read_naturally(formula, text):
    assert show(formula.node) == repr(formula) == text
    read = parse(f'%alphabet "a" "b" "\\"\\n"\naccept = {text}')
    assert read.root() is formula.node


def test_counts_are_shown_too():
    (one,) = (node for node in in_order([(count(A & B) > 1).node]) if hasattr(node, "distances"))
    assert show(one) == '# ("a" && "b")'


@settings(max_examples=40)
@given(RECIPES)
def test_what_is_shown_parses_back(recipe):
    program = build_program(recipe)
    shown = show(program.root())
    if "..." not in shown:
        assert parse(f'%alphabet "a" "b" "c"\naccept = {shown}').root() is program.root()


def shared(levels):
    """A formula whose tree has 2**levels leaves and whose graph has a few nodes for each level."""
    formula = A
    for level in range(levels):
        formula = (count(formula) + count(~formula & B) >= level) | prev(formula)
    return formula


def test_texts_are_linear_in_the_graph():
    small, large = (len(check_round_trip(Program("ab", accept=shared(levels)))) for levels in (50, 200))
    assert large < 4.4 * small
    assert len(show(shared(200).node)) < 5 * LONGEST_SHOWN
    # One long comparison, and one count with many distances, used many times.
    wide = sum((count(Q(f"a{n}")) for n in range(100)), start=count(A)) >= 1
    spread = count(B, at=range(0, 2000, 2))
    users = [(wide & (count(A) >= n)) | (spread >= n) | ~(spread == n + 1) for n in range(100)]
    letters = ["a", "b", *(f"a{n}" for n in range(100))]
    text = check_round_trip(Program(letters, next={str(n): one for n, one in enumerate(users)}))
    assert text.count("a99") == 2
    assert text.count("1998") == 1


def test_names_of_a_program_are_used():
    late = exists(B) & A
    d = count(A) - count(B)
    program = Program("ab", accept=(count(late) == 0) & (d == 0), names={"late": late, "unused": ~A})
    assert text_of(program) == (
        '%alphabet "a" "b"\nlate = # "b" >= 1 && "a"\naccept = # late == 0 && # "a" - # "b" == 0\n'
    )


def test_a_program_too_large_for_the_syntax_is_refused():
    for formula in (count(A) >= 10**600 - 1, mod(10**600, 1), count(A, at=range(10001)) > 1):
        with pytest.raises(ValueError, match="the text syntax"):
            text_of(Program("a", accept=formula))
        assert isinstance(repr(formula), str)
    for formula in (count(A) >= 10**600 - 2, mod(10**600 - 1, 1), count(A, at=range(10000)) > 1):
        check_round_trip(Program("a", accept=formula))
        check_round_trip(Program("a", accept=count(formula) > 0))


@pytest.mark.parametrize("depth", [10, 400])
def test_nesting_may_be_deep(depth):
    many = 5 * depth
    brackets = parse(f'x = {"(" * many}"a"{")" * many}')
    assert brackets.root() is A.node
    assert parse(f'x = {"!" * many} "a"').root() is A.node
    assert parse(f'x = {"-(" * depth}3{")" * depth} > # "a"').root() is (count(A) <= 2).node
    counts = parse(f'x = {"# (" * depth}"a"{") > 1" * depth}')
    assert counts.depth == depth
    check_round_trip(counts)
    mixed = "x = " + '!("a" || # ( "b" && ' * depth + '"a"' + ") > 1)" * depth
    assert parse(mixed).depth == depth
    check_round_trip(parse(mixed))
    for text in (
        mixed[:-1],
        mixed + ")",
        f"x = {'min(' * depth}",
        f"x = {'[' * depth}",
        f"x = {'1 if ' * depth}",
    ):
        assert not check_any(text)


BROKEN_INTO = re.compile(r'\n|"[^"\n]*"|\w+|\s+|&&|\|\||[=!<>]=|.')
WORDS = [
    *(
        '"a"',
        '"b"',
        '"',
        "x",
        "d",
        "i",
        "j",
        "accept",
        "NEXT",
        "true",
        "false",
        "if",
        "else",
        "min",
        "max",
        "len",
    ),
    *(
        "prev",
        "exists",
        "forall",
        "in",
        "0",
        "1",
        "2",
        "7" * 700,
        "&&",
        "||",
        "!",
        "==",
        "!=",
        "<",
        "<=",
        ">=",
        "=",
    ),
    *(
        "+",
        "-",
        "*",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        "?",
        ":",
        "#",
        "%",
        "// ",
        "\n",
        " ",
        "\r",
        "\t",
        "\x00",
    ),
    *(
        "#import pred\n",
        "#[pred]",
        "#[j < i]",
        "#[i - j in {1, 3}]",
        "i % 3 == 1",
        "%mode eos\n",
        "\\",
        "é",
        "\ufeff",
    ),
    *("%empty true\n", '\nNEXT["a"] = ', "\naccept = ", "? 1 :", "1 if", "\u2028", "\ud800", "&", "3 *"),
]


def mutated(text, draw):
    """A text with one part deleted, inserted, replaced, doubled or moved."""
    kind = draw.randrange(4)
    if kind == 0:
        lines = text.split("\n")
        one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
        lines[one], lines[other] = lines[other], lines[one]
        return "\n".join(lines)
    parts = BROKEN_INTO.findall(text) if kind < 3 else list(text)
    place = draw.randrange(len(parts) + 1)
    new = draw.choice([[], [draw.choice(WORDS)], [draw.choice(parts or [""])], parts[place : place + 1] * 2])
    return "".join(parts[:place] + new + parts[place + draw.randrange(2) :])


def test_mutated_programs_are_programs_or_mistakes():
    draw = random.Random(20)
    outcomes = []
    short = [text for text in ALL_TEXTS if len(text) < 120]
    for _ in range(900):
        text = draw.choice(short)
        for _ in range(draw.choice([1, 1, 2, 5])):
            text = mutated(text, draw)
            outcomes.append(check_any(text))
    assert len(outcomes) > 2000
    # Both kinds are met often.
    assert 0.1 < sum(outcomes) / len(outcomes) < 0.9


@settings(max_examples=300)
@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)))
@example("\x00")
@example("x = \ud800")
@example('x = "\ud800"')
@example('x = "\u2028\x85\x1c"')
@example("%")
@example("#")
@example("# import")
@example("NEXT[")
def test_any_text_is_a_program_or_a_mistake(text):
    check_any(text)
    check_any(f'%alphabet "a" "b"\nx = {text}')
