"""A masked sum over all parties: one party, the receiver, learns the sum, and no party learns a
single part.

The receiver starts the pass with a random mask, which it subtracts in the end, so that partial sums
look random to all parties. Numbers are integer multiples of 2^-32, added modulo 2^64, so the mask
hides them perfectly. A partial sum is encrypted for its next party alone, as relays could otherwise
compare sums before and after a part. Every party checks that the order names each party once, so
that no single part can be requested. The protocol does not protect against collusion of a party's
two neighbours in the order, or of the receiver with others.
"""

from __future__ import annotations

import secrets
from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, WireError
from mtcd.core.fixed_point import WIDE
from mtcd.core.received import is_id
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.names import SERVER
from mtcd.federation.node.chunks import unwrap, wrap
from mtcd.federation.node.link import IncomingRequest
from mtcd.federation.node.rpc import Rpc, RpcClient
from mtcd.federation.relay_encryption import Seal

Sums = NDArray[np.uint64]
PASS_KEYS = ("pass", "order", "certificates")


def to_sums(values: NDArray[Any]) -> Sums:
    """Convert to integer multiples of 2^-32."""
    numbers = np.asarray(values, dtype=np.float64)
    if not WIDE.fits(numbers, 1):
        raise DataError(
            "The model's outputs for the new samples are too large: check that their columns have "
            "the same units and scales as in training."
        )
    return WIDE.encode(numbers, 1).view(np.uint64)


def fits(values: NDArray[Any], parties: int) -> bool:
    """Whether the values are finite, and small enough that the parts of all parties can be added
    without overflow."""
    return WIDE.fits(np.asarray(values), parties)


def from_sums(sums: Sums) -> Array:
    """Convert back to floats."""
    return WIDE.decode(sums.view(np.int64))


def order_of(config: BundleConfig) -> list[str]:
    """All parties but the receiver, in an order in which successors are neighbours as far as the
    network allows."""
    graph = nx.Graph(config.links)
    graph.add_nodes_from(config.parties)
    # From the receiver outwards: the walk over the tree ends near it.
    start = config.parties[0]
    if config.seen_by in graph:
        start = config.seen_by
    found = [*nx.dfs_postorder_nodes(graph, start), *config.parties]
    return [name for name in dict.fromkeys(found) if name != config.seen_by]


class SumContributor:
    """A party in a pass: adds its own part, once per pass, and forwards the sum."""

    def __init__(
        self, rpc: Rpc, rpc_client: RpcClient, config: BundleConfig, own: Callable[[], Sums]
    ) -> None:
        assert rpc.seal is not None  # parties have one
        self.rpc_client, self.config, self.own, self.seal = rpc_client, config, own, rpc.seal
        self.expected = order_of(config)
        self._seen: set[str] = set()
        rpc.on("add", self._add)

    def _add(self, request: IncomingRequest) -> None:
        head, content = _read(request.body, self.expected, self.config)
        number, order = head["pass"], self.expected
        place = order.index(self.config.name)
        # The receiver for the first party; for others the one before.
        before = self.config.seen_by
        if place > 0:
            before = order[place - 1]
        if request.sender != before:
            raise WireError("sender", "is not the predecessor in the order")

        # Once per pass: with two sums of one pass, their difference would be this party's part.
        if number not in self._seen:
            part = self.own()
            if request.sender != SERVER:
                content = self.seal.unlock(content)
            sums = read_sums(content, part.shape) + part

            kind, to = "sum", self.config.seen_by
            if place < len(order) - 1:
                kind, to = "add", order[place + 1]
            body = wrap(head, locked(self.seal, to, head["certificates"], sums))
            self._seen.add(number)
            self.rpc_client.ask(kind, {to: body})
        request.answer()


def locked(seal: Seal | None, to: str, certificates: Any, sums: Sums) -> bytes:
    """Encrypt sums for one party. Sums from and to the server are not relayed, and are not
    encrypted again."""
    if to == SERVER or seal is None:
        return sums.tobytes()
    return seal.lock(to, certificate_of(certificates, to), sums.tobytes())


def certificate_of(certificates: Any, name: str) -> bytes:
    """The certificate of one party, from those that the leader sent."""
    try:
        certificate = b64decode(certificates[name], validate=True)
    except (KeyError, TypeError, ValueError):
        certificate = b""
    if not certificate:
        raise WireError("certificates", f"lack that of {name}")
    return certificate


class SumReceiver:
    """The receiver of a pass: starts it, and learns the sum."""

    def __init__(self, rpc: Rpc, rpc_client: RpcClient, config: BundleConfig) -> None:
        self.rpc_client, self.config, self.seal = rpc_client, config, rpc.seal
        self.order = order_of(config)
        self._number = ""
        self._mask: Sums = np.zeros(0, dtype=np.uint64)
        self._done: Callable[[Sums], None] | None = None
        rpc.on("sum", self._sum)

    def begin(self, shape: Sequence[int], certificates: Any, done: Callable[[Sums], None]) -> None:
        """Start a pass; ``done`` gets the sum of the other parties' parts."""
        # New for each pass, as is the mask: a mask that was used twice hides only a difference.
        self._number = secrets.token_hex(8)
        count = int(np.prod(shape, dtype=np.int64))
        self._mask = np.frombuffer(secrets.token_bytes(8 * count), dtype=np.uint64).reshape(
            tuple(shape)
        )
        self._done = done
        head = {"pass": self._number, "order": self.order, "certificates": certificates}
        first = self.order[0]
        self.rpc_client.ask(
            "add", {first: wrap(head, locked(self.seal, first, certificates, self._mask))}
        )

    def _sum(self, request: IncomingRequest) -> None:
        head, content = _read(request.body, self.order, self.config)
        if request.sender != self.order[-1]:
            raise WireError("sender", "is not the last in the order")
        if head["pass"] == self._number and self._done is not None:
            if self.seal is not None:
                content = self.seal.unlock(content)
            sums = read_sums(content, self._mask.shape)
            done, self._done = self._done, None
            request.answer()
            done(sums - self._mask)
        else:
            request.answer()  # a pass that was restarted since


def read_sums(content: bytes, shape: Sequence[int]) -> Sums:
    """Decode sums of this shape."""
    # Before the bytes are read: the shape is this party's own, not the sender's.
    if len(content) != 8 * int(np.prod(shape, dtype=np.int64)):
        raise WireError("sum", "is of another size")
    return np.frombuffer(content, dtype="<u8").astype(np.uint64).reshape(tuple(shape))


def _read(body: bytes, order: list[str], config: BundleConfig) -> tuple[dict[str, Any], bytes]:
    """Decode the head and the sums of a pass. The head is forwarded, so all of it is checked."""
    head, (content,) = unwrap(body, PASS_KEYS, 1)
    number, certificates = head["pass"], head["certificates"]
    if not is_id(number):
        raise WireError("pass", "is not the id of a pass")
    # Each party computes the order: a receiver could otherwise leave all but one out.
    if head["order"] != order:
        raise WireError("order", "is not the order that follows from the network")
    if not isinstance(certificates, dict) or certificates.keys() != set(config.parties):
        raise WireError("certificates", "are not those of all parties")
    for name in certificates:
        certificate_of(certificates, name)
    return head, content


def learns_predictions(config: BundleConfig) -> bool:
    """Whether this party, or the server, learns the predictions."""
    return config.name == config.seen_by


def server_takes_part(config: BundleConfig) -> bool:
    """Whether the server takes part in a pass."""
    return config.seen_by == SERVER
