"""A party's connections over Zenoh: requests to peers, their answers, and the liveliness of peers.

A request is published under a key that names sender, receiver and kind, with a number; the answer
carries the same number. Zenoh's liveliness reports a peer that fails: at once if its process ends,
after the lease if it hangs or the link is cut. Its pending requests then complete without an
answer. The operator, whose liveliness is not watched, uses Zenoh's queries instead, which are
slower but have timeouts.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from time import monotonic, sleep
from typing import Any

import zenoh

from mtcd.core.errors import MtcdError
from mtcd.federation.credentials.credentials import Credentials
from mtcd.federation.keys import alive_key, channel, control_channel, message_key
from mtcd.federation.names import OPERATOR
from mtcd.federation.node.counters import Counters
from mtcd.federation.node.loop import Loop

Done = Callable[[bytes | None], None]
"""Called in the loop with the answer, or with None if there is none."""
Reply = Callable[[bytes], None]
ANSWER = "answer"
NUMBER = Struct("<Q")
OK, NO = b"\0", b"\1"  # the first byte of an answer: granted, or refused with a reason
IN_USE = "in use"  # in the system's message about a port
PORT_TIMEOUT_SECONDS = 5.0
PORT_RETRY_SECONDS = 0.2
NO_ANSWER = b""  # an answer has at least one byte


class Request:
    """A request of a peer, to be answered or dropped once, now or later. The peer is notified of a
    drop."""

    __slots__ = ("_reply", "body", "kind", "sender")

    def __init__(self, sender: str, kind: str, body: bytes, reply: Reply) -> None:
        self.sender, self.kind, self.body, self._reply = sender, kind, body, reply

    def answer(self, body: bytes) -> None:
        """Send the answer."""
        self._reply(body)

    def drop(self) -> None:
        """Notify the peer that there is no answer."""
        self._reply(NO_ANSWER)


class Link:
    """The Zenoh session of one party, with its bundle.

    ``on_request`` gets requests; ``on_change`` gets a peer and whether it is up. Both run in the
    loop. ``counters`` has the bytes to and from each peer.
    """

    def __init__(
        self,
        bundle: Credentials,
        loop: Loop,
        on_request: Callable[[Request], None],
        on_change: Callable[[str, bool], None],
        counters: Counters,
    ) -> None:
        self.loop, self._on_request, self._on_change = loop, on_request, on_change
        self.federation, self.me = bundle.config.federation, bundle.config.name
        self.peers = frozenset(
            name for name, peer in bundle.config.peers.items() if peer.certificate is not None
        )
        self.up: set[str] = set()
        self._counters = counters
        self._numbers = itertools.count()
        self._open: dict[str, dict[int, Done]] = {peer: {} for peer in self.peers}
        self._publishers: dict[tuple[str, str], Any] = {}
        self._session = _open_session(bundle)
        self._declared: list[Any] = []
        if not bundle.config.is_operator:
            self._declare(bundle.config.operator is not None)

    def _declare(self, operated: bool) -> None:
        """Subscribe to the requests and the liveliness of peers, and declare this party's own
        liveliness."""
        session, live = self._session, self._session.liveliness()
        for peer in self.peers:
            self._declared += [
                session.declare_subscriber(
                    channel(self.federation, self.me, peer), self._written(peer)
                ),
                live.declare_subscriber(
                    alive_key(self.federation, peer), self._watched(peer), history=True
                ),
            ]
        if operated:
            control = control_channel(self.federation, self.me)
            self._declared.append(session.declare_queryable(control, self._from_operator()))
        self._declared.append(live.declare_token(alive_key(self.federation, self.me)))

    # Requests and answers between peers

    def post(self, to: str, kind: str, body: bytes, done: Done) -> None:
        """Send a request to a peer; ``done`` gets the answer."""
        if to not in self.up:
            self.loop.call(lambda: done(None))
            return
        number = next(self._numbers)
        self._open[to][number] = done
        self._write(to, kind, body, number)

    def _write(self, to: str, kind: str, body: bytes, number: int) -> None:
        publisher = self._publishers.get((to, kind))
        if publisher is None:
            publisher = self._publishers[to, kind] = self._session.declare_publisher(
                message_key(self.federation, to, self.me, kind),
                congestion_control=zenoh.CongestionControl.BLOCK,
                express=True,
            )
        with suppress(zenoh.ZError):  # the session is being closed
            publisher.put(body, attachment=NUMBER.pack(number))
            self._counters.sent_bytes[to] += len(body)

    def _written(self, peer: str) -> Any:
        start = len(message_key(self.federation, self.me, peer)) + 1

        def written(sample: Any) -> None:
            kind, body, attachment = (
                str(sample.key_expr)[start:],
                sample.payload.to_bytes(),
                sample.attachment,
            )
            number = None if attachment is None else attachment.to_bytes()
            self.loop.call(lambda: self._arrived(peer, kind, body, number))

        return zenoh.handlers.Callback(written, indirect=False)

    def _arrived(self, peer: str, kind: str, body: bytes, packed: bytes | None) -> None:
        self._counters.received_bytes[peer] += len(body)
        number = (
            NUMBER.unpack(packed)[0] if packed is not None and len(packed) == NUMBER.size else None
        )
        if kind != ANSWER:
            reply = _ignore if number is None else self._reply(peer, number)
            self._on_request(Request(peer, kind, body, reply))
        elif number is not None and (done := self._open[peer].pop(number, None)) is not None:
            done(body or None)

    def _reply(self, peer: str, number: int) -> Reply:
        """Sends the first answer, and ignores others."""
        waiting = [number]

        def reply(body: bytes) -> None:
            if waiting:
                self._write(peer, ANSWER, body, waiting.pop())

        return reply

    # Liveliness

    def _watched(self, peer: str) -> Any:
        def watched(sample: Any) -> None:
            up = sample.kind == zenoh.SampleKind.PUT
            self.loop.call(lambda: self._set_up(peer, up))

        return zenoh.handlers.Callback(watched, indirect=False)

    def _set_up(self, peer: str, up: bool) -> None:
        if up == (peer in self.up):
            return
        (self.up.add if up else self.up.discard)(peer)
        if not up:
            unanswered, self._open[peer] = self._open[peer], {}
            for done in unanswered.values():
                done(None)
        self._on_change(peer, up)

    # The operator

    def query(self, to: str, kind: str, done: Done, seconds: float) -> None:
        """Send the operator's request to a party; ``done`` gets the answer."""
        answers: list[bytes] = []

        def replied(reply: Any) -> None:
            if reply.ok is not None and not answers:
                answers.append(reply.ok.payload.to_bytes())

        def ended() -> None:
            self.loop.call(lambda: done(answers[0] if answers else None))

        self._session.get(
            message_key(self.federation, to, self.me, kind),
            zenoh.handlers.Callback(replied, ended, indirect=False),
            consolidation=zenoh.ConsolidationMode.NONE,
            timeout=seconds,
        )

    def _from_operator(self) -> Any:
        start = len(message_key(self.federation, self.me, OPERATOR)) + 1

        def queried(query: Any) -> None:
            request = Request(
                OPERATOR, str(query.key_expr)[start:], b"", lambda body: _reply_to(query, body)
            )
            self.loop.call(lambda: self._on_request(request))

        return zenoh.handlers.Callback(queried, indirect=False)

    def close(self) -> None:
        """Close the session; peers are notified by Zenoh, or by its lease if closing takes too
        long."""
        with suppress(zenoh.ZError):
            self._session.close()  # type: ignore[no-untyped-call]


