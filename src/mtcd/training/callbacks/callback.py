"""The base class of callbacks, and what they are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from mtcd.core.registry import Registry
from mtcd.models.trained import Trained
from mtcd.protocol.state import Snapshot
from mtcd.training.history import Measurement
from mtcd.training.run import Run
from mtcd.training.watchers import Started

NOTHING = Snapshot({}, {})
Stopping = Callable[[str], None]


@dataclass(frozen=True)
class RunInfo(Started):
    """A training before its first iteration. ``stop(reason)`` ends it before it goes on."""

    stop: Stopping


@dataclass(frozen=True)
class Moment:
    """A moment of a training at which all parties hold one model.

    Attributes
    ----------
    measurement : Measurement
        The row of the history. At a sync it is made when it is asked for.
    fraction : float
        How far along the nearest limit is: 0 to 1.
    parameters : list
        A copy of the parameters, client by client.
    model : Trained or None
        The model so far; None if it is not finite.
    stop : callable
        ``moment.stop(reason)`` ends the training.

    Examples
    --------
    >>> import mtcd
    >>> class Print(mtcd.Callback):
    ...     def on_measure(self, moment):
    ...         print(moment.measurement.iteration, f"{moment.fraction:.0%}")
    """

    measure: Callable[[], Measurement]
    fraction: float
    """How far along the nearest limit is: 0 to 1."""
    get_parameters: Callable[[], list[Any]]
    trained: Callable[[Sequence[Any]], Trained | None]
    stop: Stopping
    """``moment.stop(reason)`` ends the training with the status 'stopped'; the message has the
    reason."""

    @cached_property
    def measurement(self) -> Measurement:
        """The measurement: a row of the history. At a sync it is made when it is asked for, beside
        the history."""
        return self.measure()

    @cached_property
    def parameters(self) -> list[Any]:
        """A copy of theta, client by client; of split networks by name, theta_0 last."""
        # Copied: the clients go on with their own arrays, and a callback may keep what it gets.
        return [_copied(theta) for theta in self.get_parameters()]

    @cached_property
    def model(self) -> Trained | None:
        """The model so far, made when it is asked for; None if it is not finite."""
        return self.trained(self.parameters)


class Callback:
    """Is called during a training: override what you need. A built-in one is a dataclass of its
    settings.

    Examples
    --------
    >>> import mtcd
    >>> class UntilSmall(mtcd.Callback):
    ...     def on_measure(self, moment):
    ...         if moment.measurement.objective < 100:
    ...             moment.stop("small enough")
    """

    ends_training: ClassVar[bool] = False
    """Whether it may end the training by what is measured, which ``privacy.dp`` does not allow: a
    measurement has no noise. So set it in a class that calls ``moment.stop``."""

    def on_start(self, info: RunInfo) -> None:
        """Called once, before the first iteration."""

    def on_measure(self, moment: Moment) -> None:
        """Called with every measurement, the first before the first iteration."""

    def on_sync(self, moment: Moment) -> None:
        """Called after every sync or round of a method that has them."""

    def on_end(self, run: Run) -> None:
        """Called with the result; not if the training fails."""

    def close(self) -> None:
        """Called at the end of every training, also of one that fails: release files here."""

    def chosen(self) -> tuple[Sequence[Any], str] | None:
        """The parameters that become the model of the run, and a note on them; None: those of the
        end."""
        return None

    def state(self) -> Snapshot:
        """What a checkpoint keeps, beside the history: plain values, and arrays or tensors by
        name."""
        return NOTHING

    def restore(self, state: Snapshot) -> None:
        """Continue from a checkpoint; called before ``on_start``."""


CALLBACKS: Registry[type[Callback]] = Registry(
    Callback, "mtcd.callbacks", "mtcd.training.callbacks", "callbacks: nothing is called {!r};"
)


def _copied(theta: Any) -> Any:
    if isinstance(theta, Mapping):
        return {name: value.detach().clone() for name, value in theta.items()}
    return theta.copy()
