"""The command line: ``lengthwise COMMAND``, one file a command.

A command is a module with a frozen dataclass ``Command``, whose fields are its flags, and a function
``run`` that takes one. Only the module of the command that was typed is loaded.
"""

import contextlib
import errno
import importlib
import io
import os
import re
import shlex
import sys
import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import fields
from types import ModuleType
from typing import Any, NoReturn

from lengthwise._messages import nearest, one_line
from lengthwise._version import __version__

COMMANDS = {
    "advise": "say how long the training sequences must be for a task, and see whether that comes true",
    "bound": "say on how long inputs two models must agree, so that they agree at every length",
    "crasp": "C-RASP: run, trace, check, compare, decide, compile (lengthwise crasp tells its commands)",
    "demo": "train on SimpleTask, measure far beyond, and say how long the training sequences must be",
    "explore": "move the parameters of a model by hand, on a page of your own computer, and see what follows",
    "inspect": "tell what a limit transformer is: margins, regimes, norms; draw its attention",
    "report": "write what runs have shown as one page: the answer, curves of every seed, theory beside them",
    "reproduce": "repeat the published experiments, and test the claims that they stand for",
    "runs": "list the runs in a folder, see whether each is whole, and set aside what is not",
    "simulate": "find a short string on which two models do what they do on a long one",
    "sweep": "train the runs that a Python file lists, and measure them far beyond",
    "tasks": "list the tasks, their knobs, and what theory says of each",
    "train": "train one model on a task, and measure it at lengths that it was not trained at",
}

SPINS = "10000"
"""Threads of PyTorch that wait for each other look so often before they sleep (OpenMP's own choice: 300,000).
Alone a command is as fast, and beside two busy processes on two cores it takes half of the time or less."""

MISTAKE = 2
INTERRUPTED = 130


_typed: ContextVar[str | None] = ContextVar("typed", default=None)


def typed() -> str | None:
    """The command line that is being run, as it would be typed again; None outside of ``main``."""
    return _typed.get()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0 (or what the command says of what it found), or 2 after one line
    on stderr for a mistake of the user.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    _typed.set(shlex.join(["lengthwise", *given]))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files need not be text
    with warnings.catch_warnings():
        warnings.showwarning = _show
        return _status(given)


def _status(given: list[str]) -> int:
    status = 0
    try:
        if given in (["--version"], ["-V"]):
            print(f"lengthwise {__version__}")
        else:
            status = _run(given)
        sys.stdout.flush()  # what cannot be written is told, not found by the interpreter as it ends
    except (ValueError, OSError) as error:
        if os.environ.get("LENGTHWISE_TRACEBACK"):
            raise
        said = one_line(error)
        if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
            said = f"cannot write what is to be printed: {error.strerror}"
        _tell(said)
        return MISTAKE
    except KeyboardInterrupt:
        _tell("stopped; runs that were finished are kept")
        return INTERRUPTED
    return status


def _tell(said: str) -> None:
    """One line on stderr, if that can be written to."""
    with contextlib.suppress(OSError):
        print(f"lengthwise: {said}", file=sys.stderr, flush=True)


def _show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Our own warnings are lines without a place in the code; others stay as they are."""
    if category.__module__.startswith("lengthwise."):
        _tell(one_line(message))
    else:
        print(warnings.formatwarning(message, category, *where[:2]), end="", file=sys.stderr)


def entry() -> NoReturn:
    """The console script."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)  # read when PyTorch is loaded, by the command
    status = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # told already: the interpreter, which would try again, must not
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(status)


def _run(given: list[str]) -> int:
    """Run the command that the words begin with: one word, or two where the first names a group."""
    group, words, commands, about = "lengthwise.cli", ["lengthwise"], COMMANDS, ABOUT
    while True:
        if not given or given[0] in ("--help", "-h"):
            print(_help(" ".join(words), commands, about))
            return 0
        module = _module(group, given[0], commands)
        words, given = [*words, given[0]], given[1:]
        if not hasattr(module, "COMMANDS"):
            return module.run(_parse(module, " ".join(words), given)) or 0
        group, commands, about = module.__name__, module.COMMANDS, module.__doc__ or ""


ABOUT = "How long must the training sequences be, so that a transformer keeps working on longer ones?"


def _help(words: str, commands: dict[str, str], about: str) -> str:
    return "\n".join(
        [
            f"usage: {words} COMMAND [--help] [flags]",
            "",
            about,
            "",
            *(f"  {name:<12}{told}" for name, told in commands.items()),
            "",
            f"{words} COMMAND --help tells the flags of a command; lengthwise --version, the version.",
        ]
    )


def _module(group: str, name: str, commands: dict[str, str]) -> ModuleType:
    if name not in commands:
        kind = "flag" if name.startswith("-") else "command"
        raise ValueError(f"there is no {kind} {name!r}{nearest(name, list(commands))}")
    return importlib.import_module(f"{group}.{name}")


def _parse(module: ModuleType, words: str, arguments: list[str]) -> Any:
    """The command's dataclass, filled from its flags by tyro, whose boxed errors become one line. A command
    whose flags depend on its first argument has a function ``flags`` in place of the dataclass.
    """
    import tyro

    kind = module.flags(arguments) if hasattr(module, "flags") else module.Command
    boxed = io.StringIO()
    try:
        with contextlib.redirect_stderr(boxed):
            command, unknown = tyro.cli(
                kind,
                prog=words,
                description=module.__doc__,
                args=arguments,
                return_unknown_args=True,
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise ValueError(f"{_unboxed(boxed.getvalue())} ({words} --help tells the flags)") from None
    if unknown:
        flags = [
            f"--{field.name.replace('_', '-')}"
            for field in fields(kind)
            if tyro.conf.Positional not in getattr(field.type, "__metadata__", ())
        ]
        raise ValueError(f"{words} has no flag {unknown[0]!r}{nearest(unknown[0], flags)}")
    return command


def _unboxed(text: str) -> str:
    """The message of a boxed error: the first paragraph below its heading.

    The heading stands in the upper edge of a box or, where the terminal cannot draw one, above a rule.
    """
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    paragraphs = [""]
    for row in text.splitlines():
        inside = row.strip("│ ")
        if row.strip().startswith(("╭", "╰")) or (inside and set(inside) <= {"─", "-"}):
            paragraphs.append("")
        else:
            paragraphs[-1] += f" {inside}"
    below = [paragraph.strip() for paragraph in paragraphs[1:] if paragraph.strip()]
    return one_line(below[0] if below else text)
