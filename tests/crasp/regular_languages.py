"""What the tests of regular languages share: a table of languages, a slow decider, an evaluator."""

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import strategies as st

from lengthwise.crasp.nodes import And, Count, Ge, Mod, Not, Or, Sym, True_
from lengthwise.crasp.regular import DFA, compile_regex


def dyck(height):
    """Words of a and b: the number of a less b stays between 0 and the height, and is 0 at last."""
    dead = height + 1
    rows = [(h + 1 if h < height else dead, h - 1 if h else dead) for h in range(height + 1)]
    return DFA(("a", "b"), (*rows, (dead, dead)), 0, frozenset({0}))


def modular(modulus):
    """Words of 0 and 1 whose number of 0 less that of 1 is 0 modulo the modulus."""
    rows = tuple(((q + 1) % modulus, (q - 1) % modulus) for q in range(modulus))
    return DFA(("0", "1"), rows, 0, frozenset({0}))


# States of Tomita 3: even run of 1 or no bad run yet, odd run of 1, odd and even runs of 0 after one, dead.
TOMITA_3_IMMEDIATELY = DFA(("0", "1"), ((0, 1), (2, 0), (3, 4), (2, 1), (4, 4)), 0, frozenset({0, 1, 3}))
TOMITA_3_LATER = DFA(("0", "1"), ((0, 1), (2, 0), (3, 4), (2, 3), (4, 4)), 0, frozenset({0, 1, 3}))

# Language, states, monoid, R, R^omega, A, eos, last, window and period of a positional yes (None: no).
TABLE = {
    "tomita 1": (compile_regex("1*", "01"), 2, 2, 1, 1, 1, 1, 1, (0, 1)),
    "tomita 2": (compile_regex("(10)*"), 3, 6, 0, 1, 1, 1, 1, (0, 1)),
    "tomita 3 immediately": (TOMITA_3_IMMEDIATELY, 5, 26, 0, 0, 0, 0, 0, None),
    "tomita 3 later": (TOMITA_3_LATER, 5, 27, 0, 0, 0, 0, 0, (0, 2)),
    "tomita 4": (compile_regex("(1|01|001)*(()|0|00)"), 4, 12, 0, 0, 1, 0, 0, (2, 1)),
    "tomita 5": (compile_regex("(00|11|(01|10)(00|11)*(01|10))*"), 4, 4, 0, 0, 0, 0, 0, None),
    "tomita 6": (modular(3), 3, 3, 0, 0, 0, 0, 0, None),
    "tomita 7": (compile_regex("0*1*0*1*"), 5, 9, 1, 1, 1, 1, 1, (0, 1)),
    "D_2": (dyck(2), 4, 15, 0, 1, 1, 1, 1, (0, 1)),
    "D_3": (dyck(3), 5, 31, 0, 1, 1, 1, 1, (0, 1)),
    "D_4": (dyck(4), 6, 56, 0, 1, 1, 1, 1, (0, 1)),
    "D_12": (dyck(12), 14, 820, 0, 1, 1, 1, 1, (0, 1)),
    "(aa)*": (compile_regex("(aa)*"), 2, 2, 0, 0, 0, 0, 0, (0, 2)),
    "(aa)* over ab": (compile_regex("(aa)*", "ab"), 3, 3, 0, 0, 0, 0, 0, (0, 2)),
    "(aaaa)*": (compile_regex("(aaaa)*"), 4, 4, 0, 0, 0, 0, 0, (0, 4)),
    "(abab)*": (compile_regex("(abab)*"), 5, 10, 0, 0, 0, 0, 0, (0, 4)),
    "aa*bb*cc*dd*ee*": (compile_regex("aa*bb*cc*dd*ee*"), 7, 17, 1, 1, 1, 1, 1, (0, 1)),
    "(a|b)*d(b|c)*": (compile_regex("(a|b)*d(b|c)*"), 3, 5, 1, 1, 1, 1, 1, (0, 1)),
    "(0|1|2)*02*": (compile_regex("(0|1|2)*02*"), 2, 3, 0, 0, 1, 0, 0, None),
    "parity": (compile_regex("b*(ab*ab*)*"), 2, 2, 0, 0, 0, 0, 0, None),
    "(ab|ba)*": (compile_regex("(ab|ba)*"), 4, 15, 0, 1, 1, 1, 1, (0, 1)),
    "(ab|bba)*": (compile_regex("(ab|bba)*"), 5, 26, 0, 1, 1, 0, 0, (2, 1)),
    "(ab|bbaa)*": (compile_regex("(ab|bbaa)*"), 6, 36, 0, 1, 1, 1, 1, (0, 1)),
    "(ab|aabb)*": (compile_regex("(ab|aabb)*"), 5, 21, 0, 0, 1, 0, 0, (1, 1)),
    "S*aS*": (compile_regex("(a|b)*a(a|b)*"), 2, 2, 1, 1, 1, 1, 1, (0, 1)),
    "aS*": (compile_regex("a(a|b)*"), 3, 3, 1, 1, 1, 1, 1, (0, 1)),
    "S*a": (compile_regex("(a|b)*a"), 2, 3, 0, 0, 1, 0, 1, (1, 1)),
    "S*aaS*": (compile_regex("(a|b)*aa(a|b)*"), 3, 6, 0, 0, 1, 0, 0, (1, 1)),
    "S*abS*": (compile_regex("(a|b)*ab(a|b)*"), 3, 5, 1, 1, 1, 1, 1, (0, 1)),
    "S*abS* over abc": (compile_regex("(a|b|c)*ab(a|b|c)*"), 3, 6, 0, 0, 1, 0, 0, (1, 1)),
    "flip-flop": (compile_regex("(a|b|e)*be*"), 2, 3, 0, 0, 1, 0, 0, None),
    "aS*b": (compile_regex("(a+b+)+"), 4, 5, 0, 0, 1, 0, 1, (1, 1)),
}


