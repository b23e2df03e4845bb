"""The common parts of every process of a federation: event loop, log, links, requests, handshake.

The handshake is the first request on every link: which protocol a peer speaks. One that speaks
another is refused, with both numbers. The format of this request never changes, so that any two
versions understand it. Versions from before it refuse it as a request of an unknown kind; they
speak protocol 6, and their frames carry that number too.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from mtcd.core.errors import MtcdError, WireError
from mtcd.core.received import is_whole, read_json
from mtcd.core.version import PROTOCOL, VERSION
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.credentials.credentials import expired_peers
from mtcd.federation.node.link import Connect, IncomingRequest, Link
from mtcd.federation.node.log import Log, tidy
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.rpc import HELLO, Rpc, RpcClient

LONGEST_VERSION = 40
BEFORE = 6, "0.1.0"
"""The protocol and version of a party that refuses this request."""


class VersionExchange:
    """Sends the version of this party to each peer that comes up, and compares the versions of
    peers with it."""

    def __init__(self, rpc: Rpc, log: Log) -> None:
        self.rpc, self.log = rpc, log
        rpc.on(HELLO, self._receive)

    def greet(self, name: str) -> None:
        """Tell a peer that has come up what this party speaks; the answer is what the peer
        speaks."""

        def answered(answer: bytes | None, why: str) -> None:
            try:
                if answer is not None:
                    self._compare(name, *_read(answer))
                elif why:  # a version from before this request
                    self._compare(name, *BEFORE)
            except WireError as error:
                self.rpc.note_refused(name, HELLO, error)

        # Direct only: the answer of a relay would be taken for that of the peer.
        self.rpc.ask(name, HELLO, spoken(), answered, direct=True)

    def _receive(self, request: IncomingRequest) -> None:
        if not request.direct:
            raise WireError("kind", "is never relayed")
        self._compare(request.sender, *_read(request.body))
        request.answer(spoken())

    def _compare(self, name: str, protocol: int, version: str) -> None:
        me = self.rpc.me
        if protocol == PROTOCOL:
            # A peer may have been upgraded since it was last heard.
            self.rpc.incompatible.pop(name, None)
            return
        older = name if protocol < PROTOCOL else me
        sentence = (
            f"{name} speaks protocol {protocol} (mtcd {version}), {me} speaks protocol {PROTOCOL} "
            f"(mtcd {VERSION}): upgrade mtcd at {older}, or use the same version at all parties."
        )
        # Said once for each version, and not at every connection.
        if self.rpc.incompatible.get(name) != sentence:
            self.rpc.incompatible[name] = sentence
            self.log.say("incompatible", sentence, peer=name, theirs=protocol, ours=PROTOCOL)


def spoken() -> bytes:
    """What this party speaks."""
    return json.dumps({"protocol": PROTOCOL, "version": VERSION}).encode()


def _read(body: bytes) -> tuple[int, str]:
    """Decode and check; keys that later versions may add are ignored."""
    told = read_json(body)
    if not isinstance(told, dict):
        raise WireError("version", "is not that of a party")
    protocol, version = told.get("protocol"), told.get("version")
    # Bounded: the number is logged and shown.
    if not is_whole(protocol, 0, 2**31 - 1) or not isinstance(version, str):
        raise WireError("version", "is not that of a party")
    return protocol, tidy(version)[:LONGEST_VERSION]


class NodeContext:
    """The process of one party, or of the server. ``changed`` gets a peer and whether it is up."""

    def __init__(
        self,
        bundle: Bundle,
        log: Log,
        changed: Callable[[str, bool], None] | None = None,
        loop: Loop | None = None,
        connect: Connect = Link,
    ) -> None:
        self.bundle, self.log, self.loop = bundle, log, loop or Loop()
        self._changed = changed
        self.failed: Callable[[BaseException], None] = lambda error: None
        """Called with the error that ends this process, while the links are open."""
        self.rpc = Rpc(bundle, self.loop, log, self._on_change, connect)
        self.rpc_client = RpcClient(self.rpc, self.loop, log)
        self._handshake = VersionExchange(self.rpc, log)

    def run(self, begin: Callable[[], None]) -> None:
        """Call ``begin``, and run until the loop is stopped."""
        for note in self.bundle.notes:
            self.log.say("note", note)
        where = self.bundle.config.listen or self.bundle.config.address
        opens = "Connecting to peers, accepting no connections."
        if where is not None:
            opens = f"Listening on {where}."
        self.log.say("up", opens)
        try:
            begin()
            self.loop.run()
        except BaseException as error:
            if isinstance(error, MtcdError):
                sentence = getattr(
                    error, "summary", "Failed: the reason is on the screen of this party."
                )
                self.log.say("failed", sentence, why=type(error).__name__)
            elif isinstance(error, KeyboardInterrupt):
                self.log.say("interrupted", "Interrupted. Restart this party to continue.")
            # While the links are open: the others learn from it why this party ends.
            self.failed(error)
            raise
        finally:
            self.close()

    def close(self) -> None:
        """Close the links and the log."""
        # In this order: closing the links may still log.
        try:
            self.rpc.link.close()
        finally:
            self.log.close()

    def missing(self) -> list[str]:
        """The peers without a connection."""
        link = self.rpc.link
        absent = link.peers - link.up
        return [name for name in self.bundle.config.peers if name in absent]

    def say_waiting(self, waits: list[str]) -> None:
        """Log the parties for which this one waits."""
        sentence = f"Waiting for {', '.join(waits)}."
        if missing := self.missing():
            sentence += f" No connection yet to {', '.join(missing)}."
            if expired := expired_peers(self.bundle.folder, missing):
                sentence += f" {expired}"
        sentence += "".join(
            f" {self.rpc.incompatible[name]}" for name in waits if name in self.rpc.incompatible
        )
        self.log.throttled(("waiting", sentence), sentence, waiting_for=waits, missing=missing)

    def _on_change(self, name: str, up: bool) -> None:
        self.log.say("link", peer=name, up=up)
        if up:
            self._handshake.greet(name)
        if self._changed is not None:
            self._changed(name, up)
