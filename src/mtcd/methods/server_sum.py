"""How the server gets the sum of what clients upload: as it is here; features hide the parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mtcd.network.topology import Network
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.party import Parties

if TYPE_CHECKING:
    from mtcd.methods.method import Method


@dataclass(frozen=True, repr=False)
class ServerSum:
    """The server reads every upload, and adds them up.

    A feature that hides the parts of the sum is a subclass, which a method has in its field
    ``aggregation``. It wraps the parties of the method, which know nothing of it.

    Parameters
    ----------
    name
        Its name in ``privacy.aggregation``.

    Examples
    --------
    >>> from mtcd import SVFL
    >>> SVFL().aggregation
    'plain'
    """

    name: str = "plain"

    def __repr__(self) -> str:
        # checkpoints compare methods by their text
        return repr(self.name)

    @property
    def hides_parts(self) -> bool:
        """Whether the server gets nothing but the sum."""
        return False

    def applied(self, method: Method) -> Method:
        """The same method with this sum.

        Raises
        ------
        ConfigError
            If the method, or its settings, cannot have it.
        """
        return method

    def check(self, method: Method) -> None:
        """Reject the settings of a method."""

    def check_network(self, method: Method, network: Network) -> None:
        """Refuse a network on which clients cannot hide their parts of the sum."""

    def check_split(self) -> None:
        """Refuse split networks, where the parts of the sum could be told apart."""

    def parties(self, parties: Parties) -> Parties:
        """The same parties, between which what ``Parties.summed`` declares is hidden."""
        return parties

    def bounds(self, bounds: Bounds) -> Bounds:
        """The bounds of the messages that are then sent."""
        return bounds

    def notes(self, network: Network) -> tuple[str, ...]:
        """Notes for the user."""
        return ()

    def opening_cost(self, network: Network, costs: Costs) -> float:
        """What a sync costs beside its uploads and what the server answers."""
        return 0.0


PLAIN_SUM = ServerSum()