def words(letters, length):
    """All words of one length, as rows of the numbers of their letters."""
    rows = list(product(range(letters), repeat=length))
    return np.array(rows, dtype=np.int64).reshape(len(rows), length)


def labels(dfa, rows):
    """Whether an automaton accepts each word."""
    transitions = np.array(dfa.transitions)
    states = np.full(len(rows), dfa.start)
    for column in rows.T:
        states = transitions[states, column]
    return np.isin(states, list(dfa.accepting))


def answers(program, rows):
    """Whether a program accepts each of some words of one length, by the definition of every node."""
    if program.mode == "eos":
        rows = np.concatenate([rows, np.full((len(rows), 1), -1)], axis=1)
    elif not rows.shape[1]:
        return np.full(len(rows), program.accepts_empty)
    return np.concatenate([_values(program, rows[at : at + 1024])[:, -1] for at in range(0, len(rows), 1024)])


def _values(program, rows):
    values = {}
    for node in program.nodes:
        below = [values[child] for child in node.children]
        match node:
            case True_():
                values[node] = np.ones(rows.shape, dtype=bool)
            case Sym():
                values[node] = rows == program.alphabet.index(node.letter)
            case Mod():
                here = np.arange(1, rows.shape[1] + 1) % node.modulus == node.residue
                values[node] = np.broadcast_to(here, rows.shape)
            case Not():
                values[node] = ~below[0]
            case And():
                values[node] = np.logical_and.reduce(below)
            case Or():
                values[node] = np.logical_or.reduce(below)
            case Count(distances=None):
                values[node] = np.cumsum(below[0], axis=1)
            case Count():
                total = np.zeros(rows.shape, dtype=np.int64)
                for distance in node.distances:
                    total[:, distance:] += below[0][:, : max(rows.shape[1] - distance, 0)]
                values[node] = total
            case Ge():
                sums = sum(factor * values[one] for one, factor in node.terms)
                values[node] = sums + node.constant >= 0
    return values[program.root()]


def same_language(program, dfa, longest):
    """Whether a program and an automaton agree on all words up to a length."""
    every = (words(len(dfa.alphabet), length) for length in range(longest + 1))
    return all((answers(program, rows) == labels(dfa, rows)).all() for rows in every)


def components(transitions):
    """Sets of states that reach each other, by transitive closure."""
    size = len(transitions)
    reach = np.eye(size, dtype=bool)
    for state, row in enumerate(transitions):
        reach[state, list(row)] = True
    for _ in range(size.bit_length()):
        reach = (reach.astype(int) @ reach.astype(int)) > 0
    mutual = reach & reach.T
    return [list(row) for row in {tuple(np.flatnonzero(row).tolist()) for row in mutual}]


def parts_all(transitions, tags):
    """Whether states with equal tags part in every component."""
    found = (final_blocks(one, transitions, tags) for one in components(transitions))
    return all(len(set(block.values())) == len(block) for block in found)


