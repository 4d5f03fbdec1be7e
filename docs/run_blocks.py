"""Run the code blocks of the README and of the documentation, page by page.

::

    python docs/run_blocks.py                     # every block of every page, in full: what make docs does
    python docs/run_blocks.py docs/tutorial.md    # of one page
    python docs/run_blocks.py --show PAGE         # and print what every command prints
    python docs/run_blocks.py --figures PAGE      # and put the figures that it makes into the page

A page runs from top to bottom in an empty folder that holds ``examples/`` and ``docs/`` as a clone does. Its
``python`` blocks share one namespace: a line that ends in ``# => VALUE`` must have that value. Of its
``console`` blocks every command runs, and where lines follow a command, it must print them. ``...`` stands
for anything.

A comment before a block or an image says what is done with it otherwise:

``<!-- not run: REASON -->``
    It is not run; REASON is one of ``REASONS``.
``<!-- docs build: WHY -->``
    It takes too long for the tests: ``make docs`` runs it.
``<!-- in tests: --steps 20 -->``, for Python ``<!-- in tests: steps=20 -->``
    The tests run it with these flags, or train with these settings, and do not look at what it prints.
``<!-- numbers within a factor 2 -->``, ``<!-- docs build, numbers within a factor 2: WHY -->``
    It trains: another processor rounds otherwise, so its numbers need only be about those of the page.
``<!-- output -->``
    It is what the block before printed.
``<!-- file: NAME -->``
    It is a file of this name.
``<!-- figure: PATH -->``
    The image is the figure that the blocks before have written to PATH.
"""

import argparse
import ast
import contextlib
import glob
import io
import linecache
import os
import re
import runpy
import shlex
import shutil
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lengthwise as lw
from lengthwise import cli

ROOT = Path(__file__).resolve().parents[1]

REASONS = {
    "sets up": "it installs, clones or tests the project itself, as who runs the blocks has done",
    "GPU": "it needs a GPU",
    "cluster": "it needs several machines",
    "paper scale": "it takes hours, or a GPU",
    "server": "it serves a page until it is interrupted; its own tests open it",
    "drawing": "it is a picture, a message or a grammar in characters, not code",
    "citation": "it is for a bibliography",
}
"""Why a block may not be run."""

LOOSE = "numbers within a factor 2"
SLOW = ("docs build", f"docs build, {LOOSE}")
MARKS = ("not run", *SLOW, LOOSE, "in tests", "output", "file", "figure")
WIDTH = "100"
"""The columns of the terminal that commands print to."""

_FENCE = re.compile(r"^( *)(`{3,})(.*)$")
_MARK = re.compile(rf"^ *<!-- ({'|'.join(MARKS)})(?:: (.*?))? -->$")
_IMAGE = re.compile(r"^ *!\[.*\]\((.*)\)$")
_VALUE = re.compile(r"# => (.*)$")
_VARIABLE = re.compile(r"[A-Z_]+=.*")


@dataclass(frozen=True)
class Block:
    """A fenced block or a marked image of a page, with the mark before it."""

    page: Path
    line: int
    language: str
    text: str
    mark: str = ""
    told: str = ""

    @property
    def slow(self) -> bool:
        """Whether it is left to the docs build."""
        return self.mark.startswith("docs build")

    @property
    def loose(self) -> bool:
        """Whether its numbers depend on the machine."""
        return self.mark.endswith(LOOSE)

    @property
    def place(self) -> str:
        """Where it stands, as a person looks for it."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass
class Ran:
    """What running a page did."""

    printed: list[tuple[str, str]] = field(default_factory=list)
    """Every command, and what it printed."""
    compared: int = 0
    """Values and outputs that were held against the page."""
    left: list[Block] = field(default_factory=list)
    """Blocks that were left to the docs build."""


def pages() -> list[Path]:
    """The README, and every page of the documentation that a person wrote."""
    written = [
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if not {"_build", "gallery"} & set(page.relative_to(ROOT).parts)
    ]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *written]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page but for Sphinx's directives, and its marked images."""
    found, mark, opened, inside = [], ("", ""), None, []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = _FENCE.match(line)
        if opened:
            ticks, language, start = opened
            if fence and fence[2] == ticks and not fence[3].strip():
                if not language.startswith("{"):
                    text = textwrap.dedent("\n".join(inside)) + "\n"
                    found.append(Block(page, start, language, text, *mark))
                mark, opened, inside = ("", ""), None, []
            else:
                inside.append(line)
        elif fence:
            opened = (fence[2], fence[3].strip(), number)
        elif marked := _MARK.match(line):
            mark = (marked[1], marked[2] or "")
        elif image := _IMAGE.match(line):
            if mark[0]:
                found.append(Block(page, number, "image", image[1], *mark))
            mark = ("", "")
        elif line.strip() and mark[0]:
            raise ValueError(f"{page.name}:{number}: a mark stands right before a block or an image")
    if opened:
        raise ValueError(f"{page.name}:{opened[2]}: this block has no end")
    return found


