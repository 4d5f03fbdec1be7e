"""On which words a compiled program is exact in float64."""

import math

from lengthwise.crasp.nodes import And, Count, Ge, Node, Not, Or, in_order
from lengthwise.crasp.program import Program


def ramp_slope(longest: int) -> float:
    """How steep ramps are that tell all comparisons on words of up to so many letters."""
    return 4.0 * (longest + 2)


def exact_length(program: Program) -> int:
    """Up to how many letters the "heaviside" form is exact in float64, for sure.

    An average over n + 2 positions errs by at most (n + 2) 2^-52; a comparison with kappa = sum |alpha| + |c|
    + 1 is right if kappa (n + 2) 2^-52 < 1/(2 (n + 2)).
    """
    sizes = [
        sum(abs(alpha) for _, alpha in node.terms) + abs(node.constant) + 1
        for node in program.nodes
        if isinstance(node, Ge)
    ]
    kappa = max(sizes, default=1)
    return max(0, math.isqrt(2**51 // kappa) - 3)


def ramp_error(program: Program, longest: int) -> float:
    """How far from 0 or 1 what the "relu" form puts out can be on words of up to so many letters, in float64;
    infinite if a comparison may come out wrong.

    With e = 2^-53, slope S = 4 (longest + 2) and kappa = sum |alpha| + |c| + 1 of a comparison of k counts:
    an average errs by the error of what is averaged and 2 (longest + 2) e, a local count by the errors of its
    bits and 2 e each, a gate by the sum of its operands' errors. The sum that a ramp takes errs by S times
    the errors of its counts, weighted by alpha, and (k + 3) S kappa e; it is 2 or more from 0 if exact, so
    that an error up to 1 leaves it where the ramp is level. The ramp is a difference of two numbers up to
    S kappa + 1, each rounded once more, so that it errs by at most (2 k + 8) (S kappa + 1) e.
    """
    unit, slope, errors = 2.0**-53, ramp_slope(longest), dict[Node, float]()
    average = 2 * (longest + 2) * unit
    for node in in_order((program.root(),)):
        if isinstance(node, Ge):
            size, terms = sum(abs(alpha) for _, alpha in node.terms) + abs(node.constant) + 1, len(node.terms)
            weighted = sum(abs(alpha) * errors[count] for count, alpha in node.terms)
            weighted += (abs(node.constant) + 0.5) * average
            if slope * (weighted + (terms + 3) * size * unit) > 1:
                return math.inf
            errors[node] = (2 * terms + 8) * (slope * size + 1) * unit
        elif isinstance(node, Count):
            below, each = errors[node.operand], node.distances
            errors[node] = below + average if each is None else len(each) * (below + 2 * unit)
        elif isinstance(node, And | Or):
            below = sum(errors[operand] for operand in node.operands)
            errors[node] = below and below + len(node.operands) * 2 * unit
        elif isinstance(node, Not):
            errors[node] = errors[node.operand]
        else:
            errors[node] = 0.0
    return errors[program.root()]
