"""mtcd: vertical federated learning over any network.

>>> import mtcd
>>> data = mtcd.synthetic("ridge", samples=60, features=8, clients=4)
>>> run = mtcd.train(data, mtcd.Glm("ridge", alpha=1.0), "cycle", mtcd.MTCD(tokens=2, hops=4), mtcd.Stop(gap=1e-3))
>>> run.status
'converged'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtcd.extras import find
from mtcd.version import VERSION

if TYPE_CHECKING:
    from mtcd.callbacks.callback import Callback, Moment
    from mtcd.callbacks.csv import CsvWriter
    from mtcd.callbacks.early_stopping import EarlyStopping
    from mtcd.callbacks.keep_best import KeepBest
    from mtcd.callbacks.mlflow import MLflowWriter
    from mtcd.callbacks.tensorboard import TensorBoardWriter
    from mtcd.config.runs import load_run
    from mtcd.data.dataset import VerticalDataset
    from mtcd.data.datasets.catalogue import load_dataset
    from mtcd.data.datasets.entry import Forecast
    from mtcd.data.sources import BlockSources, made_blocks, parquet_blocks, svmlight_blocks
    from mtcd.data.splitting import split
    from mtcd.data.svmlight import read_svmlight
    from mtcd.data.synthetic import synthetic
    from mtcd.data.tables import TableShare, read_tables
    from mtcd.data.vertical import VerticalData
    from mtcd.engines.ray.settings import Ray
    from mtcd.errors import MtcdError
    from mtcd.estimators.classifier import MTCDClassifier
    from mtcd.estimators.regressor import MTCDRegressor
    from mtcd.history import History, Measurement
    from mtcd.ledger.costs import Costs
    from mtcd.ledger.ledger import Ledger
    from mtcd.methods.dcpa import DCPA
    from mtcd.methods.mtcd import MTCD, STCD
    from mtcd.methods.schedule import Schedule
    from mtcd.methods.svfl import SVFL
    from mtcd.methods.tree_cg import TreeCG
    from mtcd.model.linear import Glm
    from mtcd.network.changes import with_changes
    from mtcd.network.edges import network_from_edges, read_network
    from mtcd.network.topology import Change, Network, make_network
    from mtcd.privacy import DP, Privacy
    from mtcd.run import Run
    from mtcd.selection.cross_validation import CrossValidation, cross_validate
    from mtcd.selection.path import Path, path
    from mtcd.splitnet.compute import Compute
    from mtcd.splitnet.model import SplitModel
    from mtcd.stop import Stop
    from mtcd.sweeps.sweep import Sweep, sweep
    from mtcd.training import train

# where each public name lives; imported on first use, so that `mtcd --help` does not wait for SciPy
_HOMES = {
    "BlockSources": "mtcd.data.sources",
    "Callback": "mtcd.callbacks.callback",
    "Change": "mtcd.network.topology",
    "CsvWriter": "mtcd.callbacks.csv",
    "EarlyStopping": "mtcd.callbacks.early_stopping",
    "KeepBest": "mtcd.callbacks.keep_best",
    "MLflowWriter": "mtcd.callbacks.mlflow",
    "TensorBoardWriter": "mtcd.callbacks.tensorboard",
    "Compute": "mtcd.splitnet.compute",
    "Costs": "mtcd.ledger.costs",
    "CrossValidation": "mtcd.selection.cross_validation",
    "DP": "mtcd.privacy",
    "DCPA": "mtcd.methods.dcpa",
    "Forecast": "mtcd.data.datasets.entry",
    "Glm": "mtcd.model.linear",
    "History": "mtcd.history",
    "Ledger": "mtcd.ledger.ledger",
    "MTCD": "mtcd.methods.mtcd",
    "MTCDClassifier": "mtcd.estimators.classifier",
    "MTCDRegressor": "mtcd.estimators.regressor",
    "Measurement": "mtcd.history",
    "Mixed": "mtcd.families.additive",
    "Moment": "mtcd.callbacks.callback",
    "MtcdError": "mtcd.errors",
    "Network": "mtcd.network.topology",
    "Path": "mtcd.selection.path",
    "Privacy": "mtcd.privacy",
    "Ray": "mtcd.engines.ray.settings",
    "Run": "mtcd.run",
    "STCD": "mtcd.methods.mtcd",
    "SVFL": "mtcd.methods.svfl",
    "Schedule": "mtcd.methods.schedule",
    "SplitModel": "mtcd.splitnet.model",
    "Stop": "mtcd.stop",
    "Sweep": "mtcd.sweeps.sweep",
    "TableShare": "mtcd.data.tables",
    "TreesClassifier": "mtcd.estimators.trees",
    "TreesRegressor": "mtcd.estimators.trees",
    "Trees": "mtcd.families.additive",
    "TreeCG": "mtcd.methods.tree_cg",
    "VerticalData": "mtcd.data.vertical",
    "VerticalDataset": "mtcd.data.dataset",
    "cross_validate": "mtcd.selection.cross_validation",
    "load_dataset": "mtcd.data.datasets.catalogue",
    "load_run": "mtcd.config.runs",
    "made_blocks": "mtcd.data.sources",
    "make_network": "mtcd.network.topology",
    "network_from_edges": "mtcd.network.edges",
    "parquet_blocks": "mtcd.data.sources",
    "path": "mtcd.selection.path",
    "read_network": "mtcd.network.edges",
    "read_svmlight": "mtcd.data.svmlight",
    "read_tables": "mtcd.data.tables",
    "split": "mtcd.data.splitting",
    "sweep": "mtcd.sweeps.sweep",
    "svmlight_blocks": "mtcd.data.sources",
    "synthetic": "mtcd.data.synthetic",
    "train": "mtcd.training",
    "with_changes": "mtcd.network.changes",
}

__version__ = VERSION
__all__ = [
    "DCPA",
    "DP",
    "MTCD",
    "STCD",
    "SVFL",
    "BlockSources",
    "Callback",
    "Change",
    "Compute",
    "Costs",
    "CrossValidation",
    "CsvWriter",
    "EarlyStopping",
    "Forecast",
    "Glm",
    "History",
    "KeepBest",
    "Ledger",
    "MLflowWriter",
    "MTCDClassifier",
    "MTCDRegressor",
    "Measurement",
    "Mixed",
    "Moment",
    "MtcdError",
    "Network",
    "Path",
    "Privacy",
    "Ray",
    "Run",
    "Schedule",
    "SplitModel",
    "Stop",
    "Sweep",
    "TableShare",
    "TensorBoardWriter",
    "TreeCG",
    "Trees",
    "TreesClassifier",
    "TreesRegressor",
    "VerticalData",
    "VerticalDataset",
    "cross_validate",
    "load_dataset",
    "load_run",
    "made_blocks",
    "make_network",
    "network_from_edges",
    "parquet_blocks",
    "path",
    "read_network",
    "read_svmlight",
    "read_tables",
    "split",
    "svmlight_blocks",
    "sweep",
    "synthetic",
    "train",
    "with_changes",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mtcd' has no attribute {name!r}")
    return getattr(find(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
