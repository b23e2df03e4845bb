"""The common parts of every process of a federation: event loop, log, links and requests."""

from __future__ import annotations

from collections.abc import Callable

from mtcd.core.errors import MtcdError
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.credentials.expiry import expired_peers
from mtcd.federation.node.handshake import Handshake
from mtcd.federation.node.link import Connect, Link
from mtcd.federation.node.log import Log
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.rpc import Rpc
from mtcd.federation.node.rpc_client import RpcClient


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
        self._handshake = Handshake(self.rpc, log)

    def run(self, begin: Callable[[], None]) -> None:
        """Call ``begin``, and run until the loop is stopped."""
        for note in self.bundle.notes:
            self.log.say("note", note)
        where = self.bundle.config.listen or self.bundle.config.address
        self.log.say(
            "up",
            "Connecting to peers, accepting no connections."
            if where is None
            else f"Listening on {where}.",
        )
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
            self.failed(error)
            raise
        finally:
            self.close()

    def close(self) -> None:
        """Close the links and the log."""
        try:
            self.rpc.link.close()
        finally:
            self.log.close()

    def missing(self) -> list[str]:
        """The peers without a connection."""
        link = self.rpc.link
        return [
            name for name in self.bundle.config.peers if name in link.peers and name not in link.up
        ]

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
