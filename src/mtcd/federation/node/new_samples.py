"""New samples of a party, and the outputs of its block for them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import DataError, MtcdError
from mtcd.data.prepare.recipe import AUTO
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.credentials.private_files import write_files
from mtcd.federation.node.folder import AGREED
from mtcd.federation.node.opening import Agreed
from mtcd.federation.node.predicting import NewSamples, Written, as_json
from mtcd.federation.participant.kinds import Block, Decide, party_kind
from mtcd.federation.participant.table import PartyTable, id_column, read_party_table
from mtcd.models.predicted import Columns


@dataclass(frozen=True)
class New:
    """A table of new samples."""

    table: PartyTable
    block: Block

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

    @property
    def width(self) -> int:
        """The numbers per sample in the sum of all parts."""
        return self.block.width

    def part(self, rows: Sequence[int]) -> NDArray[Any]:
        """This party's part of the sum for these rows."""
        return self.block.contribution(self._of(rows))

    def decided(self, sums: NDArray[np.float64]) -> Columns:
        """The predictions for the sum of all parts, with probabilities or scores."""
        return self.block.decided(sums)

    def classes(self) -> Any:
        """The classes of the labels, for a server that predicts; None if that knows them."""
        told = self.block.told_classes
        return None if told is None else as_json(told)

    def _of(self, rows: Sequence[int]) -> PartyTable:
        return self.table.take(rows)


def new_samples(bundle: Bundle, run: Path, data: Path, key: str | None) -> NewSamples:
    """A party's new samples, in the columns of the block that is in the run folder."""
    config = bundle.config
    block = party_kind(config.model).block(bundle, run)
    if block.party != config.name:
        raise MtcdError(
            f"{run} is a run of {block.party}, but the bundle is that of {config.name}: give a run "
            f"folder of {config.name} (--run)."
        )
    return New(_new_table(config, data, key, block), block)


def _new_table(config: BundleConfig, data: Path, key: str | None, block: Block) -> PartyTable:
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


def server_decides(bundle: Bundle, run: Path) -> Decide:
    """The decision function of a server that learns the predictions."""
    return party_kind(bundle.config.model).server_decides(bundle, run)


def writer(config: BundleConfig, out: Path) -> Written:
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


def no_server(config: BundleConfig) -> MtcdError:
    """The error for a server that is not needed."""
    return MtcdError(
        f"Predictions go to {config.seen_by} (predictions.seen_by), so the server takes no part: "
        "do not start it."
    )
