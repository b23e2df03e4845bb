"""Atomic writes of results, which never leave half a file or overwrite other files."""

from __future__ import annotations

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
from mtcd.core.errors import ConfigError, MtcdError, listing

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
    of_features = (name for feature in features.every() for name in feature.run_files)
    return RUN_FILES.union(of_features)


def check_folder(target: Path) -> None:
    """Reject, before any work is done, a folder that cannot be written or that holds other
    files."""
    try:
        target = target.resolve()
        if target.exists() and not target.is_dir():
            raise ConfigError(f"{target} is a file: choose another folder for the run.")
        found = {path.name for path in target.iterdir()} if target.exists() else set()
        others = sorted(name for name in found - run_files() if not name.startswith(WRITING))
        if others:
            raise ConfigError(
                f"{target} holds other files ({listing(others, 3)}): choose an empty or a new "
                f"folder."
            )
    except OSError as error:
        raise ConfigError(
            f"{target} cannot be used ({error.strerror}): choose another folder."
        ) from None
    check_writable(target)


def check_unfinished(target: Path, resume: bool) -> None:
    """Reject overwriting an unfinished training that can be resumed, and resuming without a
    checkpoint."""
    there = [target / name for name in CHECKPOINTS if (target / name).exists()]
    if not resume and not all(_ended(target, checkpoint) for checkpoint in there):
        raise ConfigError(
            f"{target} holds a training that was not finished: go on with it (--resume), replace "
            f"it (--force), or "
            "choose another folder."
        )
    if resume and not there:
        raise ConfigError(f"There is no checkpoint in {target} to go on from: leave --resume out.")


def _ended(target: Path, checkpoint: Path) -> bool:
    """Whether the training of the checkpoint in a folder ended as asked; a later one may have begun
    since."""
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
        ground = next(
            place for place in (target.absolute(), *target.absolute().parents) if place.exists()
        )
        with tempfile.TemporaryDirectory(dir=ground, prefix=WRITING):
            pass
    except OSError as error:
        raise ConfigError(
            f"{target} cannot be written ({error.strerror}): choose another folder."
        ) from None


@contextmanager
def fresh_folder(target: Path, stays: Collection[str] = ()) -> Iterator[Path]:
    """A folder to write into; at the end, if all went well, its files become those of ``target``.

    What was there before is gone then, but for the files that stay.
    The marker goes first and comes last, so that a folder with a marker is always a complete run.
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
        (target / MARKER).unlink(missing_ok=True)
        for name in [*sorted(run_files() - {MARKER}), MARKER]:
            if (writing / name).exists():
                os.replace(writing / name, target / name)
            elif name not in stays:
                (target / name).unlink(missing_ok=True)
    except OSError as error:
        raise MtcdError(
            f"The run could not be written to {target}: {error.strerror or error}."
        ) from None
    finally:
        if writing is not None:
            shutil.rmtree(writing, ignore_errors=True)


def plain(value: Any) -> Any:
    """A number of NumPy as Python's: settings may be such, and JSON does not know them."""
    # takes a tenth of a second to import, which commands that only ask need not wait for
    from numpy import generic

    if isinstance(value, generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def read_zip(path: Path) -> io.BytesIO:
    """The content of a file of arrays, for ``numpy.load``.

    Raises:
        ValueError: if it is no zip file. NumPy would take it for a pickle, and say how to load
        that.
    """
    content = io.BytesIO(path.read_bytes())
    if not is_zipfile(content):
        raise ValueError(f"{path.name} is not a file of arrays")
    content.seek(0)  # is_zipfile leaves the position elsewhere in files of 65,536 arrays or more
    return content


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to; at the end, if all went well, that file replaces the one at ``path``."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=WRITING) as folder:
            writing = Path(folder) / path.name
            yield writing
            os.replace(writing, path)
    except OSError as error:
        raise MtcdError(f"{path} could not be written: {error.strerror or error}.") from None


def write_whole(path: Path, content: bytes | str) -> None:
    """Write the content atomically; if this fails, the old file stays."""
    with whole_file(path) as writing:
        writing.write_bytes(content.encode() if isinstance(content, str) else content)


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write these files, each atomically, and the folder that they are in; an error says what
    cannot be written."""
    for path, content in files.items():
        try:
            path.parent.mkdir(exist_ok=True)
            write_whole(path, content)
        except OSError as error:
            raise MtcdError(
                f"{path} cannot be written ({error.strerror or error}): choose another place."
            ) from None
