"""Door: arrays of tokens, and the numbers that come with them."""

import math
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import lengthwise as lw
from fuzz_doors.door import Door, require
from fuzz_doors.values import FLOATS, integer, mostly, odd

KINDS = [torch.int64, torch.int32, torch.uint8, torch.int8, torch.float32, torch.float64, torch.bool]
KINDS += [torch.complex64, torch.bfloat16, torch.uint16, torch.uint64, torch.int16]


@cache
def _models() -> list[lw.LimitTransformer]:
    make = lw.constructions
    return [
        make.simple_task(4, 8),
        make.mod_p(2, 1),
        make.k_gram(1, 2, 0.1),
        make.constant(2),
        make.mod_p(3, 0),
    ]


@cache
def _programs() -> list[Any]:
    texts = ['accept = # "1" > # "0"', 'accept = # [i - j == 1] "1" > 0\nempty = true']
    return [lw.crasp.parse(text) for text in texts[:1]] + [lw.crasp.library.named("dyck-2").program]


@cache
def _tasks() -> list[Any]:
    return [lw.task("simple"), lw.task("modp"), lw.task("kgram", k=1, vocabulary=2), lw.task("tomita-1")]


def tokens(source: random.Random) -> Any:
    """An array of tokens, or something else."""
    kind = source.random()
    if kind < 0.15:
        return odd(source)
    size = source.choice([1, 2, 3, 8, 30, 0])
    values: list[Any] = [source.randrange(2) for _ in range(size)]
    if values and source.random() < 0.3:
        values[source.randrange(size)] = source.choice(
            [-1, 2, 255, 2**31, 2**63 - 1, -(2**63), 10**30, 0.5, "a", None]
        )
    if kind < 0.3:
        return source.choice([tuple, list, str])(values)
    if kind < 0.5:
        array = np.array(values, dtype=object if source.random() < 0.2 else None)
        return source.choice([array, array.reshape(1, -1), array[::-1], array.astype(str)])
    try:
        tensor = torch.tensor(values)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return values
    match source.randrange(8):
        case 0:
            return tensor.to(source.choice(KINDS))
        case 1:
            return tensor.unsqueeze(0)
        case 2:
            return tensor.repeat(3, 1)
        case 3:
            return tensor.reshape(1, 1, -1)
        case 4:
            return tensor.expand(2, size).mT
        case 5:
            return torch.zeros(source.choice([(), (0,), (0, 3), (2, 0), (1, 2, 3)]), dtype=torch.long)
        case _:
            return tensor


