"""Files that only their owner may read."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mtcd.core.errors import ConfigError, raised_as, system_reason

PRIVATE = frozenset({"key.pem", "ca.key", "parties.key"})


def write_files(folder: Path, files: Mapping[str, bytes], private: bool = False) -> None:
    """Replace files, in order. All are written to a temporary folder first, so that a full disk
    changes nothing.

    Files of ``PRIVATE`` names, and all if ``private``, are readable by their owner only.
    """
    with (
        raised_as(f"{folder} could not be written"),
        tempfile.TemporaryDirectory(dir=folder, prefix=".mtcd-") as aside,
    ):
        for name, content in files.items():
            _create(Path(aside) / name, content, private or name in PRIVATE)
        # All are replaced only after all were written. A crash in this loop leaves a mixture,
        # so the order of `files` puts last what makes the rest valid.
        for name in files:
            os.replace(Path(aside) / name, folder / name)


def _create(path: Path, content: bytes, private: bool) -> None:
    """Create a file; a private one has mode 600 from the start, whatever the umask."""
    # O_EXCL: nobody can have put a link or a readable file here before.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o644)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def read_file(path: Path, what: str) -> bytes:
    """Read a file of a bundle; a private one must be readable by its owner only."""
    try:
        # Windows has no such modes.
        if (
            path.name in PRIVATE
            and os.name == "posix"
            and (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077
        ):
            raise ConfigError(
                f"Others can read {path} (its mode is {mode:o}), and it must stay with its owner. "
                f"Run: chmod 600 {path}"
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{path.parent} is not {what}: there is no {path.name} in it.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {system_reason(error)}.") from None
