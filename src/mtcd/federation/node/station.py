"""What every process of a federation has: its loop, its links, and somebody who asks the others."""

from __future__ import annotations

from collections.abc import Callable

from mtcd.errors import MtcdError
from mtcd.federation.kit import Kit
from mtcd.federation.node.asking import Questions
from mtcd.federation.node.link import Connect, Link
from mtcd.federation.node.log import Log
from mtcd.federation.node.loop import Loop
from mtcd.federation.node.mail import Mail


class Station:
    """Of one party, or of the server. ``changed`` hears who comes and goes."""

    def __init__(
        self,
        kit: Kit,
        log: Log,
        changed: Callable[[str, bool], None] | None = None,
        loop: Loop | None = None,
        connect: Connect = Link,
    ) -> None:
        self.kit, self.log, self.loop = kit, log, loop or Loop()
        self._changed = changed
        self.mail = Mail(kit, self.loop, log, self._heard_change, connect)
        self.questions = Questions(self.mail, self.loop, log)

    def run(self, begin: Callable[[], None]) -> None:
        """Begin, and go on until the loop is stopped."""
        for note in self.kit.notes:
            self.log.say("note", note)
        self.log.say("up", f"Listening on {self.kit.config.listen or self.kit.config.address}.")
        try:
            begin()
            self.loop.run()
        except MtcdError as error:
            self.log.say("failed", "Failed: see its own screen.", why=type(error).__name__)
            raise
        except KeyboardInterrupt:
            self.log.say("interrupted", "Interrupted. Start again to go on.")
            raise
        finally:
            self.close()

    def close(self) -> None:
        """Give up the links and the log."""
        self.mail.link.close()
        self.log.close()

    def missing(self) -> list[str]:
        """Peers to whom there is no connection."""
        link = self.mail.link
        return [name for name in self.kit.config.peers if name in link.peers and name not in link.up]

    def say_waiting(self, waits: list[str]) -> None:
        """For whom this party waits."""
        told = f"Waiting for {', '.join(waits)}."
        if missing := self.missing():
            told += f" No connection yet to {', '.join(missing)}."
        self.log.now_and_then(("waiting", told), told, waiting_for=waits, missing=missing)

    def _heard_change(self, name: str, here: bool) -> None:
        self.log.say("link", peer=name, up=here)
        if self._changed is not None:
            self._changed(name, here)
