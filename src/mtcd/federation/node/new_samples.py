"""New samples of a party, and the outputs of its block for them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.config.schema import AdditiveSection, SplitSection
from mtcd.core.errors import DataError, MtcdError
from mtcd.core.optional import find
from mtcd.data.prepare.recipe import AUTO
from mtcd.federation.credentials.bundle import Kit
from mtcd.federation.credentials.bundle_schema import KitConfig
from mtcd.federation.credentials.private_files import write_files
from mtcd.federation.node.folder import AGREED
from mtcd.federation.node.opening import Agreed
from mtcd.federation.node.predicting import NewSamples, Written, as_json, classes_from
from mtcd.federation.participant.table import PartyTable, id_column, read_party_table
from mtcd.models.glm.party.block import PartyBlock, read_block
from mtcd.models.glm.party.problem import glm_of
from mtcd.models.glm.trained import linear_columns
from mtcd.models.predicted import Columns
from mtcd.models.trees.party import AdditiveBlock, additive_of
from mtcd.models.trees.trained import additive_columns

Decide = Callable[[NDArray[np.float64], Any], Columns]


@dataclass(frozen=True)
class New:
    """A table of new samples."""

    table: PartyTable
    block: Any

    @property
    def ids(self) -> Sequence[str]:
        """The ids of the samples; empty with ``alignment: given order``."""
        return self.table.ids or ()

    @property
    def samples(self) -> int:
        """The number of rows of the table."""
        return self.table.rows

    def notes(self, rows: Sequence[int]) -> Sequence[str]:
        """Notes on values that are not as in the training rows."""
        preparation, frame = self.block.preparation, self._of(rows).frame
        return [] if preparation is None or frame is None else preparation.notes_on_new(frame)

    def _of(self, rows: Sequence[int]) -> PartyTable:
        return self.table.take(rows)


@dataclass(frozen=True)
class LinearNew(New):
    """New samples for a block of a linear model."""

    block: PartyBlock | AdditiveBlock

    @property
    def width(self) -> int:
        """The outputs per sample."""
        return self.block.outputs

    def part(self, rows: Sequence[int]) -> NDArray[Any]:
        """h_k of these rows."""
        return self.block.represent(self._of(rows)).reshape(len(rows), self.width)

    def decided(self, sums: NDArray[np.float64]) -> Columns:
        """The predictions for the sum of all parts, with probabilities or scores."""
        return self.block.columns_of(_outputs(sums))

    def classes(self) -> Any:
        """The classes of the labels."""
        return as_json(self.block.classes)


@dataclass(frozen=True)
class NetworkNew(New):
    """New samples for a network of a split model."""

    @property
    def width(self) -> int:
        """The width of the aggregate."""
        return int(self.block.aggregation.width)

    def part(self, rows: Sequence[int]) -> NDArray[Any]:
        """This party's part of the aggregate, which is the sum of all parts."""
        nothing = self.block.nothing(len(rows))
        return np.asarray(
            self.block.put(nothing, self.block.party, self.block.represent(self._of(rows)))
        )

    def decided(self, sums: NDArray[np.float64]) -> Columns:
        """The predictions for the aggregate, with the probabilities of classes."""
        found: Columns = self.block.columns_of(sums.astype(np.float32))
        return found

    def classes(self) -> Any:
        """None: the fusion module at the server knows the classes."""
        return None


def new_samples(kit: Kit, run: Path, data: Path, key: str | None) -> NewSamples:
    """A party's new samples, in the columns of the block that is in the run folder."""
    config = kit.config
    if isinstance(config.model, SplitSection):
        block: Any = find("mtcd.models.splitnet.party.block").read_network_block(
            config, kit.code, run
        )
        return NetworkNew(_new_table(config, data, key, block), block)
    block = read_block(run)
    if block.party != config.name:
        raise MtcdError(
            f"{run} is a run of {block.party}, but the kit is that of {config.name}: give a run "
            f"folder of "
            f"{config.name} (--run)."
        )
    return LinearNew(_new_table(config, data, key, block), block)


def _new_table(config: KitConfig, data: Path, key: str | None, block: Any) -> PartyTable:
    """The columns of a block in a table of new samples, as they are before preparation."""
    prepare = None if block.preparation is None else AUTO  # the columns are prepared by the block
    return read_party_table(
        data, config.name, id_column(config, key), block.inputs, prepare=prepare
    )


def run_number(run: Path) -> str:
    """The id of the run of a folder: blocks of different runs do not form a model."""
    try:
        return Agreed.unpacked((run / AGREED).read_bytes()).run
    except (OSError, MtcdError):
        raise MtcdError(
            f"{run} is not a run folder, as it has no valid {AGREED}: give one (--run)."
        ) from None


def server_decides(kit: Kit, run: Path) -> Decide:
    """The decision function of a server that learns the predictions."""
    config = kit.config
    if isinstance(config.model, SplitSection):
        block = find("mtcd.models.splitnet.party.block").read_network_block(config, kit.code, run)
        return lambda sums, classes: block.columns_of(sums.astype(np.float32))
    if isinstance(config.model, AdditiveSection):
        additive = additive_of(config)
        return lambda sums, classes: additive_columns(
            additive, classes_from(classes), _outputs(sums)
        )
    model = glm_of(config)
    return lambda sums, classes: linear_columns(model, classes_from(classes), _outputs(sums))


def _outputs(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return sums[:, 0] if sums.shape[1] == 1 else sums


def writer(config: KitConfig, out: Path) -> Written:
    """A function that writes ids (or row numbers) and predictions, with the probabilities of
    classes or scores, to a file that only its owner can read.
    """
    key = "row" if config.alignment == "given order" or config.is_server else "id"

    def write(ids: Sequence[str], found: Columns) -> str:
        text = io.StringIO(newline="")
        columns = [column.tolist() for column in found.values()]
        csv.writer(text).writerows([[key, *found], *zip(ids, *columns, strict=True)])
        write_files(out.absolute().parent, {out.name: text.getvalue().encode()}, private=True)
        return f"{len(ids)} predictions are in {out}."

    return write


def check_out(out: Path) -> None:
    """Refuse a path at which no file can be written."""
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise DataError(f"{out} cannot be written: give a file in a folder that exists (--out).")


def no_server(config: KitConfig) -> MtcdError:
    """The error for a server that is not needed."""
    return MtcdError(
        f"Predictions go to {config.seen_by} (predictions.seen_by), so the server takes no part: "
        f"do not start it."
    )
