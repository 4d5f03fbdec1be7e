"""Find a short string on which two limit transformers have nearly the outputs that a long one gives them, and
say up to which length they must agree to agree at every one.
"""

import json as json_module
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.progress import track
from torch import Tensor

from lengthwise._files import make_folder
from lengthwise.bounds import bound
from lengthwise.cli.models import TwoModels, file_text, input_of, model_of
from lengthwise.cli.printing import print_files
from lengthwise.limit import LimitTransformer
from lengthwise.reporting.bounds import bound_sentence
from lengthwise.reporting.canvas import save_figure
from lengthwise.reporting.simulation import simulation_figure, simulation_table
from lengthwise.sequences import Summary, check_seed, draw_summary, summarize
from lengthwise.simulation import Pair, Simulation, simulate

LONGEST_STRING = 10**7
"""Up to this length an input that is drawn is a string; a longer one is known by its counts."""

SHOWN = 60
"""So many tokens of z are printed."""


@dataclass(frozen=True, kw_only=True)
class Command(TwoModels):
    """The flags of ``lengthwise simulate``."""

    input: str | None = None
    """The long string, as digits (01101), with powers ((011)^1000 1) or with commas (0,1,12), or the word
    that a program F reads; None: one is drawn."""
    input_file: Path | None = None
    """A file with the long string, digits or numbers with commas or spaces."""
    length: int = 100_000
    """The length of the string that is drawn, up to 2^53 for one-layer models in finite precision."""
    tolerance: float = 0.1
    """How far the outputs on the short string may be from those on the long one."""
    method: Literal["counts", "shortest", "markov", "stratified", "balanced"] | None = None
    """counts or shortest for one layer in finite precision; markov, stratified or balanced in infinite
    precision (None: counts, or balanced)."""
    time_limit: float = 8.0
    """Seconds that the method shortest may take."""
    output: Path = Path("runs/simulate")
    """Folder for the figure: error against simulation length, and the two histograms."""
    seed: int = 0
    """For the string that is drawn, and for the random methods."""
    json: bool = False
    """Print one JSON document instead of a table."""


def run(command: Command) -> None:
    """Simulate, draw, print."""
    f = model_of(command.f)
    g = f if command.g is None else model_of(command.g)
    needed = bound(f, None if command.g is None else g, command.tolerance)
    pair = Pair.of(f, g)
    x = _input(command, pair)
    make_folder(command.output)  # before anything that takes long
    found = simulate(
        f,
        g,
        x,
        command.tolerance,
        command.method,
        seed=command.seed,
        time_limit=command.time_limit,
    )
    shape = pair.vocabulary, pair.period, pair.locality
    seen = x if isinstance(x, Summary) else summarize(x, *shape)
    short = found.summary
    if short is None:
        assert found.tokens is not None
        short = summarize(found.tokens, *shape)
    figure = command.output / "simulation.png"
    save_figure(simulation_figure(seen, short, found, _curve(f, g, x, found, command)), figure)
    if command.json:
        about = {"f": command.f, "g": command.g, "input_length": int(seen.length)}
        beside = {"bound": needed.to_json(), "files": {"figure": str(figure)}}
        print(json_module.dumps({**about, **found.to_json(), **beside}, indent=2))
        return
    console = Console()
    console.print(simulation_table(found, int(seen.length)))
    if found.tokens is not None:
        shown = found.tokens[-SHOWN:].tolist()
        text = ("" if pair.vocabulary <= 10 else ",").join(map(str, shown))
        console.print(f"z: {'...' if found.length > SHOWN else ''}{text}", highlight=False, soft_wrap=True)
    console.print(bound_sentence(needed, alone=command.g is None), highlight=False)
    print_files(console, {"figure": figure})


def _input(command: Command, pair: Pair) -> Tensor | Summary:
    given = command.input
    if command.input_file is not None:
        if given is not None:
            raise ValueError("give the long string by --input or by --input-file, not by both")
        given = file_text(command.input_file)
    check_seed(command.seed)
    if given is None and command.length > LONGEST_STRING:
        return draw_summary(pair.vocabulary, pair.period, pair.locality, command.length, command.seed)
    return input_of(command.f, given, pair.vocabulary, command.seed, command.length)


def _curve(
    f: LimitTransformer, g: LimitTransformer, x: Tensor | Summary, found: Simulation, command: Command
) -> Sequence[Simulation]:
    """Simulations of other lengths: of other tolerances, or of fixed lengths where the method takes one."""
    console = Console(stderr=True)
    if found.method in ("counts", "shortest"):
        steps = [max(command.tolerance, 1e-9) * 10 ** (step / 4) for step in range(-8, 5)]
        return [simulate(f, g, x, step, "counts") for step in steps]
    total = len(x) if isinstance(x, Tensor) else int(x.length)
    lengths = sorted({max(1, int(total ** (step / 12))) for step in range(4, 12)})
    rounds = track(lengths, "error against length", console=console, transient=True)
    return [
        simulate(f, g, x, command.tolerance, found.method, length=length, seed=command.seed)
        for length in rounds
    ]