def final_blocks(inside, transitions, tags):
    """The blocks of a component that potentials part: dense elimination over the rationals of the vectors of
    letters read in blocks around cycles.
    """
    block = {state: tags[state] for state in inside}
    while True:
        path, cycles = walks(block, transitions)
        basis = {}
        for row in cycles:
            row = _reduced(row, basis)
            lead = next((i for i, x in enumerate(row) if x), None)
            if lead is not None:
                row = [x / row[lead] for x in row]
                for one, old in basis.items():
                    basis[one] = [x - old[lead] * y for x, y in zip(old, row, strict=True)]
                basis[lead] = row
        finer = {q: (block[q], tuple(_reduced(path[q], basis))) for q in inside}
        if len(set(finer.values())) == len(set(block.values())):
            return block
        block = finer


def walks(block, transitions):
    """Vectors of letters read in blocks: on a path to each state, and some that span those of all cycles."""
    edges = [(p, s, q) for p in block for s, q in enumerate(transitions[p]) if q in block]
    label = {key: i for i, key in enumerate(dict.fromkeys((s, block[p]) for p, s, _ in edges))}

    def step(p, s):
        return [Fraction(i == label[s, block[p]]) for i in range(len(label))]

    path = {min(block): [Fraction(0)] * len(label)}
    while len(path) < len(block):
        for p, s, q in edges:
            if p in path and q not in path:
                path[q] = [x + y for x, y in zip(path[p], step(p, s), strict=True)]
    cycles = [[x + y - z for x, y, z in zip(path[p], step(p, s), path[q], strict=True)] for p, s, q in edges]
    return path, cycles


def _reduced(row, basis):
    for lead, known in basis.items():
        row = [x - row[lead] * y for x, y in zip(row, known, strict=True)]
    return row


def _any_letters(draw, size, letters):
    return [[draw(st.integers(0, size - 1)) for _ in range(letters)] for _ in range(size)]


def _letters_without_merging(draw, size, letters):
    rows = [[size] * letters for _ in range(size)]
    for letter in range(letters):
        for state, after in enumerate(draw(st.permutations(range(size)))):
            rows[state][letter] = after if draw(st.integers(0, 3)) else size
    return rows


def _letters_as_steps(draw, size, letters):
    """Two lines, one perhaps empty; some steps are missing, some lead from the first line to the second."""
    half = draw(st.integers(0, size - 1))
    steps = [1, -1, draw(st.sampled_from([1, -1, 0, 2]))][:letters]
    rows = []
    for state in range(size):
        low, high = (0, half) if state < half else (half, size)
        inside = [state + step if low <= state + step < high else size for step in steps]
        elsewhere = st.integers(half, size) if state < half else st.just(size)
        rows.append([draw(elsewhere) if draw(st.integers(0, 9)) == 0 else after for after in inside])
    return rows


_WORD = st.text("ab", min_size=1, max_size=4)
_BALANCED = st.sampled_from(["ab", "ba", "aabb", "bbaa", "abba", "baab", "aaabbb", "bbbaaa"])


@st.composite
def recipes(draw):
    """Automata of many kinds as plain data for ``automaton``, with a good share of each answer."""
    recipe = {"last letter": draw(st.integers(0, 4)) == 0, "accepting": draw(st.integers(0, 2**64))}
    if draw(st.booleans()):
        chosen = [draw(st.sampled_from([_WORD, _BALANCED])) for _ in "12"]
        loops = [f"({'|'.join(draw(st.lists(one, min_size=1, max_size=3)))})*" for one in chosen]
        parts = [loops[0], draw(_WORD), loops[1]][: draw(st.integers(1, 3))]
        return recipe | {"regex": "".join(parts), "complement": draw(st.booleans())}
    letters, size = draw(st.integers(1, 3)), draw(st.integers(1, 7))
    kinds = [_any_letters, _letters_without_merging, _letters_as_steps, _letters_as_steps]
    rows = [*draw(st.sampled_from(kinds))(draw, size, letters), [size] * letters]
    return recipe | {"rows": rows}


def automaton(recipe):
    """The minimal automaton of a recipe."""

    def accepting(states):
        return frozenset(q for q in range(states) if recipe["accepting"] >> q % 64 & 1)

    if "regex" in recipe:
        dfa = compile_regex(recipe["regex"], "ab")
        dfa = dfa.complement() if recipe["complement"] else dfa
    else:
        rows = tuple(map(tuple, recipe["rows"]))
        dfa = DFA(tuple("abc"[: len(rows[0])]), rows, 0, accepting(len(rows)))
    if recipe["last letter"]:
        # Remember the last letter too, and accept in any of these states.
        letters = range(len(dfa.alphabet))
        after = [[q * len(letters) + letter for letter, q in enumerate(row)] for row in dfa.transitions]
        rows = tuple(tuple(row) for row in after for _ in letters)
        dfa = DFA(dfa.alphabet, rows, 0, accepting(len(rows)))
    return dfa.minimal()
