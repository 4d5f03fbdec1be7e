"""Folders that are there, and files that are complete or absent."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lengthwise._messages import one_line, printable


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name to write to, which takes the place of ``path`` once all is written."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise OSError(f"cannot write {one_line(path)}: {error.strerror or one_line(error)}") from error
    finally:
        temporary.unlink(missing_ok=True)


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