def _open_session(bundle: Credentials) -> zenoh.Session:
    """Open the session; wait for a port that is in use, but not for long.

    A party that has just ended may still hold it: closing a session has a time limit, after which
    Zenoh goes on to close it in the background.
    """
    config = json.dumps(bundle.zenoh())
    give_up = monotonic() + PORT_TIMEOUT_SECONDS

    while True:
        try:
            return zenoh.open(zenoh.Config.from_json5(config))
        except zenoh.ZError as error:
            in_use = IN_USE in str(error)
            if not in_use or monotonic() > give_up:
                raise _cannot_open(bundle, error) from None

        sleep(PORT_RETRY_SECONDS)


def _cannot_open(bundle: Credentials, error: Exception) -> MtcdError:
    where = bundle.config.listen or bundle.config.address
    what = "cannot open its connections" if where is None else f"cannot listen on {where}"
    advice = ""
    if IN_USE in str(error):
        advice = " Stop this party if it is running already, or another program that uses the port."

    return MtcdError(f"{bundle.config.name} {what}: {_why(error)}.{advice}")


def _reply_to(query: Any, body: bytes) -> None:
    with suppress(zenoh.ZError):  # the key cannot be answered, or the operator is unreachable
        if body:
            query.reply(query.key_expr, body)
    query.drop()


def _ignore(body: bytes) -> None:
    """Discard the answer to a request without a number."""


def _why(error: Exception) -> str:
    """Zenoh's reason in one line, without locations in its source."""
    return " ".join(str(error).split()).split(" at /")[0][:300]


Connect = Callable[
    [Credentials, Loop, Callable[[Request], None], Callable[[str, bool], None], Counters], Link
]
"""Makes the links of a party, with the arguments of ``Link``."""
