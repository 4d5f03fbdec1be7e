"""Training steps of decoders a second, beside a plain loop that trains one model at a time on the same work.

The plain model is the GPT-2 of ``transformers`` if that is installed, otherwise a module of the same shape.
Its loop draws from the same task, pads a batch to its longest stream and steps with PyTorch's AdamW. Each
side has a process of its own, as if it were run alone, and they take turns; the best of many turns counts,
since other work on the machine slows threads that wait for each other most. Takes the names of tasks, by
default all; --profile then tells where the time of a step goes.
"""

import contextlib
import functools
import importlib.util
import math
import multiprocessing
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch
from timing import device, machine, seconds
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention

from lengthwise.models.decoder import DecoderModel
from lengthwise.tasks import PredictionTask
from lengthwise.tasks.algorithmic import BinaryMajorityTask, CopyRepeatTask, CopyUniqueTask
from lengthwise.training.adam import StackAdam
from lengthwise.training.decoder_config import DecoderTraining, Rounding
from lengthwise.training.decoder_data import FreshData, lengths
from lengthwise.training.decoder_step import Backward
from lengthwise.training.decoders import BETAS, crew, start_decoders
from lengthwise.training.step import step_of

LENGTH, LONGEST, BATCH = 50, 150, 64
TURNS, SECONDS = 12, 1.0

Work = Callable[[int], None]
"""Takes so many steps."""

WORK: list[tuple[PredictionTask, DecoderModel, dict[str, list[int]]]] = [
    (BinaryMajorityTask(), DecoderModel(width=16), {"cpu": [1, 16, 64], "cuda": [1, 64, 512, 2048]}),
    (
        CopyUniqueTask(),
        DecoderModel(layers=2, width=64, positions="learned"),
        {"cpu": [1, 2, 8], "cuda": [1, 16, 64]},
    ),
    (
        CopyRepeatTask(),
        DecoderModel(layers=4, heads=4, width=256, positions="learned"),
        {"cpu": [1], "cuda": [1, 8, 16]},
    ),
]
"""What is trained, and how many models at once."""


class Plain(nn.Module):
    """GPT-2 in the plain way."""

    def __init__(self, model: DecoderModel, vocabulary: int, positions: int) -> None:
        super().__init__()
        width = model.width
        self.heads = model.heads
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm": nn.LayerNorm(width),
                    "into": nn.Linear(width, 3 * width),
                    "out": nn.Linear(width, width),
                    "mlp_norm": nn.LayerNorm(width),
                    "mlp_in": nn.Linear(width, 4 * width),
                    "mlp_out": nn.Linear(4 * width, width),
                }
            )
            for _ in range(model.layers)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor, positions: Tensor | None) -> Tensor:
        """Logits at every position."""
        x = self.tokens(tokens)
        if positions is not None:
            x = x + self.positions(positions)
        for layer in self.layers:
            assert isinstance(layer, nn.ModuleDict)
            split = layer["into"](layer["norm"](x)).unflatten(-1, (3, self.heads, -1)).transpose(1, 3)
            mixed = scaled_dot_product_attention(*split.unbind(2), is_causal=True)
            x = x + layer["out"](mixed.transpose(1, 2).flatten(2))
            x = x + layer["mlp_out"](gelu(layer["mlp_in"](layer["mlp_norm"](x)), approximate="tanh"))
        return self.norm(x) @ self.tokens.weight.mT


def plain_model(model: DecoderModel, vocabulary: int, positions: int) -> tuple[str, nn.Module, Callable]:
    """Its name, the module and what computes logits with it."""
    if importlib.util.find_spec("transformers") is None:
        module = Plain(model, vocabulary, positions)
        return "a plain module", module, module
    from transformers import (  # pyright: ignore[reportMissingImports]
        GPT2Config,
        GPT2LMHeadModel,
    )

    sizes: dict[str, Any] = {
        "n_layer": model.layers,
        "n_head": model.heads,
        "n_embd": model.width,
        "n_positions": positions,
    }
    none: dict[str, Any] = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "use_cache": False}
    ends: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": vocabulary - 1}
    module = GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary, **sizes, **none, **ends))
    if model.positions == "none":
        nn.init.zeros_(module.transformer.wpe.weight).requires_grad_(False)
    return "transformers", module, lambda t, p: module(input_ids=t, position_ids=p).logits


