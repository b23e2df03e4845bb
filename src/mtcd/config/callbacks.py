"""The callbacks of a config: each has a kind, and the settings of its class."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, get_type_hints

from pydantic import ConfigDict, ValidationError, create_model

from mtcd.callbacks import CALLBACKS, Callback
from mtcd.config.schema import CallbackSection
from mtcd.errors import ConfigError, did_you_mean


def make_callbacks(sections: Sequence[CallbackSection] | None) -> tuple[Callback, ...]:
    """The callbacks in the order of the config; errors name the key."""
    return tuple(_callback(i, section) for i, section in enumerate(sections or ()))


def _callback(place: int, section: CallbackSection) -> Callback:
    where, made = f"callbacks.{place}", CALLBACKS[section.kind]
    parameters, given = inspect.signature(made).parameters, section.model_extra or {}
    for name in given:
        if name not in parameters:
            raise ConfigError(f"{where}: {section.kind} has no key {name!r}; {did_you_mean(name, parameters)}")
    hints = get_type_hints(made.__init__)
    fields: dict[str, Any] = {
        name: (hints.get(name, Any), ... if one.default is one.empty else one.default)
        for name, one in parameters.items()
    }
    try:
        settings = create_model(section.kind, __config__=ConfigDict(extra="forbid"), **fields)(**given)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{where}.{'.'.join(map(str, first['loc'][:1]))}: {first['msg']}.") from None
    return made(**{name: getattr(settings, name) for name in given})
