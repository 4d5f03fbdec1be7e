"""Locks between processes, of one machine or of several that share a file system: files, held by ``flock``.

A lock ends with its process, however that ends, so nothing is ever stuck; whether somebody is alive is asked
of the lock, never of a process number or a time.
"""

import errno
import fcntl
import os
from pathlib import Path

NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""What a file system answers that has no locks."""


def taken(path: Path, *, wait: bool = False, needed: bool = True) -> int | None:
    """The lock file at this path, made if it is not there, as a descriptor that holds it alone; None if
    somebody else does, unless one waits. Where the file system has no locks that is an error or, if they are
    not ``needed``, the descriptor of a file that nobody holds.
    """
    while True:
        opened = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            held = locked(opened, path, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), needed)
            # Who held the file before may have removed it or put it elsewhere: then this lock is of nothing.
            current = held and _is_at(opened, path)
        except BaseException:
            os.close(opened)
            raise
        if current:
            return opened
        os.close(opened)
        if not held:
            return None


def released(lock: int | None) -> None:
    """Give a lock up and leave its file."""
    if lock is not None:
        os.close(lock)


def removed(path: Path, lock: int) -> None:
    """Give a lock up and remove its file: in this order, or another process's lock would lose its file."""
    try:
        path.unlink(missing_ok=True)
    finally:
        os.close(lock)


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock file at this path alone. Nothing is written, and nothing made."""
    try:
        opened = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not locked(opened, path, fcntl.LOCK_SH | fcntl.LOCK_NB)
    finally:
        os.close(opened)


def locked(opened: int, path: Path, kind: int, needed: bool = True) -> bool:
    """Lock an open file; False if that would have to wait."""
    try:
        fcntl.flock(opened, kind)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        if needed:
            raise OSError(
                f"the file system of {path.parent} has no locks (flock), without which processes could spoil "
                f"each other's work: use a folder on another one"
            ) from error
    return True


def _is_at(opened: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(opened), os.stat(path))
    except FileNotFoundError:
        return False