def run_page(page: Path, *, full: bool, show: bool = False, figures: bool = False) -> Ran:
    """Run the blocks of a page; ``AssertionError``, with its place, where one fails or shows something else.
    What is not full is what the tests run.
    """
    ran, names, printed, loose = Ran(), {"__name__": "__main__"}, "", False
    todo = blocks(page)
    with _folder() as folder:
        for block in todo:
            if block.slow and not full:
                ran.left.append(block)
                printed = None
            elif block.mark == "not run":
                printed = None
            elif block.mark == "file":
                Path(block.told).parent.mkdir(parents=True, exist_ok=True)
                Path(block.told).write_text(block.text)
            elif block.language == "image":
                _image(block, folder, ran, replace=figures)
            elif block.mark == "output":
                if printed is not None:
                    _agree(block.text, printed, block.place, loose)
                    ran.compared += 1
            elif block.language == "python":
                printed, loose = _python(block, names, ran, full), block.loose
            elif block.language == "console":
                printed, loose = _console(block, ran, full), block.loose
            else:
                raise AssertionError(f"{block.place}: nothing says how to run a block of {block.language!r}")
            if show and printed:
                print(f"--- {block.place}\n{printed}")
    return ran


def matches(wanted: str, given: str, loose: bool = False) -> bool:
    """Whether a text is as wanted, but for spaces at ends of lines, where ``...`` stands for anything.
    Loosely, each number need only be within a factor 2, and what pads it may differ.
    """
    wanted, given = _trimmed(wanted), _trimmed(given)
    if not loose:
        return re.fullmatch(".*?".join(map(re.escape, wanted.split("..."))), given, re.DOTALL) is not None
    pattern = ""
    for part in re.split(rf"(\.\.\.|\s+|{_NUMBER})", wanted):
        if part == "...":
            pattern += ".*?"
        elif part.isspace():
            pattern += r"\s+"
        elif re.fullmatch(_NUMBER, part):
            pattern += rf"({_NUMBER})"
        else:
            pattern += re.escape(part)
    found = re.fullmatch(pattern, given, re.DOTALL)
    numbers = re.findall(_NUMBER, wanted.replace("...", " "))
    return found is not None and all(
        abs(a - b) <= max(abs(a), abs(b)) / 2
        for a, b in zip(map(_number, numbers), map(_number, found.groups()), strict=True)
    )


_NUMBER = r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])"


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def _agree(wanted: str, given: str, place: str, loose: bool = False) -> None:
    if not matches(wanted, given, loose):
        raise AssertionError(f"{place}: the page shows\n{wanted.rstrip()}\nand it is\n{given.rstrip()}")


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Work in a new folder that holds examples and documentation, with a terminal of a fixed width."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for part in ("examples", "docs"):
            (folder / part).symlink_to(ROOT / part)
        os.chdir(folder)
        try:
            with _environment("COLUMNS", WIDTH):
                yield folder
        finally:
            os.chdir(before)


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """With this variable of the environment."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def _python(block: Block, names: dict[str, Any], ran: Ran, full: bool) -> str | None:
    """Run a block statement by statement; what it printed, or None if it was not run in full."""
    short = {} if full or block.mark != "in tests" else _settings(block)
    # Classes and functions are looked up in their source by dataclasses, PyTorch and tracebacks.
    linecache.cache[block.place] = (len(block.text), None, block.text.splitlines(True), block.place)
    tree, lines = ast.parse(block.text, block.place), block.text.splitlines()
    out = io.StringIO()
    with contextlib.redirect_stdout(out), _trained_with(short):
        for statement in tree.body:
            line = lines[(statement.end_lineno or 1) - 1]
            try:
                if not isinstance(statement, ast.Expr):
                    exec(compile(ast.Module([statement], []), block.place, "exec"), names)
                    continue
                value = eval(compile(ast.Expression(statement.value), block.place, "eval"), names)
            except Exception as error:
                at = f"{block.page.relative_to(ROOT)}:{block.line + statement.lineno}"
                raise AssertionError(f"{at}: {type(error).__name__}: {error}") from error
            if (wanted := _VALUE.search(line)) and not short:
                place = f"{block.page.relative_to(ROOT)}:{block.line + (statement.end_lineno or 1)}"
                _agree(wanted[1], _shown(value), place, block.loose)
                ran.compared += 1
    return None if short else out.getvalue()


def _shown(value: object) -> str:
    """A value as a page shows it: several without the parentheses around them."""
    return repr(value)[1:-1].rstrip(",") if type(value) is tuple else repr(value)


def _settings(block: Block) -> dict[str, int]:
    return {name: int(value) for name, value in (pair.split("=") for pair in block.told.split())}


@contextlib.contextmanager
def _trained_with(settings: dict[str, int]) -> Iterator[None]:
    """Every training has these settings, whatever it is told."""
    whole = {kind: kind.__init__ for kind in (lw.Training, lw.DecoderTraining)} if settings else {}
    for kind, begin in whole.items():
        kind.__init__ = lambda self, _begin=begin, **told: _begin(self, **told | settings)
    try:
        yield
    finally:
        for kind, begin in whole.items():
            kind.__init__ = begin


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that the page shows."""
    found: list[tuple[str, str]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (found[-1][0][:-1].rstrip() + " " + line.strip(), "")
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line + "\n")
        elif line.strip():
            raise AssertionError(f"{block.place}: a command begins with '$ '")
    return found


