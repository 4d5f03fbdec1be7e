"""Folders that are there, files that are complete or absent, and what is kept through a power cut."""

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lengthwise._locks import released, taken
from lengthwise._messages import one_line, printable


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name to write to, which takes the place of ``path`` once all is written. Of processes that
    replace the same file at the same time, each waits for its turn.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    lock = None
    try:
        lock = taken(temporary, wait=True, needed=False)
        try:
            yield temporary
            sync(temporary)
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        sync(path.parent)
    except OSError as error:
        raise OSError(f"cannot write {one_line(path)}: {error.strerror or one_line(error)}") from error
    finally:
        released(lock)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, where they do not exist."""
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        # Python could, but libraries that write there could not.
        raise ValueError(f"the name of the folder {printable(folder)} is not UTF-8: take another") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"cannot make the folder {one_line(folder)}: {error.strerror}") from error


def write_file(path: Path, content: bytes) -> None:
    """Write a new file, so that a power cut does not take it back once its folder is synced."""
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync(path: Path) -> None:
    """Bring a file's content, or a folder's names, to the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in CANNOT_SYNC:
            raise
    finally:
        os.close(opened)


CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
"""What file systems answer that cannot sync a folder."""
