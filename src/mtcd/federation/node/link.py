"""A party's connections: requests to its peers with their answers, and who of them is there. All of Zenoh is here.

A request is a query whose key names sender, receiver and kind. If the other dies before it has answered, Zenoh ends
the query, and the sender knows: at once if the process is gone, after the lease if it hangs or the link is cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import zenoh

from mtcd.errors import MtcdError
from mtcd.federation.keys import alive_key, channel, control_channel, message_key
from mtcd.federation.kit import Kit
from mtcd.federation.names import OPERATOR
from mtcd.federation.node.loop import Loop

Done = Callable[[bytes | None], None]
"""Called in the loop with the answer; with None if there will be none."""
LONGEST = 3600.0  # seconds for an answer of one who is there


class Request:
    """What a peer asks. To be answered once, now or later; if it is let go, the peer knows that there is no answer."""

    __slots__ = ("_query", "body", "kind", "sender")

    def __init__(self, sender: str, kind: str, body: bytes, query: Any) -> None:
        self.sender, self.kind, self.body, self._query = sender, kind, body, query

    def answer(self, body: bytes) -> None:
        """Answer it."""
        query, self._query = self._query, None
        if query is not None:
            query.reply(query.key_expr, body)
            query.drop()  # without it, other threads would have to wait until the end of the query is sent

    def let_go(self) -> None:
        """Do not answer."""
        query, self._query = self._query, None
        if query is not None:
            query.drop()


class Link:
    """The session of one party. ``heard`` gets requests, ``changed`` who came or went; both run in the loop."""

    def __init__(
        self, kit: Kit, loop: Loop, heard: Callable[[Request], None], changed: Callable[[str, bool], None]
    ) -> None:
        self.loop, self._heard, self._changed = loop, heard, changed
        self.federation, self.me = kit.config.federation, kit.config.name
        self.peers = frozenset(name for name, peer in kit.config.peers.items() if peer.certificate is not None)
        self.up: set[str] = set()
        try:
            self._session = zenoh.open(zenoh.Config.from_json5(json.dumps(kit.zenoh())))
        except zenoh.ZError as error:
            where = kit.config.listen or kit.config.address
            raise MtcdError(f"{self.me} cannot listen on {where}: {_why(error)}") from None
        self._declared: list[Any] = []
        if not kit.config.is_operator:
            self._declare(kit.config.operator is not None)

    def _declare(self, operated: bool) -> None:
        """Let peers ask and see that we are here, and watch them."""
        declare, live = self._session.declare_queryable, self._session.liveliness()
        for peer in self.peers:
            self._declared += [
                declare(channel(self.federation, self.me, peer), self._asked(peer)),
                live.declare_subscriber(alive_key(self.federation, peer), self._watched(peer), history=True),
            ]
        if operated:
            self._declared.append(declare(control_channel(self.federation, self.me), self._asked(OPERATOR)))
        self._declared.append(live.declare_token(alive_key(self.federation, self.me)))

    def post(self, to: str, kind: str, body: bytes, done: Done, seconds: float = LONGEST) -> None:
        """Ask a peer; ``done`` gets the answer."""
        answers: list[bytes] = []

        def replied(reply: Any) -> None:
            if reply.ok is not None and not answers:
                answers.append(reply.ok.payload.to_bytes())

        def ended() -> None:
            self.loop.call(lambda: done(answers[0] if answers else None))

        self._session.get(
            message_key(self.federation, to, self.me, kind),
            zenoh.handlers.Callback(replied, ended, indirect=False),
            payload=body,
            consolidation=zenoh.ConsolidationMode.NONE,
            congestion_control=zenoh.CongestionControl.BLOCK,
            express=True,
            timeout=seconds,
        )

    def close(self) -> None:
        """Leave; the peers notice."""
        self._session.close()  # type: ignore[no-untyped-call]

    def _asked(self, sender: str) -> Any:
        start = len(message_key(self.federation, self.me, sender)) + 1

        def asked(query: Any) -> None:
            payload = query.payload
            body = b"" if payload is None else payload.to_bytes()
            request = Request(sender, str(query.key_expr)[start:], body, query)
            self.loop.call(lambda: self._heard(request))

        return zenoh.handlers.Callback(asked, indirect=False)

    def _watched(self, peer: str) -> Any:
        def watched(sample: Any) -> None:
            here = sample.kind == zenoh.SampleKind.PUT
            self.loop.call(lambda: self._note(peer, here))

        return zenoh.handlers.Callback(watched, indirect=False)

    def _note(self, peer: str, here: bool) -> None:
        if here != (peer in self.up):
            (self.up.add if here else self.up.discard)(peer)
            self._changed(peer, here)


def _why(error: Exception) -> str:
    """Zenoh's reason in one line."""
    return " ".join(str(error).split())[:300]
