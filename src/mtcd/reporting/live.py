"""A training that is watched on the report page: it knows the state of the training at any
time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, cast

import numpy as np

from mtcd.core.version import VERSION
from mtcd.data.dataset import VerticalDataset
from mtcd.data.vertical import VerticalData
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.reporting.document import make_report
from mtcd.reporting.record import RUNNING, RunRecord, of_run
from mtcd.reporting.trace.trace import Trace, block_norm
from mtcd.training.history import Measurement
from mtcd.training.run import Run
from mtcd.training.watchers import Started, Watcher

SPACING = 1.0  # seconds between two looks at the blocks


class LiveRun(Watcher):
    """Collects what the page shows. ``document`` may be called by another thread than that of the
    training."""

    def __init__(
        self,
        name: str,
        data: VerticalData | VerticalDataset,
        costs: Costs,
        yaml: str,
        notes: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.costs = costs
        self.yaml = yaml
        self.notes = notes
        self.clients = data.clients
        self.features = _features(data)
        self._started: Started | None = None
        self._rows: list[Measurement] = []
        self._norms: list[float] | None = None
        self._looked = -SPACING
        self._run: Run | None = None

    def start(self, started: Started) -> None:
        self._rows = list(started.history)
        self._started = started

    def measured(
        self, row: Measurement, fraction: float, parameters: Callable[[], list[Any]]
    ) -> None:
        self._rows.append(row)
        # norms need all parameters, which the engine may have to copy: not at every measurement
        now = monotonic()
        if now >= self._looked + SPACING:
            self._looked = now
            self._norms = [block_norm(theta) for theta in parameters()[: len(self.clients)]]

    def end(self, run: Run) -> None:
        self._run = run

    def document(self) -> dict[str, Any]:
        """The document as it is now."""
        return make_report([self._record()], "live", f"mtcd: {self.name}", VERSION)

    def _record(self) -> RunRecord:
        if self._run is None:
            return self._in_training()
        return self._ended(self._run)

    def _in_training(self) -> RunRecord:
        rows = list(self._rows)  # the training goes on meanwhile
        message = "Getting ready."
        if rows:
            message = f"In training, at iteration {rows[-1].iteration:,}."

        record = RunRecord(
            name=self.name,
            status=RUNNING,
            message=message,
            method="",
            stepsize=None,
            history=rows,
            ledger=Ledger(),
            costs=self.costs,
            notes=self.notes,
            yaml=self.yaml,
            trace=None,
            clients=self.clients,
            features=self.features,
        )
        if self._started is None:
            return record
        return self._with_training(record, self._started)

    def _with_training(self, record: RunRecord, started: Started) -> RunRecord:
        """The record with what is known since the training has started."""
        trace = cast(Trace | None, started.attachment("trace"))
        if trace is not None and self._norms is not None:
            trace = trace.with_norms(self._norms)
        return replace(
            record,
            method=started.method,
            stepsize=started.settings.get("method.stepsize"),
            ledger=started.ledger,
            trace=trace,
        )

    def _ended(self, run: Run) -> RunRecord:
        # by what the model has, not by its kind: features bring kinds that are not known here
        known: dict[str, Any] = {"clients": self.clients, "features": self.features}
        if run.model is not None:
            known["families"] = run.model.families
            offers = run.model.offers
            if "coefficients_table" in offers:
                known["coefficients"] = run.coefficients_table()
            if "importance" in offers:
                known["importance"] = run.importance()

        ended = of_run(run, self.name, self.yaml, **known)
        return replace(ended, notes=(*self.notes, *run.notes))


def _features(data: VerticalData | VerticalDataset) -> list[int]:
    if isinstance(data, VerticalData):
        return [len(names) for names in data.columns]
    return [int(np.prod(data.shapes[client])) for client in data.clients]
