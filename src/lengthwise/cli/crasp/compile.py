"""Write a program as a limit transformer, in a file that inspect, bound and simulate read. Its input is a
mark (the token after the letters), the letters, and under eos an end mark (one more); its output is 1 or 0.
"""

import json as json_module
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console

from lengthwise._files import make_folder
from lengthwise.cli.crasp.programs import ProgramText, program_of
from lengthwise.cli.printing import print_files
from lengthwise.crasp import compile, exact_length


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise crasp compile``."""

    program: ProgramText
    """A file with a program, a name from lengthwise tasks, or a program as text, where \\n ends a line."""
    form: Literal["heaviside", "relu"] = "heaviside"
    """heaviside: steps, exact at every length; relu: ramps, exact up to --longest."""
    longest: int = 1000
    """Of the relu form: how many letters a word may have."""
    output: Path = Path("runs/compiled")
    """Folder for the file, program.safetensors."""
    seed: int = 0
    """Taken by every command that prints a result; compiling draws nothing."""
    json: bool = False
    """Print one JSON document instead of a sentence."""


def run(command: Command) -> None:
    """Compile, save, print."""
    program = program_of(command.program)
    f = compile(program, command.form, longest=command.longest)
    make_folder(command.output)
    path = command.output / "program.safetensors"
    f.save(path)
    exact = command.longest if command.form == "relu" else exact_length(program)
    about = {
        "layers": len(f.layers),
        "heads": [layer.heads for layer in f.layers],
        "width": f.embedding.shape[1],
        "exact_length": exact,
        "tokens": [*program.alphabet, "mark", *(["end"] if program.mode == "eos" else [])],
        "files": {"model": str(path)},
    }
    if command.json:
        print(json_module.dumps(about, indent=2))
        return
    print(
        f"{len(f.layers)} layer{'s' if len(f.layers) > 1 else ''} of width {f.embedding.shape[1]}, "
        f"{command.form}: exact on words of up to {exact:,} letters in float64"
    )
    print(f"tokens: {', '.join(f'{number} {name}' for number, name in enumerate(about['tokens']))}")
    print_files(Console(), {"model": path})
