"""Door: the command line."""

import contextlib
import io
import json
import random
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import lengthwise as lw
from fuzz_doors.door import Door, require
from fuzz_doors.stores import _good as good_store
from lengthwise.cli import COMMANDS, main
from lengthwise.cli.runs import WRONG

MODELS = ["simple:omega=2,knots=2", "modp:period=2", "zero", "kgram:k=1,vocabulary=2", "lower-bound:k=1"]
MODELS += ["crasp:binary-majority", "model.safetensors", "store/RUN", "induction:vocabulary=2"]
ODD_LETTERS = '%alphabet "a" "[/red]" "$x$" "\\\\frac$"\\naccept = # "[/red]" > # [i - j == 1] "a"'
PROGRAMS = ['accept = # "1" > # "0"', "binary-majority", "dyck-2", ODD_LETTERS, "program.crasp"]
WORDS = ["", "1", "0110", "(01)^3", "1^(10^30)", "aab", "(ab)^5", "a b", "^", "\x00"]
NAMES = [
    "out",
    "out/deeper",
    "file",
    "file/x",
    "missing",
    "folder",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/proc/x",
]
NAMES += [
    "",
    "a\nb",
    "\x1b[31mred",
    "[/red]",
    "[bold]x",
    "\udcff",
    "\x00",
    "x" * 300,
    "/",
    ".",
    "bad.safetensors",
]
NAMES += ["-", "--", "program.crasp", "examples.tsv", "sweep.py", "table.parquet", "model.safetensors", "é"]
STORES = ["store", "store", "store/RUN", "folder", "out", *NAMES]
TITLES = ["", "[/red]", "a\nb", "\x1b[31mred", "<script>", "$x$", "\udcff", "\x00"]
NUMBERS = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "0.5",
    "nan",
    "inf",
    "-inf",
    "1e-300",
    "1e300",
    "1" + "0" * 30,
    "9" * 5000,
]
NUMBERS += ["", "x", "1_0", " 1", "0x10", "1.5", "1e3", "\u0663", "10000000000"]
TIMES = ["0.05", "0.1", "0", "-1", "nan", "x"]
"""Seconds that a command may try: no good one is long."""
FEW = ["1", "1", "2", "0", "-1", "x", "1.5", ""]
"""Steps, seeds and other numbers that decide how long a command takes."""

Values = dict[str, list[str]]
JSON: Values = {"--seed": ["0", "3", *NUMBERS]}


def _of(
    *positional: list[str], capped: Values | None = None, **flags: list[str]
) -> tuple[Any, Values, Values]:
    """Positional words, flags with their values, and flags that always stand at the end."""
    return positional, {f"--{name.replace('_', '-')}": given for name, given in flags.items()}, capped or {}


OUTPUT = [
    "out",
    "out/deeper",
    "file",
    "file/x",
    "/dev/null",
    "/dev/full/x",
    "/proc/x",
    "[/red]",
    "a\nb",
    "x" * 300,
]
OUTPUT += ["\x1b[31mred", "\udcff", "\x00", "", "é"]
LIMIT_TASK: Values = {
    "--steps": FEW,
    "--batch": [*FEW, "1" + "0" * 12],
    "--longest-test": ["300", "100", "0", "x"],
}
DECODER: Values = {
    "--steps": FEW,
    "--batch": [*FEW, "1" + "0" * 12],
    "--ends": ["6", "6 8", "0", "x", "8 6"],
    "--sequences": ["2", "0", "x"],
    "--every": ["1", "0"],
    "--width": ["2", "4", "0", "x", "1" + "0" * 9],
    "--length": ["6", "0", "-1", "1" + "0" * 12],
}
SURELY_WRONG: Values = {"--output": ["file/x", "/dev/null/x"]}
"""Of commands that take minutes: where nothing can be written, nothing is trained."""

