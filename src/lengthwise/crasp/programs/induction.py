"""Proofs for words of every length: k-induction.

The claim is that no word is accepted. It is proved if no word of at most k letters is accepted, and if, from
any state of the program that its invariants allow, k words in a row that are not accepted, each one letter
longer than the one before, are followed by another that is not accepted, whatever its letter. Not to find a
proof says nothing.
"""

from lengthwise.crasp.program import Program
from lengthwise.crasp.programs.arithmetic import checked, letters, new_solver, opposite, told
from lengthwise.crasp.programs.invariants import Numbers, invariants
from lengthwise.crasp.programs.outcome import Clock, Outcome
from lengthwise.crasp.programs.transition import System, named


def prove(program: Program, clock: Clock, short: int, most: int = 12) -> Outcome:
    """The proof that no word is accepted, if it is found with at most so many steps.

    It is known that no word of at most ``short`` letters is accepted. ``details["k"]`` is the number of steps
    of the proof, or of the last attempt, -1 if there was none; ``details["invariants"]``, in words, are those
    that it could use.
    """
    system = System(program)
    numbers = Numbers(system)
    clauses = invariants(system, numbers, clock.share(0.5))
    solver = new_solver()
    state, facts = system.unknown("s")
    told(solver, *facts, *(numbers.formula(clause, state) for clause in clauses))
    details = {"k": -1, "invariants": numbers.words(clauses)}
    # Under "eos" the empty word is the first of k words, under "last" those of one letter are.
    for k in range(min(short + (program.mode == "eos"), most) + 1):
        if clock.over():
            break
        tests, one = letters(f"a{k}", program.alphabet)
        accepted = system.holds(state) if program.mode == "eos" else system.holds(state, tests)
        told(solver, one)
        solver.push()
        told(solver, accepted)
        answer = checked(solver, clock)
        solver.pop()
        if answer is None:
            break
        details["k"] = k
        if not answer:
            return Outcome(none=True, details=details)
        state, facts = named(system.step(state, tests), f"s{k}")
        told(solver, opposite(accepted), *facts, *(numbers.formula(clause, state) for clause in clauses))
    return Outcome(details=details)
