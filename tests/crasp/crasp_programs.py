"""Random C-RASP programs as plain data, and what they mean, straight from the definitions.

A recipe is a dictionary of plain values. Its steps make one formula each, out of the letters and of the
formulas before; the last is what the program accepts with. ``build_program`` makes the program,
``recipe_truth`` evaluates the recipe itself, and ``plain_values`` every node of any program. The two
evaluations share nothing with each other or with the evaluators of the package.
"""

import pytest
from hypothesis import strategies as st

from lengthwise.crasp import batch, builder, nodes
from lengthwise.crasp.program import Program

LETTERS = "abc"
RELATIONS = ("<", "<=", ">", ">=", "==", "!=")
DEEPEST = 3
"""Counts are nested no deeper than this."""

# Places are counted back from the newest formula, and mostly new ones are taken, so that programs are deep.
_BACK = st.one_of(st.integers(0, 2), st.integers(0, 9))
_SMALL = st.sampled_from([1, -1, 2, -2, 3, -3])
_TERM = st.one_of(
    st.tuples(st.just("count"), _SMALL, _BACK),
    st.tuples(st.just("strict"), _SMALL, _BACK),
    st.tuples(st.just("ind"), _SMALL, _BACK),
    st.tuples(st.just("far"), _SMALL, _BACK, st.integers(0, 5)),
    st.tuples(
        st.just("local"),
        _SMALL,
        _BACK,
        st.lists(st.one_of(st.integers(0, 4), st.integers(0, 30)), min_size=1, max_size=5, unique=True),
    ),
)
# Small constants make ties; large ones keep comparisons from being settled after a few letters.
_CONSTANT = st.one_of(st.integers(-8, 8), st.integers(-8, 8), st.integers(-150, 150))
_SUM = st.tuples(st.lists(_TERM, min_size=1, max_size=3), _CONSTANT)
_COMPARISON = st.tuples(st.just("compare"), st.sampled_from(RELATIONS), _SUM)
_LAST = st.tuples(
    st.just("compare"),
    st.sampled_from(RELATIONS),
    st.tuples(st.lists(_TERM, min_size=2, max_size=3), _CONSTANT),
)
_STEP = st.one_of(
    st.tuples(st.just("mod"), st.integers(1, 6), st.integers(0, 5)),
    st.tuples(st.just("not"), _BACK),
    st.tuples(st.sampled_from(["and", "or"]), st.lists(_BACK, min_size=2, max_size=4)),
    st.tuples(st.sampled_from(["prev", "exists", "forall"]), _BACK),
    _COMPARISON,
    _COMPARISON,
    st.tuples(st.just("if"), st.sampled_from(RELATIONS), _BACK, _SUM, _SUM),
    st.tuples(st.sampled_from(["min", "max"]), st.sampled_from(RELATIONS), _SUM, _SUM, st.integers(-4, 4)),
)
RECIPES = st.fixed_dictionaries(
    {
        "letters": st.integers(1, 3),
        "mode": st.sampled_from(["last", "eos"]),
        "accepts_empty": st.sampled_from([None, False, True]),
        # A comparison comes last, so that few programs are constant.
        "steps": st.builds(
            lambda steps, last: [*steps, last], st.lists(_STEP, min_size=2, max_size=9), _LAST
        ),
    }
)
"""Recipes of programs that use every construct of the language."""

WORDS = st.lists(st.integers(0, 2), max_size=60)
"""Words as symbol numbers, to be taken modulo the number of letters."""


def word_for(program, word):
    """A word of ``WORDS`` over the letters of a program."""
    return [symbol % len(program.alphabet) for symbol in word]


def build_program(recipe):
    """The program that a recipe describes."""
    pool = [builder.Q(letter) for letter in LETTERS[: recipe["letters"]]]
    for step in _resolved(recipe):
        pool.append(_built(step, pool))
    return Program(
        LETTERS[: recipe["letters"]],
        accept=pool[-1],
        mode=recipe["mode"],
        accepts_empty=recipe["accepts_empty"],
    )


def _resolved(recipe):
    """The steps with places in the pool instead of distances back, and nothing counted that is too deep."""
    depths = [0] * recipe["letters"]

    def place(back, counted=False):
        allowed = [at for at, depth in enumerate(depths) if depth + counted <= DEEPEST]
        chosen = allowed[-1 - back % len(allowed)]
        used.append(depths[chosen] + counted)
        return chosen

    def total(terms_and_constant):
        terms, constant = terms_and_constant
        return [(t[0], t[1], place(t[2], counted=t[0] != "ind"), *t[3:]) for t in terms], constant

    for step in recipe["steps"]:
        used = [0]
        match step:
            case ("mod", _, _):
                found = step
            case ("not", back):
                found = ("not", place(back))
            case ("and" | "or" as kind, backs):
                found = (kind, [place(back) for back in backs])
            case ("prev" | "exists" | "forall" as kind, back):
                found = (kind, place(back, counted=True))
            case ("compare", relation, one):
                found = ("compare", relation, total(one))
            case ("if", relation, back, one, other):
                found = ("if", relation, place(back), total(one), total(other))
            case (kind, relation, one, other, bound):
                found = (kind, relation, total(one), total(other), bound)
        depths.append(max(used))
        yield found


