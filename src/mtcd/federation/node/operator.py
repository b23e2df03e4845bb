"""The operator's requests to all parties at the same time: status, logs and stop.

A party that is dead must not delay the answer of the others. The TCP connection to its address tells
quickly whether it is worth waiting for: one that is refused, or does not come about, is given up
long before one that stands.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from mtcd.core.errors import ConfigError, MtcdError
from mtcd.federation.credentials.credentials import Credentials
from mtcd.federation.names import OPERATOR
from mtcd.federation.node.counters import Counters
from mtcd.federation.node.link import NO, OK, IncomingRequest, Link
from mtcd.federation.node.log import tidy
from mtcd.federation.node.loop import Loop
from mtcd.federation.transport import CONTROL

C = TypeVar("C", bound=Credentials)
QUERY_SECONDS = 1.0
RETRY_SECONDS = 0.05


class Timeouts(NamedTuple):
    """Seconds to wait: for a connection to a party, and for the answer of a connected one."""

    connection: float
    answer: float


ANSWER_SECONDS = 5.0
THOROUGH = Timeouts(2.0, ANSWER_SECONDS)


def timeouts_of(seconds: float) -> Timeouts:
    """To wait so long for a connection; a party that is connected has five seconds or more to
    answer."""
    return Timeouts(seconds, max(seconds, ANSWER_SECONDS))


def operator_bundle(folder: Path, read: Callable[[Path], C]) -> C:
    """The operator's bundle, in this folder or in its subfolder.

    ``read``: read_credentials, which is quicker, or read_bundle where the settings of the training
    are needed.
    """
    inside = folder / OPERATOR
    bundle = read(inside if (inside / "party.yaml").exists() else folder)
    if not bundle.config.is_operator:
        raise ConfigError(
            f"{folder} is the bundle of {bundle.config.name}: give the operator's bundle, such as "
            "bundles/operator."
        )
    return bundle


class Operator:
    """The operator's session with all parties, which stays open between requests."""

    def __init__(self, bundle: Credentials) -> None:
        self.bundle, self.loop = bundle, Loop()
        self.link = Link(
            bundle,
            self.loop,
            IncomingRequest.drop,
            lambda name, here: None,
            Counters(bundle.config.peers),
        )
        # A thread of its own: the command reads answers while connections come and go.
        Thread(target=self.loop.run, daemon=True).start()

    def __enter__(self) -> Operator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.loop.stop()
        self.link.close()

    def ask(self, kind: str, timeouts: Timeouts = THOROUGH) -> dict[str, Any]:
        """The answers of all reachable parties, by name; a refusal is returned as an MtcdError."""
        asking = _Asking(self, kind, timeouts)
        self.loop.call(asking.begin)
        asking.complete.wait()
        # In the order of the file, whoever answered first.
        found = {}
        for name in self.bundle.config.peers:
            answer = asking.answers.get(name)
            if answer is not None:
                found[name] = answer
        return found


def ask_everybody(bundle: Credentials, kind: str, timeouts: Timeouts = THOROUGH) -> dict[str, Any]:
    """The answers to one request, in a session of its own."""
    with Operator(bundle) as operator:
        return operator.ask(kind, timeouts)


class _Asking:
    """One request to all parties. Everything but ``complete`` is for the loop alone."""

    def __init__(self, operator: Operator, kind: str, timeouts: Timeouts) -> None:
        self.link, self.loop, self.bundle = operator.link, operator.loop, operator.bundle
        self.kind, self.timeouts = f"{CONTROL}/{kind}", timeouts
        self.answers: dict[str, Any] = {}
        self.complete = Event()

    def begin(self) -> None:
        """Send the request to all parties that are connected, and wait for others until their time
        is over."""
        self.began = self.loop.now()
        self.until: dict[str, float] = {}
        for name in self.link.peers:
            self.until[name] = self.began
            # A party without an address dials out only: it cannot be waited for.
            if self.bundle.config.peers[name].address is not None:
                self.until[name] += self.timeouts.connection
        if not self.until:
            self.complete.set()
        for name in self.until:
            self._ask(name)

    def _ask(self, name: str) -> None:
        self._judge(name)
        left = max(self.until[name] - self.loop.now(), RETRY_SECONDS)
        self.link.query(
            name, self.kind, lambda answer: self._answered(name, answer), min(QUERY_SECONDS, left)
        )

    def _judge(self, name: str) -> None:
        """Wait longer for a party that accepts a connection, and no more for one that refuses."""
        reached = self.link.reached.get(name)
        if reached is not None:
            self.until[name] = self.began
            if reached:
                self.until[name] += self.timeouts.answer

    def _answered(self, name: str, answer: bytes | None) -> None:
        self._judge(name)
        # Lost with a connection, perhaps; as long as there is time, it is asked again.
        if answer is None and self.loop.now() < self.until[name]:
            self.loop.later(RETRY_SECONDS, lambda: self._ask(name))
            return
        self.answers[name] = None
        if answer is not None:
            self.answers[name] = _read(answer)
        if len(self.answers) == len(self.until):
            self.complete.set()


def _read(answer: bytes) -> Any:
    if answer[:1] == NO:
        return MtcdError(tidy(answer[1:].decode(errors="replace")))
    if answer[:1] != OK:
        return None
    try:
        return json.loads(answer[1:])
    except (ValueError, RecursionError):
        return None
