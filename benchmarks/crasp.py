"""C-RASP at speed: batch evaluation against a bare cumsum per count, a decision, a power word.

Prints ratios taken in one run: each program on 10^6 tokens against as many cumsums of the same array as it
has counts, on one thread and on two; the time of ``decide`` on an automaton of 150 states; and of Dyck-1 on
(ab)^(10^12). Program and cumsums are measured in turns, and the cumsums several times in a row, so that both
are as likely to be interrupted by other work.
"""

import time
from collections.abc import Callable

import torch
from torch import Tensor

from lengthwise.crasp import DFA, Program, Q, accepts, count, decide, evaluate_power, parse_power

TOKENS = 10**6
ROUNDS = 60
IN_A_ROW = 4
"""As many times the cumsums are measured together: about as long as a program takes."""

A, B = Q("a"), Q("b")
HEIGHT = count(A) - count(B)
DYCK = Program("ab", accept=(count(HEIGHT < 0) == 0) & (HEIGHT == 0))
LOCAL = Program("ab", accept=count(A & (count(A, at=[1, 2]) == 2)) == 0)
NESTED = Program("ab", accept=count(HEIGHT < 0) >= count(HEIGHT > 5))


def best(*works: Callable[[], object]) -> list[float]:
    """The shortest of several times of each, in seconds; in turns, so that all see the same machine."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, seen in zip(works, times, strict=True):
            begun = time.perf_counter()
            work()
            seen.append(time.perf_counter() - begun)
    return [min(seen) for seen in times]


def words() -> dict[str, tuple[Program, Tensor]]:
    """Programs with words that they read to the end: rejected early, accepted, or neither."""
    drawn = torch.randint(2, (1, TOKENS), generator=torch.Generator().manual_seed(0))
    places = torch.arange(TOKENS).unsqueeze(0)
    return {
        "Dyck-1, a random word": (DYCK, drawn),
        "Dyck-1, (ab)^n": (DYCK, places % 2),
        "no aaa, with local counts, a random word": (LOCAL, drawn),
        "no aaa, with local counts, (aab)^n": (LOCAL, (places % 3 == 2).long()),
        "counts of comparisons, a random word": (NESTED, drawn),
    }


def bounded_brackets(depth: int) -> DFA:
    """The minimal automaton of brackets nested at most so deep: depth + 2 states."""
    sink = depth + 1
    rows = [(min(height + 1, sink), height - 1 if height else sink) for height in range(depth + 1)]
    return DFA(("a", "b"), (*rows, (sink, sink)), 0, frozenset({0}))


def compared(program: Program, tokens: Tensor) -> tuple[float, float]:
    """The time of a program and of a cumsum for each of its counts, in seconds."""

    def cumsums() -> None:
        for _ in range(IN_A_ROW * len(program.counts)):
            tokens.cumsum(1)

    bare, whole = best(cumsums, lambda: accepts(program, tokens))
    return whole, bare / IN_A_ROW


def main() -> None:
    """Print a row a comparison."""
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for name, (program, tokens) in words().items():
            whole, bare = compared(program, tokens)
            print(
                f"{name}, {TOKENS:,} tokens, {threads} thread{'s' * (threads > 1)}: {whole * 1e3:.1f} ms, "
                f"{whole / bare:.1f} times a cumsum for each of its {len(program.counts)} counts"
            )
    automaton = bounded_brackets(148)
    (decided,) = best(lambda: decide(automaton, acceptance="eos"))
    print(f"decide, {len(automaton.transitions)} states: {decided:.3f} s")
    word = parse_power("(ab)^(10^12)", "ab")
    (evaluated,) = best(lambda: evaluate_power(DYCK, word))
    print(f"Dyck-1 on (ab)^(10^12): {evaluated * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
