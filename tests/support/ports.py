"""Ports of this machine that no other process takes while tests use them."""

import socket
from collections import deque

MOST = 300  # held at a time; a test uses ten at most
_held: deque[socket.socket] = deque()


def reserved_ports(count: int) -> list[int]:
    """Ports for servers on loopback.

    Each is bound by a socket that does not listen, and stays so. The bind is exclusive, so that no
    two processes are given the same port, and the kernel gives it to no outgoing connection.
    With SO_REUSEADDR, which is set afterwards, servers that set it too (those of parties and of the
    standard library) can listen on it all the same, again and again.
    """
    ports = []
    for _ in range(count):
        holder = socket.socket()
        holder.bind(("127.0.0.1", 0))
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _held.append(holder)
        ports.append(holder.getsockname()[1])

    while len(_held) > MOST:
        _held.popleft().close()
    return ports
