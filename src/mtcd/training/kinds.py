"""Kinds of models: what differs between linear models, trees and split networks when they are
trained.

A kind is found by the class of the model, without importing the others: ``mtcd.train`` has no
branch per kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

import networkx as nx
from numpy.typing import ArrayLike, NDArray

from mtcd.core import features
from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError
from mtcd.data.dataset import VerticalDataset
from mtcd.data.sources import BlockSources
from mtcd.data.vertical import VerticalData
from mtcd.engines.kinds import EngineSettings
from mtcd.methods.default import DefaultMethods, default_method, default_note
from mtcd.methods.method import Method
from mtcd.methods.privacy_modes import with_privacy
from mtcd.models.label_noise import with_noise
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network, make_network
from mtcd.privacy.settings import Privacy
from mtcd.protocol.ledger.costs import Costs
from mtcd.training.released import released
from mtcd.training.run import Run
from mtcd.training.stop import Stop
from mtcd.training.training import Training

GivenNetwork: TypeAlias = Network | nx.Graph | Iterable[tuple[str | int, str | int]] | str


@dataclass(frozen=True)
class Request:
    """The arguments of ``mtcd.train``; complete once :func:`resolved` has seen them."""

    data: Any
    model: Any = None
    network: Any = "complete"
    method: Any = None
    stop: Stop | None = None
    costs: Costs = field(default_factory=Costs)
    seed: int = 0
    standardise: bool = False
    compute: Any = None
    checkpoint: str | Path | None = None
    resume: bool = False
    metrics: Sequence[str] | None = None
    start: Run | Mapping[str, ArrayLike] | None = None
    privacy: Privacy = field(default_factory=Privacy)
    engine: EngineSettings | None = None

    def connected(self) -> AbstractContextManager[object]:
        """The context of the engine, where its processes have to read the data before the training
        begins."""
        # Only where the data is elsewhere: otherwise the engine starts when it is needed.
        if self.engine is not None and isinstance(self.data, BlockSources):
            return self.engine.connected()
        return nullcontext()

    def refuse(self, why: str, *names: str) -> None:
        """Reject arguments that this kind of model does not have."""
        for name in names:
            given = getattr(self, name)
            # False is a switch that was left off, and 0 is not: a seed may be it.
            if given is not None and given is not False:
                raise ConfigError(f"{name} {why}")


KINDS = "mtcd.model_kinds"
"""The group in which a feature names the kind of each of its classes of models, by
``module:class``."""
DEFAULT_MODEL = "mtcd.default_model"


class ModelKind(DefaultMethods, Protocol):
    """What a kind of model brings to a training. An implementation has no state, and imports what
    it needs when it is asked: the kind of a config is found before anything is trained."""

    linear: bool
    """Whether representations are linear or additive, as encryption and the transports need
    them."""
    reads_sources: bool
    """Whether blocks may stay with the processes of an engine (``BlockSources``)."""

    def has_classes(self, model: Any, labels: NDArray[Any]) -> bool:
        """Whether a model of this kind predicts classes, for such labels."""

    def check(self, asked: Request) -> None:
        """Reject arguments that this kind does not have."""

    def default_stop(self, method: Method) -> Stop:
        """The stop rule, unless one is given."""

    def training(self, asked: Request) -> Training:
        """The training, checked. ``asked`` is complete: a network, a stop rule, a method with its
        privacy."""


def kind_of(model: object) -> ModelKind:
    """The kind of a model, by the first of its classes that has one."""
    found = features.of_class(KINDS, type(model))
    if found is not None:
        return cast(ModelKind, found)

    raise ConfigError(f"train needs a Glm, Trees, Mixed or a SplitModel, but got {model!r}.")


def default_model() -> object:
    """The model that is trained where none is given: that of the kind which all features may
    use."""
    make = cast(Callable[[], object], features.load(features.parts(DEFAULT_MODEL)["model"]))
    return make()


def resolved(asked: Request) -> tuple[Request, ModelKind, tuple[str, ...]]:
    """The request with its network, stop rule and private method, checked; the kind of its model;
    notes for the run."""
    if asked.method is not None and not isinstance(asked.method, Method):
        raise ConfigError(
            "method must be MTCD(...), STCD(...), SVFL(...), DCPA(...) or TreeCG(), or left out, "
            f"but is {asked.method!r}."
        )
    model = asked.model
    if model is None:
        model = default_model()
    kind = kind_of(model)
    data = asked.data
    _check(asked.privacy, Privacy)
    # labels are released in this process, before anybody else sees them
    here = asked.engine is None or asked.privacy.labels is not None
    if isinstance(data, BlockSources) and (here or not kind.reads_sources):
        data = data.read()

    # After reading: sources have become data by now.
    _check(data, VerticalData, VerticalDataset, BlockSources)
    _check(asked.stop or Stop(gap=1), Stop)
    _check(asked.costs, Costs)
    check_whole("seed", asked.seed, least=0)
    # before the method: its default depends on whether the network is connected
    network = as_network(asked.network, data.clients, asked.seed)

    method = asked.method
    # After the network: which method is the default depends on whether it is connected.
    if method is None:
        method = default_method(kind, model, network.connected, asked.privacy)
    method = with_privacy(method, asked.privacy, split=not kind.linear)
    notes: tuple[str, ...] = ()
    if asked.method is None:
        notes = (default_note(method, network.connected),)

    if asked.engine is not None and not isinstance(asked.engine, EngineSettings):
        raise ConfigError(
            f"engine must be a kind of engine, such as mtcd.Ray(), but is {asked.engine!r}."
        )
    if asked.resume and asked.checkpoint is None:
        raise ConfigError("resume needs checkpoint: the folder of the training to go on with.")

    # the last thing before the kind checks: releasing labels may spend some of their privacy
    data = released(data, asked.privacy.labels, asked.checkpoint)
    model = with_noise(model, asked.privacy.labels)
    asked = replace(asked, data=data, model=model, network=network, method=method)
    # With the labels as they are used, and with the method that trains.
    kind.check(asked)

    # after the method is known: a default limit is in its iterations
    stop = asked.stop or kind.default_stop(method)
    stop.check(method, network, asked.costs)
    return replace(asked, stop=stop), kind, notes


def _check(given: object, *kinds: type) -> None:
    if not isinstance(given, kinds):
        raise ConfigError(
            f"train needs a {' or '.join(one.__name__ for one in kinds)}, but got {given!r}."
        )


def as_network(network: GivenNetwork, clients: tuple[str, ...], seed: int) -> Network:
    """The network from a name, graph or edges, checked against the clients."""
    if isinstance(network, str):
        return make_network(network, clients, seed=seed)
    if isinstance(network, Network):
        # In the same order: clients are numbers from here on.
        if network.clients != clients:
            raise ConfigError(
                "The network and the data do not have the same clients in the same order."
            )
        return network
    if not isinstance(network, nx.Graph | Iterable):
        raise ConfigError(
            f"network must be a name, a graph, edges or a Network, but is {network!r}."
        )
    return network_from_edges(network, clients)