def draw(source: random.Random) -> tuple[str, dict[str, Any]]:
    """A function, and what it is called with."""
    f, g = source.choice(_models()), source.choice(_models())
    small = [1, 2, 3, 8]
    match source.randrange(13):
        case 0 | 1 | 2:
            return "call", {
                "f": f,
                "tokens": tokens(source),
                "method": mostly(source, ["fast", "reference"], 0.1),
            }
        case 3:
            asked = {
                "f": f,
                "g": g,
                "tokens": tokens(source),
                "tolerance": mostly(source, [0.1, 0.5, *FLOATS], 0.1),
            }
            names = [None, "counts", "shortest", "markov", "stratified", "balanced"]
            more = {
                "method": mostly(source, names, 0.1),
                "length": mostly(source, [None, 1, 3, integer(source)], 0.1),
                "draws": mostly(source, [1, 2], 0.1),
                "seed": mostly(source, [0, 1], 0.2),
                "time_limit": mostly(source, [0.05], 0.2),
            }
            return "simulate", asked | {name: more[name] for name in more if source.random() < 0.3}
        case 4:
            length = mostly(source, small, 0.7)
            if isinstance(length, int) and 12 < length < 2**31:
                length = 12  # others may take the minutes that they are known to take
            return "divergence", {"f": f, "g": g, "length": length}
        case 5:
            other = g if source.random() < 0.8 else None
            return "bound", {"f": f, "g": other, "tolerance": mostly(source, [0.1, *FLOATS], 0.3)}
        case 6:
            return "program", {"program": source.choice(_programs()), "word": tokens(source)}
        case 7:
            program = source.choice(_programs())
            more = {"lengths": tokens(source)} if source.random() < 0.4 else {}
            return "accepts", {"program": program, "tokens": tokens(source), **more}
        case 8:
            asked = {"model": f, "task": source.choice(_tasks())}
            bins = [[2], [3, 9], [(2, 4)], [3, 3], [], [0], (3,), [2**60], [2**53]]
            asked["lengths"] = mostly(source, bins, 0.3)
            more = {"sequences": mostly(source, [2, 3], 0.4), "seed": mostly(source, [0, 1], 0.4)}
            return "evaluate", asked | {name: more[name] for name in more if source.random() < 0.6} | {
                "sequences": more["sequences"]
            }
        case 9:
            asked = {"tokens": tokens(source), "vocabulary": mostly(source, [2, 3], 0.3)}
            return "summarize", asked | {
                "period": mostly(source, [1, 2], 0.3),
                "locality": mostly(source, [0, 1], 0.3),
            }
        case 10:
            parts = [tokens(source), tokens(source), mostly(source, [torch.tensor(3), torch.tensor(1)])]
            if source.random() < 0.5:
                counts = torch.tensor([[source.choice([0, 1, 2, -1, 2**60])], [source.choice([0, 1])]])
                parts = [
                    counts,
                    torch.tensor([source.choice([0, 1, 2, -1])]),
                    torch.tensor(source.choice([1, 2, 3])),
                ]
            return "counts", {"f": f, "summary": lw.Summary(*parts)}
        case 11:
            size = source.randint(0, 6)
            asked = {
                "lengths": [2**at for at in range(size)],
                "losses": [source.choice(FLOATS) for _ in range(size)],
            }
            asked["errors"] = [source.choice([0.0, 0.1, *FLOATS]) for _ in range(size)]
            name = source.choice(list(asked))
            asked[name] = mostly(source, [asked[name]], 0.5)
            return "plateau", asked
        case _:
            asked = {"f": f, "g": g, "length": mostly(source, small, 0.3)}
            asked["concentration"] = mostly(source, [1.0, [1.0, 2.0], *FLOATS], 0.3)
            asked["samples"] = mostly(source, [None, 2, 5], 0.3)
            return "average_error", asked | {"seed": mostly(source, [0, 3], 0.3)}


def enter(given: tuple[str, dict[str, Any]], folder: Path) -> None:
    """A call is refused, or its answer is one."""
    name, asked = given[0], dict(given[1])
    match name:
        case "call":
            f = asked["f"]
            output = f.evaluate(asked["tokens"], asked["method"])
            require(
                output.shape[-1] == f.outputs and output.dim() in (1, 2), "an output of shape", output.shape
            )
            require(torch.isfinite(output).all(), "an output that is not finite")
        case "simulate":
            found = lw.simulate(**asked)
            require(found.length >= 1 and found.error_f >= 0 and found.error_g >= 0, "no simulation", found)
        case "divergence":
            found = lw.divergence(**asked)
            require(0 <= found < math.inf, "a divergence of", found)
        case "bound":
            found = lw.bound(asked["f"], asked["g"], asked["tolerance"])
            require(found.length >= 1, "a length of", found.length)
        case "program":
            require(asked["program"](asked["word"]) in (True, False), "no answer")
        case "accepts":
            answer = lw.crasp.accepts(**asked)
            require(answer.dtype == torch.bool and answer.dim() == 1, "no answers")
        case "evaluate":
            curve = lw.evaluate(**asked)
            require(len(curve.losses) == len(curve.test_lengths) >= 1, "no losses")
        case "summarize":
            summary = lw.summarize(**asked)
            far, near = summary.counts.sum((-1, -2)), (summary.suffix >= 0).sum(-1)
            require((far + near == summary.length).all(), "counts that do not add up")
        case "counts":
            output = asked["f"].evaluate_counts(asked["summary"])
            require(torch.isfinite(output).all(), "an output that is not finite")
        case "plateau":
            found = lw.plateau(**asked)
            low, high = found.interval
            require(low <= found.value <= high or found.value < 0, "a value outside its interval", found)
        case _:
            found = lw.average_error(**asked)
            require(0 <= found.value < math.inf, "an average of", found.value)


def prepare() -> None:
    """Build what is called."""
    for build in (_models, _programs, _tasks):
        build()


DOOR = Door(
    name="tokens",
    about="arrays of tokens, and numbers beside them",
    share=20,
    seconds=60.0,
    draw=draw,
    enter=enter,
    prepare=prepare,
)
