"""The messages of a method: how large they are, and what of them a party may receive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from mtcd.core.errors import ConfigError
from mtcd.network.topology import Network
from mtcd.protocol.batches import Batches
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.ledger.costs import Sizes
from mtcd.protocol.party import OnDemand, Parties, Party
from mtcd.protocol.transports.transport import DEFAULT, TRANSPORTS, make_transport

if TYPE_CHECKING:
    from mtcd.methods.method import Method

P = TypeVar("P", bound=Party)


@dataclass(frozen=True, eq=False)
class Messages:
    """The messages of a method on one network, for a number of samples.

    These are those of a method that trains in one process only. One for federations has a subclass
    with ``declared``, in which the payloads of its parties are named.

    Parameters
    ----------
    method
        The method.
    network, seed
        The network, and the seed of the run: with them all parties know where tokens go.
    samples
        The number of training samples.
    outputs
        Numbers per sample in an aggregate: one, or as many as there are classes.

    Examples
    --------
    >>> from mtcd import SVFL, make_network
    >>> SVFL(batch=5).messages(make_network("cycle", ["a", "b", "c"]), 0, samples=20).sizes.uplink
    5
    """

    method: Method
    network: Network
    seed: int
    samples: int
    outputs: int = 1

    @property
    def aggregate(self) -> tuple[int, ...]:
        """The shape of an aggregate."""
        length = Batches(self.samples, self.method.batch, self.seed).length
        if self.outputs == 1:
            return (length,)
        return (length, self.outputs)

    @property
    def sizes(self) -> Sizes:
        """The numbers in the messages of a linear model, without the few that acceleration adds."""
        return Sizes.same(self.aggregate[0] * self.outputs)

    def bounds(self, run: str) -> Bounds:
        """The bounds of the messages of a run, which every party computes from the agreed settings.

        Parameters
        ----------
        run
            The id of the run: messages of another one are refused.

        Raises
        ------
        ConfigError
            If the method does not declare its messages.
        """
        transport = self.method.transport
        numbers = None
        if transport != DEFAULT:
            numbers = TRANSPORTS[transport].dtype
        general = Bounds(run, self.network.size, frozenset(), self.aggregate, numbers=numbers)
        # Sums that hide their parts come last: they change the payloads that the method has
        # declared.
        return self.method.aggregation.bounds(self.declared(general))

    def declared(self, general: Bounds) -> Bounds:
        """The general bounds of a run, with the payloads that the method sends and the limits of
        their fields."""
        raise ConfigError(
            f"{self.method.kind} does not declare its messages: it trains in one process only."
        )


def reads_objective(method: Method) -> bool:
    """Whether f follows from an aggregate that is received."""
    # A batch is no aggregate of all samples, and a mode of privacy may hide f on purpose.
    whole = method.batch is None and not method.hides_objective
    return whole and TRANSPORTS[method.transport].reads_objective


def equipped(method: Method, parties: Parties) -> Parties:
    """The same parties, with sums at the server as the method has them, and each with its own
    transport.

    Every method with a transport, or with sums at its server, ends ``parties`` with it.
    """
    parties = method.aggregation.parties(parties)
    if method.transport == DEFAULT:
        return parties

    # Around each party when it is made: clients that are hosted elsewhere are never made here.
    def with_transport(party: P) -> P:
        party.equip(make_transport(method.transport))
        return party

    clients = OnDemand(len(parties.clients), lambda k: with_transport(parties.clients[k]))
    server = parties.server
    if server is not None:
        server = with_transport(server)
    return replace(parties, clients=clients, server=server)
