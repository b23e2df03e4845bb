"""The participant of a federation that trains an additive model: a table, and the party's part of
it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mtcd.core.arrays import Array
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.participant.held_out import Drawn, drawn
from mtcd.federation.participant.labels import labels_to_bytes
from mtcd.federation.participant.table import PartyTable
from mtcd.methods.method import resolved_stepsize
from mtcd.models.glm.party.participant import LinearParticipant, check_loss
from mtcd.models.glm.party.problem import prepared_rows
from mtcd.models.trees.party.block import (
    AdditiveBlock,
    additive_of,
    additive_server,
    own_additive,
)
from mtcd.models.trees.training import additive_method

READY = b"ready"  # what a party without a step size of its own reports


class AdditiveParticipant(LinearParticipant):
    """A table and a part of an additive model: trees, or another family."""

    def __init__(self, bundle: Bundle, table: PartyTable | None) -> None:
        super().__init__(bundle, table)
        self.method = additive_method(
            self.method, additive_of(bundle.config).families(bundle.config.parties)
        )

    def check_labels(self, labels: Any, weights: Array | None) -> None:
        model = additive_of(self.config)
        _, encoded, _ = model.weighted(labels, weights)
        check_loss(model.plain_loss, encoded, bounded=False)

    def check_own_loss(self, encoded: Array) -> None:
        """Do nothing: the problem was made with a loss that was checked."""

    def labels_for_facts(self, rows: Sequence[int]) -> bytes:
        """Empty: no step size depends on the labels."""
        return b""

    def facts(self, rows: Sequence[int], labels: bytes = b"") -> bytes:
        """The report that this party can train: its columns can be prepared, and its family can be
        made."""
        # Both raise where this party could not train, before anybody begins.
        additive_of(self.config)
        prepared_rows(self.config.name, self.own, drawn(self.config, rows).training)
        return READY

    def resolve(
        self, rows: Sequence[int], facts: Mapping[str, bytes]
    ) -> tuple[dict[str, Any], bytes]:
        """The settings with sizes and the learning rate, and the labels, which this party holds."""
        taken = drawn(self.config, rows)
        model = additive_of(self.config)
        labels = self.held_labels(taken.training)
        weights = self.held_weights(taken.training)
        loss, _, classes = model.weighted(labels, weights)
        settings = {
            "samples": len(labels),
            "outputs": loss.outputs(classes),
            "stepsize": resolved_stepsize(self.method),
            "notes": [*taken.notes],
        }
        return settings, labels_to_bytes(labels, weights)

    def server_problem(self, samples: int, outputs: int, labels: Any, weights: Array | None) -> Any:
        return additive_server(self.config, samples, outputs, labels, weights)

    def own_part(self, taken: Drawn, labels: Any, weights: Array | None) -> Any:
        return own_additive(self.config, self.own, taken.training, labels, taken.held_out, weights)

    def block(self, theta: Any) -> AdditiveBlock:
        made: AdditiveBlock = self.part.block(theta)
        return made