def _built(step, pool):
    def total(terms_and_constant):
        terms, constant = terms_and_constant
        found = builder.number(constant)
        for kind, alpha, at, *more in terms:
            if kind == "ind":
                one = builder.ind(pool[at])
            elif kind == "strict":
                one = builder.count(pool[at], strict=True)
            elif kind == "far":
                one = builder.count(pool[at], at_least=more[0])
            else:
                one = builder.count(pool[at], at=more[0] if more else None)
            found = found + alpha * one
        return found

    match step:
        case ("mod", modulus, residue):
            return builder.mod(modulus, residue)
        case ("not", at):
            return ~pool[at]
        case ("and" | "or" as kind, places):
            found = pool[places[0]]
            for at in places[1:]:
                found = found & pool[at] if kind == "and" else found | pool[at]
            return found
        case ("prev" | "exists" | "forall" as kind, at):
            return getattr(builder, kind)(pool[at])
        case ("compare", relation, one):
            return _related(relation, total(one), 0)
        case ("if", relation, at, one, other):
            return _related(relation, pool[at].ite(total(one), total(other)), 0)
        case (kind, relation, one, other, bound):
            smaller = kind == "min"
            chosen = (builder.minimum if smaller else builder.maximum)(total(one), total(other))
            return _related(relation, chosen, bound)


def _related(relation, left, right):
    match relation:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "==":
            return left == right
        case "!=":
            return left != right


def recipe_truth(recipe, word):
    """What a recipe accepts with, at positions 1 to n, and n + 1 under "eos": no nodes, no simplification."""
    letters: list[int | None] = list(word)
    if recipe["mode"] == "eos":
        letters.append(None)
    positions = range(1, len(letters) + 1)
    pool = [[letter == number for letter in letters] for number in range(recipe["letters"])]

    def term(kind, at, more, i):
        past = {j: pool[at][j - 1] for j in range(1, i + 1)}
        if kind == "ind":
            return int(past[i])
        if kind == "local":
            return sum(past.get(i - distance, False) for distance in more[0])
        latest = i - {"count": 0, "strict": 1}.get(kind, more[0] if more else 0)
        return sum(holds for j, holds in past.items() if j <= latest)

    def total(terms_and_constant, i):
        terms, constant = terms_and_constant
        return constant + sum(alpha * term(kind, at, more, i) for kind, alpha, at, *more in terms)

    for step in _resolved(recipe):
        match step:
            case ("mod", modulus, residue):
                row = [(i - residue) % modulus == 0 for i in positions]
            case ("not", at):
                row = [not holds for holds in pool[at]]
            case ("and", places):
                row = [all(pool[at][i - 1] for at in places) for i in positions]
            case ("or", places):
                row = [any(pool[at][i - 1] for at in places) for i in positions]
            case ("prev", at):
                row = [i > 1 and pool[at][i - 2] for i in positions]
            case ("exists", at):
                row = [any(pool[at][:i]) for i in positions]
            case ("forall", at):
                row = [all(pool[at][:i]) for i in positions]
            case ("compare", relation, one):
                row = [_related(relation, total(one, i), 0) for i in positions]
            case ("if", relation, at, one, other):
                row = [_related(relation, total(one if pool[at][i - 1] else other, i), 0) for i in positions]
            case (kind, relation, one, other, bound):
                best = min if kind == "min" else max
                row = [_related(relation, best(total(one, i), total(other, i)), bound) for i in positions]
        pool.append(row)
    return pool[-1]


def plain_values(program, word):
    """For every node the list of its values at positions 1 to n, and at n + 1 under "eos"."""
    letters = [program.alphabet[symbol] for symbol in word]
    if program.mode == "eos":
        letters.append(None)
    positions = range(1, len(letters) + 1)
    found = {}
    for node in program.nodes:
        match node:
            case nodes.True_():
                row = [True for _ in positions]
            case nodes.Sym():
                row = [letters[i - 1] == node.letter for i in positions]
            case nodes.Mod():
                row = [i % node.modulus == node.residue for i in positions]
            case nodes.Not():
                row = [not found[node.operand][i - 1] for i in positions]
            case nodes.And():
                row = [all(found[one][i - 1] for one in node.operands) for i in positions]
            case nodes.Or():
                row = [any(found[one][i - 1] for one in node.operands) for i in positions]
            case nodes.Ge():
                row = [
                    sum(alpha * found[one][i - 1] for one, alpha in node.terms) >= -node.constant
                    for i in positions
                ]
            case nodes.Count() if node.distances is None:
                row = [sum(found[node.operand][:i]) for i in positions]
            case nodes.Count():
                held = found[node.operand]
                row = [
                    sum(1 for distance in node.distances if i - distance >= 1 and held[i - distance - 1])
                    for i in positions
                ]
        found[node] = row
    return found


def values_at(table, position):
    """One position of what ``plain_values`` gives."""
    return {node: row[position - 1] for node, row in table.items()}


def with_tiles(size, work, *arguments):
    """What a function of ``batch`` says when it evaluates at most so many positions at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "TILE", size)
        return work(*arguments)
