"""A party's connections: requests to its peers with their answers, and who of them is there. All of Zenoh is here.

A request goes to the peer under a key that names sender, receiver and kind, with a number; the answer comes back with
the same number. Who dies before it has answered is missed by Zenoh's liveliness: at once if the process is gone, after
the lease if it hangs or the link is cut. All that it was asked is then over, without an answer. The operator, whom
nobody watches, asks by Zenoh's queries instead: they take longer, and give up by themselves.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import Any

import zenoh

from mtcd.errors import MtcdError
from mtcd.federation.keys import alive_key, channel, control_channel, message_key
from mtcd.federation.kit import Kit
from mtcd.federation.names import OPERATOR
from mtcd.federation.node.loop import Loop

Done = Callable[[bytes | None], None]
"""Called in the loop with the answer; with None if there will be none."""
Reply = Callable[[bytes], None]
ANSWER = "answer"
NUMBER = Struct("<Q")
NO_ANSWER = b""  # every answer has a byte at least


class Request:
    """What a peer asks. To be answered once, now or later; if it is let go, the peer knows that there is no answer."""

    __slots__ = ("_reply", "body", "kind", "sender")

    def __init__(self, sender: str, kind: str, body: bytes, reply: Reply) -> None:
        self.sender, self.kind, self.body, self._reply = sender, kind, body, reply

    def answer(self, body: bytes) -> None:
        """Answer it."""
        self._reply(body)

    def let_go(self) -> None:
        """Do not answer."""
        self._reply(NO_ANSWER)


class Link:
    """The session of one party. ``heard`` gets requests, ``changed`` who came or went; both run in the loop."""

    def __init__(
        self, kit: Kit, loop: Loop, heard: Callable[[Request], None], changed: Callable[[str, bool], None]
    ) -> None:
        self.loop, self._heard, self._changed = loop, heard, changed
        self.federation, self.me = kit.config.federation, kit.config.name
        self.peers = frozenset(name for name, peer in kit.config.peers.items() if peer.certificate is not None)
        self.up: set[str] = set()
        self._numbers = itertools.count()
        self._open: dict[str, dict[int, Done]] = {peer: {} for peer in self.peers}
        self._publishers: dict[tuple[str, str], Any] = {}
        try:
            self._session = zenoh.open(zenoh.Config.from_json5(json.dumps(kit.zenoh())))
        except zenoh.ZError as error:
            where = kit.config.listen or kit.config.address
            used = " Is it running already, or another program on that port?" if "in use" in str(error) else ""
            raise MtcdError(f"{self.me} cannot listen on {where}: {_why(error)}.{used}") from None
        self._declared: list[Any] = []
        if not kit.config.is_operator:
            self._declare(kit.config.operator is not None)

    def _declare(self, operated: bool) -> None:
        """Let peers ask and see that we are here, and watch them."""
        session, live = self._session, self._session.liveliness()
        for peer in self.peers:
            self._declared += [
                session.declare_subscriber(channel(self.federation, self.me, peer), self._written(peer)),
                live.declare_subscriber(alive_key(self.federation, peer), self._watched(peer), history=True),
            ]
        if operated:
            asked = control_channel(self.federation, self.me)
            self._declared.append(session.declare_queryable(asked, self._asked_by_operator()))
        self._declared.append(live.declare_token(alive_key(self.federation, self.me)))

    # Requests and answers between peers

    def post(self, to: str, kind: str, body: bytes, done: Done) -> None:
        """Ask a peer; ``done`` gets the answer."""
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

    def _written(self, peer: str) -> Any:
        start = len(message_key(self.federation, self.me, peer)) + 1

        def written(sample: Any) -> None:
            kind, body, told = str(sample.key_expr)[start:], sample.payload.to_bytes(), sample.attachment
            number = None if told is None else told.to_bytes()
            self.loop.call(lambda: self._arrived(peer, kind, body, number))

        return zenoh.handlers.Callback(written, indirect=False)

    def _arrived(self, peer: str, kind: str, body: bytes, told: bytes | None) -> None:
        number = NUMBER.unpack(told)[0] if told is not None and len(told) == NUMBER.size else None
        if kind != ANSWER:
            reply = _ignore if number is None else self._reply(peer, number)
            self._heard(Request(peer, kind, body, reply))
        elif number is not None and (done := self._open[peer].pop(number, None)) is not None:
            done(body or None)

    def _reply(self, peer: str, number: int) -> Reply:
        """The first answer counts."""
        waiting = [number]

        def reply(body: bytes) -> None:
            if waiting:
                self._write(peer, ANSWER, body, waiting.pop())

        return reply

    # Who is there

    def _watched(self, peer: str) -> Any:
        def watched(sample: Any) -> None:
            here = sample.kind == zenoh.SampleKind.PUT
            self.loop.call(lambda: self._note(peer, here))

        return zenoh.handlers.Callback(watched, indirect=False)

    def _note(self, peer: str, here: bool) -> None:
        if here == (peer in self.up):
            return
        (self.up.add if here else self.up.discard)(peer)
        if not here:
            unanswered, self._open[peer] = self._open[peer], {}
            for done in unanswered.values():
                done(None)
        self._changed(peer, here)

    # The operator

    def query(self, to: str, kind: str, done: Done, seconds: float) -> None:
        """Ask somebody as the operator; ``done`` gets the answer."""
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

    def _asked_by_operator(self) -> Any:
        start = len(message_key(self.federation, self.me, OPERATOR)) + 1

        def asked(query: Any) -> None:
            request = Request(OPERATOR, str(query.key_expr)[start:], b"", lambda body: _reply_to(query, body))
            self.loop.call(lambda: self._heard(request))

        return zenoh.handlers.Callback(asked, indirect=False)

    def close(self) -> None:
        """Leave; the peers notice."""
        self._session.close()  # type: ignore[no-untyped-call]


def _reply_to(query: Any, body: bytes) -> None:
    with suppress(zenoh.ZError):  # a key that cannot be answered, or the other is gone
        if body:
            query.reply(query.key_expr, body)
    query.drop()


def _ignore(body: bytes) -> None:
    """Nobody waits for it."""


def _why(error: Exception) -> str:
    """Zenoh's reason in one line, without the places in its source."""
    return " ".join(str(error).split()).split(" at /")[0][:300]


Connect = Callable[[Kit, Loop, Callable[[Request], None], Callable[[str, bool], None]], Link]
"""Makes the links of a party, with the arguments of ``Link``."""
