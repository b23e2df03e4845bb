"""What a credentials bundle says of connections: who connects to whom, and whose certificates are
admitted.

Between two peers there is one connection, which one of them opens. Each end admits the names on the
certificates of its peers, and takes all that comes over a connection as said by that peer: no
message names its sender. A request of the operator begins with ``control/``, and a party takes no
others from it.
"""

from __future__ import annotations

from mtcd.federation.credentials.membership import Membership
from mtcd.federation.names import OPERATOR

CONTROL = "control"
CA_FILE, CERTIFICATE_FILE, KEY_FILE, PARTIES_FILE = "ca.pem", "cert.pem", "key.pem", "parties.key"
MEGABYTE = 1024 * 1024
HEAD_BYTES = 4096  # of a masked sum, per party, at most: its name and certificate


def listens_at(bundle: Membership) -> str | None:
    """The address at which this party listens; the operator and a party that dials out only accept
    no connections."""
    return bundle.listen or bundle.address


def calls(bundle: Membership) -> dict[str, str]:
    """The addresses that this party connects to, by the name of the peer. One of two peers
    connects, so that there is one connection."""
    found = {}
    for name, peer in bundle.peers.items():
        # A peer without a certificate was revoked: it is neither called nor admitted.
        if peer.address is None or peer.certificate is None:
            continue
        if connects_to(bundle, name):
            found[name] = peer.address
    return found


def connects_to(bundle: Membership, peer: str) -> bool:
    """Whether this party opens the connection to a peer: the one without an address, else the one
    of higher rank."""
    if bundle.peers[peer].address is None:
        return False
    # A total order decides which of two opens the connection. If both did, each could close the one
    # that the other keeps.
    return bundle.address is None or bundle.rank[peer] < bundle.rank[bundle.name]


def admitted(bundle: Membership) -> dict[str, str]:
    """Who may connect to this party, by the name on the certificate: its peers, and the operator.

    A peer that this party calls itself may do so too: it does if it cannot be called, because
    another program has its port.
    """
    found: dict[str, str] = {}
    for name, peer in bundle.peers.items():
        if peer.certificate is not None:
            found[peer.certificate] = name
    if bundle.operator is not None:
        found[bundle.operator] = OPERATOR
    return found
