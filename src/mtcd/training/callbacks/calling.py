"""Calls the callbacks of a training: errors name the callback, and stops are remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import fields
from functools import partial
from typing import Any

from mtcd.core.errors import ConfigError, MtcdError
from mtcd.protocol.state import Snapshot
from mtcd.training.callbacks.callback import Callback, Moment, RunInfo, Stopping
from mtcd.training.history import Measurement
from mtcd.training.run import Run
from mtcd.training.watchers import Started, Watcher


class Calling(Watcher):
    """Calls the callbacks of one training, in order. ``trained`` makes the model of parameters."""

    def __init__(
        self,
        callbacks: Sequence[Callback] = (),
        trained: Callable[[Sequence[Any]], Any] = lambda parameters: None,
    ) -> None:
        for one in callbacks:
            if not isinstance(one, Callback):
                raise ConfigError(
                    f"callbacks takes a list of Callback objects, but one is {one!r}."
                )
        self.callbacks, self.trained = callbacks, trained
        # Only those with a state of their own: a checkpoint names them, and must find them again.
        self._kept = [one for one in callbacks if type(one).state is not Callback.state]
        self.wants_syncs = any(type(one).on_sync is not Callback.on_sync for one in callbacks)
        self._stopped: str | None = None
        """Which callback ended the training, and why."""

    @property
    def stopped(self) -> str | None:
        return self._stopped

    def check_private(self) -> None:
        """Refuse callbacks that end a training with differential privacy, or choose its model.

        They decide by measurements, which have no noise: what they decide would tell more than the
        budget counts.
        """
        # By what the class says and defines, before anything is trained: the budget is spent by
        # then.
        for one in self.callbacks:
            if one.ends_training or type(one).chosen is not Callback.chosen:
                does = "chooses the model"
                if one.ends_training:
                    does = "ends the training"
                raise ConfigError(
                    f"callbacks: {type(one).__name__} {does} by measurements, which have no noise: "
                    f"with privacy.dp "
                    "what it decides would not be covered by the budget. Leave it out."
                )

    def start(self, started: Started) -> None:
        known = {one.name: getattr(started, one.name) for one in fields(started)}
        self._each("on_start", lambda stop: RunInfo(**known, stop=stop))

    def measured(
        self, row: Measurement, fraction: float, parameters: Callable[[], list[Any]]
    ) -> None:
        self._each(
            "on_measure", lambda stop: Moment(lambda: row, fraction, parameters, self.trained, stop)
        )

    def synced(
        self,
        measure: Callable[[], Measurement],
        fraction: float,
        parameters: Callable[[], list[Any]],
    ) -> None:
        self._each(
            "on_sync", lambda stop: Moment(measure, fraction, parameters, self.trained, stop)
        )

    def end(self, run: Run) -> None:
        self._each("on_end", lambda stop: run)

    def close(self) -> None:
        # one that fails does not keep the others from releasing what they hold
        with ExitStack() as stack:
            for one in reversed(self.callbacks):  # a stack is unwound from its end
                stack.callback(_called, one, "close")

    def chosen(self) -> tuple[Sequence[Any], str] | None:
        # The first one that chooses: two models of one run there cannot be.
        for one in self.callbacks:
            found: tuple[Sequence[Any], str] | None = _called(one, "chosen")
            if found is not None:
                return found
        return None

    def state(self) -> Snapshot:
        facts, tensors = [], {}
        for i, one in enumerate(self._kept):
            kept = _called(one, "state")
            facts.append(dict(kept.facts))
            for name, value in kept.tensors.items():
                tensors[f"callback/{i}/{name}"] = value

        return Snapshot({"callbacks": facts, "callback_kinds": self._kinds()}, tensors)

    def restore(self, state: Snapshot) -> None:
        # of a checkpoint that was written with other kinds of callbacks, these start anew
        if state.facts.get("callback_kinds") != self._kinds():
            return
        for i, (one, facts) in enumerate(zip(self._kept, state.facts["callbacks"], strict=True)):
            prefix = f"callback/{i}/"
            own = {}
            for name, value in state.tensors.items():
                if name.startswith(prefix):
                    own[name.removeprefix(prefix)] = value

            _called(one, "restore", Snapshot(facts, own))

    def _kinds(self) -> list[str]:
        return [type(one).__name__ for one in self._kept]

    def _each(self, hook: str, told: Callable[[Stopping], Any]) -> None:
        for one in self.callbacks:
            _called(one, hook, told(partial(self._stop, type(one).__name__)))

    def _stop(self, name: str, reason: str = "") -> None:
        if self._stopped is not None:  # the first one says why
            return
        self._stopped = name
        if reason:
            self._stopped = f"{name}: {reason}"


def _called(one: Callback, hook: str, *given: Any) -> Any:
    """What a method of a callback returns; an error names both."""
    try:
        return getattr(one, hook)(*given)
    # Our own errors say already what to do.
    except MtcdError:
        raise
    except Exception as error:  # the user's code may raise anything
        raise MtcdError(
            f"The callback {type(one).__name__} failed in {hook}: {type(error).__name__}: {error}. "
            "Correct it, or leave it out."
        ) from error