SHAPES: dict[str, tuple[Any, Values, Values]] = {
    "tasks": _of(),
    "inspect": _of(MODELS, input=["0", "01", "0,1", "2", "", "x", "0" * 600], output=OUTPUT),
    "bound": _of(MODELS, MODELS, tolerance=["0.1", *NUMBERS], output=OUTPUT),
    "simulate": _of(
        MODELS,
        MODELS,
        capped={"--time-limit": TIMES, "--length": ["40", "10", "0", "-1", "x", "1.5", "1" + "0" * 30]},
        tolerance=["0.1", *NUMBERS],
        method=["counts", "shortest", "markov", "stratified", "balanced", "x"],
        input=["0", "01101", "0,1", "x", "", *WORDS],
        input_file=NAMES,
        output=OUTPUT,
    ),
    "crasp run": _of(PROGRAMS, WORDS),
    "crasp trace": _of(PROGRAMS, WORDS, output=OUTPUT),
    "crasp check": _of([*PROGRAMS, *NAMES]),
    "crasp equivalent": _of(PROGRAMS, PROGRAMS, capped={"--time-limit": TIMES}, inclusion=["", "x"]),
    "crasp bound": _of(PROGRAMS, PROGRAMS, capped={"--time-limit": TIMES}),
    "crasp decide": _of(
        ["(ab)*", "a*b", "(a|b)*", "(", "", "a.", "aa*"],
        alphabet=["ab", "abc", "", "aa"],
        acceptance=["last", "eos", "x"],
        positional=[""],
    ),
    "crasp compile": _of(
        PROGRAMS, form=["heaviside", "relu"], longest=["5", "1000", *NUMBERS], output=OUTPUT
    ),
    "crasp learn": _of(
        [*PROGRAMS, ""],
        capped={"--seconds": TIMES},
        regex=["(ab)*", "(", ""],
        examples=NAMES,
        alphabet=["ab", ""],
        slots=["1", *NUMBERS],
        distances=["1", "1 2", *NUMBERS],
        moduli=["2", "2 3", *NUMBERS],
        output=OUTPUT,
    ),
    "train simple": _of(
        capped=LIMIT_TASK,
        length=["8", *NUMBERS],
        omega=["4", *NUMBERS],
        learning_rate=["1e-3", *NUMBERS],
        output=OUTPUT,
    ),
    "train modp": _of(
        capped=LIMIT_TASK, length=["8"], period=["2", *NUMBERS], residue=["1", *NUMBERS], output=OUTPUT
    ),
    "train kgram": _of(
        capped=LIMIT_TASK, length=["8"], k=["1", *NUMBERS], vocabulary=["2", *NUMBERS], output=OUTPUT
    ),
    "train tomita-1": _of(
        capped=DECODER,
        layers=["1", "0", "x"],
        heads=["1", "3", *NUMBERS],
        positions=["none", "learned", "rotary", "randomised", "x"],
        weight_decay=NUMBERS,
        output=OUTPUT,
    ),
    "sweep": _of(
        ["sweep.py", "sweep.py", "bad.py", *NAMES],
        output=OUTPUT,
        device=["cpu", "cuda", "x"],
        address=["x"],
        checkpoint_every=["0", *NUMBERS],
    ),
    "runs": _of(STORES, repair=[""]),
    "report": _of(
        STORES,
        capped={"--theory": ["0", "0", "-1", "x"]},
        format=["markdown", "html", "both", "x"],
        title=["x", *TITLES],
        tolerance=["0.1", *NUMBERS],
        output=OUTPUT,
    ),
    "advise simple": _of(
        capped=SURELY_WRONG,
        tolerance=NUMBERS,
        seeds=NUMBERS,
        steps=NUMBERS,
        longest_test=NUMBERS,
        omega=NUMBERS,
    ),
    "demo": _of(capped=SURELY_WRONG, tolerance=NUMBERS, seeds=NUMBERS, omega=NUMBERS, pilot_longest=NUMBERS),
    "reproduce": _of(
        ["figure1", "figure2", "algorithmic", "formal", "figure9", ""],
        capped=SURELY_WRONG,
        scale=["quick", "x"],
        tasks=["tomita-1", "x", "tomita-1 tomita-2"],
        positions=["none", "x"],
        seeds=NUMBERS,
        regulariser=NUMBERS,
        clip=NUMBERS,
        until=["perfect", "x"],
        steps=NUMBERS,
        rounding=["tf32", "x"],
        spare_positions=NUMBERS,
        search=NUMBERS,
        tables=NAMES,
    ),
    "explore": _of(capped={"--port": ["-1", "x", "70000", "1" + "0" * 30, "nan", ""]}),
}
ODD_FLAGS = [
    "--help",
    "-h",
    "--nope",
    "--",
    "-",
    "--out",
    "--json=1",
    "--seed",
    "--output",
    "-x",
    "\x1b[31m",
    "\x00",
    "--é",
]


