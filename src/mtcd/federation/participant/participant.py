"""The interfaces of a participant and of its role in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.node.log import Log
from mtcd.federation.node.opening import Agreed, OpeningPart
from mtcd.federation.node.watch import Watch
from mtcd.federation.participant.keeping import Summary
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.party import Parties, Party


@dataclass(frozen=True)
class Role:
    """The role of a party in training: the parties of the method, the bounds of envelopes, and the
    watch."""

    parties: Parties
    bounds: Bounds
    watch: Watch
    problem: Any
    """Reads the objective off an aggregate of all samples; None if this party cannot."""
    notes: tuple[str, ...] = ()
    evaluated_at_end: bool = False
    """Whether the label holder evaluates the model after the end: the objective, if no token
    carries it, the held-out samples, and metrics on labels that it alone knows."""
    judged: bool = False
    """Whether the token tells if the training has diverged: the evaluation after the end is not
    needed for it."""


class Participant(OpeningPart, Protocol):
    """The data and the model of a party, or of the server, in a federation."""

    folder: Path | None
    """The run folder, for secrets that only this party may keep."""

    def role(self, agreed: Agreed, log: Log) -> Role:
        """The role in the agreed run."""

    def gap_part(self, party: Party, token: Any) -> float | None:
        """This party's part of a bound on the gap, given a token; None if there is none."""

    def evidence(self, party: Party) -> NDArray[np.float64]:
        """This party's part of the sum from which the objective at the end is evaluated."""

    def has_diverged(self, total: NDArray[np.float64]) -> bool:
        """Whether the training has diverged, given the sum of all parts."""

    def aggregate(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        """The aggregate of all training samples at the end, given the sum of all parts."""

    def metrics(self, aggregate: NDArray[np.float64]) -> dict[str, float]:
        """Metrics on the training samples, from their aggregate, at a party that knows the
        labels."""

    def held_out_metrics(self, total: NDArray[np.float64]) -> dict[str, float]:
        """At the label holder: metrics on the held-out samples, given the sum of all parts."""

    def own_metrics(self, total: NDArray[np.float64]) -> dict[str, float]:
        """At the label holder: metrics on the labels of its table, where others see other ones;
        none elsewhere. They stay with this party."""

    def keep(
        self,
        folder: Path,
        reliable: ReliableParty,
        watch: Watch,
        notes: Sequence[str],
        unjudged: str,
    ) -> Summary:
        """Write the block and the summary of the run; called again when the final fusion module
        arrives.

        ``unjudged``: what could not be evaluated after the end, why, and what to do, or "".
        """

    def restore(self, folder: Path) -> None:
        """After a restart, read the final fusion module from the run folder, if it is there."""

    @property
    def awaits_final_module(self) -> bool:
        """Whether the final fusion module is still to come after the end."""

    def final_module(self) -> bytes | None:
        """At the party that ended the training: the final fusion module for the others, if the
        model has one."""

    def accept_final_module(self, module: bytes) -> bool:
        """Keep the final fusion module; returns whether it was unknown before."""
