"""Watches what the process does while an input is in: an audit hook, a clock, limits on memory and files.

Python tells an audit hook of every file that is opened, every process that is started and all code that is
compiled or run. Files that libraries write by themselves (Parquet, safetensors) are not told: the folders
around the one that may be written to are listed before and after instead.
"""

import os
import resource
import signal
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

MEMORY = 3 * 2**30
"""So many bytes of address space may be asked for beyond what the libraries have."""

FILE = 2**28
"""No file that is written may be larger."""

WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    "os.chmod": [(0, 2)],
    "os.chown": [(0, 3)],
    "os.link": [(1, 3)],
    "os.mkdir": [(0, 2)],
    "os.remove": [(0, 1)],
    "os.rename": [(0, 2), (1, 3)],
    "os.rmdir": [(0, 1)],
    "os.symlink": [(1, 2)],
    "os.truncate": [(0, None)],
    "os.utime": [(0, 3)],
}
"""Events that change files: where their paths, and the folders that these are relative to, stand."""

REFUSING = ("/dev/null", "/dev/full", "/proc")
"""Paths at which the system itself lets nobody make a file."""

PROCESSES = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect")
CODE = ("exec", "compile", "pickle.find_class", "code.__new__", "ctypes.dlopen")
OWN_CODE = tuple(
    {os.path.realpath(folder) for folder in (sysconfig.get_path("stdlib"), sys.prefix, sys.base_prefix)}
    | {str(Path(__file__).resolve().parents[2] / "src")}
)


class Forbidden(BaseException):
    """What must not happen was about to; not an ``Exception``, so that nobody catches it by chance."""


class Hang(BaseException):
    """An input took longer than it may."""


class _Watch:
    folder: str | None = None
    no_code = False
    seen: list[str]


_watch = _Watch()


def install() -> None:
    """Add the hook to this process; it cannot be taken away, but sleeps outside ``watching``."""
    _watch.seen = []
    sys.addaudithook(_hook)


@contextmanager
def watching(folder: Path, seconds: float) -> Iterator[None]:
    """Forbid to write outside a folder, to start processes, and to take longer than so many seconds."""

    def over(number: int, frame: FrameType | None) -> NoReturn:
        raise Hang(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, over)
    _watch.folder, _watch.seen = os.path.realpath(folder), []
    around = _around(folder)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        _watch.folder = None
    if _watch.seen:
        raise Forbidden(_watch.seen[0])
    if _around(folder) != around:
        raise Forbidden(f"files beside the output folder: {sorted(_around(folder) ^ around)}")


@contextmanager
def no_code() -> Iterator[None]:
    """Forbid that code is made or run, but for that of modules and of data classes."""
    _watch.no_code = True
    try:
        yield
    finally:
        _watch.no_code = False


def limit_memory() -> None:
    """Bound the memory and the files of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))


def _around(folder: Path) -> set[str]:
    """What lies in the two folders above: a path that climbs out of the folder ends there."""
    parents = list(folder.resolve().parents)[:2]
    return {f"{parent}/{name}" for parent in parents for name in os.listdir(parent)}


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watch.folder is None:
        return
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, str | bytes | os.PathLike) and isinstance(flags, int) and flags & WRITE:
            _check(event, path, None)
    elif event in CHANGES:
        for place, base in CHANGES[event]:
            _check(event, arguments[place], arguments[base] if base is not None else None)
    elif event in PROCESSES:
        _forbid(f"{event} {arguments!r:.200}")
    elif _watch.no_code and event in CODE and not _own(event, arguments):
        _forbid(f"code: {event} {arguments!r:.200}")


def _check(event: str, path: Any, base: Any) -> None:
    """Forbid a change unless it is inside the folder."""
    if isinstance(path, int):
        return
    name = os.fsdecode(path)
    if isinstance(base, int) and base >= 0:
        name = os.path.join(os.readlink(f"/proc/self/fd/{base}"), name)
    parent, last = os.path.split(os.path.abspath(name))
    whole = os.path.join(os.path.realpath(parent), last)
    folder = _watch.folder
    if whole.startswith(REFUSING):
        return
    if folder is not None and whole != folder and not whole.startswith(f"{folder}/"):
        _forbid(f"{event} outside the output folder: {name!r}")


def _own(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether code is a module's that is loaded late, or is made by ``dataclasses`` and ``collections``."""
    frame: FrameType | None = sys._getframe(2)
    if frame is not None and frame.f_globals.get("__name__") in ("dataclasses", "collections"):
        return True
    if event == "exec":
        return os.path.realpath(arguments[0].co_filename).startswith(OWN_CODE)
    return False


def _forbid(what: str) -> NoReturn:
    _watch.seen.append(what)
    raise Forbidden(what)
