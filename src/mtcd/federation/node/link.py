"""A party's connections to its peers: requests, their answers, and who is up.

A request has a number, and its answer carries the same one, over the same connection. When the
connection to a peer is lost, its pending requests complete without an answer: at once if the
process of the peer ends, after the lease if it hangs or the link is cut. Requests of the operator
are answered like those of peers; it is not watched, and may ask nothing but what begins with
``control/``.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic, sleep

from mtcd.core.errors import MtcdError, system_reason
from mtcd.federation.connections.connection import Connection
from mtcd.federation.connections.connections import Connections
from mtcd.federation.connections.refusals import Refused
from mtcd.federation.connections.wire import ANSWER, REQUEST, Frame
from mtcd.federation.credentials.credentials import Credentials
from mtcd.federation.names import OPERATOR
from mtcd.federation.node.counters import Counters
from mtcd.federation.node.log import tidy
from mtcd.federation.node.loop import Loop
from mtcd.federation.transport import CONTROL

Done = Callable[[bytes | None], None]
"""Called in the loop with the answer, or with None if there is none."""
Reply = Callable[[bytes], None]
OK, NO = b"\0", b"\1"  # the first byte of an answer: granted, or refused with a reason
PORT_TIMEOUT_SECONDS = 5.0
PORT_RETRY_SECONDS = 0.2
NO_ANSWER = b""  # an answer has at least one byte
WORDS = {
    "closed": "closed before they had shown a certificate",
    "tls": "not TLS 1.3 between members",
    "certificate": "without a valid certificate of this federation",
    "name": "of members that are not expected here",
    "deadline": "whose handshake took too long",
    "limit": "in excess of those that may wait for a handshake",
    "resources": "for which the system had no room",
    "frame": "that broke the rules of the protocol",
}
"""Reasons for which connections are refused, for people."""


class IncomingRequest:
    """A request of a member, to be answered or dropped once, now or later. Its sender is notified
    of a drop.

    Parameters
    ----------
    sender
        The member that asks.
    kind
        Which handler it is for.
    content
        What it says.
    reply
        Sends the answer.
    direct
        Whether it came from a peer over their own link; relayed ones did not.
    """

    __slots__ = ("_reply", "content", "direct", "kind", "sender")

    def __init__(
        self,
        sender: str,
        kind: str,
        content: bytes | bytearray,
        reply: Reply,
        direct: bool = True,
    ) -> None:
        self.sender, self.kind, self.direct = sender, kind, direct
        self._reply: Reply | None = reply
        self.content = content
        """What it says, as it was received: a ``bytearray`` is of the handler alone, who may keep
        and change it."""

    @property
    def body(self) -> bytes:
        """A copy of the content."""
        return bytes(self.content)

    def answer(self, body: bytes = b"") -> None:
        """Grant the request, with this answer."""
        self.reply(OK + body)

    def refuse(self, why: str) -> None:
        """Refuse the request, with the reason."""
        self.reply(NO + tidy(why).encode())

    def drop(self) -> None:
        """Notify the sender that there is no answer."""
        self.reply(NO_ANSWER)

    def reply(self, answer: bytes) -> None:
        """Send an answer as it is, such as that of another member; only the first one is sent."""
        reply, self._reply = self._reply, None
        if reply is not None:
            reply(answer)


class Link:
    """The connections of one party, with its bundle.

    ``on_request`` gets requests; ``on_change`` gets a peer and whether it is up. Both run in the
    loop. ``counters`` has the bytes to and from each peer, and the connections that were refused.
    """

    def __init__(
        self,
        bundle: Credentials,
        loop: Loop,
        on_request: Callable[[IncomingRequest], None],
        on_change: Callable[[str, bool], None],
        counters: Counters,
    ) -> None:
        self.loop, self._on_request, self._on_change = loop, on_request, on_change
        self.me = bundle.config.name
        self.peers = frozenset(
            name for name, peer in bundle.config.peers.items() if peer.certificate is not None
        )
        self.up: set[str] = set()
        self.tell: Callable[[tuple[str, ...], str], None] = lambda kind, sentence: None
        """Gets what a person should know: its kind, by which it is throttled, and a sentence."""
        self._counters = counters
        self._numbers = itertools.count()
        self._open: dict[str, dict[int, Done]] = {peer: {} for peer in self.peers}
        self._connections: dict[str, Connection] = {}
        self._all = _open_connections(bundle, self)

    # Requests and answers

    def post(self, to: str, kind: str, body: bytes, done: Done) -> None:
        """Send a request to a peer; ``done`` gets the answer."""
        # Of strangers nothing is known, and the operator may not be called.
        connection = self._connections.get(to) if to in self.peers else None
        if connection is not None and len(body) > self._all.longest:
            self._say_too_long(f"A message to {to} ({kind})", to, kind, body)
            connection = None
        # who asks again later does not fill the memory while a link is slow
        if connection is None or connection.unsent_bytes > self._all.longest:
            self.loop.call(partial(done, None))
            return

        number = next(self._numbers)
        self._open[to][number] = done
        connection.send(REQUEST, kind, number, body)
        self._counters.sent_bytes[to] += len(body)

    def query(self, to: str, kind: str, done: Done, seconds: float) -> None:
        """Send a request without content, and wait for the answer no longer than so many
        seconds."""
        # Taken by the first of answer and timer; the other finds nothing.
        waiting = [done]

        def answered(answer: bytes | None) -> None:
            if waiting:
                waiting.pop()(answer)

        self.post(to, kind, b"", answered)
        self.loop.later(seconds, lambda: answered(None))

    @property
    def reached(self) -> Mapping[str, bool]:
        """By peer that this party calls, and has called: whether its host accepts connections."""
        return self._all.reached

    def _answer(self, connection: Connection, number: int, body: bytes) -> None:
        if len(body) > self._all.longest:
            peer = connection.peer
            self._say_too_long(f"An answer to {peer}", peer, "answer", body)
            body = NO_ANSWER
        connection.send(ANSWER, "", number, body)
        if connection.peer in self.peers:  # the operator is none
            self._counters.sent_bytes[connection.peer] += len(body)

    def _say_too_long(self, what: str, to: str, kind: str, body: bytes) -> None:
        sentence = (
            f"{what} has {len(body)} bytes, more than limits.message_mb of the federation allows, "
            "and was not sent: ask the administrator for a larger limit."
        )
        self.tell(("unsent", to, kind), sentence)

    # What connections report, in their threads

    def opened(self, connection: Connection) -> None:
        """Note that a connection stands."""
        self.loop.call(partial(self._opened, connection))

    def lost(self, connection: Connection) -> None:
        """Note that a connection is lost."""
        self.loop.call(partial(self._lost, connection))

    def arrived(self, connection: Connection, frame: Frame) -> None:
        """Handle a frame in the thread of the loop: called in that of the connections."""
        self.loop.call(partial(self._arrived, connection, frame))

    def refused(self, refused: dict[str, Refused]) -> None:
        """Note connections that were refused."""
        self.loop.call(partial(self._refused, refused))

    def receiving(self, much: bool) -> None:
        """Note whether much is being decrypted: the loop then does not take the interpreter away
        while it has nothing to do."""
        self.loop.may_spin = not much

    # The same in the loop

    def _opened(self, connection: Connection) -> None:
        peer = connection.peer
        self._connections[peer] = connection
        if peer in self.peers:
            # Up only now: the handshake has shown whose connection it is.
            self.up.add(peer)
            self._on_change(peer, True)

    def _lost(self, connection: Connection) -> None:
        peer = connection.peer
        # An older connection, which a newer one has replaced: the peer is not lost.
        if self._connections.get(peer) is not connection:
            return
        del self._connections[peer]
        if peer in self.peers:
            self.up.discard(peer)
            # Emptied first: what is called below may ask the peer again.
            unanswered, self._open[peer] = self._open[peer], {}
            for done in unanswered.values():
                done(None)
            self._on_change(peer, False)

    def _arrived(self, connection: Connection, frame: Frame) -> None:
        peer = connection.peer
        try:
            if peer in self.peers:
                self._counters.received_bytes[peer] += len(frame.body)
            if frame.what == REQUEST:
                reply = partial(self._answer, connection, frame.number)
                request = IncomingRequest(peer, frame.kind, frame.body, reply)
                if peer == OPERATOR and not frame.kind.startswith(f"{CONTROL}/"):
                    request.drop()
                else:
                    self._on_request(request)
            elif (done := self._open.get(peer, {}).pop(frame.number, None)) is not None:
                done(bytes(frame.body) or None)
        finally:
            # Whatever happened: the connection reads on only when its frames are done with.
            connection.handled(frame)

    def _refused(self, refused: dict[str, Refused]) -> None:
        for kind, new in refused.items():
            self._counters.refused_connections[kind] += new.count
            total = self._counters.refused_connections[kind]
            sentence = (
                f"Refused connections {WORDS[kind]}: {total} so far, the last with "
                f"{new.address} ({new.why})."
            )
            self.tell(("refused_connection", kind), sentence)

    def close(self) -> None:
        """Send what waits, and close all connections; peers that do not read are not waited for."""
        self._all.close()


def _open_connections(bundle: Credentials, link: Link) -> Connections:
    """Listen and connect; wait for a port that is in use, but not for long: a party that has just
    ended may still hold it."""
    give_up = monotonic() + PORT_TIMEOUT_SECONDS

    while True:
        try:
            return Connections(
                bundle, link.opened, link.lost, link.arrived, link.refused, link.receiving
            )
        except OSError as error:
            # Other errors do not pass by waiting.
            in_use = error.errno == errno.EADDRINUSE
            if not in_use or monotonic() > give_up:
                raise _cannot_open(bundle, error) from None

        sleep(PORT_RETRY_SECONDS)


def _cannot_open(bundle: Credentials, error: OSError) -> MtcdError:
    where = bundle.config.listen or bundle.config.address
    what = "cannot open its connections"
    if where is not None:
        what = f"cannot listen on {where}"
    advice = ""
    if error.errno == errno.EADDRINUSE:
        advice = " Stop this party if it is running already, or another program that uses the port."

    why = system_reason(error)
    return MtcdError(f"{bundle.config.name} {what}: {why}.{advice}")


Connect = Callable[
    [Credentials, Loop, Callable[[IncomingRequest], None], Callable[[str, bool], None], Counters],
    Link,
]
"""Makes the links of a party, with the arguments of ``Link``."""
