"""From the sections of a config that are not about data: the method, the limits and the prices."""

from __future__ import annotations

from typing import Any

from mtcd.config.keys import has_depth, keys_of
from mtcd.config.schema import (
    AdditiveSection,
    ComputeSection,
    Config,
    DatasetData,
    GlmSection,
    MethodSection,
    ScheduleSection,
    SplitSection,
    StopSection,
)
from mtcd.core.errors import ConfigError
from mtcd.core.optional import find
from mtcd.methods.method import METHODS, Method
from mtcd.methods.mtcd.schedule import Schedule
from mtcd.methods.privacy_modes import with_privacy
from mtcd.models.glm.model import Glm
from mtcd.models.label_noise import with_noise
from mtcd.models.metrics import find_metric
from mtcd.protocol.ledger.costs import Costs
from mtcd.training.compute import Compute
from mtcd.training.stop import Stop
from mtcd_experiments.datasets.catalogue import SERIES

FEW_HOPS = 100  # of trees, unless a limit is given


def build_settings(config: Config) -> tuple[Method, tuple[str, ...], Stop, Costs]:
    """The parts that need no data: method (and notes about it), stop and costs. The model is
    checked."""
    method, notes = _method(config.method)
    method = with_privacy(
        method, config.privacy.privacy(), split=isinstance(config.model, SplitSection)
    )
    given = config.stop.model_dump()
    _check_measuring(config)
    if isinstance(config.model, GlmSection):
        with_noise(Glm(**config.model.model_dump()), config.privacy.label_privacy)
        if config.compute is not None:
            raise ConfigError("compute is for split networks (model.kind: split): leave it out.")
    elif isinstance(config.model, AdditiveSection):
        with_noise(config.model.model(), config.privacy.label_privacy)
        if config.compute is not None:
            raise ConfigError("compute is for split networks (model.kind: split): leave it out.")
        if config.data.standardise:
            raise ConfigError(
                "data.standardise: trees need no scaling, other families scale by themselves: "
                "leave it out."
            )
        if "stop" not in config.model_fields_set:
            given = {"iterations": FEW_HOPS}
    else:
        find("mtcd.models.splitnet.model")
        from mtcd.models.splitnet.config import check_split

        check_split(config.model)
        Compute(**(config.compute or ComputeSection()).model_dump())
        if (
            config.data.standardise
            and isinstance(config.data, DatasetData)
            and not {*config.data.dataset} & {*SERIES}
        ):
            raise ConfigError(
                "data.standardise: pictures are normalised as they are read: leave it out."
            )
        if method.batch is not None and config.stop == StopSection():
            given = {"epochs": 10}
    return method, notes, Stop(**given), Costs(**config.costs.model_dump())


def _check_measuring(config: Config) -> None:
    """Reject unknown metrics, and two sizes of the test set, before any data is read."""
    for name in config.metrics or ():
        find_metric(name)
    if config.data.holdout is not None and config.data.test_samples is not None:
        raise ConfigError(
            "data.holdout and data.test_samples both say how much is held out: give one of them."
        )


def _method(section: MethodSection) -> tuple[Method, tuple[str, ...]]:
    unused = sorted(section.model_fields_set - keys_of(section.kind) - {"kind"})
    if "depth" in section.model_fields_set - set(unused) and not has_depth(section.acceleration):
        unused.append("depth")
    notes = (f"{section.kind} has no use for {', '.join(unused)} here: ignored.",) if unused else ()
    return METHODS[section.kind](**settings_of(section)), notes


def settings_of(section: MethodSection) -> dict[str, Any]:
    """The keys that the method reads. Clients go as text: whether 1 is a name or a number, their
    names decide."""
    settings = {name: getattr(section, name) for name in keys_of(section.kind)}
    start, clusters, fusion_client = (
        settings.get(name) for name in ("start", "clusters", "fusion_client")
    )
    if isinstance(settings.get("schedule"), ScheduleSection):
        settings["schedule"] = Schedule(**settings["schedule"].model_dump())
    if isinstance(fusion_client, int):
        settings["fusion_client"] = str(fusion_client)
    if isinstance(start, int):
        settings["start"] = str(start)
    if isinstance(start, list):
        settings["start"] = [str(one) if isinstance(one, int) else one for one in start]
    if isinstance(clusters, list):
        settings["clusters"] = [[str(client) for client in group] for group in clusters]
    return settings
