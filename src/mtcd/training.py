"""train(): joins data, model, network and method, and trains in this process."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx

from mtcd.checks import check_whole
from mtcd.data.dataset import VerticalDataset
from mtcd.data.vertical import VerticalData
from mtcd.errors import ConfigError
from mtcd.following import Watch
from mtcd.ledger.costs import Costs
from mtcd.linear_training import train_linear
from mtcd.methods.method import Method
from mtcd.model.linear import Glm
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network, make_network
from mtcd.run import Run
from mtcd.splitnet.compute import Compute
from mtcd.stop import Stop

if TYPE_CHECKING:
    from mtcd.splitnet.model import SplitModel


def train(
    data: VerticalData | VerticalDataset,
    model: Glm | SplitModel | None = None,
    network: Network | nx.Graph | Iterable[tuple[str | int, str | int]] | str = "complete",
    method: Method | None = None,
    stop: Stop | None = None,
    costs: Costs | None = None,
    seed: int = 0,
    standardise: bool = False,
    watch: Watch | None = None,
    compute: Compute | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
) -> Run:
    """Train a model on vertically split data over a network, and return the :class:`Run`.

    A :class:`Glm`: f(theta) = sum_n l(sum_k x_nk . theta_k, y_n) + sum_k r(theta_k). A :class:`SplitModel`: a module
    for every client, on vertical data or a :class:`VerticalDataset`.

    ``network`` is a kind by name, a networkx graph over the clients, pairs of clients, or a :class:`Network`;
    ``method`` is MTCD(...), STCD(...), SVFL(...), DCPA(...) or TreeCG(). ``watch`` is called with every measurement and
    how far along it is. For split networks, ``compute`` says where they run; ``checkpoint`` names a folder in which
    the state is kept at every measurement, and with ``resume`` the training goes on from the one that is there.

    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=50, features=12, clients=4)
    >>> run = mtcd.train(data, mtcd.Glm("ridge", alpha=1.0), "path", mtcd.STCD(local_updates=5), mtcd.Stop(gap=1e-6))
    >>> run.status, run.coefficients.shape
    ('converged', (12,))
    """
    if not isinstance(method, Method):
        raise ConfigError(
            f"train needs a method, MTCD(...), STCD(...), SVFL(...), DCPA(...) or TreeCG(), but got {method!r}."
        )
    costs = costs or Costs()
    for given, kind in ((data, (VerticalData, VerticalDataset)), (stop or Stop(gap=1), Stop), (costs, Costs)):
        if not isinstance(given, kind):
            names = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
            raise ConfigError(f"train wants a {names}, but got {given!r}.")
    check_whole("seed", seed, least=0)
    if model is None or isinstance(model, Glm):
        if not isinstance(data, VerticalData):
            raise ConfigError("A Glm is trained on VerticalData, a table: make it with mtcd.split or mtcd.read_tables.")
        if compute is not None or checkpoint is not None or resume:
            raise ConfigError(
                "compute, checkpoint and resume are for split networks: a Glm keeps no checkpoint, so leave them out."
            )
        stop, over = stop or Stop(iterations=10_000), as_network(network, data.clients, seed)
        return train_linear(data, model or Glm(), over, method, stop, costs, seed, standardise, watch)
    from mtcd.split_training import Keeping, train_split

    if standardise:
        raise ConfigError("standardise is for a Glm: scale the features of a split network yourself.")
    over, keeping = as_network(network, data.clients, seed), Keeping(checkpoint, resume)
    return train_split(data, model, over, method, stop, costs, seed, watch, compute or Compute(), keeping)


def as_network(
    network: Network | nx.Graph | Iterable[tuple[str | int, str | int]] | str, clients: tuple[str, ...], seed: int
) -> Network:
    """A network from whatever describes it, checked against the clients."""
    if isinstance(network, str):
        return make_network(network, clients, seed=seed)
    if isinstance(network, Network):
        if network.clients != clients:
            raise ConfigError("The network and the data do not have the same clients in the same order.")
        return network
    if not isinstance(network, nx.Graph | Iterable):
        raise ConfigError(f"network must be a name, a graph, edges or a Network, but is {network!r}.")
    return network_from_edges(network, clients)
