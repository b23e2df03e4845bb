"""Keeps the best model of a training, by a column of the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtcd.protocol.snapshots import restored, take
from mtcd.protocol.state import Snapshot
from mtcd.training.callbacks.callback import CALLBACKS, Callback, Moment, RunInfo
from mtcd.training.history import Best, check_column, value_of


@CALLBACKS.register("keep-best")
@dataclass
class KeepBest(Callback):
    """Keeps the best model of the training as ``run.model``.

    The history goes on to the end; a note of the run says which iteration the model is of.

    Parameters
    ----------
    on : str, default 'objective'
        The column of the history: 'objective', or a metric.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("logistic", samples=60, features=8, clients=4).holdout(0.3, seed=0)
    >>> keep = mtcd.KeepBest("test_log_loss")
    >>> run = mtcd.train(
    ...     data,
    ...     mtcd.Glm("logistic"),
    ...     stop=mtcd.Stop(iterations=50),
    ...     metrics=["log_loss"],
    ...     callbacks=[keep],
    ... )
    >>> any("best" in note for note in run.notes)
    True
    """

    on: str = "objective"

    def __post_init__(self) -> None:
        self._best, self._iteration = Best(self.on), 0
        self._parameters: list[Any] = []
        self._restored = False

    def on_start(self, info: RunInfo) -> None:
        self._rows = len(info.history)
        # ``restore`` comes first: what it brought must not be thrown away.
        if not self._restored:
            self._best, self._parameters = Best(self.on), []
        self._restored = False

    def on_measure(self, moment: Moment) -> None:
        row = moment.measurement
        check_column(self.on, self._rows, row)
        self._rows += 1
        value = value_of(row, self.on)
        if value is not None and self._best.improves(value):
            # a copy, which is made only here: copying at every measurement would take long
            self._parameters, self._iteration = moment.parameters, row.iteration

    def chosen(self) -> tuple[Sequence[Any], str] | None:
        if not self._parameters:
            return None
        note = f"The model is that of iteration {self._iteration}, with the best {self.on}: {self._best.value:.6g}."
        return self._parameters, note

    def state(self) -> Snapshot:
        facts = {
            "value": self._best.value,
            "iteration": self._iteration,
            "clients": len(self._parameters),
        }
        # ensembles, which are no arrays
        if any(hasattr(theta, "trees") for theta in self._parameters):
            taken = take(self._parameters)
            return Snapshot({**facts, **taken.facts}, taken.tensors)

        tensors: dict[str, Any] = {}
        for k, theta in enumerate(self._parameters):
            parts = {"": theta}  # an array has no name
            if isinstance(theta, Mapping):
                parts = dict(theta)
            tensors |= {f"{k}/{name}": value for name, value in parts.items()}
        return Snapshot(facts, tensors)

    def restore(self, state: Snapshot) -> None:
        self._restored = True
        self._best.value, self._iteration = state.facts["value"], state.facts["iteration"]
        if "content" in state.facts:
            self._parameters = restored(
                Snapshot({"content": state.facts["content"]}, state.tensors)
            )
            return
        self._parameters = [_part(k, state.tensors) for k in range(state.facts["clients"])]


def _part(k: int, tensors: Mapping[str, Any]) -> Any:
    """The parameters of one client: an array, or tensors by name."""
    own = {}
    for name, value in tensors.items():
        client, _, key = name.partition("/")
        if client == str(k):
            own[key] = value

    if set(own) == {""}:  # an array has no name
        return own[""]
    return own
