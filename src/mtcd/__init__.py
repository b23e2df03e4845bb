"""mtcd: vertical federated learning over any network.

>>> import mtcd
>>> data = mtcd.synthetic("ridge", samples=60, features=8, clients=4)
>>> run = mtcd.train(data, mtcd.Glm("ridge", alpha=1.0), "cycle", mtcd.MTCD(tokens=2, hops=4), mtcd.Stop(gap=1e-3))
>>> run.status
'converged'
"""

from __future__ import annotations

from functools import cache
from typing import Any

from mtcd.core import features
from mtcd.core.optional import find
from mtcd.core.version import VERSION

# Where the public names of the core live; features declare theirs. All are imported on first use,
# so that `mtcd --help` does not wait for SciPy. Type checkers read __init__.pyi, which is written
# from these lists.
_HOMES = {
    "BlockSources": "mtcd.data.sources",
    "Change": "mtcd.network.topology",
    "Compute": "mtcd.training.compute",
    "Costs": "mtcd.protocol.ledger.costs",
    "DP": "mtcd.privacy.settings",
    "DataWarning": "mtcd.core.errors",
    "History": "mtcd.training.history",
    "Ledger": "mtcd.protocol.ledger.ledger",
    "Measurement": "mtcd.training.history",
    "MtcdError": "mtcd.core.errors",
    "Network": "mtcd.network.topology",
    "Privacy": "mtcd.privacy.settings",
    "Run": "mtcd.training.run",
    "Stop": "mtcd.training.stop",
    "TableShare": "mtcd.data.tables",
    "VerticalData": "mtcd.data.vertical",
    "VerticalDataset": "mtcd.data.dataset",
    "load_run": "mtcd.config.runs",
    "made_blocks": "mtcd.data.sources",
    "make_network": "mtcd.network.topology",
    "network_from_edges": "mtcd.network.edges",
    "parquet_blocks": "mtcd.data.sources",
    "read_network": "mtcd.network.edges",
    "read_svmlight": "mtcd.data.svmlight",
    "read_tables": "mtcd.data.tables",
    "split": "mtcd.data.splitting",
    "svmlight_blocks": "mtcd.data.sources",
    "synthetic": "mtcd.data.synthetic",
    "train": "mtcd.training.train",
    "with_changes": "mtcd.network.changes",
}

__version__ = VERSION


@cache
def _homes() -> dict[str, str]:
    """The module of every public name."""
    homes = dict(_HOMES)
    for feature in features.every():
        homes.update(feature.public_names)

    return homes


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_homes())

    home = _HOMES.get(name) or _homes().get(name)
    if home is None:
        raise AttributeError(f"module 'mtcd' has no attribute {name!r}")

    return getattr(find(home), name)


def __dir__() -> list[str]:
    return sorted(_homes())
