"""Formulas at one position as formulas of linear integer arithmetic, and the solver of those, z3.

Truth values are Python's where they are known and z3's where they are not, and likewise numbers, so that what
is known is never given to the solver.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from lengthwise.crasp.nodes import And, Bool, Count, Ge, Node, Not, Or, True_, in_order, sym
from lengthwise.crasp.program import Program
from lengthwise.crasp.programs.outcome import Clock, totals

Truth = Any
"""True, False, or a formula of z3."""

Integer = Any
"""A whole number, or a term of z3."""

Known = Mapping[Any, Any]
"""Values of nodes."""


def z3_module() -> Any:
    """The solver's module, which is an optional dependency."""
    try:
        import z3
    except ImportError:
        raise ValueError("questions about programs need z3: install lengthwise[crasp]") from None
    return z3


def new_solver() -> Any:
    """A solver of linear integer arithmetic that knows nothing yet."""
    return z3_module().SolverFor("QF_LIA")


def all_of(parts: Iterable[Truth]) -> Truth:
    """And."""
    kept = [part for part in parts if part is not True]
    if any(part is False for part in kept):
        return False
    return True if not kept else kept[0] if len(kept) == 1 else z3_module().And(*kept)


def any_of(parts: Iterable[Truth]) -> Truth:
    """Or."""
    kept = [part for part in parts if part is not False]
    if any(part is True for part in kept):
        return True
    return False if not kept else kept[0] if len(kept) == 1 else z3_module().Or(*kept)


def opposite(part: Truth) -> Truth:
    """Not."""
    return not part if isinstance(part, bool) else z3_module().Not(part)


def same(one: Truth, other: Truth) -> Truth:
    """Whether two truth values are equal."""
    if isinstance(one, bool):
        one, other = other, one
    if isinstance(other, bool):
        return one if other else opposite(one)
    return one == other


def where(condition: Truth, number: Integer) -> Integer:
    """The number where the condition holds, 0 elsewhere."""
    if isinstance(condition, bool):
        return number if condition else 0
    return z3_module().If(condition, number, 0)


def weighted(terms: Iterable[tuple[Integer, int]], constant: int = 0) -> Integer:
    """The sum of alpha * number, plus the constant."""
    known, parts = constant, []
    for number, alpha in terms:
        if isinstance(number, int):
            known += alpha * number
        else:
            parts.append(number if alpha == 1 else alpha * number)
    if not parts:
        return known
    if known:
        parts.append(z3_module().IntVal(known))
    return parts[0] if len(parts) == 1 else z3_module().Sum(parts)


def exactly_one(parts: Sequence[Truth]) -> Truth:
    """Whether one of the truth values is true, and no other."""
    return z3_module().PbEq([(part, 1) for part in parts], 1)


def letters(name: str, alphabet: Sequence[str]) -> tuple[dict[Node, Truth], Truth]:
    """An unknown letter: the values of the tests for letters, and that it is exactly one of the alphabet."""
    z3 = z3_module()
    if len(alphabet) == 1:
        return {sym(alphabet[0]): True}, True
    chosen: dict[Node, Truth] = {
        sym(letter): z3.Bool(f"{name}={index}") for index, letter in enumerate(alphabet)
    }
    return chosen, exactly_one(list(chosen.values()))


def no_letter(alphabet: Sequence[str]) -> dict[Node, Truth]:
    """The tests for letters at the position after the end."""
    return {sym(letter): False for letter in alphabet}


def one_letter(letter: str, alphabet: Sequence[str]) -> dict[Node, Truth]:
    """The tests for letters where the letter is known."""
    return {sym(other): other == letter for other in alphabet}


def down_to(roots: Iterable[Node], given: Container[Node]) -> list[Node]:
    """The nodes that the roots need when the values of some are given, children before parents."""
    roots = list(roots)
    needed: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in needed:
            needed.add(node)
            if node not in given:
                stack.extend(node.children)
    return [node for node in in_order(roots) if node in needed]


