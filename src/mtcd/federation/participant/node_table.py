"""The common part of the participants of all models: the table, the settings, and the summary of a
run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.config.schema import Config, PrivacySection, SyntheticData
from mtcd.config.settings import build_settings
from mtcd.core.errors import DataError, WireError
from mtcd.core.mappings import attributes
from mtcd.core.received import are_texts, is_whole
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.node.aligning import agreed_rows
from mtcd.federation.node.log import tidy
from mtcd.federation.node.opening import Agreed
from mtcd.federation.node.watch import Watch
from mtcd.federation.own_code import built_in_only
from mtcd.federation.participant.held_out import Drawn, drawn
from mtcd.federation.participant.keeping import Summary, read_metrics
from mtcd.federation.participant.table import PartyTable
from mtcd.federation.transport import MEGABYTE
from mtcd.methods.method import Method, resolved_stepsize
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.party import Party
from mtcd.training.divergence import DIVERGED
from mtcd.training.stop import Stop


def settings_of(config: BundleConfig) -> tuple[Method, Stop, Costs]:
    """The method, stop rules and costs, which are the same at all parties."""
    parts = ("model", "method", "stop", "costs", "compute", "seed")
    # the data are with the parties
    nothing = SyntheticData(synthetic="ridge", samples=1, features=1, clients=1)
    given = attributes(config, parts) | {"model": built_in_only(config.model)}
    given |= {"privacy": config.privacy or PrivacySection()}
    method, _, stop, costs = build_settings(Config.model_construct(data=nothing, **given))
    return method, stop, costs


class ParticipantTable:
    """The common part of participants of all models: the table (none at the server) and the
    settings."""

    folder: Path | None = None
    """The run folder, for secrets that only this party may keep."""

    def __init__(self, bundle: Bundle, table: PartyTable | None) -> None:
        self.bundle, self.config, self.table = bundle, bundle.config, table
        self.method, self.stop, self.costs = settings_of(bundle.config)

    @property
    def own(self) -> PartyTable:
        """The table of a party."""
        # The server has none and is not asked; without alignment by ids there are none.
        assert self.table is not None  # not called at the server
        return self.table

    @property
    def ids(self) -> Sequence[str]:
        """The ids of the table."""
        return self.own.ids or ()

    @property
    def samples(self) -> int:
        """The number of rows of the table."""
        return self.own.rows

    @property
    def notes(self) -> Sequence[str]:
        """Notes on the table."""
        return () if self.table is None else self.table.notes

    def drawn(self, agreed: Agreed) -> Drawn:
        """The agreed rows, in training and held-out ones; the table must be the one that was
        aligned."""
        try:
            rows = agreed_rows(agreed.announcement, self)
        # After a restart the table is read again: with another one the training would go on with
        # other rows, from the token of these.
        except DataError as error:
            raise DataError(
                f"{self.own.path} is not the table that was aligned: {error} Give the same table "
                "as before (--data)."
            ) from None
        return drawn(self.config, rows)

    def held_labels(self, rows: Sequence[int]) -> NDArray[np.generic]:
        """The labels of these rows, at the party that holds them."""
        labels = self.own.labels
        assert labels is not None
        return np.asarray(labels[list(rows)])

    def checked(self, settings: dict[str, Any], *own: str) -> dict[str, Any]:
        """The settings that the label holder sent, checked; ``own`` are the keys of the model."""
        # From the label holder, but over a network: a missing or unknown key would be found when it
        # is first used, or never.
        if set(settings) != {"samples", *own, "stepsize", "notes"}:
            raise WireError("settings", "are not those of a run")
        # labels, one for each sample, are sent in one message
        most = self.config.limits.message_mb * MEGABYTE // 8
        if not is_whole(settings["samples"], 1, most):
            raise WireError("samples", "is out of range")
        if type(settings["stepsize"]) is not float or not 0 < settings["stepsize"] < float("inf"):
            raise WireError("stepsize", "is not a finite number above 0")
        if not are_texts(settings["notes"]):
            raise WireError("notes", "are not a list of texts")
        return settings

    def agreed_notes(self, settings: dict[str, Any]) -> tuple[str, ...]:
        """The notes of the label holder and of this party."""
        # The same note may come from both.
        return tuple(dict.fromkeys([*map(tidy, settings["notes"]), *self.notes]))

    def gap_part(self, party: Party, token: Any) -> float | None:
        """None: only linear models bound the gap."""
        return None

    def own_metrics(self, total: NDArray[np.float64]) -> dict[str, float]:
        """None: not every model has them."""
        return {}

    def own_labels(self, rows: Sequence[int]) -> NDArray[np.generic]:
        """The labels of these rows in the table, at the party that holds them; none where they are
        those that others see too."""
        labels = None if self.table is None else self.table.true_labels
        return np.empty(0) if labels is None else np.asarray(labels[list(rows)])

    @property
    def awaits_final_module(self) -> bool:
        """False: the model has no fusion module."""
        return False

    def restore(self, folder: Path) -> None:
        """Do nothing: the model has no fusion module."""

    def final_module(self) -> bytes | None:
        """None: the model has no fusion module."""
        return None

    def accept_final_module(self, module: bytes) -> bool:
        """Refuse: the model has no fusion module."""
        raise WireError("kind", "does not belong to this model")


def summary_of(
    folder: Path,
    config: BundleConfig,
    method: Method,
    costs: Costs,
    reliable: ReliableParty,
    watch: Watch,
    notes: Sequence[str],
    unjudged: str,
) -> Summary:
    """The summary of the run at this party."""
    end = reliable.ended
    assert end is not None
    return Summary(
        federation=config.federation,
        party=config.name,
        status=end.status,
        method=method.describe(),
        # updates without a step size go all the way to a minimum
        stepsize=1.0 if method.stepsize is None else resolved_stepsize(method),
        iterations=end.hop,
        syncs=end.t,
        ledger=reliable.ledger,
        costs=costs,
        seconds=watch.seconds(),
        # Only one that was measured at the end: others have changed the token since an earlier one.
        objective=watch.facts()["objective"] if watch.final else None,
        notes=tuple(notes),
        metrics={} if end.status == DIVERGED else read_metrics(folder),
        unjudged=unjudged,
    )
