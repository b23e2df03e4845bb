"""Joint prediction of new samples: every party has its own columns of them, and one learns the
predictions.

The leader (the party that learns the predictions, or the label holder if the server learns them)
aligns the new samples on their ids and announces them; a masked sum (``passing.py``) then adds up
the outputs of the parties' blocks. There is no journal: after a crash, the party and the pass are
restarted.
"""

from __future__ import annotations

import csv
import io
import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import DataError, MtcdError, WireError
from mtcd.core.received import is_whole
from mtcd.data.prepare.recipe import AUTO
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.credentials.private_files import write_files
from mtcd.federation.names import SERVER
from mtcd.federation.node.aligning import AlignmentFollower, AlignmentLeader, agreed_rows
from mtcd.federation.node.context import NodeContext
from mtcd.federation.node.folder import AGREED
from mtcd.federation.node.link import IncomingRequest
from mtcd.federation.node.log import Log
from mtcd.federation.node.opening import Agreed
from mtcd.federation.node.passing import (
    SumContributor,
    SumReceiver,
    Sums,
    from_sums,
    learns_predictions,
    server_takes_part,
    to_sums,
)
from mtcd.federation.node.rpc import Answers
from mtcd.federation.participant.kinds import Block, Decide, party_kind
from mtcd.federation.participant.table import PartyTable, id_column, read_party_table
from mtcd.models.predicted import Columns

PURPOSE = "predicting"
PASS_TIMEOUT_SECONDS = 20.0  # after which a pass is restarted
WAITING_NOTE_SECONDS = 5.0
EXIT_DELAY_SECONDS = 0.3  # for the answer to be sent
LARGEST_SIZE = 2**30


class PartySamples(Protocol):
    """New samples of a party, and its block of the model."""

    @property
    def ids(self) -> Sequence[str]:
        """The ids of the samples."""

    @property
    def samples(self) -> int:
        """The number of samples."""

    @property
    def width(self) -> int:
        """The width of the sum per sample."""

    def part(self, rows: Sequence[int]) -> NDArray[Any]:
        """This party's part of the sum for these rows: (rows, width)."""

    def notes(self, rows: Sequence[int]) -> Sequence[str]:
        """Sentences for this party's log on values of these rows that are not as in its training
        rows."""

    def decided(self, sums: NDArray[np.float64]) -> Columns:
        """The predictions for the sum of all parts, with probabilities or scores, by the names of
        their columns."""

    def classes(self) -> Any:
        """The classes that the server needs to predict, as JSON."""


Written = Callable[[Sequence[str], Columns], str]
"""Writes ids and predictions; returns a sentence for the log."""


