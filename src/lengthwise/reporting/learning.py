"""What was learned, as plain data and as sentences."""

from typing import Any

from lengthwise.crasp import Learned, text_of
from lengthwise.reporting.crasp import plain, word_text

SHOWN = 5
"""So many words on which a program is wrong are shown."""


def learned_data(learned: Learned) -> dict[str, Any]:
    """What was learned as plain data; ``program`` is there only if one was found, ``nearest`` only if the one
    of least error is all there is.
    """
    program, verdict = learned.program, learned.verdict
    text = None if program is None else text_of(program)
    return {
        "found": learned.found,
        "known": learned.known,
        "proved": learned.proved,
        "checked": learned.checked,
        "program": text if learned.found else None,
        "nearest": None if learned.found else text,
        "size": None if program is None else program.size,
        "method": learned.method,
        "errors": learned.errors,
        "counterexamples": learned.counterexamples,
        "examples": learned.examples,
        "rounds": learned.rounds,
        "moves": learned.moves,
        "seconds": learned.seconds,
        "verdict": None if verdict is None else plain(verdict),
    }


def learned_words(learned: Learned) -> str:
    """How much is known, the program, and what it took."""
    lines = [_known(learned)]
    program = learned.program
    if program is not None:
        lines.append(text_of(program).rstrip())
    if learned.errors:
        more = ", ..." if len(learned.errors) > SHOWN else ""
        lines.append(f"wrong on: {', '.join(map(word_text, learned.errors[:SHOWN]))}{more}")
    took = [f"size {program.size}, depth {program.depth}"] if program is not None else []
    if learned.method == "search":
        took += [f"{learned.examples} examples, {len(learned.counterexamples)} counterexamples"]
    took += [f"{learned.moves:,} changes tried in {learned.seconds:.1f} s"]
    lines.append("; ".join(took))
    return "\n".join(lines)


def _known(learned: Learned) -> str:
    verdict = learned.verdict
    if learned.known == "proved":
        assert verdict is not None
        return f"found, and proved to accept exactly the language ({verdict.method})"
    if learned.known == "checked":
        return (
            f"found: right on all words of up to {learned.checked} letters, and on the longer ones that were "
            "tried; not proved"
        )
    if learned.known == "fits":
        return "found: fits all examples; no more is known"
    if verdict is not None and verdict.answer is False:
        return f"there is none ({verdict.method})"
    nearest = "; the nearest is" if learned.program is not None else ""
    if verdict is not None:
        return f"none found ({verdict.method}){nearest}"
    return f"none found in this time, which does not say that there is none{nearest}"