def plain_steps(task: PredictionTask, model: DecoderModel) -> tuple[str, Work]:
    """What the plain model is, and steps of it."""
    rows, random = task.stream_length(LONGEST), torch.Generator(device()).manual_seed(0)
    name, module, logits = plain_model(model, task.vocabulary, rows)
    module.to(device())
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    adam = torch.optim.AdamW(trained, lr=1e-3, weight_decay=0.01)

    def work(steps: int) -> None:
        for _ in range(steps):
            examples = task.sample(BATCH, task.shortest, LENGTH, random)
            longest = int(lengths(examples.places, examples.scored).max())
            target = torch.full_like(examples.tokens, -100)
            stream = examples.scored.nonzero()[:, 0]
            target[stream, examples.places[examples.scored]] = examples.target[examples.scored]
            positions = None
            if model.positions == "learned":
                start = torch.randint(rows - longest + 1, (BATCH, 1), generator=random, device=device())
                positions = start + torch.arange(longest, device=device())
            found = logits(examples.tokens[:, :longest], positions)
            cross_entropy(found.flatten(0, 1), target[:, :longest].flatten()).backward()
            adam.step()
            adam.zero_grad()

    return name, work


def ensemble_steps(
    task: PredictionTask, model: DecoderModel, models: int, rounding: Rounding = "tf32"
) -> tuple[Work, int, int]:
    """Steps of so many models at once; how many models, and for how many steps data is drawn at a time."""
    ensemble = start_decoders(model, task, range(models), LONGEST, device())
    adam = StackAdam(ensemble.stack, [1e-3] * models, BETAS, 0.01)
    data = FreshData(ensemble, [task] * models, length=LENGTH, batch=BATCH, seeds=range(models))
    workers = crew(ensemble, task, DecoderTraining(length=LENGTH, batch=BATCH))
    step = step_of(adam, Backward(ensemble, task, 0.0, workers, rounding))

    def work(steps: int) -> None:
        with workers:
            for _ in range(steps):
                batch = data.take(workers)
                step(batch.parts(), 1.0, groups=data.groups())

    return work, models, data.steps_at_once


class Side:
    """A loop in a process of its own."""

    def __init__(self, kind: str, index: int, models: int, rounding: Rounding) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._here, there = spawn.Pipe()
        spawn.Process(target=serve, args=(there, kind, index, models, rounding), daemon=True).start()
        self.name, self.models, self.at_once = self._here.recv()

    def seconds(self, steps: int) -> float:
        """How long so many steps take."""
        self._here.send(steps)
        return self._here.recv()


def serve(there: Connection, kind: str, index: int, models: int, rounding: Rounding) -> None:
    """Take as many steps as one is asked for, and tell how long they took."""
    torch.set_float32_matmul_precision("high")  # on a GPU, for both sides
    task, model, _ = WORK[index]
    if kind == "plain":
        name, work = plain_steps(task, model)
        at_once = 1
    else:
        work, models, at_once = ensemble_steps(task, model, models, rounding)
        name = f"{models} at once" if rounding == "tf32" else f"{models}, {rounding}"
    there.send((name, models, at_once))
    with contextlib.suppress(EOFError):  # when the benchmark is over
        while True:
            there.send(seconds(functools.partial(work, there.recv())))


def best_rates(sides: list[Side]) -> list[float]:
    """Model-steps a second of each, in turns; every turn makes as much data as it uses."""
    steps = []
    for side in sides:
        side.seconds(side.at_once)
        steps.append(side.at_once * math.ceil(SECONDS / side.seconds(side.at_once)))
    times = [math.inf] * len(sides)
    for _ in range(TURNS):
        for number, side in enumerate(sides):
            times[number] = min(times[number], side.seconds(steps[number]) / steps[number])
    return [side.models / time for side, time in zip(sides, times, strict=True)]


def profile(work: Work) -> None:
    """Where the time of ten steps goes, on a CPU those of one thread: the operations that take most of it."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities = [torch.profiler.ProfilerActivity.CUDA]
    work(5)
    with torch.profiler.profile(activities=activities) as found:
        work(10)
    key = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
    print(found.key_averages().table(sort_by=key, row_limit=20, max_name_column_width=60))


def main(words: list[str]) -> None:
    tasks = [word for word in words if word != "--profile"]
    print(machine())
    for index, (task, model, sizes) in enumerate(WORK):
        if tasks and task.name not in tasks:
            continue
        shape = f"{model.layers}/{model.heads}/{model.width}, positions {model.positions}"
        print(f"{task.title}, {shape}, batch {BATCH}, lengths {task.shortest} to {LENGTH}")
        sides = [Side("plain", index, 1, "none")]
        sides += [Side("ours", index, size, "tf32") for size in sizes[device()]]
        if torch.cuda.is_available():
            sides.append(Side("ours", index, sizes["cuda"][-1], "bfloat16"))
        rates = best_rates(sides)
        for side, rate in zip(sides, rates, strict=True):
            print(f"  {side.name:>16s} {rate:10.1f} model-steps/s {rate / rates[0]:7.1f} times", flush=True)
        if "--profile" in words:
            torch.set_num_threads(1)
            rounding = "bfloat16" if torch.cuda.is_available() else "none"
            profile(ensemble_steps(task, model, sizes[device()][-1], rounding)[0])


if __name__ == "__main__":
    main(sys.argv[1:])
