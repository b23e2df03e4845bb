"""The files of a run folder: JSON, CSV and npz, written and read without pickle."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from mtcd.core.errors import MtcdError
from mtcd.core.files import MARKER, PREPARATION, plain
from mtcd.core.version import VERSION
from mtcd.data.prepare import Preparations
from mtcd.models.trained import read_trained
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.training.attachments import read_attachments
from mtcd.training.history import History
from mtcd.training.run import Run

FORMAT = 1


def write_run(run: Run, folder: Path) -> None:
    """Write the files of a run into an existing folder."""
    about: dict[str, Any] = {"format": FORMAT, "version": VERSION, **run.summary()}
    about["costs"] = run.costs.to_dict()
    # The model says itself under which key: that is how its kind is found when it is read.
    if run.model is not None:
        about[run.model.entry] = run.model.write(folder)
    if run.model is not None and run.model.preparations is not None:
        _write_json(folder / PREPARATION, run.model.preparations.to_json())
        about["prepared"] = True
    for attachment in run.attachments.values():
        attachment.write(folder / attachment.file)
    run.history.write(folder / "history.csv")
    _write_json(folder / "ledger.json", run.ledger.to_dict())
    _write_json(folder / MARKER, about)  # last: by this file a folder is known to be whole


def read_run(folder: Path, model: Any, trusted: Sequence[str]) -> Run:
    """Read a run that was saved: see :meth:`mtcd.Run.load`."""
    with _complete(folder):
        about, run = read_without_model(folder)
        # the model last: it may need modules that the user brings
        run = replace(run, model=read_trained(folder, about, model))
        if about.get("prepared"):
            return _with_preparations(run, folder / PREPARATION, trusted)
        return run


def read_without_model(folder: Path) -> tuple[dict[str, Any], Run]:
    """What run.json says, and the run without its model, of which networks may need code: nothing
    is run."""
    with _complete(folder):
        about: dict[str, Any] = json.loads((folder / MARKER).read_text())
        # Before anything else is read, as it may mean something else in another format.
        if about["format"] != FORMAT:
            raise MtcdError(
                f"{folder} was written in format {about['format']}; this version reads format "
                f"{FORMAT}."
            )
        return about, Run(
            status=about["status"],
            message=about["message"],
            method=about["method"],
            stepsize=about["stepsize"],
            history=History.read(folder / "history.csv"),
            ledger=Ledger(**json.loads((folder / "ledger.json").read_text())),
            costs=Costs(**about["costs"]),
            model=None,
            notes=tuple(about["notes"]),
            attachments=read_attachments(folder),
        )


@contextmanager
def _complete(folder: Path) -> Iterator[None]:
    """Files that are missing or damaged become an error that says so."""
    if not (folder / MARKER).is_file():
        raise MtcdError(
            f"{folder} is not a complete run folder, as it has no {MARKER}: give one that mtcd "
            "train or run.save wrote."
        )
    try:
        yield
    except (OSError, EOFError, KeyError, TypeError, ValueError, BadZipFile) as error:
        raise MtcdError(
            f"{folder} is not a complete run folder ({type(error).__name__}: {error}): train it "
            "again, or take another copy."
        ) from None


def _with_preparations(run: Run, path: Path, trusted: Sequence[str]) -> Run:
    """The run with the preparations of its clients."""
    # It diverged: there is no model to prepare columns for.
    if run.model is None:
        return run
    preparations = Preparations.from_json(json.loads(path.read_text()), trusted)
    return replace(run, model=run.model.prepared_by(preparations))


def _write_json(path: Path, content: dict[str, Any]) -> None:
    # Without NaN, which is no JSON: a gap that is not known is null.
    path.write_text(json.dumps(content, indent=1, allow_nan=False, default=plain) + "\n")
