"""What a report tells of one run: read from its folder, or known while it trains."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtcd.config.runs import CONFIG
from mtcd.core.errors import MtcdError
from mtcd.core.files import COEFFICIENTS, IMPORTANCE
from mtcd.models.trained import outline
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.reporting.trace.trace import Trace
from mtcd.training.history import Measurement
from mtcd.training.run import Run
from mtcd.training.run_files import read_without_model

RUNNING = "running"


@dataclass(frozen=True, eq=False)
class RunRecord:
    """A run, finished or in training."""

    name: str
    status: str
    message: str
    method: str
    stepsize: float | None
    history: Sequence[Measurement]
    ledger: Ledger
    costs: Costs
    notes: Sequence[str]
    yaml: str | None
    """The settings, if the command line wrote them."""
    trace: Trace | None
    """None of runs of older versions."""
    clients: Sequence[str] = ()
    features: Sequence[int] | None = None
    """The numbers of features of the clients."""
    coefficients: Sequence[Mapping[str, Any]] = ()
    """Rows of ``run.coefficients_table()``, as numbers or text."""
    importance: Sequence[Mapping[str, Any]] = ()
    """Rows of ``run.importance()`` of trees, likewise."""
    families: Sequence[str] | None = None
    """The families of the clients of an additive model."""


def of_run(run: Run, name: str, yaml: str | None, **known: Any) -> RunRecord:
    """The record of a run that has ended; ``known``: clients, features, coefficients and other
    fields of the model."""
    stepsize = run.stepsize
    if known.get("families"):  # which choose their own
        stepsize = None

    return RunRecord(
        name=name,
        status=run.status,
        message=run.message,
        method=run.method,
        stepsize=stepsize,
        history=run.history.rows,
        ledger=run.ledger,
        costs=run.costs,
        notes=run.notes,
        yaml=yaml,
        trace=run.trace,
        **known,
    )


def read_record(folder: Path, name: str) -> RunRecord:
    """The run in a folder that ``mtcd train`` or ``run.save`` wrote. No code that it names is
    run."""
    about, run = read_without_model(folder)
    try:
        model = outline(about)
        clients = model.clients
        if run.trace is not None:
            clients = run.trace.clients  # all of the network, also those that left
        return of_run(
            run,
            name,
            _text(folder / CONFIG),
            clients=clients,
            features=model.features,
            coefficients=_rows(folder / COEFFICIENTS),
            importance=_rows(folder / IMPORTANCE),
            families=model.families,
        )
    except (AttributeError, OSError, TypeError, ValueError, csv.Error) as error:
        # whatever is wrong with a file of a stranger, it is one error that names the folder
        raise MtcdError(
            f"{folder} is not a complete run folder ({type(error).__name__}: {error})."
        ) from None


def _text(path: Path) -> str | None:
    if not path.is_file():
        return None
    return path.read_text(encoding="utf-8")


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
