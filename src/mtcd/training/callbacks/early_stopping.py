"""Ends a training when a column of the history has stopped improving."""

from __future__ import annotations

from dataclasses import dataclass

from mtcd.core.checks import check_number, check_whole
from mtcd.training.callbacks.callback import CALLBACKS, Callback, Moment, RunInfo
from mtcd.training.history import Best, Measurement, check_column, has_begun, value_of


@CALLBACKS.register("early-stopping")
@dataclass
class EarlyStopping(Callback):
    """Stops after some measurements without an improvement.

    Measurements without the column do not count, nor do those before the model changes
    (``has_begun``).

    Parameters
    ----------
    on : str, default 'objective'
        The column of the history: 'objective', or a metric.
    patience : int, default 5
        How many measurements without an improvement end the training.
    min_improvement : float, default 0.0
        The share of the best value that an improvement must exceed.

    Examples
    --------
    >>> import mtcd
    >>> mtcd.EarlyStopping(on="test_auc", patience=3).patience
    3
    """

    ends_training = True

    on: str = "objective"
    patience: int = 5
    min_improvement: float = 0.0

    def __post_init__(self) -> None:
        check_whole("callbacks.patience", self.patience, least=1)
        check_number("callbacks.min_improvement", self.min_improvement)

    def on_start(self, info: RunInfo) -> None:
        # Here and not in the constructor: one object may be given to several trainings.
        self._best, self._waited, self._rows = Best(self.on, self.min_improvement), 0, 0
        # Counted anew from the history, so that no state of its own is needed in a checkpoint.
        for row in info.history:
            self._count(row)
        if self._waited >= self.patience:
            info.stop(self._reason)

    def on_measure(self, moment: Moment) -> None:
        check_column(self.on, self._rows, moment.measurement)
        self._count(moment.measurement)
        if self._waited >= self.patience:
            moment.stop(self._reason)

    def _count(self, row: Measurement) -> None:
        if not self._rows:
            self._first = row
        self._rows += 1
        value = value_of(row, self.on)
        if value is None:
            return
        if self._best.improves(value) or not has_begun(self._first, row):
            self._waited = 0
        else:
            self._waited += 1

    @property
    def _reason(self) -> str:
        return f"{self.on} has not improved for {self._waited} measurements; its best value is {self._best.value:.6g}"
