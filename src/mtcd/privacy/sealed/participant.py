"""The participant of a sealed training: labels stay with their holder, and the key holder keeps its
key in its folder.

The model is not evaluated at the end: the sum of all scores would tell the label holder those of
the others. f never rises in a sealed training, so that there is no divergence to find.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, WireError
from mtcd.core.received import are_whole, is_whole, read_json
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.node.log import Log
from mtcd.federation.node.opening import Agreed
from mtcd.federation.node.watch import Watch
from mtcd.federation.participant.keeping import Summary
from mtcd.federation.participant.participant import Role
from mtcd.federation.participant.table import PartyTable
from mtcd.models.glm.party.participant import LinearParticipant
from mtcd.models.glm.party.problem import OwnPart, own_part, server_problem, without_classes
from mtcd.models.losses import Labels
from mtcd.privacy.sealed.bfv.cipher import SecretKey, find
from mtcd.privacy.sealed.bfv.parameters import Parameters
from mtcd.privacy.sealed.conditions import SealedSizes, SpendingAccount, start_bound
from mtcd.privacy.sealed.holder import LoneHolder, SealedServer
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.party import Parties

KEY_FILE = "sealed.key"
FIELD = "the number of columns"
MOST_COLUMNS = 1_000_000
KEYS = ("columns", "start", "classes")


class SealedParticipant(LinearParticipant):
    """A table and a linear model that is trained by sealed tours."""

    def __init__(self, bundle: Bundle, table: PartyTable | None) -> None:
        super().__init__(bundle, table)
        assert isinstance(self.method, SealedTours)
        self.account: SpendingAccount | None = None
        self.tours: SealedTours = self.method.in_federation(
            self.config.parties.index(self.config.labels.held_by)
        )

    def labels_for_facts(self, rows: Sequence[int]) -> bytes:
        """Nothing: labels stay here."""
        return b""

    def facts(self, rows: Sequence[int], labels: bytes = b"") -> bytes:
        """The number of columns of this party's block, which is checked first."""
        # the classes are not known yet, and a block does not depend on them
        # The block must have a problem, but no label is known here yet.
        part = self._part(without_classes(self.config), rows, ())
        block = part.problem.blocks[part.number]
        self.tours.checks.width(block.shape[1], len(rows), self.config.name)
        self.tours.checks.block(block, self.config.name)
        return columns_to_bytes(block.shape[1])

    def resolve(
        self, rows: Sequence[int], facts: Mapping[str, bytes]
    ) -> tuple[dict[str, Any], bytes]:
        """The settings with sizes; no labels."""
        problem = own_part(self.config, self.own, rows, self.held_labels(rows)).problem
        self.tours.checks.problem(problem)
        parties, start = self.config.parties, start_bound(problem)
        columns = [columns_from_bytes(name, facts[name]) for name in parties]
        self.tours.checks.sizes(columns, problem.samples, parties)
        notes = list(self.tours.notes(self.config.network))
        # A step size is part of the settings of all methods; sealed tours have none, and 1 stands
        # for it.
        settings = {
            "samples": problem.samples,
            "stepsize": 1.0,
            "notes": notes,
            "columns": columns,
            "start": start,
        }
        return settings | {"classes": list(problem.classes)}, b""

    def role(self, agreed: Agreed, log: Log) -> Role:
        """Client k with its own block, or the server."""
        settings, config, method = self.checked(agreed.settings, *KEYS), self.config, self.tours
        samples, classes = settings["samples"], classes_from(settings)
        sizes = sizes_from(settings, len(config.parties))
        if agreed.labels:
            raise WireError("labels", "are not for other parties in a sealed training")
        self.resolved, self.labels = method, None
        if self.table is None:
            problem = server_problem(config, samples, 1)
        else:
            # Held-out samples are refused before: their scores would be told.
            rows = self.drawn(agreed).training
            self.part = self._part(config, rows, classes, held=self.own.labels is not None)
            problem = self.part.problem
            if problem.blocks[self.part.number].shape[1] != sizes.columns[self.part.number]:
                raise WireError(FIELD, "is not what this party has declared")
        self.problem = problem
        network = config.network
        bounds = method.messages(network, config.seed, samples, 1).bounds(agreed.run)
        self.most_tours = method.most_tours(sizes.columns)
        # every party stops at the cap: the key holder is not trusted to
        stop = self.stop.at_most(self.most_tours)
        watch = Watch(stop, method, network, self.costs, 1, samples, log)
        parties = method.parties(problem, network, config.seed, sizes, self._key)
        self.key_holder = self._key_holder(parties)
        if self.key_holder is not None:
            # Only the key holder knows f.
            watch.follow(self._objective, sizes.start)
        self._enter(agreed.run, stop.iterations)
        notes = self.agreed_notes(settings)
        if self.table is not None:  # those on this party's columns stay here
            notes = tuple(dict.fromkeys([*notes, *self.part.notes]))
        return Role(parties, bounds, watch, None, notes, evaluated_at_end=False, judged=True)

    def _end_notes(self, reliable: ReliableParty, begun: int) -> tuple[str, ...]:
        """Notes on the end; the party with the key knows f after each tour."""
        finished = begun - 1
        if reliable.ended is not None:
            finished = reliable.ended.hop

        # Which tours count depends on the mode: with noise, those that were begun.
        tours = self.tours.conditions.ended_tours(begun, finished)
        known: list[tuple[int, float]] = []
        if self.key_holder is not None:
            known = self.key_holder.holding.objectives()
        return self.tours.conditions.end_notes(self.config.network, tours, self.most_tours, known)

    def _enter(self, run: str, tours: int | None) -> None:
        """Enter the run in the account of this party's table, if the method keeps one."""
        self.account = None
        if self.table is None:
            return

        number = self.config.parties.index(self.config.name)
        self.account = self.tours.conditions.party_account(
            self.config.network, number, self.own.path, self.bundle.folder
        )
        if self.account is not None:
            self.run = run
            self.account.begin(run, tours, str(self.folder or ""))

    def _key_holder(self, parties: Parties) -> SealedServer | LoneHolder | None:
        """This party, if it has the key."""
        here: Any = parties.server
        if self.table is not None:
            here = parties.clients[self.config.parties.index(self.config.name)]
        if not isinstance(here, SealedServer | LoneHolder):
            return None
        return here

    def _objective(self, report: Any) -> float | None:
        """f after a tour, which the key holder knows; of the party as it was made last from its
        journal."""
        if self.key_holder is None or not report.hop:
            return None
        return self.key_holder.holding.steering.objective()

    def _part(
        self, config: BundleConfig, rows: Sequence[int], classes: Sequence[Any], held: bool = False
    ) -> OwnPart:
        """This party's part, with its labels if it holds them, otherwise with stand-ins of the same
        classes."""
        if held:
            return own_part(config, self.own, rows, self.held_labels(rows))

        # a block does not depend on labels, but a problem has some
        known = classes
        if not len(classes):
            known = [0.0, 1.0]
        labels: Labels = np.resize(known, len(rows))
        return own_part(config, self.own, rows, labels)

    def _key(self, parameters: Parameters) -> SecretKey:
        """The key of this run: made once, then read from the run folder, which only its owner can
        read."""
        assert self.folder is not None
        # after a restart tokens of the old key are on their way: a new one could not open them
        path, scheme = self.folder / KEY_FILE, find(self.tours.scheme)
        if path.exists():
            # Saved before it is used: tokens under a key that was lost could not be opened.
            return scheme.load(path)
        key = scheme.generate(parameters)
        key.save(path)
        return key

    def metrics(self, aggregate: Array) -> dict[str, float]:
        """None: no party knows the scores of all samples together with their labels."""
        return {}

    def keep(
        self,
        folder: Path,
        reliable: ReliableParty,
        watch: Watch,
        notes: Sequence[str],
        unjudged: str,
    ) -> Summary:
        """Write the block and a summary into the run folder; the key has served."""
        begun = watch.iteration + 1  # one may be under way
        if self.account is not None:
            notes = [*notes, self.account.end(self.run, begun)]
        notes = [*notes, *self._end_notes(reliable, begun)]
        summary = super().keep(folder, reliable, watch, notes, unjudged)
        # A key that opens nothing any more is only a risk.
        (folder / KEY_FILE).unlink(missing_ok=True)
        return summary


