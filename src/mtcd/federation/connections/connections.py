"""The connections of one member: an opener and a carrier, and what they report."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

from mtcd.federation.connections.carrier import Carrier
from mtcd.federation.connections.connection import Connection
from mtcd.federation.connections.handshake import Handshake
from mtcd.federation.connections.opener import Opener
from mtcd.federation.connections.refusals import Refusals, Refused
from mtcd.federation.connections.wire import SLACK_BYTES, Frame
from mtcd.federation.credentials.credentials import Credentials
from mtcd.federation.names import Address, parse_address
from mtcd.federation.transport import MEGABYTE, listens_at


class Connections:
    """At most one connection to each member; they come and go by themselves.

    Parameters
    ----------
    bundle
        Of this member.
    opened, lost
        Get a connection that stands, and one that does no more, in this order. All callbacks are
        called from threads of the connections, and must not wait.
    arrived
        Gets a connection and a frame, and calls ``connection.handled(frame)`` when it is done with.
    refused
        Gets connections that were refused, by reason.
    receiving
        Gets whether much is being decrypted at the moment.

    Raises
    ------
    OSError
        This host cannot listen at the address in the bundle.
    """

    def __init__(
        self,
        bundle: Credentials,
        opened: Callable[[Connection], None],
        lost: Callable[[Connection], None],
        arrived: Callable[[Connection, Frame], None],
        refused: Callable[[dict[str, Refused]], None],
        receiving: Callable[[bool], None] = lambda much: None,
    ) -> None:
        self.longest = bundle.config.limits.message_mb * MEGABYTE + SLACK_BYTES
        """The most bytes of a message."""
        self._until, self._lost = bundle.until.timestamp(), lost
        listeners = _listeners(bundle)
        refusals = Refusals(refused)
        self._carrier = Carrier(
            bundle.config.limits.lease_ms / 1000,
            self.longest,
            opened,
            self._lose,
            arrived,
            refusals.add,
            receiving,
        )
        self._opener = Opener(bundle, listeners, self._open, refusals)
        self._carrier.start()
        self._opener.start()

    @property
    def reached(self) -> Mapping[str, bool]:
        """By peer that was called: whether its host accepts connections."""
        return self._opener.reached

    def _open(self, handshake: Handshake) -> None:
        assert handshake.identity is not None
        until = min(self._until, handshake.identity.until)
        self._carrier.add(Connection(handshake.peer, handshake.tls, until, self.longest))

    def _lose(self, connection: Connection) -> None:
        # In this order: told as lost before it is called again, and so before it is opened again.
        self._lost(connection)
        self._opener.lost(connection.peer)

    def close(self) -> None:
        """Send what waits, and close all connections, not to be opened again."""
        # First the opener: it would replace what the carrier closes.
        self._opener.close()
        self._carrier.close()


def _listeners(bundle: Credentials) -> list[socket.socket]:
    where = listens_at(bundle.config)
    if where is None:
        return []
    return listen_at(parse_address(where, listening=True))


BACKLOG = 1024  # connections that the system completes before they are accepted
ALL_IPV6 = "::"


def listen_at(place: Address) -> list[socket.socket]:
    """Sockets at all numbers that a name stands for; those at which the host cannot listen are left
    out.

    Raises
    ------
    OSError
        The host can listen at none.
    """
    found = socket.getaddrinfo(
        place.host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    made: list[socket.socket] = []
    problem: OSError | None = None
    for family, _, _, _, where in dict.fromkeys(found):
        # all IPv6 numbers of a host include those of IPv4, where the system has both
        both = str(where[0]) == ALL_IPV6 and socket.has_dualstack_ipv6()
        try:
            made.append(
                socket.create_server(
                    (str(where[0]), place.port),
                    family=family,
                    backlog=BACKLOG,
                    dualstack_ipv6=both,
                )
            )
        except OSError as error:
            problem = error
    if not made:
        raise problem or OSError("no address")
    for one in made:
        one.setblocking(False)
    return made
