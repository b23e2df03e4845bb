"""The callbacks of a config: each has a kind, and the settings of its class."""

from __future__ import annotations

from collections.abc import Sequence

from mtcd.config.keys import instance
from mtcd.config.schema import CallbackSection
from mtcd.training.callbacks.callback import CALLBACKS, Callback


def make_callbacks(sections: Sequence[CallbackSection] | None) -> tuple[Callback, ...]:
    """The callbacks in the order of the config; errors name the key."""
    return tuple(_callback(i, section) for i, section in enumerate(sections or ()))


def _callback(place: int, section: CallbackSection) -> Callback:
    made: Callback = instance(
        f"callbacks.{place}", section.kind, CALLBACKS[section.kind], section.model_extra or {}
    )
    return made