def draw(source: random.Random) -> list[str]:
    """What is typed."""
    if source.random() < 0.05:
        words = [
            *(name for name in COMMANDS if name not in ("demo", "explore")),
            "crasp run",
            "crasp",
            "tsks",
            "--version",
            "-V",
            "",
            *ODD_FLAGS,
        ]
        return source.choices(words, k=source.randint(0, 3))
    name = source.choice([one for one in SHAPES if one != "tasks" or source.random() < 0.1])
    positional, flags, capped = SHAPES[name]
    wrong = source.choice([0.0, 0.15, 0.5])
    words = [
        source.choice(given[:5]) if source.random() >= wrong else source.choice([*given, *NAMES])
        for given in positional
    ]
    if words and source.random() < 0.05:
        words.pop()
    typed = [[word] for word in words]
    every = flags | JSON
    for flag in source.sample(list(every), k=min(len(every), source.choice([0, 1, 1, 2, 3]))):
        given = every[flag]
        chance = max(wrong, 0.5) if flag == "--output" else wrong
        value = source.choice(given[:2]) if source.random() >= chance else source.choice(given)
        alone = not value and source.random() >= wrong
        typed.append([flag] if alone else [flag, *(value.split() if " " in value else [value])])
    if source.random() < 0.5:
        typed.append(["--json"])
    if source.random() < 0.1:
        typed.append([source.choice(ODD_FLAGS)])
    if source.random() < 0.1:
        source.shuffle(typed)
    for flag, given in capped.items():
        value = given[0] if source.random() >= wrong / 2 else source.choice(given)
        typed.append([flag, *value.split(" ")])
    return [*name.split(), *(word for words in typed for word in words)]


@cache
def _files() -> dict[str, bytes]:
    """What lies in the folder where commands are typed."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        lw.constructions.simple_task(2, 2).save(path)
        model = path.read_bytes()
    run, stored = good_store()[0][0], good_store()[1]
    small = (
        "lw.Run(lw.SimpleTask(), lw.LimitModel(width=2, hidden=2), lw.Training(length=3, steps=1, batch=2), "
    )
    small += "lw.Evaluation(lengths=(8, 12, 16, 20, 40, 80), sequences=2))"
    return {
        "file": b"",
        "folder/x": b"",
        "model.safetensors": model,
        "bad.safetensors": model[:99],
        "program.crasp": b'accept = # "a" > 1\n',
        "examples.tsv": b"ab\t1\nb\t0\n",
        "table.parquet": stored[f"{run.id}/metrics.parquet"] or b"",
        "sweep.py": f"import lengthwise as lw\nruns = [{small}]\n".encode(),
        "bad.py": b"import lengthwise as lw\nruns = [lw.Run(1, 2, 3)]\n",
        **{f"store/{name}": data for name, data in stored.items() if data is not None},
    }


def enter(given: list[str], folder: Path) -> None:
    """Status 0, with --json one JSON document alone; or status 2 and one line on stderr alone. ``runs`` has
    status 1 too, where a store has something wrong in it.
    """
    run = good_store()[0][0]
    words = [word.replace("RUN", run.id) for word in given]
    for name, data in _files().items():
        if any(name.split("/")[0] in word for word in words):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="strict", newline="\n")
    told = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace", newline="\n")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
        status = _status(words)
        out.flush()
        told.flush()
    printed, said = (stream.buffer.getvalue().decode() for stream in (out, told))  # pyright: ignore
    if status == 0 or (status == WRONG and words[0] == "runs"):
        helping = any(word in ("--help", "-h") for word in words)
        if "--json" in words and not helping:
            json.loads(printed, parse_constant=_no_json)
        require("Traceback" not in said, "a traceback on stderr:", said[-300:])
        return
    require(status == 2, "an exit status of", status)
    require(not printed.strip(), "output before a mistake:", printed[:300])
    line = said.removesuffix("\n")
    require(line.startswith("lengthwise: "), "a mistake that is not told in one line:", repr(said[:500]))
    raise ValueError(line)


def _no_json(name: str) -> NoReturn:
    require(False, f"{name} is no JSON")
    raise AssertionError


def _status(words: list[str]) -> Any:
    try:
        return main(words)
    except SystemExit as stop:  # --help
        return stop.code or 0


def prepare() -> None:
    """Load all commands, and what they load."""
    import importlib

    import torch._dynamo  # noqa: F401 (training loads it late)

    for name in ("inspect", "simulate", "train", "sweep", "demo", "reproduce", "tasks", "explore", "report"):
        importlib.import_module(f"lengthwise.cli.{name}")
    for name in ("run", "trace", "check", "equivalent", "decide", "learn", "compile", "bound"):
        importlib.import_module(f"lengthwise.cli.crasp.{name}")
    _files()
    with contextlib.redirect_stdout(io.StringIO()):
        _status(["crasp", "run", "binary-majority", "01"])


DOOR = Door(
    name="flags", about="the command line", share=4, seconds=120.0, draw=draw, enter=enter, prepare=prepare
)
