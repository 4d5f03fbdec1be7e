"""Programs that may be simpler and still right: letters that are known, formulas replaced by others."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from lengthwise.crasp import nodes
from lengthwise.crasp.builder import Formula
from lengthwise.crasp.nodes import FALSE, TRUE, And, Bool, Count, Ge, Node, Not, Or, Sym, in_order
from lengthwise.crasp.program import Program

FARTHEST_SHIFT = 2
"""The constant of a comparison is changed by at most so much when terms are left out."""


def measure(program: Program) -> tuple[int, int]:
    """What is to be made smaller: the size, then the number of operands of all nodes."""
    return program.size, sum(len(node.children) for node in program.nodes)


def smaller(program: Program) -> Iterator[Program]:
    """Programs of smaller measure with one formula replaced by a simpler one, the largest changes first."""
    root, least = program.root(), measure(program)
    for node in reversed(program.nodes):
        if isinstance(node, Bool) and node not in (TRUE, FALSE):
            for simpler in dict.fromkeys(_simpler(node, program.alphabet)):
                candidate = _with_root(program, _replaced(root, node, simpler))
                if measure(candidate) < least:
                    yield candidate


def specialised(program: Program) -> Program:
    """A program that accepts the same words, where formulas that are joined with a letter know that it is
    this letter: "a" && # "a" - ind("a") >= 1 becomes "a" && # "a" >= 2.
    """
    made: dict[Node, Bool] = {}
    for node in program.nodes:
        if isinstance(node, Bool):
            found = made[node] = _rebuilt(node, made)
            letter = next((one for one in found.children if isinstance(one, Sym)), None)
            if isinstance(found, And) and letter is not None:
                others = [_given(one, letter) for one in found.operands if one is not letter]
                made[node] = nodes.conjunction([letter, *others])
    return _with_root(program, made[program.root()])


def _with_root(program: Program, root: Bool) -> Program:
    return Program(program.alphabet, Formula(root), mode=program.mode, accepts_empty=program.empty)


def _simpler(node: Bool, alphabet: Sequence[str]) -> Iterator[Bool]:
    """True, false; a letter instead of not another; one operand, all operands but one; of a comparison, its
    opposite, what is counted, and the same with terms left out.
    """
    yield TRUE
    yield FALSE
    match node:
        case Not():
            yield node.operand
            if isinstance(node.operand, Sym):
                yield from map(nodes.sym, alphabet)
            if isinstance(node.operand, Ge):
                yield opposite(node.operand)
        case And() | Or():
            join = nodes.conjunction if isinstance(node, And) else nodes.disjunction
            yield from node.operands
            for left_out in node.operands:
                yield join(one for one in node.operands if one is not left_out)
        case Ge():
            for one, _ in node.terms:
                yield one.operand
                yield nodes.negation(one.operand)
            yield from _with_fewer_terms(node)


def opposite(node: Ge) -> Bool:
    """The comparison that holds where this one does not."""
    return nodes.at_least({one: -alpha for one, alpha in node.terms}, -node.constant - 1)


def _with_fewer_terms(node: Ge) -> Iterator[Bool]:
    """A comparison without its indicators, or without one term, with constants nearby."""
    choices = [{one: alpha for one, alpha in node.terms if one.distances != (0,)}]
    choices += [{one: alpha for one, alpha in node.terms if one is not out} for out, _ in node.terms]
    for kept in choices:
        if kept and len(kept) < len(node.terms):
            for shift in sorted(range(-FARTHEST_SHIFT, FARTHEST_SHIFT + 1), key=abs):
                yield nodes.at_least(kept, node.constant + shift)


def _replaced(root: Bool, old: Bool, new: Bool) -> Bool:
    """A formula with another one in place of one of its parts."""
    made: dict[Node, Bool] = {}
    for node in in_order([root]):
        if isinstance(node, Bool):
            made[node] = new if node is old else _rebuilt(node, made)
    return made[root]


def _rebuilt(node: Bool, made: Mapping[Node, Bool]) -> Bool:
    """A formula over what its parts have become."""
    if isinstance(node, Ge):
        return _compared(node, lambda one: nodes.count(made[one.operand], one.distances))
    return _joined(node, lambda one: made[one])


def _given(node: Bool, letter: Bool) -> Bool:
    """What a formula comes to where the letter is known."""
    if isinstance(node, Sym):
        return TRUE if node is letter else FALSE
    if isinstance(node, Ge):

        def known(one: Count) -> Count | None:
            return nodes.count(_given(one.operand, letter), (0,)) if one.distances == (0,) else one

        return _compared(node, known)
    return _joined(node, lambda one: _given(one, letter))


def _joined(node: Bool, change: Callable[[Bool], Bool]) -> Bool:
    match node:
        case Not():
            return nodes.negation(change(node.operand))
        case And():
            return nodes.conjunction(map(change, node.operands))
        case Or():
            return nodes.disjunction(map(change, node.operands))
        case _:
            return node


def _compared(node: Ge, change: Callable[[Count], Count | None]) -> Bool:
    terms: dict[Count, int] = {}
    for one, alpha in node.terms:
        changed = change(one)
        if changed is not None:
            terms[changed] = terms.get(changed, 0) + alpha
    return nodes.at_least(terms, node.constant)
