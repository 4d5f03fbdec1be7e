"""Programs that accept behind the end of a word, as programs that accept at its last letter."""

from lengthwise.crasp import nodes
from lengthwise.crasp.builder import Formula
from lengthwise.crasp.nodes import FALSE, And, Bool, Count, Ge, Mod, Node, Not, Or, Sym
from lengthwise.crasp.program import Program


def at_last_letter(program: Program) -> Program:
    """The program under "last" that accepts the same words.

    A formula at the position after the end, which has no letter, is said at the position before. There a
    count is what it was at the last letter, and one more if its formula holds after the end; what is d back
    from there is d - 1 back from the last letter.
    """
    if program.mode == "last":
        return program
    ahead: dict[Node, Bool] = {}
    for node in program.nodes:
        if isinstance(node, Bool):
            ahead[node] = _ahead(node, ahead)
    accept = Formula(ahead[program.root()])
    return Program(program.alphabet, accept, accepts_empty=program(()))


def _ahead(node: Bool, ahead: dict[Node, Bool]) -> Bool:
    """A formula that holds where this one does one position later, if there is no letter."""
    match node:
        case Sym():
            return FALSE
        case Mod():
            return nodes.mod(node.modulus, node.residue - 1)
        case Not():
            return nodes.negation(ahead[node.operand])
        case And():
            return nodes.conjunction(ahead[one] for one in node.operands)
        case Or():
            return nodes.disjunction(ahead[one] for one in node.operands)
        case Ge():
            terms: dict[Count, int] = {}
            for one, alpha in node.terms:
                for part in _parts(one, ahead[one.operand]):
                    if part is not None:
                        terms[part] = terms.get(part, 0) + alpha
            return nodes.at_least(terms, node.constant)
        case _:
            return node


def _parts(one: Count, after_end: Bool) -> tuple[Count | None, Count | None]:
    """What a count one position later is the sum of."""
    new = nodes.count(after_end, [0])
    if one.distances is None:
        return nodes.count(one.operand), new
    earlier = [distance - 1 for distance in one.distances if distance]
    return nodes.count(one.operand, earlier), new if 0 in one.distances else None