def _console(block: Block, ran: Ran, full: bool) -> str | None:
    """Run the commands of a block; what the last one printed, or None if it was not run in full."""
    short = [] if full or block.mark != "in tests" else shlex.split(block.told)
    last = ""
    for command, wanted in commands(block):
        words = [path for word in shlex.split(command, comments=True) for path in _expanded(word)]
        last = run_command(_shortened(words, short), block.place)
        ran.printed.append((command, last))
        if wanted and not short:
            _agree(wanted, last, block.place, block.loose)
            ran.compared += 1
    return None if short else last


def _expanded(word: str) -> list[str]:
    """The paths that a word stands for in a shell, or the word if there are none."""
    return sorted(glob.glob(word)) or [word]


def _shortened(words: list[str], flags: list[str]) -> list[str]:
    """The words of a command with these flags in place of those of the same names."""
    kept = []
    names = {word for word in flags if word.startswith("--")}
    for word in words:
        if word in names:
            kept.append(None)
        elif not (kept and kept[-1] is None) or word.startswith("--"):
            kept.append(word)
    return [word for word in kept if word is not None] + flags


def run_command(words: list[str], place: str) -> str:
    """What a command prints; it must end well. Before it may stand variables, as ``OMP_NUM_THREADS=1``."""
    if _VARIABLE.fullmatch(words[0]):
        with _environment(*words[0].split("=", 1)):
            return run_command(words[1:], place)
    if words == ["make", "demo"]:  # in the environment that is there
        words = ["lengthwise", "demo"]
    out, err = io.StringIO(), io.StringIO()
    status: object = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        if words[0] == "lengthwise":
            try:
                status = cli.main(words[1:])
            except SystemExit as stop:
                status = stop.code
        elif words[0] == "python" and len(words) == 2:
            runpy.run_path(words[1], run_name="__main__")
        else:
            raise AssertionError(f"{place}: nothing says how to run {words[0]!r}")
    if status:
        raise AssertionError(f"{place}: {shlex.join(words)} ends with {status}: {err.getvalue().strip()}")
    return out.getvalue()


def _image(block: Block, folder: Path, ran: Ran, *, replace: bool) -> None:
    """A figure of the page was made by it, and is there."""
    made, shown = folder / block.told, block.page.parent / block.text
    if not made.is_file() and ran.left:
        return
    if not made.is_file():
        raise AssertionError(f"{block.place}: the blocks before have not made {block.told}")
    if replace:
        shown.parent.mkdir(exist_ok=True)
        shutil.copyfile(made, shown)
    if not shown.is_file():
        raise AssertionError(f"{block.place}: {block.text} is missing (python docs/run_blocks.py --figures)")
    ran.compared += 1


def main() -> None:
    """Run pages in full, and say for each how long it took."""
    parser = argparse.ArgumentParser(description="Run the code blocks of the documentation.")
    parser.add_argument("pages", nargs="*", type=Path, help="these alone (none: all)")
    parser.add_argument("--show", action="store_true", help="print what the blocks print")
    parser.add_argument("--figures", action="store_true", help="put the figures made into the pages")
    told = parser.parse_args()
    failed = 0
    for page in [page.resolve() for page in told.pages] or pages():
        if not blocks(page):
            continue
        begun = time.perf_counter()
        try:
            ran = run_page(page, full=True, show=told.show, figures=told.figures)
        except AssertionError as error:
            failed += 1
            print(f"FAILED {error}", file=sys.stderr, flush=True)
            continue
        seconds = time.perf_counter() - begun
        about = f"{len(ran.printed)} commands, {ran.compared} values and outputs as shown"
        print(f"{page.relative_to(ROOT)}: {about}, {seconds:.0f} s", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
