"""A trained split network: the modules of all parties, for inspection and prediction."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError, DataError, MtcdError, listing
from mtcd.core.files import CHECKPOINT, WEIGHTS
from mtcd.core.optional import find
from mtcd.data.dataset import VerticalDataset, in_single
from mtcd.data.frames import as_frame, client_features
from mtcd.data.prepare import Preparations
from mtcd.data.samples import as_samples, check_finite, is_array
from mtcd.data.vertical import VerticalData
from mtcd.models.metrics import Outputs
from mtcd.models.predicted import Columns, predicted_columns, true_labels
from mtcd.models.samples import prepared_blocks
from mtcd.models.splitnet.aggregation import make_aggregation
from mtcd.models.splitnet.feed import make_source
from mtcd.models.splitnet.labels import Classes, class_probabilities, decide, split_outputs
from mtcd.models.trained import Trained

if TYPE_CHECKING:
    from mtcd.models.splitnet.model import SplitModel

CHUNK = 500


@dataclass(frozen=True, eq=False)
class TrainedSplit(Trained):
    """Modules in evaluation mode, on the CPU; a party of a real federation has its own only."""

    modules: Mapping[str, nn.Module]
    """The trained network of every client."""
    fusion: nn.Module
    """The trained fusion module."""
    aggregation: str
    widths: tuple[int, ...]
    classes: Classes | None
    shapes: Mapping[str, tuple[int, ...]]
    """The shape of one sample at each client."""
    preparations: Preparations | None = None
    """The preparations of the clients, where these prepare the columns of a table."""
    columns: Mapping[str, tuple[str, ...]] | None = None
    """The columns of each client, if it was trained on those of a table."""

    entry = "split"
    checkpoint = CHECKPOINT
    what = "a split network"
    instead = "its modules and fusion"
    offers = frozenset({"modules", "fusion"})

    def __repr__(self) -> str:
        parts = [*self.modules.values(), self.fusion]
        size = sum(value.numel() for part in parts for value in part.parameters())
        nets = listing(
            list(dict.fromkeys(type(module).__name__ for module in self.modules.values()))
        )
        return (
            f"TrainedSplit({len(self.modules):,} client(s): {nets} -> {self.aggregation} -> "
            f"{type(self.fusion).__name__}, {size:,} parameters)"
        )

    @property
    def known_classes(self) -> tuple[str | float, ...]:
        """The classes; none of values."""
        return self.classes or ()

    @property
    def clients(self) -> tuple[str, ...]:
        """The names of the clients."""
        return tuple(self.modules)

    def decision(self, X: Any) -> NDArray[np.float32]:
        """The outputs of the fusion module for new samples: features by client, or vertical
        data."""
        features = self._features(X)
        aggregation = make_aggregation(self.aggregation, self.clients, self.widths)
        return np.asarray(
            self.fused(
                aggregation.of([self.represent(client, features[client]) for client in features])
            )
        )

    def represent(self, client: str, values: Any) -> Tensor:
        """h_k of new samples, from this client's features."""
        source = make_source(values, client, torch.device("cpu"))
        with torch.no_grad():
            # Chunks, so that predicting takes no more memory than training.
            chunks = torch.split(torch.arange(len(values)), CHUNK)
            return torch.cat([self._represent(client, source.rows(rows)) for rows in chunks])

    def fused(self, H: Tensor) -> Tensor:
        """The outputs of the fusion module for an aggregate of new samples."""
        with torch.no_grad():
            return torch.cat([self.fusion(rows).float() for rows in torch.split(H, CHUNK)])

    def _represent(self, client: str, x: Tensor) -> Tensor:
        try:
            h: Tensor = self.modules[client](x).float()
        except Exception as error:  # the user's code may raise anything
            shape = tuple(x.shape[1:])
            trained = self.shapes[client]
            raise DataError(
                f"The network of client {client!r} was trained on samples of shape {trained}, and "
                f"cannot take new ones of shape {shape}: {error}"
            ) from None
        return h

    def predict(self, X: Any) -> NDArray[np.generic]:
        """The labels of the classes, or values."""
        return self.decided(torch.as_tensor(self.decision(X)))

    def predict_proba(self, X: Any) -> Array:
        """The probabilities of the classes, a column each; an error if the network predicts
        values."""
        if self.classes is None:
            raise ConfigError(
                "This network predicts values, which have no probabilities: use predict."
            )
        return class_probabilities(self.decision(X).astype(float))

    def columns_of(self, X: Any) -> Columns:
        """Predictions with the probabilities of classes, by the names of their columns."""
        return self.columns_from(torch.as_tensor(self.decision(X)))

    def columns_from(self, outputs: Tensor) -> Columns:
        """The same, from the outputs of the fusion module."""
        decision = np.asarray(outputs, dtype=float)
        probabilities = None
        if self.classes is not None:
            probabilities = class_probabilities(decision)
        return predicted_columns(self.decided(outputs), self.classes or (), decision, probabilities)

    def outputs(self, X: Any, y: Any) -> Outputs:
        """The outputs for samples with known labels, for metrics."""
        found = torch.as_tensor(self.decision(X))
        return split_outputs(found, true_labels(y, self.classes or (), len(found)), self.classes)

    def decided(self, outputs: Tensor) -> NDArray[np.generic]:
        """The labels or values of these outputs."""
        shown = decide(outputs, self.classes).numpy()
        if self.classes is None:
            return shown
        named: NDArray[np.generic] = np.asarray(self.classes)[shown]
        return named

    def _features(self, X: Any) -> Mapping[str, Any]:
        if self.preparations is not None:
            given = X.table if isinstance(X, VerticalDataset) and X.table is not None else X
            blocks = prepared_blocks(self.preparations, self.clients, given)
            prepared = {}
            for client, block in zip(self.clients, blocks, strict=True):
                prepared[client] = in_single(block)
            names = dict(zip(self.clients, self.preparations.outputs, strict=True))
            return self._checked(prepared, names)
        if isinstance(X, VerticalData):
            X = VerticalDataset.from_table(X)
        features = X.features if isinstance(X, VerticalDataset) else X
        if self.columns is not None and not isinstance(features, Mapping):
            # One table of all clients, of which each takes its columns by name.
            frame = as_frame(features)
            if frame is not None:
                features = client_features(frame, self.columns)
        if not isinstance(features, Mapping):
            raise DataError(
                "New samples for a split network are the features of each client, by its name."
            )
        missing = [client for client in self.clients if client not in features]
        if missing:
            raise DataError(f"The new samples have no features of client {missing[0]!r}.")
        found = {client: as_samples(client, features[client]) for client in self.clients}
        lengths = {client: len(values) for client, values in found.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"The clients have different numbers of new samples: {lengths}.")
        return self._checked(found, self.columns or {})

    def _checked(
        self, features: Mapping[str, Any], columns: Mapping[str, tuple[str, ...]]
    ) -> Mapping[str, Any]:
        """Refuse missing values: a network makes NaN of them, and the first class of NaN."""
        for client, values in features.items():
            if is_array(values):
                check_finite(client, values, columns.get(client))
        return features

    def weights(self) -> dict[str, Tensor]:
        """All parameters and statistics, by 'client/name' and 'fusion/name'."""
        parts = {f"client/{name}": module for name, module in self.modules.items()}
        parts["fusion"] = self.fusion
        found = {}
        for part, module in parts.items():
            for name, value in module.state_dict().items():
                # A copy: modules may share tensors, which safetensors refuses.
                found[f"{part}/{name}"] = value.detach().cpu().contiguous().clone()
        return found

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the weights to a file of the run folder; returns the entries about them in its
        JSON."""
        (folder / WEIGHTS).write_bytes(save(self.weights()))
        columns = None
        if self.columns is not None:
            columns = [list(self.columns[client]) for client in self.clients]
        return {
            "clients": list(self.clients),
            "shapes": [list(self.shapes[client]) for client in self.clients],
            "aggregation": self.aggregation,
            "widths": list(self.widths),
            "classes": None if self.classes is None else list(self.classes),
            "columns": columns,
        }

    def onnx(self, path: Path) -> dict[Path, bytes]:
        """A file for each client, and one for the fusion, in a folder."""
        made = find("mtcd.models.splitnet.onnx_files").split_onnx(self)
        return {path / name: content for name, content in made.items()}


def read_trained(folder: Path, about: Mapping[str, Any], model: SplitModel | None) -> TrainedSplit:
    """The trained network of a run folder: the modules of ``model``, with the weights in the
    folder."""
    if model is None:
        raise MtcdError(
            f"{folder} holds a split network, only its weights: give load_run(folder, model) the "
            f"SplitModel."
        )
    classes = about["classes"]
    columns = about.get("columns")
    missing = [client for client in about["clients"] if client not in model.representations]
    if missing:
        raise ConfigError(
            f"The model given has no representation for client {missing[0]!r}, which {folder} has."
        )
    modules = {
        client: copy.deepcopy(model.representations[client]).cpu() for client in about["clients"]
    }
    fusion = copy.deepcopy(model.fusion).cpu()
    try:
        parts = {f"client/{client}": module for client, module in modules.items()}
        parts["fusion"] = fusion
        load_weights(parts, load_file(folder / WEIGHTS))
    except (RuntimeError, KeyError, SafetensorError, OSError) as error:
        raise ConfigError(
            f"The weights in {folder} do not fit the modules given: {error}"
        ) from None
    shapes = {}
    for client, shape in zip(about["clients"], about["shapes"], strict=True):
        shapes[client] = tuple(shape)
    if columns is not None:
        columns = dict(zip(about["clients"], map(tuple, columns), strict=True))
    return TrainedSplit(
        {client: module.eval() for client, module in modules.items()},
        fusion.eval(),
        about["aggregation"],
        tuple(about["widths"]),
        None if classes is None else tuple(classes),
        shapes,
        columns=columns,
    )


def load_weights(parts: Mapping[str, nn.Module], weights: dict[str, Tensor]) -> None:
    """Load all weights into the modules."""
    for part, module in parts.items():
        module.load_state_dict(
            {name: weights.pop(f"{part}/{name}") for name in module.state_dict()}
        )
    # Weights that no module takes are those of another model.
    if weights:
        raise KeyError(next(iter(weights)))
