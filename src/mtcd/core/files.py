"""Atomic writes of results, which never leave half a file or overwrite other files."""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

from mtcd.core import features
from mtcd.core.errors import ConfigError, MtcdError, listing, raised_as, system_reason

WRITING = ".mtcd-"
"""The prefix of what is being written; a killed process may leave it behind."""
MARKER = "run.json"
WEIGHTS = "model.safetensors"
CHECKPOINT = "checkpoint.safetensors"
"""Of a split network."""
LINEAR_CHECKPOINT = "checkpoint.npz"
CHECKPOINTS = (CHECKPOINT, LINEAR_CHECKPOINT)
PREPARATION = "preparation.json"
COEFFICIENTS = "coefficients.csv"
PARTS = "parts.npz"
"""The models of the parties of an additive model."""
IMPORTANCE = "importance.csv"
RUN_FILES = frozenset(
    {
        MARKER,
        COEFFICIENTS,
        "config.yaml",
        "history.csv",
        "ledger.json",
        "parameters.npz",
        PARTS,
        IMPORTANCE,
        PREPARATION,
        WEIGHTS,
        *CHECKPOINTS,
    }
)


def run_files() -> frozenset[str]:
    """The names of all files that the folder of a run may hold, those of features among them."""
    # Without those of features, a folder that one of them wrote to would be refused as one with
    # other files.
    of_features = (name for feature in features.every() for name in feature.run_files)
    return RUN_FILES.union(of_features)


def check_folder(target: Path, known: Collection[str] | None = None) -> None:
    """Reject, before any work is done, a folder that cannot be written or that holds other files.

    Parameters
    ----------
    target
        The folder; it need not exist.
    known
        The names of files that may be there, since they will be replaced. By default those of a
        run.

    Raises
    ------
    ConfigError
        With the names of the first other files, or why the folder cannot be used.
    """
    try:
        # The target of a link: what is beside it must be on its disk.
        target = target.resolve()
        if target.exists():
            _check_has_no_other_files(target, run_files() if known is None else known)
    except OSError as error:
        raise ConfigError(
            f"{target} cannot be used ({error.strerror}): choose another folder."
        ) from None

    check_writable(target)


def _check_has_no_other_files(target: Path, known: Collection[str]) -> None:
    if not target.is_dir():
        raise ConfigError(f"{target} is a file: choose another folder for the run.")

    # Files that are being written were left behind by a process that was killed.
    found = {path.name for path in target.iterdir() if not path.name.startswith(WRITING)}
    others = sorted(found.difference(known))
    if others:
        raise ConfigError(
            f"{target} holds other files ({listing(others, 3)}): choose an empty or a new folder."
        )


def check_unfinished(target: Path, resume: bool) -> None:
    """Reject overwriting an unfinished training that can be resumed, and resuming without a
    checkpoint."""
    there = [target / name for name in CHECKPOINTS if (target / name).exists()]
    if not resume and not all(_ended(target, checkpoint) for checkpoint in there):
        raise ConfigError(
            f"{target} holds a training that was not finished: go on with it (--resume), replace "
            "it (--force), or choose another folder."
        )
    if resume and not there:
        raise ConfigError(f"There is no checkpoint in {target} to go on from: leave --resume out.")


def _ended(target: Path, checkpoint: Path) -> bool:
    """Whether the training of the checkpoint in a folder ended as asked; a later one may have begun
    since."""
    # Ended by a limit or by convergence; an interrupted one is worth going on with.
    if _status(target / MARKER) in (None, "interrupted"):
        return False

    return checkpoint.stat().st_mtime <= (target / MARKER).stat().st_mtime


def _status(marker: Path) -> str | None:
    """How a run ended, if it did."""
    try:
        status: str | None = json.loads(marker.read_text())["status"]
        return status
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_writable(target: Path) -> None:
    """Reject a path at which no folder can be created."""
    try:
        ground = target.absolute()
        while not ground.exists():
            ground = ground.parent

        # Permissions, quotas and read-only disks: only trying tells.
        with tempfile.TemporaryDirectory(dir=ground, prefix=WRITING):
            pass
    except OSError as error:
        raise ConfigError(
            f"{target} cannot be written ({error.strerror}): choose another folder."
        ) from None


@contextmanager
def fresh_folder(target: Path, stays: Collection[str] = ()) -> Iterator[Path]:
    """A folder to write into; at the end, if all went well, its files become those of ``target``.

    What was there before is gone then, but for the files that stay. The marker goes first and comes
    last, so that a folder with a marker is always a complete run.

    Parameters
    ----------
    target
        The folder of the run; it is created if it is not there.
    stays
        The names of files that are not removed if no new one was written.

    Yields
    ------
    Path
        An empty folder beside ``target``, on the same disk, so that files can be moved atomically.

    Raises
    ------
    ConfigError
        If ``target`` holds other files.
    MtcdError
        If the files cannot be written.
    """
    check_folder(target)
    target = target.resolve()
    writing = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        writing = Path(tempfile.mkdtemp(dir=target.parent, prefix=WRITING))
        yield writing

        target.mkdir(exist_ok=True)
        for left in target.glob(f"{WRITING}*"):
            shutil.rmtree(left, ignore_errors=True)

        # From here to the last file the folder is no run: a reader in between finds no marker.
        (target / MARKER).unlink(missing_ok=True)
        for name in [*(run_files() - {MARKER}), MARKER]:
            if (writing / name).exists():
                os.replace(writing / name, target / name)
            elif name not in stays:
                # Of an earlier run, such as its coefficients: they would pass for those of this
                # one.
                (target / name).unlink(missing_ok=True)
    except OSError as error:
        raise MtcdError(
            f"The run could not be written to {target}: {system_reason(error)}."
        ) from None
    finally:
        if writing is not None:
            shutil.rmtree(writing, ignore_errors=True)


def plain(value: Any) -> Any:
    """A number of NumPy as Python's, which JSON does not know: the ``default`` of ``json.dumps``."""
    # It takes a tenth of a second to import, and few commands write numbers of NumPy.
    from numpy import generic

    if isinstance(value, generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def read_zip(path: Path) -> io.BytesIO:
    """The content of a file of arrays, for ``numpy.load``.

    Raises
    ------
    ValueError
        If it is no zip file. NumPy would take it for a pickle, and say how to load that.
    """
    content = io.BytesIO(path.read_bytes())
    if not is_zipfile(content):
        raise ValueError(f"{path.name} is not a file of arrays")

    # is_zipfile leaves the position elsewhere in files of 65,536 arrays or more.
    content.seek(0)
    return content


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to; at the end, if all went well, that file replaces the one at ``path``."""
    with raised_as(f"{path} could not be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=WRITING) as folder:
            writing = Path(folder) / path.name
            yield writing
            os.replace(writing, path)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write the content atomically; if this fails, the old file stays."""
    with whole_file(path) as writing:
        if isinstance(content, str):
            content = content.encode()
        writing.write_bytes(content)


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write these files, each atomically, and the folder that they are in; an error says what
    cannot be written."""
    for path, content in files.items():
        try:
            path.parent.mkdir(exist_ok=True)
            write_whole(path, content)
        except OSError as error:
            raise MtcdError(
                f"{path} cannot be written ({system_reason(error)}): choose another place."
            ) from None


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