def values(
    order: Iterable[Node],
    given: Known,
    counted: Callable[[Count, Truth], Integer] | None = None,
) -> dict[Node, Any]:
    """The values of nodes, which come children before parents.

    Tests for letters and for the phase are given. ``counted`` says what a count is, from the value of its
    operand; indicators are known without it.
    """
    found: dict[Node, Any] = {}
    for node in order:
        if node in given:
            found[node] = given[node]
        elif isinstance(node, Count):
            held = found[node.operand]
            if node.distances == (0,):
                found[node] = where(held, 1)
            else:
                assert counted is not None
                found[node] = counted(node, held)
        else:
            assert isinstance(node, Bool)
            found[node] = _value(node, found)
    return found


def grown(before: Known) -> Callable[[Count, Truth], Integer]:
    """Counts over all positions at a position, from those at the position before."""
    return lambda one, held: weighted([(before[one], 1), (where(held, 1), 1)])


def accepted(program: Program, before: Known, last: Known) -> Truth:
    """Whether a word is accepted, from its counts and from what is known at its last position. Under "eos"
    one more position is read, and what is known at the last one does not matter.
    """
    eos = program.mode == "eos"
    given = no_letter(program.alphabet) if eos else {**last, **before}
    return values(down_to([program.root()], given), given, grown(before))[program.root()]


def below_counts(program: Program) -> tuple[list[Ge], list[Node]]:
    """The comparisons that some count over all positions depends on, and all nodes that are needed to grow
    the counts and to evaluate these comparisons when their truths are given.

    The values of these comparisons matter at every position, those of all others only at the end.
    """
    operands = [one.operand for one in totals(program)]
    comparisons = [node for node in in_order(operands) if isinstance(node, Ge)]
    watched = [*operands, *(one.operand for node in comparisons for one, _ in node.terms)]
    return comparisons, down_to(dict.fromkeys(watched), set(comparisons))


def _value(node: Bool, found: Known) -> Truth:
    match node:
        case True_():
            return True
        case Not():
            return opposite(found[node.operand])
        case And():
            return all_of(found[one] for one in node.operands)
        case Or():
            return any_of(found[one] for one in node.operands)
        case Ge():
            return margin(node, found) >= 0
    raise AssertionError(f"the value of {type(node).__name__} must be given")


def margin(node: Ge, found: Known) -> Integer:
    """The sum that a comparison compares with 0."""
    return weighted(((found[one], alpha) for one, alpha in node.terms), node.constant)


def checked(solver: Any, clock: Clock) -> bool | None:
    """Whether what the solver was told can be; None if it does not say in time."""
    z3 = z3_module()
    left = clock.left()
    if left <= 0:
        return None
    solver.set("timeout", max(1, int(1000 * left)))
    answer = solver.check()
    return None if answer == z3.unknown else answer == z3.sat


def number(model: Any, term: Integer) -> int:
    """The value of a term in a model."""
    return term if isinstance(term, int) else model.eval(term, model_completion=True).as_long()


def holds(model: Any, formula: Truth) -> bool:
    """The value of a formula in a model."""
    return (
        formula
        if isinstance(formula, bool)
        else z3_module().is_true(model.eval(formula, model_completion=True))
    )


def told(solver: Any, *facts: Truth) -> None:
    """Tells a solver facts, some of which may be known truths."""
    for fact in facts:
        if fact is False:
            solver.add(z3_module().BoolVal(False))
        elif fact is not True:
            solver.add(fact)


def least(solver: Any, total: Integer, low: int, clock: Clock) -> tuple[Any, bool]:
    """A model with the least total, which is at least ``low``, and whether it was proved to be the least.

    The solver was told what must hold and has just found that it can. By bisection, not by an optimiser, so
    that there is a model whenever the time is over.
    """
    model = solver.model()
    high = number(model, total)
    while low < high:
        # From the low end in growing steps: short words are the usual case, and quick to search.
        middle = min((low + high) // 2, 2 * low + 8)
        solver.push()
        told(solver, total <= middle)
        answer = checked(solver, clock)
        if answer:
            model = solver.model()
            high = number(model, total)
        solver.pop()
        if answer is None:
            return model, False
        if not answer:
            low = middle + 1
    return model, True
