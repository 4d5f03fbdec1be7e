"""Random programs on the same words by batches, streams, power words and compiled limit transformers.

Axes: H head, I query, J key, T position, d width.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from crasp_checks_common import Progress, agree, helper, over
from hypothesis import strategies as st
from torch import Tensor

from lengthwise.crasp import PowerWord, Program, Stream, compilation, encode, text_of
from lengthwise.crasp.batch import NO_LETTER, node_values
from lengthwise.crasp.compilation import Form
from lengthwise.crasp.nodes import Bool, Node
from lengthwise.crasp.power import read_power
from lengthwise.limit import Finite, LimitLayer, LimitTransformer
from lengthwise.limit.reference import stream

programs = helper("crasp_programs")

SHORT, LONG = 300, (1000, 3000, 10_000)
FORMS: tuple[Form, Form] = ("heaviside", "relu")
Rows = dict[Node, list[int]]


def evaluation(*, quick: bool) -> Progress:
    """Every node at every position of words of 1 to 300 letters, and of some up to 10,000."""
    told = Progress("evaluation")
    short, long = f"programs at 1 to {SHORT} letters", f"programs at {LONG[0]:,} to {LONG[-1]:,} letters"

    def check(recipe: dict[str, Any], number: int) -> None:
        program, source = programs.build_program(recipe), random.Random(number)
        length = source.randint(1, SHORT)
        word = random_word(source, len(program.alphabet), length)
        rows = compare_readers(program, source, word, [1, 7, 50, 1000], told)
        if length <= 40:
            agree(rows[program.root()] == programs.recipe_truth(recipe, word), recipe, word)
        for form in FORMS:
            told.add("compiled values", compare_compiled(program, word, rows, form, stream))
        told.add(short)

    def check_long(recipe: dict[str, Any], number: int) -> None:
        program, source = programs.build_program(recipe), random.Random(number)
        length = source.choice(LONG)
        word = random_word(source, len(program.alphabet), length)
        rows = compare_readers(program, source, word, [997, 32_700], told)
        if source.random() < 0.2:
            form = source.choice(FORMS)
            found = compare_compiled(program, word, rows, form, stream_by_queries)
            told.add(f"compiled values at {length:,} letters", found)
        told.add(long)

    numbers = st.integers(0, 2**32)
    over(60 if quick else 2000, check, programs.RECIPES, numbers)
    over(6 if quick else 120, check_long, programs.RECIPES, numbers)
    return told


def random_word(source: random.Random, letters: int, length: int) -> list[int]:
    """Letters at random, in runs, or repeated, where sums often tie."""
    match source.randrange(3):
        case 0:
            word = [source.randrange(letters) for _ in range(length)]
        case 1:
            word = []
            while len(word) < length:
                word += [source.randrange(letters)] * source.randint(1, 1 + length // 4)
        case _:
            word = [source.randrange(letters) for _ in range(source.randint(1, 9))] * length
    return word[:length]


def compare_readers(
    program: Program, source: random.Random, word: Sequence[int], tiles: Sequence[int], told: Progress
) -> Rows:
    """A batch and a stream have the same values at every position, which are returned; and a power word of
    the same length at some of them.
    """
    tokens = torch.tensor([[*word, *([NO_LETTER] * (program.mode == "eos"))]])
    found = programs.with_tiles(source.choice(tiles), node_values, program.nodes, tokens, program.alphabet)
    rows: Rows = {node: values[0].tolist() for node, values in found.items()}
    reader = Stream(program)
    for place, symbol in enumerate(word):
        reader.step(symbol)
        agree(reader.values == {node: row[place] for node, row in rows.items()}, text_of(program), word)
    if program.mode == "eos":
        agree(reader.end_values() == {node: row[-1] for node, row in rows.items()}, text_of(program), word)
    agree(reader.accepted() == bool(rows[program.root()][-1]), text_of(program), word)
    told.add("values of batches and streams", sum(map(len, rows.values())))
    told.add("positions of power words", compare_power(program, source, len(word)))
    return rows


def compare_power(program: Program, source: random.Random, length: int) -> int:
    """Jumps over repetitions lead to the values of plain reading, at some positions; returns how many."""
    blocks: list[tuple[list[int], int]] = []
    left = length
    while left > 0:
        word = [source.randrange(len(program.alphabet)) for _ in range(source.randint(1, min(5, left)))]
        blocks.append((word, source.randint(1, left // len(word))))
        left -= len(word) * blocks[-1][1]
    ends = {length, *(source.randint(1, length) for _ in range(4))}
    reader = Stream(program)
    letters = (symbol for word, times in blocks for _ in range(times) for symbol in word)
    for place, symbol in enumerate(letters, start=1):
        reader.step(symbol)
        if place in ends:
            jumped = read_power(program, first_letters(blocks, place))
            agree(jumped.values == reader.values, text_of(program), blocks, place)
            agree(jumped.end_values() == reader.end_values(), text_of(program), blocks, place)
    return len(ends)


def first_letters(blocks: Sequence[tuple[Sequence[int], int]], length: int) -> PowerWord:
    """The first letters of a power word, so many."""
    kept: list[tuple[tuple[int, ...], int]] = []
    for word, times in blocks:
        whole = min(times, length // len(word))
        rest = length - whole * len(word) if whole < times else 0
        kept += [(tuple(word), whole), (tuple(word[:rest]), 1)]
        length -= whole * len(word) + rest
    return PowerWord(tuple(kept))


def compare_compiled(
    program: Program,
    word: Sequence[int],
    rows: Rows,
    form: Form,
    evaluated: Callable[[LimitTransformer, Tensor], Tensor],
) -> int:
    """The stream of a compiled program holds the value of every node, a count divided by the number of tokens
    up to here; its output is the answer at every position. Returns how many values were compared.
    """
    # What ``compile`` does; only the compiler itself knows which coordinate is which node.
    compiler = compilation._Compiler(program, form, 4.0 * (len(word) + 2), 16)
    f = compiler.transformer()
    y_Td = evaluated(f, torch.tensor([encode(program, word)]))[0, 1:]
    position_T = torch.arange(2, len(y_Td) + 2)
    compared = 0
    for node, row in rows.items():
        if node in compiler.at:
            values_T = y_Td[:, compiler.at[node]] * (1 if isinstance(node, Bool) else position_T)
            agree((values_T - torch.tensor(row).double()).abs().max() < 1e-6, form, text_of(program), word)
            compared += len(row)
    answers_T = (y_Td @ f.readout.mT)[:, 0]
    expected_T = torch.tensor(rows[program.root()]).double()
    agree((answers_T - expected_T).abs().max() < 1e-6, form, text_of(program), word)
    return compared + len(answers_T)


def stream_by_queries(f: LimitTransformer, tokens: Tensor, at_once: int = 250) -> Tensor:
    """``stream`` of one word, some queries at a time, so that long words fit in memory."""
    length = tokens.shape[1]
    y_Td = f.embedding[tokens[0]] + f.positions[torch.arange(1, length + 1) % f.period]
    assert isinstance(f.precision, Finite)
    for layer in f.layers:
        if len(layer.value):
            starts = range(0, length, at_once)
            read = [attended(layer, y_Td, slice(start, start + at_once), f.precision) for start in starts]
            y_Td = y_Td + torch.cat(read)
        y_Td = layer.after_mlp(y_Td)
    return y_Td.unsqueeze(0)


def attended(layer: LimitLayer, y_Td: Tensor, queries: slice, precision: Finite) -> Tensor:
    """What some queries read by attention, as in the definition."""
    place_T = torch.arange(len(y_Td))
    seen = min(queries.stop, len(y_Td))
    distance_IJ = place_T[queries].unsqueeze(1) - place_T[:seen]
    local_HIJ = torch.nn.functional.pad(layer.local, (0, 1))[:, distance_IJ.clamp(0, layer.locality + 1)]
    keys_HJd = torch.einsum("je,hed->hjd", y_Td[:seen], layer.key_query)
    logits_HIJ = (y_Td[queries] @ keys_HJd.mT + local_HIJ).masked_fill(distance_IJ < 0, -math.inf)
    below_HIJ = (logits_HIJ - logits_HIJ.amax(-1, keepdim=True)) * math.log2(len(y_Td))
    cut_HIJ = (below_HIJ * math.log(2)).masked_fill(below_HIJ <= -precision.bits, -math.inf)
    read_HId = torch.softmax(cut_HIJ, -1) @ (y_Td[:seen] @ layer.value.mT)
    return read_HId.sum(0)
