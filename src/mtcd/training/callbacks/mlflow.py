"""Logs a training to MLflow: its settings, every measured number, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from time import time
from typing import Any

from mtcd.core.optional import find
from mtcd.training.callbacks.callback import CALLBACKS, Callback, Moment, RunInfo
from mtcd.training.history import numbers
from mtcd.training.run import Run


@CALLBACKS.register("mlflow")
@dataclass
class MLflowWriter(Callback):
    """Logs every measured number to MLflow, as a new run.

    Parameters
    ----------
    experiment : str, default 'mtcd'
        The name of the experiment, which is made if there is none.
    tracking_uri : str, optional
        Where MLflow is; its own choice unless given.
    run_name : str, optional
        The name of the run; that of the method unless given.

    Examples
    --------
    >>> import mtcd
    >>> writer = mtcd.MLflowWriter("ridge", run_name="a tour")
    >>> run = mtcd.train(data, callbacks=[writer])  # doctest: +SKIP
    """

    experiment: str = "mtcd"
    tracking_uri: str | None = None
    run_name: str | None = None

    def on_start(self, info: RunInfo) -> None:
        self._client = find("mlflow").MlflowClient(self.tracking_uri)
        # Made only if it is not there: MLflow refuses a second one of the same name.
        known = self._client.get_experiment_by_name(self.experiment)
        if known is None:
            place = self._client.create_experiment(self.experiment)
        else:
            place = known.experiment_id

        run = self._client.create_run(place, run_name=self.run_name or info.method)
        self.run_id: str = run.info.run_id
        self._open = True
        for name, value in info.settings.items():
            # MLflow refuses longer values.
            self._client.log_param(self.run_id, name, str(value)[:6000])

    def on_measure(self, moment: Moment) -> None:
        entities, now = find("mlflow.entities"), int(1000 * time())
        step = moment.measurement.iteration
        metrics: list[Any] = []
        for name, value in numbers(moment.measurement).items():
            metrics.append(entities.Metric(name, float(value), now, step))

        # in one call: every call is a request to a server
        self._client.log_batch(self.run_id, metrics=metrics)

    def on_end(self, run: Run) -> None:
        self._client.set_tag(self.run_id, "status", run.status)
        ended = "FINISHED"
        if run.status == "interrupted":
            ended = "KILLED"
        self._client.set_terminated(self.run_id, ended)
        self._open = False

    def close(self) -> None:
        if getattr(self, "_open", False):  # the training failed
            self._client.set_terminated(self.run_id, "FAILED")
