"""inspect(): what a training would be, without running it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import networkx as nx

from mtcd.core import features
from mtcd.core.errors import ConfigError
from mtcd.data.dataset import VerticalDataset
from mtcd.data.sources import BlockSources
from mtcd.data.vertical import VerticalData
from mtcd.inspection.facts import GROUP, Inspection, InspectModel
from mtcd.methods.method import Method
from mtcd.network.topology import Network
from mtcd.privacy.settings import Privacy
from mtcd.protocol.ledger.costs import Costs
from mtcd.training.compute import Compute
from mtcd.training.kinds import Request, resolved
from mtcd.training.stop import Stop


def inspect(
    data: VerticalData | VerticalDataset | BlockSources,
    model: object | None = None,
    network: Network | nx.Graph | Iterable[tuple[str | int, str | int]] | str = "complete",
    method: Method | None = None,
    stop: Stop | None = None,
    costs: Costs | None = None,
    seed: int = 0,
    standardise: bool = False,
    compute: Compute | None = None,
    privacy: Privacy | None = None,
) -> Inspection:
    """Show the training that :func:`train` would do with these arguments, without running it.

    What a method costs, how large its messages are, how large steps may be, and what the theorems
    say of it. Settings that :func:`train` refuses are refused here, too.

    Parameters
    ----------
    data : VerticalData, VerticalDataset or BlockSources
        As in :func:`train`.
    model : Glm, Trees, Mixed or SplitModel, optional
        As in :func:`train`.
    network : str, Network, networkx.Graph or pairs of clients, default 'complete'
        As in :func:`train`.
    method : Method, optional
        As in :func:`train`.
    stop : Stop, optional
        As in :func:`train`.
    costs : Costs, optional
        As in :func:`train`.
    seed : int, default 0
        As in :func:`train`.
    standardise : bool, default False
        As in :func:`train`.
    compute : Compute, optional
        As in :func:`train`.
    privacy : Privacy, optional
        As in :func:`train`.

    Returns
    -------
    Inspection
        The facts as plain values (``facts``), and as text (``print(found)``).

    Raises
    ------
    MtcdError
        If the parts do not fit together.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=50, features=12, clients=4)
    >>> found = mtcd.inspect(data, mtcd.Glm("ridge"), "path", mtcd.STCD(), costs=mtcd.Costs(ratio=10))
    >>> found.facts["cost_per_iteration"], found.facts["token_floats"]
    (0.1, 50)
    """
    request = Request(
        data=data,
        model=model,
        network=network,
        method=method,
        stop=stop,
        costs=costs or Costs(),
        seed=seed,
        standardise=standardise,
        compute=compute,
        privacy=privacy or Privacy(),
    )
    # what train() would fill in is filled in by the same code, so that both refuse the same
    asked, _, notes = resolved(request)

    look = features.of_class(GROUP, type(asked.model))
    if look is None:
        raise ConfigError(
            f"inspect does not know models of the class {type(asked.model).__name__}."
        )

    return cast(InspectModel, look)(asked).with_notes(notes)
