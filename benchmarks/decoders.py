"""Training steps of decoders a second, beside a plain loop that trains one model at a time on the same work.

The plain model is the GPT-2 of ``transformers`` if that is installed, otherwise a module of the same shape.
Its loop draws from the same task, pads a batch to its longest stream and steps with PyTorch's AdamW. On both
sides the best of many short turns counts, since other work on the machine slows threads that wait for each
other most. Takes the names of tasks, by default all; --profile then tells where the time of a step goes.
"""

import importlib.util
import math
import sys
from collections.abc import Callable
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
TURNS, SECONDS = 12, 0.1

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
    data = FreshData(ensemble, task, length=LENGTH, batch=BATCH, seeds=range(models))
    workers = crew(ensemble, task, DecoderTraining(length=LENGTH, batch=BATCH))
    step = step_of(adam, Backward(ensemble, task, 0.0, workers, rounding))

    def work(steps: int) -> None:
        with workers:
            for _ in range(steps):
                batch = data.take(workers)
                step(batch.parts(), 1.0, groups=data.groups())

    return work, models, data.steps_at_once


def best_rates(works: dict[str, tuple[Work, int, int]]) -> dict[str, float]:
    """Model-steps a second of each, in turns; every turn makes as much data as it uses."""
    steps = {}
    for name, (work, _, at_once) in works.items():
        work(at_once)
        steps[name] = at_once * math.ceil(SECONDS / seconds(lambda work=work, n=at_once: work(n)))
    times = dict.fromkeys(works, math.inf)
    for _ in range(TURNS):
        for name, (work, _, _) in works.items():
            taken = seconds(lambda work=work, name=name: work(steps[name]))
            times[name] = min(times[name], taken / steps[name])
    return {name: models / times[name] for name, (_, models, _) in works.items()}


def profile(work: Work) -> None:
    """Where the time of ten steps goes: the operations that take most of it."""
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
    torch.set_float32_matmul_precision("high")  # on a GPU, for both sides
    print(machine())
    for task, model, sizes in WORK:
        if tasks and task.name not in tasks:
            continue
        shape = f"{model.layers}/{model.heads}/{model.width}, positions {model.positions}"
        print(f"{task.title}, {shape}, batch {BATCH}, lengths {task.shortest} to {LENGTH}")
        plain, work = plain_steps(task, model)
        ours = {f"{size} at once": ensemble_steps(task, model, size) for size in sizes[device()]}
        if torch.cuda.is_available():
            size = sizes["cuda"][-1]
            ours[f"{size}, bfloat16"] = ensemble_steps(task, model, size, "bfloat16")
        rates = best_rates({plain: (work, 1, 1), **ours})
        for name, rate in rates.items():
            print(f"  {name:>16s} {rate:10.1f} model-steps/s {rate / rates[plain]:7.1f} times", flush=True)
        if "--profile" in words:
            profile(next(reversed(ours.values()))[0])


if __name__ == "__main__":
    main(sys.argv[1:])
