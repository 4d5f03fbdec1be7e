"""Word by word, for every program: all short words, many others, and words letter by letter in a solver.

None of these can prove that no word is accepted; but most wrong equivalences have short witnesses, and the
first finds them in milliseconds.
"""

import random
from collections.abc import Sequence

import torch

from lengthwise.crasp.batch import NO_LETTER, accepts, node_values
from lengthwise.crasp.nodes import Ge, Node, sym
from lengthwise.crasp.program import Program
from lengthwise.crasp.programs.arithmetic import checked, holds, letters, new_solver, told
from lengthwise.crasp.programs.outcome import Blocks, Clock, Outcome, fits, joined
from lengthwise.crasp.programs.transition import System, named

LONGEST = 96
"""Random words have at most so many letters."""

AT_ONCE = 256
"""So many random words are evaluated together."""

MOST_KEPT = 2000
"""So many random words are kept to be changed."""


def exhaustive(program: Program, clock: Clock, words: int = 2**14, short: int = -1) -> Outcome:
    """The first of all short words that is accepted, lengths with at most so many words.

    It is known that no word of at most ``short`` letters is accepted; ``details["checked"]`` says the same of
    what was found out. Under "last" the empty word is left out.
    """
    size = len(program.alphabet)
    short = short if program.mode == "eos" else max(short, 0)
    while not clock.over() and size ** (short + 1) <= words and short < LONGEST and fits(program, short + 2):
        width = short + 1
        number = torch.arange(size**width).unsqueeze(1)
        digits = torch.tensor([size**place for place in range(width - 1, -1, -1)], dtype=torch.long)
        tokens = number // digits.unsqueeze(0) % size
        found = accepts(program, tokens).nonzero()
        if len(found):
            return Outcome(_blocks(program, tokens[found[0, 0]].tolist()), shortest=True)
        short = width
    return Outcome(details={"checked": short})


def _blocks(program: Program, symbols: Sequence[int]) -> Blocks:
    return joined([([program.alphabet[symbol] for symbol in symbols], 1)])


def mutated(program: Program, clock: Clock, seed: int = 0) -> Outcome:
    """Random words and changes of them.

    A word is kept to be changed if no other kept word has the same truths of all comparisons at its end: what
    is kept spreads over what the program can tell apart. ``details["words"]`` says how many were tried.
    """
    source = random.Random(seed)
    kept: list[list[int]] = [[]]
    seen: set[bytes] = set()
    tried = 0
    while fits(program, LONGEST + 1) and not clock.over():
        words = [_changed(source, kept, len(program.alphabet)) for _ in range(AT_ONCE)]
        tried += len(words)
        accepted, truths = _ends(program, words)
        if accepted is not None:
            return Outcome(_blocks(program, accepted), details={"words": tried})
        for word, truth in zip(words, truths, strict=True):
            if truth not in seen and len(kept) < MOST_KEPT:
                seen.add(truth)
                kept.append(word)
    return Outcome(details={"words": tried})


def _changed(source: random.Random, kept: Sequence[list[int]], size: int) -> list[int]:
    """A kept word after one to three changes, with at least one letter."""
    word = list(source.choice(kept))
    for _ in range(source.randint(1, 3)):
        start, end = sorted((source.randint(0, len(word)), source.randint(0, len(word))))
        match source.randrange(6):
            case 0:
                word.insert(start, source.randrange(size))
            case 1:
                del word[start:end]
            case 2:
                word[start:end] = [source.randrange(size)] * (end - start)
            case 3:
                word[start:end] = word[start:end] * source.randint(2, 4)
            case 4:
                word += source.choice(kept)
            case _:
                word += [source.randrange(size) for _ in range(source.randint(1, 8))]
    return word[:LONGEST] or [source.randrange(size)]


def _ends(program: Program, words: Sequence[list[int]]) -> tuple[list[int] | None, list[bytes]]:
    """A word that is accepted, if one is, and the truths of all comparisons at the end of each."""
    lengths = torch.tensor([len(word) for word in words])
    tokens = torch.full((len(words), int(lengths.max()) + 1), NO_LETTER)
    for row, word in zip(tokens, words, strict=True):
        row[: len(word)] = torch.tensor(word)
    root = program.root()
    chosen: list[Node] = [root, *(node for node in program.nodes if isinstance(node, Ge))]
    found = node_values(chosen, tokens, program.alphabet)
    read = lengths if program.mode == "eos" else lengths - 1
    truths = torch.stack([found[node].gather(1, read.unsqueeze(1)).squeeze(1) for node in chosen], 1)
    accepted = truths[:, 0].nonzero()
    word = words[int(accepted[0, 0])] if len(accepted) else None
    return word, [row.tobytes() for row in truths.numpy()]


def unrolled(program: Program, clock: Clock, short: int, most: int = 200) -> Outcome:
    """A shortest word that is accepted, letter by letter in a solver.

    It is known that no word of at most ``short`` letters is accepted; ``details["checked"]`` says the same of
    what was found out.
    """
    solver = new_solver()
    system = System(program)
    state = system.start()
    if program.mode == "eos" and short < 0 and system.holds(state):
        return Outcome((), shortest=True)
    tests: list[dict[Node, bool]] = []
    for size in range(1, most + 1):
        if clock.over():
            break
        chosen, one = letters(f"w{size}", program.alphabet)
        tests.append(chosen)
        before = state
        state, facts = named(system.step(state, chosen), f"s{size}")
        told(solver, one, *facts)
        if size <= max(short, 0):
            continue
        solver.push()
        told(solver, system.holds(state) if program.mode == "eos" else system.holds(before, chosen))
        answer = checked(solver, clock)
        if answer:
            model = solver.model()
            word = [a for test in tests for a in program.alphabet if holds(model, test[sym(a)])]
            return Outcome(((tuple(word), 1),), shortest=True)
        if answer is None:
            break
        solver.pop()
        short = size
    return Outcome(details={"checked": short})
