"""C-RASP at speed: batch evaluation against a bare cumsum per count, a decision, a power word.

Prints ratios taken in one run: each program on 10^6 tokens against as many cumsums of the array as it has
counts; the time of ``decide`` on an automaton of 150 states; and of Dyck-1 on (ab)^(10^12).
"""

import time
from collections.abc import Callable

import torch

from lengthwise.crasp import Program, Q, accepts, count, decide, evaluate_power, parse_power
from lengthwise.crasp.regular import DFA

TOKENS = 10**6
ROUNDS = 15


def best(work: Callable[[], object]) -> float:
    """The shortest of several times, in seconds."""
    work()
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def bounded_brackets(depth: int) -> DFA:
    """The minimal automaton of brackets nested at most so deep: depth + 2 states."""
    sink = depth + 1
    rows = [(min(height + 1, sink), height - 1 if height else sink) for height in range(depth + 1)]
    return DFA(("a", "b"), (*rows, (sink, sink)), 0, frozenset({0}))


def main() -> None:
    """Print a row a comparison."""
    a, b = Q("a"), Q("b")
    d = count(a) - count(b)
    dyck = Program("ab", accept=(count(d < 0) == 0) & (d == 0))
    local = Program("ab", accept=count(a & (count(a, at=[1, 2]) == 2)) == 0)
    tokens = torch.randint(2, (1, TOKENS), generator=torch.Generator().manual_seed(0))
    for name, program in (("Dyck-1", dyck), ("no aaa, with local counts", local)):
        bare = best(lambda: tokens.cumsum(1))
        whole = best(lambda program=program: accepts(program, tokens))
        ratio = whole / (bare * len(program.counts))
        print(f"{name} on {TOKENS:,} tokens: {whole * 1e3:.1f} ms, {ratio:.1f} times a cumsum per count")
    automaton = bounded_brackets(148)
    decided = best(lambda: decide(automaton, acceptance="eos"))
    print(f"decide, {len(automaton.transitions)} states: {decided:.3f} s")
    word = parse_power("(ab)^(10^12)", "ab")
    print(f"Dyck-1 on (ab)^(10^12): {best(lambda: evaluate_power(dyck, word)) * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
