"""The first request on every link: which protocol a peer speaks. One that speaks another is
refused, with both numbers.

The format of this request never changes, so that any two versions understand it. Versions from
before it refuse it as a request of an unknown kind; they speak protocol 6, and their frames carry
that number too.
"""

from __future__ import annotations

import json
from typing import Any

from mtcd.core.errors import WireError
from mtcd.core.version import PROTOCOL, VERSION
from mtcd.federation.node.log import Log, tidy
from mtcd.federation.node.rpc import HELLO, IncomingRequest, Rpc

LONGEST_VERSION = 40
BEFORE = 6, "0.1.0"
"""The protocol and version of a party that refuses this request."""


class Handshake:
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

        self.rpc.ask(name, HELLO, spoken(), answered, direct=True)

    def _receive(self, request: IncomingRequest) -> None:
        if not request.direct:
            raise WireError("kind", "is never relayed")
        self._compare(request.sender, *_read(request.body))
        request.answer(spoken())

    def _compare(self, name: str, protocol: int, version: str) -> None:
        me = self.rpc.me
        if protocol == PROTOCOL:
            self.rpc.incompatible.pop(name, None)
            return
        older = name if protocol < PROTOCOL else me
        sentence = (
            f"{name} speaks protocol {protocol} (mtcd {version}), {me} speaks protocol {PROTOCOL} "
            f"(mtcd {VERSION}): upgrade mtcd at {older}, or use the same version at all parties."
        )
        if self.rpc.incompatible.get(name) != sentence:
            self.rpc.incompatible[name] = sentence
            self.log.say("incompatible", sentence, peer=name, theirs=protocol, ours=PROTOCOL)


def spoken() -> bytes:
    """What this party speaks."""
    return json.dumps({"protocol": PROTOCOL, "version": VERSION}).encode()


def _read(body: bytes) -> tuple[int, str]:
    """Decode and check; keys that later versions may add are ignored."""
    try:
        told: Any = json.loads(body)
        protocol, version = told["protocol"], told["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise WireError("version", "is not that of a party") from None
    if type(protocol) is not int or not 0 <= protocol < 2**31 or not isinstance(version, str):
        raise WireError("version", "is not that of a party")
    return protocol, tidy(version)[:LONGEST_VERSION]
