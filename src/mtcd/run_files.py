"""The files of a run folder: JSON, CSV and npz, written and read without pickle."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray

from mtcd.data.scaling import Scaling
from mtcd.errors import MtcdError
from mtcd.families.trained import TrainedAdditive, read_additive
from mtcd.families.trees import TreePart
from mtcd.files import COEFFICIENTS, IMPORTANCE, MARKER, PREPARATION, TRACE, plain
from mtcd.history import History
from mtcd.ledger.costs import Costs
from mtcd.ledger.ledger import Ledger
from mtcd.model.linear import Glm
from mtcd.model.trained import TrainedModel
from mtcd.prepare import Preparations
from mtcd.run import Run
from mtcd.trace import Trace
from mtcd.version import VERSION

if TYPE_CHECKING:
    from mtcd.splitnet.model import SplitModel
    from mtcd.splitnet.trained import TrainedSplit

FORMAT = 1


def write_run(run: Run, folder: Path) -> None:
    """Write the files of a run into an existing folder."""
    about: dict[str, Any] = {"format": FORMAT, "version": VERSION, **run.summary()}
    about["costs"] = run.costs.to_dict()
    if isinstance(run.model, TrainedModel):
        about["model"] = _describe_model(run.model)
        np.savez(folder / "parameters.npz", **_arrays(run.model))  # type: ignore[arg-type]
        (folder / COEFFICIENTS).write_bytes(run.coefficients_table().to_csv().encode())
    elif isinstance(run.model, TrainedAdditive):
        about["additive"] = run.model.write(folder)
        if any(isinstance(part, TreePart) for part in run.model.parts):
            (folder / IMPORTANCE).write_bytes(run.importance().to_csv().encode())
    elif run.model is not None:
        about["split"] = run.model.write(folder)
    if run.model is not None and run.model.preparations is not None:
        _write_json(folder / PREPARATION, run.model.preparations.to_json())
        about["prepared"] = True
    if run.trace is not None:
        run.trace.write(folder / TRACE)
    run.history.write(folder / "history.csv")
    _write_json(folder / "ledger.json", run.ledger.to_dict())
    _write_json(folder / MARKER, about)


def read_run(folder: Path, model: SplitModel | None, trusted: Sequence[str]) -> Run:
    """Read a run that was saved: see :meth:`mtcd.Run.load`."""
    with _complete(folder):
        about, run = read_without_model(folder)
        run = replace(run, model=_read_trained(about, folder, model))
        return _with_preparations(run, folder / PREPARATION, trusted) if about.get("prepared") else run


def read_without_model(folder: Path) -> tuple[dict[str, Any], Run]:
    """What run.json says, and the run without its model, of which networks may need code: nothing is run."""
    with _complete(folder):
        about: dict[str, Any] = json.loads((folder / MARKER).read_text())
        if about["format"] != FORMAT:
            raise MtcdError(f"{folder} was written in format {about['format']}; this version reads format {FORMAT}.")
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
            trace=Trace.read(folder / TRACE) if (folder / TRACE).is_file() else None,  # older versions kept none
        )


@contextmanager
def _complete(folder: Path) -> Iterator[None]:
    """Files that are missing or damaged become an error that says so."""
    if not (folder / MARKER).is_file():
        raise MtcdError(
            f"{folder} is not a complete run folder, as it has no {MARKER}: give one that mtcd train or run.save wrote."
        )
    try:
        yield
    except (OSError, EOFError, KeyError, TypeError, ValueError, BadZipFile) as error:
        raise MtcdError(
            f"{folder} is not a complete run folder ({type(error).__name__}: {error}): train it again, or take another "
            "copy."
        ) from None


def _with_preparations(run: Run, path: Path, trusted: Sequence[str]) -> Run:
    """The run with the preparations of its clients."""
    if run.model is None:
        return run
    preparations = Preparations.from_json(json.loads(path.read_text()), trusted)
    if isinstance(run.model, TrainedModel | TrainedAdditive) and preparations.outputs != run.model.columns:
        raise ValueError(f"{path.name} is of another model")
    return replace(run, model=replace(run.model, preparations=preparations))


def _read_trained(
    about: dict[str, Any], folder: Path, model: SplitModel | None
) -> TrainedModel | TrainedAdditive | TrainedSplit | None:
    if "additive" in about:
        return read_additive(folder, about["additive"])
    if "split" not in about:
        return _read_model(about["model"], folder / "parameters.npz") if "model" in about else None
    if model is None:
        raise MtcdError(
            f"{folder} holds a split network, only its weights: give load_run(folder, model) the SplitModel."
        )
    from mtcd.splitnet.trained import read_trained

    return read_trained(folder, about["split"], model)


def _describe_model(trained: TrainedModel) -> dict[str, Any]:
    glm = trained.model
    return {
        "glm": {field.name: getattr(glm, field.name) for field in fields(glm) if field.init},
        "classes": list(trained.classes),
        "clients": list(trained.clients),
        "columns": [list(names) for names in trained.columns],
        "positions": [list(places) for places in trained.positions],
        "scaled": trained.scaling is not None,
    }


def _arrays(trained: TrainedModel) -> dict[str, NDArray[Any]]:
    """theta_0, theta_1, ... in the order of ``clients``: names of clients may not be valid as file names."""
    arrays: dict[str, NDArray[Any]] = {f"theta_{k}": theta for k, theta in enumerate(trained.thetas)}
    arrays |= {"clients": np.array(trained.clients), "intercept": trained.trained_intercept}
    if trained.scaling is not None:
        arrays["means"] = np.concatenate(trained.scaling.means)
        arrays["scales"] = np.concatenate(trained.scaling.scales)
    return arrays


def _read_model(about: dict[str, Any], path: Path) -> TrainedModel:
    columns = tuple(tuple(names) for names in about["columns"])
    bounds = np.cumsum([len(names) for names in columns])[:-1]
    content = io.BytesIO(path.read_bytes())
    if not is_zipfile(content):  # NumPy would take it for a pickle, and say how to load that
        raise ValueError(f"{path.name} is not a file of arrays")
    with np.load(content, allow_pickle=False) as arrays:
        scaling = None
        if about["scaled"]:
            scaling = Scaling(*(tuple(np.split(arrays[name], bounds)) for name in ("means", "scales")))
        return TrainedModel(
            model=Glm(**about["glm"]),
            classes=tuple(about["classes"]),
            clients=tuple(about["clients"]),
            columns=columns,
            positions=tuple(tuple(places) for places in about["positions"]),
            thetas=tuple(arrays[f"theta_{k}"] for k in range(len(columns))),
            trained_intercept=arrays["intercept"],
            scaling=scaling,
        )


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, allow_nan=False, default=plain) + "\n")
