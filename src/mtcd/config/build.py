"""From a checked Config to the parts that train() takes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml

from mtcd.config.default_method import default_section
from mtcd.config.instances import instance
from mtcd.config.keys import has_depth, keys_of
from mtcd.config.schema import (
    AdditiveSection,
    ComputeSection,
    Config,
    DatasetData,
    FileData,
    GlmSection,
    OwnTable,
    SparseData,
    SplitSection,
    TableData,
)
from mtcd.config.settings import build_settings, settings_of
from mtcd.core import features
from mtcd.core.errors import ConfigError, DataError, DataWarning
from mtcd.core.optional import find
from mtcd.data.dataset import VerticalDataset
from mtcd.data.sources import BlockSources, parquet_blocks
from mtcd.data.svmlight import read_svmlight
from mtcd.data.synthetic import synthetic
from mtcd.data.tables import TableShare, read_tables
from mtcd.data.vertical import VerticalData
from mtcd.engines.kinds import ENGINES, LOCAL, EngineSettings
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.glm.model import Glm
from mtcd.models.label_noise import with_noise
from mtcd.models.trees.model import Additive
from mtcd.network.changes import with_changes
from mtcd.network.edges import read_network
from mtcd.network.topology import Change, Network, make_network
from mtcd.protocol.ledger.costs import Costs
from mtcd.training.compute import Compute
from mtcd.training.observer import Watch
from mtcd.training.released import released
from mtcd.training.run import Run
from mtcd.training.stop import Stop
from mtcd.training.train import train
from mtcd_experiments.datasets.catalogue import (
    PICTURES,
    SERIES,
    check_no_forecast,
    first_present,
    load_dataset,
    load_table,
)
from mtcd_experiments.datasets.entry import Forecast

if TYPE_CHECKING:
    from mtcd.models.splitnet.model import SplitModel


@dataclass(frozen=True, eq=False)
class Setup:
    """Everything a training needs, built from a config."""

    config: Config
    data: VerticalData | VerticalDataset | BlockSources
    model: Glm | Additive | SplitModel
    network: Network
    method: Method
    stop: Stop
    costs: Costs
    notes: tuple[str, ...]
    compute: Compute | None = None
    callbacks: Sequence[Any] = ()
    engine: EngineSettings | None = None
    method_given: bool = True
    """Whether the config names the method; ``train`` chooses it otherwise, and says so."""

    @property
    def samples(self) -> VerticalData | VerticalDataset:
        """The data; without its blocks, where these are read elsewhere."""
        return self.data.outline() if isinstance(self.data, BlockSources) else self.data

    @property
    def is_linear(self) -> bool:
        """Whether it is about a linear model."""
        return isinstance(self.model, Glm)

    def linear(self) -> tuple[VerticalData, Glm]:
        """Data and model, for what is about linear models only."""
        if not isinstance(self.data, VerticalData) or not isinstance(self.model, Glm):
            raise ConfigError("This is for linear models: the config is about another one.")
        return self.data, self.model

    def arguments(self) -> dict[str, Any]:
        """The arguments that ``mtcd.train`` and ``mtcd.inspect`` share; the method has its privacy."""
        return {
            "data": self.data,
            "model": self.model,
            "network": self.network,
            "method": self.method,
            "stop": self.stop,
            "costs": self.costs,
            "seed": self.config.seed,
            # samples of split networks are scaled already
            "standardise": self.config.data.standardise and self.is_linear,
            "compute": self.compute,
        }

    def train(
        self, watch: Watch | None = None, checkpoint: Path | None = None, resume: bool = False
    ) -> Run:
        """Train by the config, write checkpoints into a folder, and resume from them."""
        return train(
            self.data,
            self.model,
            self.network,
            self.method if self.method_given else None,
            self.stop,
            self.costs,
            seed=self.config.seed,
            # samples are scaled already
            standardise=self.config.data.standardise and isinstance(self.model, Glm),
            watch=watch,
            compute=self.compute,
            checkpoint=checkpoint,
            resume=resume,
            metrics=self.config.metrics,
            callbacks=self.callbacks,
            # else it is in the method
            # labels were released when the data was built
            privacy=None if self.method_given else self.config.privacy.privacy().without_labels,
            engine=self.engine,
        )


def build(config: Config, sources: bool = False) -> Setup:
    """Make the parts; settings that need no data are checked before any table is read.

    ``sources``: with an engine that has processes of its own, blocks are read there if possible.
    """
    method, notes, stop, costs = build_settings(config)
    callbacks, engine = build_callbacks(config), build_engine(config)
    config = settled(config)
    elsewhere = _sources(config) if sources else None
    compute = None
    data: Any  # VerticalData, VerticalDataset or BlockSources
    if elsewhere is not None:
        data, model = elsewhere, model_for(config, elsewhere.outline())
    else:
        with warnings.catch_warnings():
            # notes of the data, which the run has too, say the same
            warnings.simplefilter("ignore", DataWarning)
            data, said = _released(config, build_data(config))
            data = _held_out(config, data)
            notes = (*notes, *said)
        if isinstance(config.model, SplitSection):
            data = VerticalDataset.from_table(data) if isinstance(data, VerticalData) else data
            compute = Compute(**(config.compute or ComputeSection()).model_dump())
        model = model_for(config, data)
    network = build_network(config, data.clients)
    given = config.method_given
    if not given and not network.connected:
        privacy = config.privacy.privacy()
        config = config.model_copy(
            update={"method": default_section(config.model, privacy, connected=False)}
        )
        method = build_settings(config)[0]
    return Setup(
        config, data, model, network, method, stop, costs, notes, compute, callbacks, engine, given
    )


def _sources(config: Config) -> BlockSources | None:
    """The blocks as columns of a Parquet file, which the processes of an engine read; None if they
    are needed here."""
    section = config.data
    if config.engine is None or config.engine.kind == LOCAL or not isinstance(section, TableData):
        return None
    own_tables = isinstance(section.clients, dict) and any(
        isinstance(one, OwnTable) for one in section.clients.values()
    )
    here = (section.id, section.prepare, section.holdout, section.test_samples, config.stop.gap)
    linear = isinstance(config.model, GlmSection)
    if (
        own_tables
        or not linear
        or section.table.suffix.lower() != ".parquet"
        or any(one is not None for one in here)
        or config.privacy.labels is not None
    ):
        return None
    return parquet_blocks(
        section.table, section.label, cast(Any, section.clients), section.ignore, section.weight
    )


def build_callbacks(config: Config) -> Sequence[Any]:
    """The callbacks of a config, made by the feature that calls them."""
    if not config.callbacks:
        return ()

    home = features.parts("mtcd.config").get("callbacks")
    if home is None:
        raise ConfigError("callbacks: this installation of mtcd has none: leave them out.")

    make = cast(Callable[..., Sequence[Any]], features.load(home))
    return make(config.callbacks)


def build_engine(config: Config) -> EngineSettings | None:
    """The engine of a config; None for this process."""
    section = config.engine
    if section is None:
        return None
    made: EngineSettings = instance(
        "engine", section.kind, ENGINES[section.kind], section.model_extra or {}
    )
    return made


def model_for(config: Config, data: VerticalData | VerticalDataset) -> Glm | Additive | SplitModel:
    """The model of a config for this data; networks depend on its shapes and classes."""
    positive = config.data.positive if isinstance(config.data, FileData) else None
    noise = config.privacy.label_privacy
    if isinstance(config.model, GlmSection):
        linear: Glm = with_noise(Glm(**config.model.model_dump(), positive=positive), noise)
        return linear
    if isinstance(config.model, AdditiveSection):
        additive: Additive = with_noise(config.model.model(positive), noise)
        return additive
    if positive is not None:
        raise ConfigError(
            "data.positive is for linear models of two classes: leave it out for a split network."
        )
    find("mtcd.models.splitnet.model")
    from mtcd.models.splitnet.config import split_model

    assert isinstance(data, VerticalDataset)
    made: SplitModel = split_model(config.model, data, config.seed, config.data.standardise)
    return with_noise(made, noise)  # type: ignore[no-any-return]


def resolved_yaml(config: Config) -> str:
    """The config with all defaults filled in: training with it repeats the run."""
    content = config.model_dump(mode="json", exclude_none=True)
    content["method"] = config.method.model_dump(
        mode="json", include=keys_of(config.method.kind) | {"kind"}
    )
    if "depth" in keys_of(config.method.kind) and not has_depth(config.method.acceleration):
        content["method"].pop("depth", None)
    if config.method.kind == "mtcd":
        content["method"]["combine"] = MTCD(**settings_of(config.method)).combine_rule
    if (
        isinstance(config.model, GlmSection)
        and config.model.kind == "ridge"
        and config.model.l2 is None
    ):
        content["model"]["alpha"] = Glm(**config.model.model_dump()).l2_weight
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def settled(config: Config) -> Config:
    """The config with the data set that is used, so that it repeats the run when others are
    installed later."""
    section = config.data
    if not isinstance(section, DatasetData):
        return config
    used = section.model_copy(update={"dataset": [first_present(section.dataset)]})
    return config.model_copy(update={"data": used})


def _released(config: Config, data: Any) -> tuple[Any, tuple[str, ...]]:
    """The data with the labels that everybody may see, before any sample is held out: all parts of
    it have the same draws."""
    privacy = config.privacy.label_privacy
    return (data, ()) if privacy is None else released(data, privacy)


def _held_out(
    config: Config, data: VerticalData | VerticalDataset
) -> VerticalData | VerticalDataset:
    """The data with a test set, if the config asks for one: drawn once for all clients, from the
    config's seed."""
    fraction, wanted = config.data.holdout, config.data.test_samples
    if data.test is not None:
        if fraction is not None:
            raise ConfigError(
                "data.holdout: this data set has a test set of its own: leave it out."
            )
        return data
    if wanted is not None and wanted >= data.samples:
        raise DataError(
            f"data.test_samples is {wanted}, but there are {data.samples} samples in all: ask for "
            f"fewer."
        )
    fraction = wanted / data.samples if wanted is not None else fraction
    return data if fraction is None else data.holdout(fraction, config.seed)


