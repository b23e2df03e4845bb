"""Writing results so that nothing is ever half-written."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mtcd.errors import ConfigError

MARKER = "run.json"


def check_folder(target: Path) -> None:
    """Refuse, before any work is done, a folder that could not be written or that holds something else."""
    if target.exists() and not target.is_dir():
        raise ConfigError(f"{target} is a file: choose another folder for the run.")
    if target.is_dir() and any(target.iterdir()) and not (target / MARKER).exists():
        raise ConfigError(f"{target} holds files that are not a run: choose an empty or a new folder.")
    ground = next(parent for parent in target.absolute().parents if parent.exists())
    try:
        with tempfile.TemporaryDirectory(dir=ground, prefix=".mtcd-"):
            pass
    except OSError as error:
        raise ConfigError(f"{target} cannot be written ({error.strerror}): choose another folder.") from None


@contextmanager
def fresh_folder(target: Path) -> Iterator[Path]:
    """A folder to write into, which takes the place of ``target`` at the end if all went well."""
    check_folder(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    writing = Path(tempfile.mkdtemp(dir=target.parent, prefix=".mtcd-"))
    try:
        yield writing
        writing.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        writing.rename(target)
    finally:
        shutil.rmtree(writing, ignore_errors=True)
