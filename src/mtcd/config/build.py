"""From a checked Config to the parts that train() takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from mtcd.config.schema import Config, DatasetData, MethodSection, OwnTable, TableData
from mtcd.data.datasets.catalogue import first_present, load_dataset
from mtcd.data.synthetic import synthetic
from mtcd.data.tables import TableShare, read_tables
from mtcd.data.vertical import VerticalData
from mtcd.ledger.costs import Costs
from mtcd.methods.dcpa import DCPA
from mtcd.methods.method import Method
from mtcd.methods.mtcd import MTCD, STCD
from mtcd.methods.svfl import SVFL
from mtcd.model.linear import Glm
from mtcd.network.changes import with_changes
from mtcd.network.edges import read_network
from mtcd.network.topology import Change, Network, make_network
from mtcd.run import Run
from mtcd.stop import Stop
from mtcd.training import Watch, train

ACCELERATION = ("acceleration", "depth")
NO_DEPTH = (None, "momentum")
# which keys of the method section each method reads, besides its kind
USED = {
    "mtcd": {
        "tokens",
        "hops",
        "local_updates",
        "stepsize",
        "batch",
        "combine",
        "walk",
        "clusters",
        "start",
        *ACCELERATION,
    },
    "stcd": {"local_updates", "stepsize", "walk", "start", *ACCELERATION},
    "svfl": {"local_updates", "stepsize", "batch"},
    "dcpa": {"stepsize", "dual_stepsize", "consensus_stepsize", "variant"},
}


@dataclass(frozen=True, eq=False)
class Setup:
    """Everything a training needs, built from a config."""

    config: Config
    data: VerticalData
    model: Glm
    network: Network
    method: Method
    stop: Stop
    costs: Costs
    notes: tuple[str, ...]

    def train(self, watch: Watch | None = None) -> Run:
        """Train as the config says."""
        return train(
            self.data,
            self.model,
            self.network,
            self.method,
            self.stop,
            self.costs,
            seed=self.config.seed,
            standardise=self.config.data.standardise,
            watch=watch,
        )


def build(config: Config) -> Setup:
    """Make the parts; settings that need no data are checked before any table is read."""
    model, method, notes, stop, costs = build_settings(config)
    config = _settled(config)
    data = _data(config)
    return Setup(config, data, model, build_network(config, data.clients), method, stop, costs, notes)


def build_settings(config: Config) -> tuple[Glm, Method, tuple[str, ...], Stop, Costs]:
    """The parts that need no data: model, method (and notes about it), stop and costs."""
    method, notes = _method(config.method)
    stop, costs = Stop(**config.stop.model_dump()), Costs(**config.costs.model_dump())
    return Glm(**config.model.model_dump()), method, notes, stop, costs


def resolved_yaml(config: Config) -> str:
    """The config with all defaults filled in: training with it repeats the run."""
    content = config.model_dump(mode="json", exclude_none=True)
    content["method"] = config.method.model_dump(mode="json", include=USED[config.method.kind] | {"kind"})
    if config.method.acceleration in NO_DEPTH:
        content["method"].pop("depth", None)
    if config.method.kind == "mtcd":
        content["method"]["combine"] = MTCD(**_settings(config.method)).combine_rule
    if config.model.kind == "ridge" and config.model.l2 is None:
        content["model"]["alpha"] = Glm(**config.model.model_dump()).l2_weight
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def method_section(method: Method) -> MethodSection:
    """The section of a config that makes this method."""
    names = {name for name in USED[method.kind] if hasattr(method, name)}
    return MethodSection.model_validate({"kind": method.kind, **{name: getattr(method, name) for name in names}})


def _settled(config: Config) -> Config:
    """The config with the one data set that is used, so that it repeats the run whatever else is at hand later."""
    section = config.data
    if not isinstance(section, DatasetData):
        return config
    used = section.model_copy(update={"dataset": [first_present(section.dataset)]})
    return config.model_copy(update={"data": used})


def _data(config: Config) -> VerticalData:
    section = config.data
    if isinstance(section, DatasetData):
        return load_dataset(section.dataset[0], section.clients, section.samples, section.features, section.seed)
    if isinstance(section, TableData):
        clients: Any = section.clients
        if isinstance(clients, dict):
            clients = {
                name: TableShare(share.table, share.columns) if isinstance(share, OwnTable) else share
                for name, share in clients.items()
            }
        return read_tables(section.table, section.label, clients, id=section.id, ignore=section.ignore)
    return synthetic(
        section.synthetic,
        section.samples,
        section.features,
        section.clients,
        noise=section.noise,
        classes=section.classes,
        seed=config.seed if section.seed is None else section.seed,
    )


def build_network(config: Config, clients: Sequence[str]) -> Network:
    """The network of a config, over these clients."""
    section = config.network
    seed = config.seed if section.seed is None else section.seed
    if section.edges is not None:
        network = read_network(section.edges, clients)
    else:
        network = make_network(str(section.kind), clients, p=section.p, rows=section.rows, seed=seed)
    return with_changes(network, [Change(**change.model_dump()) for change in section.changes or []])


def _method(section: MethodSection) -> tuple[Method, tuple[str, ...]]:
    unused = sorted(section.model_fields_set - USED[section.kind] - {"kind"})
    if "depth" in section.model_fields_set - set(unused) and section.acceleration in NO_DEPTH:
        unused.append("depth")
    notes = (f"{section.kind} has no use for {', '.join(unused)} here: ignored.",) if unused else ()
    makers: dict[str, Any] = {"mtcd": MTCD, "stcd": STCD, "svfl": SVFL, "dcpa": DCPA}
    return makers[section.kind](**_settings(section)), notes


def _settings(section: MethodSection) -> dict[str, Any]:
    """The keys that the method reads. Clients go as text: whether 1 is a name or a number, their names decide."""
    settings = {name: getattr(section, name) for name in USED[section.kind]}
    start, clusters = section.start, section.clusters
    if isinstance(start, int):
        settings["start"] = str(start)
    if isinstance(start, list):
        settings["start"] = [str(one) if isinstance(one, int) else one for one in start]
    if isinstance(clusters, list) and "clusters" in settings:
        settings["clusters"] = [[str(client) for client in group] for group in clusters]
    return settings
