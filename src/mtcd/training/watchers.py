"""Watchers: objects that follow a training while it runs, bound when its observer is made.

Callbacks are the best known of them. A training without any has a ``Watcher``, which does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from mtcd.core import features
from mtcd.core.errors import ConfigError
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.state import Snapshot
from mtcd.training.attachments import Attachment, attachment_names
from mtcd.training.history import Measurement

if TYPE_CHECKING:
    from mtcd.training.run import Run


@dataclass(frozen=True)
class Started:
    """A training before its first iteration.

    Parameters
    ----------
    method
        The method and its settings, as ``run.method``.
    clients
        The names of the clients.
    settings
        Names and values, for logs of experiments.
    history
        The measurements of the training that is resumed; empty otherwise.
    ledger
        What was sent so far: it grows while the training runs.
    attachment
        Returns an attachment of the run by its name, as it is so far; also from another thread.
    """

    method: str
    clients: tuple[str, ...]
    settings: Mapping[str, Any]
    history: Sequence[Measurement]
    ledger: Ledger
    attachment: Callable[[str], Attachment]

    def __getattr__(self, name: str) -> Any:
        """A function that returns the attachment of this name, as in ``info.trace()``."""
        if name in attachment_names():
            # Bound to the name, and called later: what is attached grows while the training runs.
            return partial(self.attachment, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class Watcher:
    """Follows one training. Every method has a default, which does nothing."""

    wants_syncs: bool = False
    """Whether ``synced`` is to be called; every observation is then looked at."""

    @property
    def stopped(self) -> str | None:
        """Who has ended the training, and why; None: nobody."""
        return None

    def check_private(self) -> None:
        """Refuse what a training with differential privacy does not allow: to decide by
        measurements, which have no noise."""

    def start(self, started: Started) -> None:
        """Called once, before the first iteration, after ``restore``."""

    def measured(
        self, row: Measurement, fraction: float, parameters: Callable[[], list[Any]]
    ) -> None:
        """Called with every measurement. ``fraction``: how far along the training is."""

    def synced(
        self,
        measure: Callable[[], Measurement],
        fraction: float,
        parameters: Callable[[], list[Any]],
    ) -> None:
        """Called after a sync, or a round. ``measure`` makes a measurement of it."""

    def chosen(self) -> tuple[Sequence[Any], str] | None:
        """The parameters that become the model of the run, and a note on them; None: those of the
        end."""
        return None

    def end(self, run: Run) -> None:
        """Called with the result; not if the training fails."""

    def close(self) -> None:
        """Called at the end of every training, also of one that fails."""

    def state(self) -> Snapshot:
        """What a checkpoint keeps, beside the history."""
        return Snapshot({}, {})

    def restore(self, state: Snapshot) -> None:
        """Continue from a checkpoint, in which there is also what others keep."""


class Watchers(Watcher):
    """Several watchers, in order."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self.watchers = tuple(watchers)
        # Only if somebody wants them: then the engine stops at every one.
        self.wants_syncs = any(one.wants_syncs for one in self.watchers)

    @property
    def stopped(self) -> str | None:
        for one in self.watchers:
            if one.stopped is not None:  # the first one says why
                return one.stopped
        return None

    def check_private(self) -> None:
        for one in self.watchers:
            one.check_private()

    def start(self, started: Started) -> None:
        for one in self.watchers:
            one.start(started)

    def measured(
        self, row: Measurement, fraction: float, parameters: Callable[[], list[Any]]
    ) -> None:
        for one in self.watchers:
            one.measured(row, fraction, parameters)

    def synced(
        self,
        measure: Callable[[], Measurement],
        fraction: float,
        parameters: Callable[[], list[Any]],
    ) -> None:
        for one in self.watchers:
            if one.wants_syncs:
                one.synced(measure, fraction, parameters)

    def chosen(self) -> tuple[Sequence[Any], str] | None:
        for one in self.watchers:
            choice = one.chosen()
            if choice is not None:
                return choice
        return None

    def end(self, run: Run) -> None:
        for one in self.watchers:
            one.end(run)

    def close(self) -> None:
        # one that fails does not keep the others from it; a stack is unwound from its end
        with ExitStack() as stack:
            for one in reversed(self.watchers):
                stack.callback(one.close)

    def state(self) -> Snapshot:
        facts: dict[str, Any] = {}
        tensors: dict[str, Any] = {}
        for one in self.watchers:
            kept = one.state()
            facts.update(kept.facts)
            tensors.update(kept.tensors)

        return Snapshot(facts, tensors)

    def restore(self, state: Snapshot) -> None:
        for one in self.watchers:
            one.restore(state)


def watcher_of(callbacks: Any, trained: Callable[[Sequence[Any]], Any]) -> Watcher:
    """All that follows a training: callbacks, and watchers that are given in the same list.

    ``trained`` makes the model of parameters.
    """
    # a single callback, without its list, is the usual slip
    if not isinstance(callbacks, Sequence) or isinstance(callbacks, str):
        raise ConfigError(f"callbacks takes a list of Callback objects, but is {callbacks!r}.")

    watchers = [one for one in callbacks if isinstance(one, Watcher)]
    called = [one for one in callbacks if not isinstance(one, Watcher)]
    if called:
        # Callbacks first, as the user gave them; watchers come from the program.
        watchers = [_calling(called, trained), *watchers]
    if not watchers:
        return Watcher()
    return Watchers(watchers)


def _calling(callbacks: Sequence[Any], trained: Callable[[Sequence[Any]], Any]) -> Watcher:
    """What calls the callbacks of a training."""
    home = features.parts("mtcd.watchers").get("callbacks")
    if home is None:
        raise ConfigError(
            "callbacks: this installation of mtcd has none: leave them out, or install the whole "
            "package."
        )
    calling: Watcher = cast(Any, features.load(home))(callbacks, trained)
    return calling