def build_data(config: Config) -> VerticalData | VerticalDataset:
    """The data of a config; synthetic test samples are still among the others."""
    section = config.data
    if isinstance(section, DatasetData):
        name, part = section.dataset[0], (section.samples, section.features, section.seed)
        forecast = None if section.forecast is None else Forecast(**section.forecast.model_dump())
        check_no_forecast(name, forecast)
        if not isinstance(config.model, SplitSection) and name not in SERIES:
            return load_table(name, section.clients, *part)
        has_test = name in PICTURES or name in SERIES
        return load_dataset(
            name, section.clients, *part, section.test_samples if has_test else None, forecast
        )
    if isinstance(section, SparseData):
        return read_svmlight(
            section.table, cast(Any, section.clients), section.features, section.ignore
        )
    if isinstance(section, TableData):
        clients: Any = section.clients
        if isinstance(clients, dict):
            clients = {
                name: TableShare(share.table, share.columns)
                if isinstance(share, OwnTable)
                else share
                for name, share in clients.items()
            }
        read = partial(
            read_tables, section.table, section.label, clients, section.id, section.ignore
        )
        if section.prepare is None and isinstance(config.model, AdditiveSection):
            names = (
                [f"client_{k}" for k in range(clients)]
                if isinstance(clients, int)
                else list(clients)
            )
            return read(config.model.model().recipes(names), section.weight)
        return read(section.prepare, section.weight)
    return synthetic(
        section.synthetic,
        section.samples + (section.test_samples or 0),
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
        network = make_network(
            str(section.kind),
            clients,
            p=section.p,
            rows=section.rows,
            radius=section.radius,
            seed=seed,
        )
    return with_changes(
        network, [Change(**change.model_dump()) for change in section.changes or []]
    )
