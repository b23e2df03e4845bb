"""What a mode of privacy asks of the trainings of a method: none of it is asked of a plain one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtcd.network.topology import Network
from mtcd.protocol.model import Problem

if TYPE_CHECKING:
    from mtcd.methods.method import Method


class Account:
    """An account that counts nothing. A method whose trainings add up, as those that spend a
    privacy budget do, has its own."""

    def begin(self) -> None:
        """Enter the training, before its first message.

        Raises
        ------
        ConfigError
            If the training cannot be entered: it must not begin then.
        """

    def end(self, iterations: int) -> tuple[str, ...]:
        """Enter how many iterations were begun; returns notes for the user."""
        return ()


class Conditions:
    """The conditions of a method's trainings. Without a mode of privacy there are none.

    Examples
    --------
    >>> from mtcd import SVFL
    >>> SVFL().conditions.noisy
    False
    """

    noisy = False
    """Whether gradients have noise for differential privacy."""

    def most_iterations(self, problem: Problem) -> int | None:
        """The iterations after which a training must end, whatever the stop rule; None: it need
        not."""
        return None

    def account(
        self,
        network: Network,
        tables: Sequence[Path],
        iterations: int | None,
        place: Path | None,
        resumes: bool,
    ) -> Account:
        """What counts a training in this process together with others on the same tables.

        Parameters
        ----------
        network
            The network.
        tables
            The table of each client; empty if the data is from no files.
        iterations
            The most that the training may take.
        place
            The folder of its checkpoints, if any.
        resumes
            Whether it continues from them.
        """
        return Account()

    def end_notes(
        self,
        network: Network,
        iterations: int,
        most: int | None = None,
        objectives: Sequence[tuple[int, float]] = (),
    ) -> tuple[str, ...]:
        """Notes for the user on a training that has ended.

        Parameters
        ----------
        network
            The network.
        iterations
            The iterations that were begun.
        most
            ``most_iterations``, or None.
        objectives
            Iterations, in order, and f after each of them, as far as they are known.
        """
        return ()

    def with_sizes(self, method: Method, problem: Any) -> Method:
        """The method for processes that have some blocks of this problem, and must know the sizes
        of all."""
        return method

    def rehearsal(self, method: Method) -> Method:
        """The method for made-up data, whose numbers of columns it must not refuse."""
        return method


NO_CONDITIONS = Conditions()
