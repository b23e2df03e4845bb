"""What a party brings into a federation, and the role that it has in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.node.log import Log
from mtcd.federation.node.opening import Agreed, Part
from mtcd.federation.node.watch import Watch
from mtcd.federation.participant.keeping import Summary
from mtcd.protocol.party import Parties, Party
from mtcd.schema.bounds import Bounds


@dataclass(frozen=True)
class Role:
    """What a party does in training: the parties of which it is one, what to expect of envelopes, and what to watch."""

    parties: Parties
    bounds: Bounds
    watch: Watch
    problem: Any
    """Reads the objective off an aggregate of all samples; None where this party cannot."""
    notes: tuple[str, ...] = ()
    evaluated_at_end: bool = False
    """Whether the holder of the labels evaluates the objective after the end, as no token tells it."""


class Participant(Part, Protocol):
    """What a party, or the server, participant into a federation."""

    def role(self, agreed: Agreed, log: Log) -> Role:
        """Its role in the run that was agreed on."""

    def gap_part(self, party: Party, token: Any) -> float | None:
        """Its part of a bound on the gap, with a token that is here; None where it knows none."""

    def evidence(self, party: Party) -> NDArray[np.float64]:
        """Its part of what the objective is made of, as it ended."""

    def has_diverged(self, total: NDArray[np.float64]) -> bool:
        """Whether the training has diverged, given the sum of all parts."""

    def keep(self, folder: Path, reliable: ReliableParty, watch: Watch, notes: Sequence[str], unjudged: str) -> Summary:
        """Write down what the run leaves with this party; again when it has heard more.

        ``unjudged``: why it is not known whether the training has diverged, if so.
        """

    def recall(self, folder: Path) -> None:
        """What was told after the end, and is in the folder since before a restart."""

    @property
    def awaits_words(self) -> bool:
        """Whether something is still to be told after the end."""

    def last_words(self) -> bytes | None:
        """What the party that ended the training, this one, tells the others afterwards, if anything."""

    def hear(self, words: bytes) -> bool:
        """Such words; whether they were not known before."""
