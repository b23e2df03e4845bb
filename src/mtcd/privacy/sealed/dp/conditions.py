"""What a privacy budget asks of a training: as many tours as it is for, which a file beside each
table counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mtcd.methods.conditions import Account
from mtcd.network.topology import Network
from mtcd.privacy.sealed.conditions import SealedConditions
from mtcd.privacy.sealed.dp.account import PartyAccount, TableAccounts
from mtcd.protocol.model import Problem

if TYPE_CHECKING:
    from mtcd.privacy.sealed.dp.settings import PrivateTours


class PrivateConditions(SealedConditions):
    """The budget of all parties, and what trainings have spent of it.

    Parameters
    ----------
    tours
        The method.
    """

    noisy = True

    def __init__(self, tours: PrivateTours) -> None:
        super().__init__(tours)
        self._private = tours

    def most_iterations(self, problem: Problem) -> int:
        return self._private.dp.tours

    def account(
        self,
        network: Network,
        tables: Sequence[Path],
        iterations: int | None,
        place: Path | None,
        resumes: bool,
    ) -> Account:
        # All planned tours, unless the stop rule ends it before: an account must never be too low.
        most = self._private.dp.tours if iterations is None else iterations
        return TableAccounts(self._private, network, tables, most, place, resumes)

    def end_notes(
        self,
        network: Network,
        iterations: int,
        most: int | None = None,
        objectives: Sequence[tuple[int, float]] = (),
    ) -> tuple[str, ...]:
        """What was spent; ``iterations``: also one that was begun, in which some parties have their
        gradients."""
        return (self._private.spent_note(network, iterations),)

    def party_account(
        self, network: Network, number: int, table: Path, bundle: Path
    ) -> PartyAccount:
        return PartyAccount(self._private, network, number, table, bundle)

    def ended_tours(self, begun: int, finished: int) -> int:
        return begun  # some parties have their gradients of the tour that is under way
