"""From the sections of a config that are not about data: the method, the limits and the prices."""

from __future__ import annotations

from typing import Any

from mtcd.config.keys import has_depth, keys_of
from mtcd.config.schema import (
    Config,
    MethodSection,
    ScheduleSection,
)
from mtcd.core.errors import ConfigError
from mtcd.core.mappings import attributes
from mtcd.methods.method import METHODS, Method
from mtcd.methods.mtcd.stepsizes import Schedule
from mtcd.methods.privacy_modes import with_privacy
from mtcd.models.metrics import find_metric
from mtcd.protocol.ledger.costs import Costs
from mtcd.training.kinds import kind_of
from mtcd.training.stop import Stop


def build_settings(config: Config) -> tuple[Method, tuple[str, ...], Stop, Costs]:
    """The parts that need no data: method (and notes about it), stop and costs. The model is
    checked."""
    method, notes = _method(config.method)
    # networks cannot be trained on an encrypted token
    split = not kind_of(config.model).linear
    method = with_privacy(method, config.privacy.privacy(), split=split)

    _check_measuring(config)
    config.model.check(config)

    stop = config.model.stop(config, method)
    return method, notes, Stop(**stop.model_dump()), Costs(**config.costs.model_dump())


def _check_measuring(config: Config) -> None:
    """Reject unknown metrics, and two sizes of the test set, before any data is read."""
    for name in config.metrics or ():
        find_metric(name)
    if config.data.holdout is not None and config.data.test_samples is not None:
        raise ConfigError(
            "data.holdout and data.test_samples both say how much is held out: give one of them."
        )


def _method(section: MethodSection) -> tuple[Method, tuple[str, ...]]:
    # ignored with a note, so that one can change the kind of the method alone
    unused = sorted(section.model_fields_set - keys_of(section.kind) - {"kind"})
    if "depth" in section.model_fields_set - set(unused) and not has_depth(section.acceleration):
        unused.append("depth")

    notes: tuple[str, ...] = ()
    if unused:
        notes = (f"{section.kind} has no use for {', '.join(unused)} here: ignored.",)

    return METHODS[section.kind](**settings_of(section)), notes


def settings_of(section: MethodSection) -> dict[str, Any]:
    """The keys that the method reads. Clients go as text: whether 1 is a name or a number, their
    names decide."""
    settings = attributes(section, keys_of(section.kind))
    if isinstance(settings.get("schedule"), ScheduleSection):
        settings["schedule"] = Schedule(**settings["schedule"].model_dump())
    for name in ("fusion_client", "start"):
        if name in settings:
            settings[name] = _as_text(settings[name])
    if isinstance(settings.get("clusters"), list):
        settings["clusters"] = [list(map(str, group)) for group in settings["clusters"]]
    return settings


def _as_text(client: Any) -> Any:
    """A client, or a list of them, with numbers as texts; anything else as it is."""
    if isinstance(client, int):
        return str(client)
    if isinstance(client, list):
        return [_as_text(one) for one in client]
    return client
