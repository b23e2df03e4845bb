"""A party's block of a split network: its own module, and the final fusion module theta_0 if it is
known.

The server has the final theta_0; without a server, the client that ended the training has it. That
party sends it to all others, encoded by ``fusion_to_bytes``; clients had earlier versions from
tokens anyway.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor, nn

from mtcd.core.errors import DataError, MtcdError, WireError, listing
from mtcd.core.files import WEIGHTS, plain
from mtcd.data.prepare import ColumnPreparation
from mtcd.data.samples import check_samples
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.own_code import OwnCode
from mtcd.federation.participant.table import PartyTable
from mtcd.models.glm.party.problem import prepared_values
from mtcd.models.predicted import Columns
from mtcd.models.splitnet.aggregation import Aggregation, make_aggregation
from mtcd.models.splitnet.config import SplitSection
from mtcd.models.splitnet.configured import fusion_module, saved_client
from mtcd.models.splitnet.own import OwnProblem
from mtcd.models.splitnet.party.networks import in_single, own_fusion_maker, own_maker, section_of
from mtcd.models.splitnet.trained import TrainedSplit, load_weights

FORMAT = 1
ABOUT = "about"
LARGEST_HEADER_BYTES = 100_000  # names and shapes of tensors


def fusion_to_bytes(problem: OwnProblem) -> bytes:
    """Encode the fusion module of this party."""
    return module_to_bytes(problem.head.finished())


def module_to_bytes(module: nn.Module) -> bytes:
    """Encode the weights of a module."""
    return save({name: value.contiguous() for name, value in module.state_dict().items()})


def fusion_from_bytes(data: bytes, problem: OwnProblem) -> dict[str, Tensor]:
    """Decode the fusion module from another party, and check the names, shapes and types of its
    tensors."""
    known = problem.head.finished().state_dict()
    # Before decoding: a header of any size must not be read into memory.
    if len(data) > LARGEST_HEADER_BYTES + sum(value.nbytes for value in known.values()):
        raise WireError("fusion", "is larger than it can be")
    try:
        received = load(bytes(data))
    except (SafetensorError, ValueError, KeyError, TypeError):
        raise WireError("fusion", "cannot be read") from None
    if received.keys() != known.keys():
        raise WireError("fusion", "is of another module")
    for name, value in received.items():
        if value.shape != known[name].shape or value.dtype != known[name].dtype:
            raise WireError("fusion", "is of another shape or kind")
        # NaN here would make every prediction of this party NaN.
        if not bool(value.isfinite().all()):
            raise WireError("fusion", "holds numbers that are not finite")
    return received


@dataclass(frozen=True, eq=False)
class NetworkBlock:
    """The trained modules of a party, or of the server. ``knows_fusion``: whether theta_0 is the
    final one."""

    party: str
    parties: tuple[str, ...]
    columns: tuple[str, ...]
    trained: TrainedSplit
    knows_fusion: bool
    preparation: ColumnPreparation | None = None
    """What makes ``columns`` of the columns as given, if these are prepared."""

    @staticmethod
    def of(
        problem: OwnProblem,
        config: BundleConfig,
        columns: Sequence[str] = (),
        fusion: bytes | None = None,
        preparation: ColumnPreparation | None = None,
    ) -> NetworkBlock:
        """The block of a party at the end; ``fusion`` is the final theta_0, if it was received."""
        assert isinstance(config.model, SplitSection)
        head = problem.head.finished()
        common = problem.common
        own = problem.own
        if fusion is not None:
            head.load_state_dict(fusion_from_bytes(fusion, problem))
        modules, shapes = {}, {}
        if problem.net is not None and own is not None:
            modules[config.name] = problem.net.finished()
            shapes[config.name] = tuple(own.source.rows(torch.arange(1)).shape[1:])
        widths = common.aggregation.widths
        trained = TrainedSplit(
            modules, head, config.model.aggregation, widths, common.classes, shapes
        )
        parties = tuple(config.parties)
        return NetworkBlock(
            config.name, parties, tuple(columns), trained, fusion is not None, preparation
        )

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns of a table, before preparation."""
        if self.preparation is None:
            return self.columns
        return self.preparation.inputs

    @property
    def finite(self) -> bool:
        """Whether all weights are finite: if not, the training diverged."""
        return all(bool(value.isfinite().all()) for value in self.trained.weights().values())

    @property
    def aggregation(self) -> Aggregation:
        """The aggregation of representations."""
        return make_aggregation(self.trained.aggregation, self.parties, self.trained.widths)

    def represent(self, table: PartyTable) -> NDArray[np.float32]:
        """h_k of new samples, in the order of their table."""
        if table.columns != self.inputs:
            raise DataError(
                f"{table.path}: the network of {self.party!r} was trained on the columns "
                f"{listing(self.inputs)}, but these are {listing(table.columns)}: read the new "
                "samples with the same columns, in that order."
            )
        return self.represent_values(prepared_values(self.preparation, table))

    def represent_values(self, values: NDArray[Any]) -> NDArray[np.float32]:
        """The same for samples of any shape."""
        samples = in_single(values)
        check_samples(self.party, samples, len(samples), self.columns or None)
        return self.trained.represent(self.party, samples).numpy()

    def nothing(self, samples: int) -> NDArray[np.float32]:
        """The empty aggregate of this number of samples."""
        return np.zeros((samples, self.aggregation.width), dtype=np.float32)

    def put(
        self, aggregate: NDArray[np.float32], party: str, h: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """The aggregate with a party's representation added, which must not be in it yet."""
        k = self.parties.index(party)
        return self.aggregation.put(torch.as_tensor(aggregate), k, torch.as_tensor(h)).numpy()

    @property
    def width(self) -> int:
        """The width of the aggregate."""
        return int(self.aggregation.width)

    def contribution(self, table: PartyTable) -> NDArray[Any]:
        """This party's part of the aggregate of new samples, which is the sum of all parts."""
        nothing = self.nothing(table.rows)
        return np.asarray(self.put(nothing, self.party, self.represent(table)))

    def decided(self, sums: NDArray[np.float64]) -> Columns:
        """The predictions for the aggregate, with the probabilities of classes."""
        return self.columns_of(sums.astype(np.float32))

    @property
    def told_classes(self) -> None:
        """None: the fusion module at the server knows the classes."""
        return None

    def predict(self, aggregate: NDArray[np.float32]) -> NDArray[np.generic]:
        """The predictions for the aggregate of all parties: values, or class labels."""
        return self.columns_of(aggregate)["prediction"]

    def columns_of(self, aggregate: NDArray[np.float32]) -> Columns:
        """The same, with the probabilities of classes, by the names of their columns."""
        if not self.knows_fusion:
            raise MtcdError(
                f"{self.party!r} did not receive the final fusion module, and cannot predict: "
                "start all parties again with the same folders, to receive it."
            )
        return self.trained.columns_from(self.trained.fused(torch.as_tensor(aggregate)))

    def files(self) -> dict[str, bytes]:
        """The block as a file, by name."""
        trained = self.trained
        about = {
            "format": FORMAT,
            "party": self.party,
            "columns": self.columns,
            "shape": trained.shapes.get(self.party),
            "widths": trained.widths,
            "classes": trained.classes,
            "knows_fusion": self.knows_fusion,
        }
        if self.preparation is not None:
            about["preparation"] = self.preparation.to_json()
        return {WEIGHTS: save(trained.weights(), {ABOUT: json.dumps(about, default=plain)})}


def read_network_block(config: BundleConfig, code: OwnCode, folder: Path) -> NetworkBlock:
    """Read the block of a run folder: build the modules that the bundle describes, and load the
    weights."""
    path = folder / WEIGHTS
    try:
        with safe_open(path, "pt") as file:
            about = json.loads((file.metadata() or {})[ABOUT])
            # Copies: the file is closed, and may be replaced while the block is in use.
            weights = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        if (about["format"], about["party"]) != (FORMAT, config.name):
            raise ValueError(f"it is of {about['party']!r} and format {about['format']}")
        return _block(config, code, about, weights)
    except FileNotFoundError:
        raise MtcdError(
            f"There is no {WEIGHTS} in {folder}: the run has not ended, it diverged, or this is "
            f"not its folder (--run)."
        ) from None
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise MtcdError(f"{path} is not a whole block ({type(error).__name__}: {error}).") from None


def _block(
    config: BundleConfig, code: OwnCode, about: dict[str, Any], weights: dict[str, Tensor]
) -> NetworkBlock:
    section = section_of(config)
    name = config.name
    classes = None if about["classes"] is None else tuple(about["classes"])
    aggregation = make_aggregation(section.aggregation, config.parties, about["widths"])
    fusion = fusion_module(
        section, own_fusion_maker(config, code), aggregation, classes, config.seed
    )
    modules = {}
    shapes = {}
    parts: dict[str, nn.Module] = {"fusion": fusion}
    if not config.is_server:
        shapes[name], number = tuple(about["shape"]), config.parties.index(name)
        maker = own_maker(config, code)
        module = saved_client(
            section, maker, config.parties, number, shapes[name], config.seed, config.standardise
        )
        modules[name] = parts[f"client/{name}"] = module
    load_weights(parts, weights)
    trained = TrainedSplit(
        {client: module.eval() for client, module in modules.items()},
        fusion.eval(),
        section.aggregation,
        aggregation.widths,
        classes,
        shapes,
    )
    preparation = None
    if "preparation" in about:
        preparation = ColumnPreparation.from_json(about["preparation"])
    columns = tuple(about["columns"])
    if preparation is not None and preparation.outputs != columns:
        raise ValueError("its preparation is of another block")
    return NetworkBlock(
        name, tuple(config.parties), columns, trained, about["knows_fusion"], preparation
    )
