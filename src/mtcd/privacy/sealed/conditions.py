"""What sealed tours ask of a training: that it ends before scores tell columns or labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from mtcd.core.errors import ConfigError
from mtcd.methods.conditions import Conditions
from mtcd.methods.method import Method
from mtcd.models.glm.model import LinearProblem
from mtcd.network.topology import Network
from mtcd.privacy.sealed.cap import cap_note
from mtcd.privacy.sealed.sizes import sizes_of
from mtcd.protocol.model import Problem

if TYPE_CHECKING:
    from mtcd.privacy.sealed.settings import SealedTours


class SpendingAccount(Protocol):
    """Where a party of a federation enters what a run spends."""

    def begin(self, run: str, tours: int | None, place: str) -> None:
        """Enter a run before anything is released; ``tours``: the most that it may take."""

    def end(self, run: str, tours: int) -> str:
        """Enter how many tours a run has begun; returns a note for its owner."""


class SealedConditions(Conditions):
    """The cap on tours, and what is told at the end.

    Parameters
    ----------
    tours
        The method.
    """

    def __init__(self, tours: SealedTours) -> None:
        self._tours = tours

    def most_iterations(self, problem: Problem) -> int | None:
        """The cap on tours, of a problem with the blocks of all clients. Raises ConfigError as
        ``SealedChecks.sizes``."""
        # A participant of a federation has only its own block, and is checked when sizes are known.
        if not isinstance(problem, LinearProblem) or len(problem.blocks) < 2:
            return None

        columns = tuple(X.shape[1] for X in problem.blocks)
        if min(columns) == 0:
            raise ConfigError(
                "privacy.mode: sealed needs the columns of all clients in this process, to choose "
                "the scale of the encryption: give data.read() instead of its sources."
            )
        names = [f"client {k}" for k in range(len(columns))]
        self._tours.checks.sizes(columns, problem.samples, names)
        return self._tours.most_tours(columns)

    def end_notes(
        self,
        network: Network,
        iterations: int,
        most: int | None = None,
        objectives: Sequence[tuple[int, float]] = (),
    ) -> tuple[str, ...]:
        if most is None or iterations < most:
            return ()
        return (cap_note(most, objectives, self._tours.server),)

    def with_sizes(self, method: Method, problem: Any) -> Method:
        tours = cast("SealedTours", method)
        return replace(tours, known=sizes_of(problem))

    # The numbers of columns are made up in a rehearsal, so nothing is refused for them.
    def rehearsal(self, method: Method) -> Method:
        tours = cast("SealedTours", method)
        return replace(tours, accept_revealed_columns=True, accept_revealed_labels=True)

    def party_account(
        self, network: Network, number: int, table: Path, bundle: Path
    ) -> SpendingAccount | None:
        """What a party of a federation enters beside its table; None if nothing is counted.

        Parameters
        ----------
        network : Network
            The network of all parties.
        number : int
            The party, by number.
        table : Path
            Its table.
        bundle : Path
            A folder to use where that of the table cannot be written.
        """
        return None

    def ended_tours(self, begun: int, finished: int) -> int:
        """The tours that the notes at the end of a run in a federation are about: finished ones."""
        return finished
