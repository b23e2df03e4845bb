"""GET /metrics and /healthz of a party, in threads of its process: they are answered while the loop
is busy."""

from __future__ import annotations

import json
from email.message import Message
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

from mtcd.core.http import NOTHING, Answer, Closing, WebServer, names_this_machine
from mtcd.core.version import PROTOCOL, VERSION
from mtcd.federation.node.metrics import PartyCollector

if TYPE_CHECKING:
    from mtcd.federation.node.node import Node

LIVE_SECONDS = 60.0
"""A loop that has not turned for so long hangs. It turns every second if idle; a visit may take
several."""
STARTING = "The bundle or the table is being read."
SEEN_BY_OTHERS = (
    "Everyone who can reach this address sees the progress, the objective and the names of the "
    "members: see the threat model, and restrict access by a firewall."
)


class Monitoring(Closing):
    """Serves at HOST:PORT; a port alone is one of 127.0.0.1. As a context manager, it closes at the
    end."""

    def __init__(self, address: str) -> None:
        self._node: Node | None = None
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        local = f"127.0.0.1:{address}" if address.isdecimal() else address
        self._server = WebServer(local, self._answer, "Metrics and health")
        self._server.start()

    @property
    def url(self) -> str:
        """The address, for people."""
        host = f"[{self._server.host}]" if ":" in self._server.host else self._server.host
        return f"http://{host}:{self._server.port}"

    def watch(self, node: Node) -> None:
        """Tell about this node from now on; before, the process is starting."""
        self._registry.register(PartyCollector(node))
        self._node = node
        seen = "" if self._server.is_local else f" {SEEN_BY_OTHERS}"
        node.log.say(
            "monitoring", f"Metrics and health are at {self.url}/metrics and /healthz.{seen}"
        )

    def health(self) -> tuple[HTTPStatus, dict[str, Any]]:
        """Whether the loop of the party runs, and what it does."""
        facts: dict[str, Any] = {"version": VERSION, "protocol": PROTOCOL}
        node = self._node
        if node is None:
            return HTTPStatus.SERVICE_UNAVAILABLE, {
                "status": "starting",
                "reason": STARTING,
                **facts,
            }
        age = node.loop.now() - node.loop.turned
        link = node.rpc.link
        facts |= {
            "party": node.bundle.config.name,
            "phase": node.phase,
            "missing_peers": [peer for peer in sorted(link.peers) if peer not in link.up],
            "loop_age_seconds": round(age, 3),
        }
        if age < LIVE_SECONDS:
            return HTTPStatus.OK, {"status": "ok", **facts}
        reason = (
            f"The loop has not turned for {age:.0f} s: see the log, and restart this party if it "
            "stays so."
        )
        return HTTPStatus.SERVICE_UNAVAILABLE, {"status": "hangs", "reason": reason, **facts}

    def close(self) -> None:
        self._server.close()

    def _answer(self, path: str, headers: Message) -> Answer:
        if self._server.is_local and not names_this_machine(headers):
            return NOTHING
        if path == "/metrics":
            encode, kind = choose_encoder(headers.get("Accept", ""))
            return Answer(HTTPStatus.OK, kind, encode(self._registry))
        if path == "/healthz":
            status, facts = self.health()
            return Answer(status, "application/json", json.dumps(facts).encode() + b"\n")
        return NOTHING
