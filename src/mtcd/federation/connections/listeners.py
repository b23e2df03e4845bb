"""The sockets at which a member listens."""

from __future__ import annotations

import socket

from mtcd.federation.names import Address

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
