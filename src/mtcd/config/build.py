"""From a checked Config to the parts that train() takes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from mtcd.config.keys import has_depth, instance, keys_of
from mtcd.config.method_schema import default_section
from mtcd.config.schema import Config, OwnTable, TableData
from mtcd.config.settings import build_settings, settings_of
from mtcd.core import features
from mtcd.core.errors import ConfigError, DataError, DataWarning
from mtcd.data.dataset import VerticalDataset
from mtcd.data.sources import BlockSources, parquet_blocks
from mtcd.data.vertical import VerticalData
from mtcd.engines.kinds import ENGINES, LOCAL, EngineSettings
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.label_noise import with_noise
from mtcd.network.changes import with_changes
from mtcd.network.edges import read_network
from mtcd.network.topology import Change, Network, make_network
from mtcd.privacy.settings import Privacy
from mtcd.protocol.ledger.costs import Costs
from mtcd.training.compute import Compute
from mtcd.training.kinds import kind_of
from mtcd.training.observer import Watch
from mtcd.training.released import released
from mtcd.training.run import Run
from mtcd.training.stop import Stop
from mtcd.training.train import train


@dataclass(frozen=True, eq=False)
class Setup:
    """Everything a training needs, built from a config."""

    config: Config
    data: VerticalData | VerticalDataset | BlockSources
    model: Any
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
        if isinstance(self.data, BlockSources):
            return self.data.outline()
        return self.data

    @property
    def standardise(self) -> bool:
        """Whether ``train`` scales the columns; not where the model does it itself."""
        return self.config.data.standardise and self.config.model.train_standardises

    def arguments(self) -> dict[str, Any]:
        """The arguments that ``mtcd.train`` and ``mtcd.inspect`` share.

        The method has its privacy already.
        """
        return {
            "data": self.data,
            "model": self.model,
            "network": self.network,
            "method": self.method,
            "stop": self.stop,
            "costs": self.costs,
            "seed": self.config.seed,
            "standardise": self.standardise,
            "compute": self.compute,
        }

    def train(
        self, watch: Watch | None = None, checkpoint: Path | None = None, resume: bool = False
    ) -> Run:
        """Train by the config, write checkpoints into a folder, and resume from them.

        Parameters
        ----------
        watch
            Called with every measurement, and how far along the training is.
        checkpoint
            The folder for the state of the training.
        resume
            Whether to go on with the training whose state is there.
        """
        # a method that is given has its privacy already; train() gives it to the default one
        method: Method | None = self.method
        privacy: Privacy | None = None
        if not self.method_given:
            method = None
            # labels were released when the data was built
            privacy = self.config.privacy.privacy().without_labels

        return train(
            self.data,
            self.model,
            self.network,
            method,
            self.stop,
            self.costs,
            seed=self.config.seed,
            standardise=self.standardise,
            watch=watch,
            compute=self.compute,
            checkpoint=checkpoint,
            resume=resume,
            metrics=self.config.metrics,
            callbacks=self.callbacks,
            privacy=privacy,
            engine=self.engine,
        )


def build(config: Config, sources: bool = False) -> Setup:
    """Make the parts; settings that need no data are checked before any table is read.

    Parameters
    ----------
    config
        The checked config.
    sources
        Whether an engine that has processes of its own reads blocks there, if possible.
    """
    method, notes, stop, costs = build_settings(config)
    # slips in these are told before a large table is read
    callbacks, engine = build_callbacks(config), build_engine(config)
    # the data set that is at hand, by name: the run folder has to say which it was
    config = settled(config)

    data: VerticalData | VerticalDataset | BlockSources | None = None
    if sources:
        data = _sources(config)
    if data is None:
        data = _data_here(config)

    # sources tell what a model needs to know of the samples: sizes, names and labels
    outline: VerticalData | VerticalDataset
    if isinstance(data, BlockSources):
        outline = data.outline()
    else:
        outline = data
    made = config.model.build(config, outline)
    model = with_noise(made, config.privacy.label_privacy)

    network = build_network(config, data.clients)
    given = config.method_given
    if not given and not network.connected:
        # only now is it known: a server must join the pieces of the network
        privacy = config.privacy.privacy()
        config = config.model_copy(
            update={"method": default_section(config.model, privacy, connected=False)}
        )
        method = build_settings(config)[0]

    compute = config.model.compute(config)
    return Setup(
        config, data, model, network, method, stop, costs, notes, compute, callbacks, engine, given
    )


def _data_here(config: Config) -> VerticalData | VerticalDataset:
    """The data in this process, in the form that the model takes, with a test set if asked for."""
    with warnings.catch_warnings():
        # notes of the data, which the run has too, say the same
        warnings.simplefilter("ignore", DataWarning)
        # in this order: labels are released before anything is held out, each of them once
        data = _held_out(config, released(config.data.read(config), config.privacy.label_privacy))

    if config.model.any_shape and isinstance(data, VerticalData):
        return VerticalDataset.from_table(data)
    return data


def _sources(config: Config) -> BlockSources | None:
    """The blocks as columns of a Parquet file, which the processes of an engine read; None if they
    are needed here."""
    section = config.data
    # this process is where blocks are used
    if config.engine is None or config.engine.kind == LOCAL:
        return None
    if not isinstance(section, TableData) or section.table.suffix.lower() != ".parquet":
        return None
    # tables have to be joined here, where all of them are
    if _has_own_tables(section) or not kind_of(config.model).reads_sources:
        return None

    # each of these looks at all columns: joining, preparing, drawing a test set, the optimum
    here = (section.id, section.prepare, section.holdout, section.test_samples, config.stop.gap)
    if config.privacy.labels is not None or any(one is not None for one in here):
        return None

    return parquet_blocks(
        section.table, section.label, cast(Any, section.clients), section.ignore, section.weight
    )


def _has_own_tables(section: TableData) -> bool:
    """Whether a client brings a table of its own."""
    if not isinstance(section.clients, dict):
        return False
    return any(isinstance(share, OwnTable) for share in section.clients.values())


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


def resolved_yaml(config: Config) -> str:
    """The config with all defaults filled in: training with it repeats the run."""
    # of the method only keys that it reads: with others, a note would say that they are ignored
    content = config.model_dump(mode="json", exclude_none=True)
    content["method"] = config.method.model_dump(
        mode="json", include=keys_of(config.method.kind) | {"kind"}
    )
    if "depth" in keys_of(config.method.kind) and not has_depth(config.method.acceleration):
        content["method"].pop("depth", None)
    if config.method.kind == "mtcd":
        content["method"]["combine"] = MTCD(**settings_of(config.method)).combine_rule
    # what the model has chosen itself, such as a loss
    content["model"] |= config.model.resolved()
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def settled(config: Config) -> Config:
    """The config with the data set that is used, so that it repeats the run when others are
    installed later."""
    return config.model_copy(update={"data": config.data.settled()})


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

    if wanted is not None:
        if wanted >= data.samples:
            raise DataError(
                f"data.test_samples is {wanted}, but there are {data.samples} samples in all: ask "
                "for fewer."
            )
        fraction = wanted / data.samples

    if fraction is None:
        return data
    return data.holdout(fraction, config.seed)


def build_network(config: Config, clients: Sequence[str]) -> Network:
    """The network of a config, over these clients."""
    section = config.network
    seed = section.seed
    if seed is None:
        seed = config.seed
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

    changes = [Change(**change.model_dump()) for change in section.changes or []]
    return with_changes(network, changes)