def columns_to_bytes(columns: int) -> bytes:
    """The report of a party to the label holder: d_k."""
    return json.dumps({"columns": columns}).encode()


def columns_from_bytes(party: str, data: bytes) -> int:
    """Decode and check the report of another party."""
    report = read_json(data)
    if report is None:
        raise DataError(f"{party}: {FIELD} cannot be read.")
    columns = report.get("columns") if isinstance(report, dict) and len(report) == 1 else None
    if not is_whole(columns, 1, MOST_COLUMNS):
        raise DataError(f"{party}: {FIELD} is out of range.")
    return columns


def sizes_from(settings: Mapping[str, Any], parties: int) -> SealedSizes:
    """The sizes in the settings of a run, checked.

    Parameters
    ----------
    settings : mapping
        What the label holder has sent.
    parties : int
        The number of parties.

    Raises
    ------
    WireError
        If they are not one number of columns for each party, and a bound of f(0).
    """
    columns, start = settings["columns"], settings["start"]
    if not isinstance(columns, list) or len(columns) != parties:
        raise WireError(FIELD, "is not given for each party")
    if not are_whole(columns, 1, MOST_COLUMNS):
        raise WireError(FIELD, "is out of range")
    if type(start) is not float or not 0 < start < 1e300:
        raise WireError("start", "is not a finite number above 0")
    return SealedSizes(tuple(columns), start)


def classes_from(settings: Mapping[str, Any]) -> tuple[str | float, ...]:
    """The classes of the labels, which all parties may know: none in regression."""
    classes = settings["classes"]
    if not isinstance(classes, list) or len(classes) not in (0, 2):
        raise WireError("classes", "are not two, or none")
    if not all(isinstance(one, str | float | int) and not isinstance(one, bool) for one in classes):
        raise WireError("classes", "are neither texts nor numbers")
    return tuple(classes)
