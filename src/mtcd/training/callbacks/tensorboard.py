"""Writes the measurements of a training as scalars for TensorBoard."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import time

from mtcd.core.optional import find
from mtcd.training.callbacks.callback import CALLBACKS, Callback, Moment, RunInfo
from mtcd.training.history import numbers


@CALLBACKS.register("tensorboard")
@dataclass
class TensorBoardWriter(Callback):
    """Writes every measured number, by iteration, for ``tensorboard --logdir``.

    Parameters
    ----------
    folder : str or Path, default 'runs/tensorboard'
        Where the events are written.

    Examples
    --------
    >>> import mtcd
    >>> writer = mtcd.TensorBoardWriter("runs/tensorboard/ridge")
    >>> run = mtcd.train(data, callbacks=[writer])  # doctest: +SKIP
    """

    folder: str | Path = "runs/tensorboard"

    def on_start(self, info: RunInfo) -> None:
        self._events = find("tensorboard.compat.proto.event_pb2")
        self._summaries = find("tensorboard.compat.proto.summary_pb2")
        # The writer of events alone: nothing else of TensorBoard is imported.
        self._writer = find("tensorboard.summary.writer.event_file_writer").EventFileWriter(
            str(self.folder)
        )

    def on_measure(self, moment: Moment) -> None:
        summary = self._summaries.Summary()
        for name, value in numbers(moment.measurement).items():
            summary.value.add(tag=name, simple_value=value)
        step = moment.measurement.iteration
        self._writer.add_event(self._events.Event(wall_time=time(), step=step, summary=summary))

    def close(self) -> None:
        # Also after a failure before ``on_start``.
        if hasattr(self, "_writer"):
            self._writer.close()