class Predictor:
    """One party, or the server. ``new`` is None at a server, which has ``decide`` instead.

    ``run`` is the id of the run that trained the blocks, and must be the same at all parties.
    """

    def __init__(
        self,
        bundle: Bundle,
        new: PartySamples | None,
        write: Written,
        decide: Callable[[NDArray[np.float64], Any], Columns] | None,
        show: Callable[[str], None] | None,
        log: Path | None = None,
        run: str = "",
    ) -> None:
        self.bundle, self.config, self.new, self.write, self.decide = (
            bundle,
            bundle.config,
            new,
            write,
            decide,
        )
        self.context = NodeContext(bundle, Log(bundle.config.name, log, show))
        rpc, rpc_client = self.context.rpc, self.context.rpc_client
        # Where the server learns the predictions, it has no samples to align.
        self.leader = self.config.seen_by
        if self.leader == SERVER:
            self.leader = self.config.labels.held_by
        self.leads = self.config.name == self.leader
        self.rows: Sequence[int] | None = None
        self.finished = self.noted = False
        self.receiver: SumReceiver | None = None
        if learns_predictions(self.config):
            self.receiver = SumReceiver(rpc, rpc_client, self.config)
        if new is not None and not learns_predictions(self.config):
            SumContributor(rpc, rpc_client, self.config, self._own_part)
        if self.leads:
            assert new is not None
            self.leading = AlignmentLeader(rpc_client, bundle, PURPOSE + run, new, self.context.log)
        else:
            self.alignment = AlignmentFollower(
                rpc, bundle, self.leader, PURPOSE + run, new, self.context.log
            )
            rpc.on("done", self._done)
            if new is None:
                rpc.on("collect", self._collect)
            else:
                rpc.on("rows", self._take_rows)

    def run(self) -> None:
        """Run until the predictions are written."""
        self.context.run(self._begin)

    def _begin(self) -> None:
        if self.leads:
            self.leading.align(self._aligned)
        self._say_waiting()

    def _say_waiting(self) -> None:
        if not self.finished:
            waits = [self.leader]
            if self.leads:
                waits = sorted(self.context.rpc_client.waits_for)
            if waits:
                self.context.say_waiting(waits)
            self.context.loop.later(WAITING_NOTE_SECONDS, self._say_waiting)

    # The leader

    def _aligned(self, announcement: bytes) -> None:
        assert self.new is not None
        self.rows = agreed_rows(announcement, self.new)
        bodies = dict.fromkeys(self.leading.others, self.leading.wrapped(announcement))
        self.context.rpc_client.ask("rows", bodies, self._pass)

    def _pass(self, answers: Answers) -> None:
        assert self.new is not None
        assert self.rows is not None
        certificates = {name: b64encode(answer).decode() for name, answer in answers.items()}
        certificates[self.config.name] = b64encode(self._certificate()).decode()
        if not server_takes_part(self.config):
            self._start_pass(
                (len(self.rows), self.new.width), certificates, self._received_by_party
            )
            return
        sizes = {"samples": len(self.rows), "width": self.new.width}
        body = self.leading.wrapped(**sizes, classes=self.new.classes(), certificates=certificates)
        self.context.rpc_client.ask("collect", {SERVER: body}, lambda _: self._announce_done())

    def _received_by_party(self, sums: Sums) -> None:
        assert self.new is not None
        assert self.rows is not None
        total = from_sums(sums + self._own_part())
        # Without ids the rows count, from 1 as in a spreadsheet.
        if self.new.ids:
            ids = [self.new.ids[row] for row in self.rows]
        else:
            ids = [str(row + 1) for row in self.rows]
        self._finish(self.write(ids, self.new.decided(total)))
        self._announce_done()

    def _announce_done(self) -> None:
        self._finish(self._who_has_them())
        others = list(self.leading.others)
        if server_takes_part(self.config):
            others.append(SERVER)
        bodies = dict.fromkeys(others, self.leading.wrapped())
        self.context.rpc_client.ask("done", bodies, lambda _: self.context.loop.stop())

    # The followers

    def _take_rows(self, request: IncomingRequest) -> None:
        _, (announcement,) = self.alignment.read(request, 1)
        self.rows = self.alignment.rows(announcement)
        request.answer(self._certificate())

    def _collect(self, request: IncomingRequest) -> None:
        head, _ = self.alignment.read(request, 0, "samples", "width", "classes", "certificates")
        for name in ("samples", "width"):
            if not is_whole(head[name], 1, LARGEST_SIZE - 1):
                raise WireError(name, "is out of range")
        # Before any memory is taken: the numbers come from another party.
        if head["samples"] * head["width"] * 8 > self.config.limits.message_mb * 2**20:
            raise WireError("samples", "are more than fit into a message")

        def received(sums: Sums) -> None:
            assert self.decide is not None
            predictions = self.decide(from_sums(sums), head["classes"])
            self._finish(self.write([str(i + 1) for i in range(head["samples"])], predictions))
            request.answer()

        self._start_pass((head["samples"], head["width"]), head["certificates"], received)

    def _done(self, request: IncomingRequest) -> None:
        self.alignment.read(request, 0)
        request.answer()
        self._finish(self._who_has_them())
        self.context.loop.later(EXIT_DELAY_SECONDS, self.context.loop.stop)

    # All parties

    def _own_part(self) -> Sums:
        assert self.new is not None
        if self.rows is None:
            # A leader that skips the announcement would choose rows on its own.
            raise WireError("pass", "comes before the announcement of samples")
        part = to_sums(self.new.part(self.rows))
        if not self.noted:  # a pass that is restarted says nothing new
            for note in self.new.notes(self.rows):
                self.context.log.say("note", note)
        self.noted = True
        return part

    def _certificate(self) -> bytes:
        seal = self.context.rpc.seal
        assert seal is not None  # parties have one
        return seal.certificate

    def _start_pass(
        self, shape: tuple[int, int], certificates: Any, received: Callable[[Sums], None]
    ) -> None:
        """Start a pass, and restart it at every timeout."""
        assert self.receiver is not None
        # The timer of an earlier pass: by now the sum is there.
        if self.finished:
            return
        self.receiver.begin(shape, certificates, received)
        self.context.loop.later(
            PASS_TIMEOUT_SECONDS, lambda: self._start_pass(shape, certificates, received)
        )

    def _who_has_them(self) -> str:
        """Where the predictions are; nothing at the party that has said so with their file."""
        if learns_predictions(self.config):
            return ""
        return f"{self.config.seen_by} has the predictions."

    def _finish(self, sentence: str) -> None:
        if not self.finished:
            self.finished = True
            self.context.log.say("predicted", sentence)


def as_json(classes: Sequence[Any]) -> Any:
    """The classes of labels as plain JSON values."""
    return json.loads(json.dumps(list(classes)))


def classes_from(received: Any) -> tuple[str | float, ...]:
    """The classes that the leader sent, checked."""
    if not isinstance(received, list) or not all(
        isinstance(one, str | float | int) for one in received
    ):
        raise DataError(
            "The leader did not send the classes of the labels: is it of the same version of mtcd?"
        )
    return tuple(received)


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
        if preparation is None or frame is None:
            return []
        return preparation.notes_on_new(frame)

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
        if told is None:
            return None
        return as_json(told)

    def _of(self, rows: Sequence[int]) -> PartyTable:
        return self.table.take(rows)


def new_samples(bundle: Bundle, run: Path, data: Path, key: str | None) -> PartySamples:
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
    # The columns as given: the block itself prepares them, as it did in training.
    prepare = None
    if block.preparation is not None:
        prepare = AUTO
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
    key = "id"
    if config.alignment == "given order" or config.is_server:
        key = "row"

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
