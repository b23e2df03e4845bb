"""Small files that several processes change, one after the other, and that are never half
written."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mtcd.core.files import WRITING


@contextmanager
def locked(path: Path, mode: int) -> Iterator[bytes]:
    """The content of a file that no other process changes meanwhile; it is made, if need be.

    Whoever changes it replaces it: a lock on a file that was replaced while this process waited for
    it is worthless.

    Parameters
    ----------
    path
        The file.
    mode
        Its mode, if it is made.
    """
    while True:
        # Opened anew at each attempt: whoever held the lock may have replaced the file.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, mode)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                # The file at this path now, and the one that is locked: the same, or the lock
                # guards nothing.
                current = os.path.samestat(os.fstat(descriptor), os.stat(path))
            except FileNotFoundError:
                current = False
            if current:
                yield path.read_bytes()
                return
        finally:
            # This ends the lock too.
            os.close(descriptor)


def replaced(path: Path, content: bytes, mode: int) -> None:
    """Replace a file, by one that is on disk before it counts.

    Parameters
    ----------
    path
        The file, which this process has locked.
    content
        What it holds from now on.
    mode
        Its mode.
    """
    # The same name for everybody: only the process with the lock writes it.
    aside = path.with_name(f"{WRITING}{path.name}")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    # Atomic: a reader without the lock sees the old content or the new one.
    os.replace(aside, path)
