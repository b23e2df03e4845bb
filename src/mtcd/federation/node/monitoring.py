"""GET /metrics and /healthz of a party, and the metrics, read from its node when they are asked for.

Requests are answered in threads of the party's process, also while its loop is busy: only numbers,
and copies of small collections, are read. Labels are names of members, tokens, phases and reasons,
so that the number of series is bounded.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from mtcd.core.http import NOTHING, Answer, Closing, WebServer, names_this_machine
from mtcd.core.version import PROTOCOL, VERSION

if TYPE_CHECKING:
    from mtcd.federation.node.node import Node


Samples = Iterable[tuple[tuple[str, ...], float]]
"""Values by the values of their labels."""


@dataclass(frozen=True)
class Measured:
    """A gauge or, if its name ends in ``_total``, a counter. ``read`` gives no value where it is
    unknown."""

    name: str
    text: str
    read: Callable[[Node], Samples]
    labels: tuple[str, ...] = ()

    def family(self, node: Node) -> Metric:
        """The metric with its values of this moment, one for each set of labels, as Prometheus
        reads it."""
        make: type[CounterMetricFamily] | type[GaugeMetricFamily] = GaugeMetricFamily
        if self.name.endswith("_total"):
            make = CounterMetricFamily
        family = make(self.name, self.text, labels=self.labels)
        for labels, value in self.read(node):
            family.add_metric(labels, value)
        return family


def _one(value: float) -> Samples:
    return [((), value)]


def _by_label(values: dict[str, int]) -> Samples:
    return [((label,), value) for label, value in values.items()]


def _party(node: Node) -> Samples:
    config = node.bundle.config
    role = "party"
    if config.is_server:
        role = "server"
    return [((config.federation, config.name, role), 1)]


def _phase(node: Node) -> Samples:
    from mtcd.federation.node.node import PHASES

    now = node.phase
    return [((phase,), phase == now) for phase in PHASES]


def _run(node: Node) -> Samples:
    trainer = node.trainer
    if trainer is None:
        return []
    # One series for each status: the old one ends when the run does.
    status = "running"
    ended = trainer.reliable.ended
    if ended is not None:
        status = ended.status
    return [((trainer.run, status), 1)]


def _hops(node: Node) -> Samples:
    if node.trainer is None:
        return _one(0)
    return _one(node.trainer.reliable.ledger.hops)


def _objective(node: Node) -> Samples:
    watch = node.watch
    # Absent, not 0 or NaN: an alarm on the objective must not fire on what nobody knows.
    if watch is None or not math.isfinite(watch.objective):
        return []
    return _one(watch.objective)


def _token_ages(node: Node) -> Samples:
    if node.watch is None:
        return []
    tokens = node.watch.tokens()
    return [((str(token["token"]),), token["seconds_ago"]) for token in tokens]


def _peers_up(node: Node) -> Samples:
    link = node.rpc.link
    return [((peer,), peer in link.up) for peer in sorted(link.peers)]


METRICS = (
    Measured(
        "mtcd_build_info",
        "The version of mtcd, and of the protocol between parties; always 1",
        lambda node: [((VERSION, str(PROTOCOL)), 1)],
        ("version", "protocol"),
    ),
    Measured(
        "mtcd_party_info",
        "The federation, the name of this member, and whether it is a party or the server; always "
        "1",
        _party,
        ("federation", "party", "role"),
    ),
    Measured("mtcd_phase", "1 for the phase of this party, 0 for the others", _phase, ("phase",)),
    Measured(
        "mtcd_run_info",
        "The id of the run, and its status: running, or that of the end; always 1, absent before "
        "training",
        _run,
        ("run", "status"),
    ),
    Measured(
        "mtcd_hops_total", "Hops of tokens that this party has sent, since the run began", _hops
    ),
    Measured(
        "mtcd_iteration",
        "The iteration that this party knows of",
        lambda node: _one(0 if node.watch is None else node.watch.iteration),
    ),
    Measured(
        "mtcd_syncs",
        "The syncs, or rounds, that this party knows of",
        lambda node: _one(0 if node.watch is None else node.watch.syncs),
    ),
    Measured(
        "mtcd_objective", "The objective, as last measured; absent where it is unknown", _objective
    ),
    Measured(
        "mtcd_token_age_seconds",
        "Time since the token was here; absent before its first visit",
        _token_ages,
        ("token",),
    ),
    Measured(
        "mtcd_peer_up", "1 if there is a connection to the peer, 0 if not", _peers_up, ("peer",)
    ),
    Measured(
        "mtcd_sent_bytes_total",
        "Bytes of requests and answers to the peer, without what TLS and the frames add",
        lambda node: _by_label(node.rpc.counters.sent_bytes),
        ("peer",),
    ),
    Measured(
        "mtcd_received_bytes_total",
        "Bytes of requests and answers from the peer, without what TLS and the frames add",
        lambda node: _by_label(node.rpc.counters.received_bytes),
        ("peer",),
    ),
    Measured(
        "mtcd_messages_refused_total",
        "Messages of other members that were refused",
        lambda node: _by_label(node.rpc.counters.refused),
        ("reason",),
    ),
    Measured(
        "mtcd_connections_refused_total",
        "Connections that were refused, of strangers mostly",
        lambda node: _by_label(node.rpc.counters.refused_connections),
        ("reason",),
    ),
    Measured(
        "mtcd_certificate_expiry_timestamp_seconds",
        "When the certificate of this party expires, in seconds since 1970",
        lambda node: _one(node.bundle.until.timestamp()),
    ),
    Measured(
        "mtcd_loop_age_seconds",
        "Time since the loop of this party last looked for work; /healthz answers 503 from 60 on",
        lambda node: _one(node.loop.now() - node.loop.turned),
    ),
)
COMMITS = "mtcd_journal_commit_seconds"
COMMITS_TEXT = (
    "Time that a commit to the journal takes; its count is that of commits since the start of the "
    "process"
)


class PartyCollector(Collector):
    """The metrics of one node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def describe(self) -> Iterator[Metric]:
        """Nothing: without this, registering would read a node that has not begun."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        for metric in METRICS:
            yield metric.family(self._node)
        yield self._commits()

    def _commits(self) -> Metric:
        commits = self._node.rpc.counters.commits
        bounds = [*(str(bound) for bound in commits.bounds), "+Inf"]
        # Prometheus counts cumulatively: each bucket with all below it.
        buckets = list(zip(bounds, accumulate(commits.counts), strict=True))
        family = HistogramMetricFamily(COMMITS, COMMITS_TEXT)
        family.add_metric((), buckets, commits.seconds)
        return family


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
        local = address
        if address.isdecimal():
            local = f"127.0.0.1:{address}"
        self._server = WebServer(local, self._answer, "Metrics and health")
        self._server.start()

    @property
    def url(self) -> str:
        """The address, for people."""
        # The colons of an IPv6 address would be taken for that of the port.
        host = self._server.host
        if ":" in host:
            host = f"[{host}]"
        return f"http://{host}:{self._server.port}"

    def watch(self, node: Node) -> None:
        """Tell about this node from now on; before, the process is starting."""
        self._registry.register(PartyCollector(node))
        self._node = node
        seen = f" {SEEN_BY_OTHERS}"
        if self._server.is_local:
            seen = ""
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
        # The loop marks each turn; this thread only reads.
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
        # A page of another site may have pointed its name at this machine.
        if self._server.is_local and not names_this_machine(headers):
            return NOTHING
        if path == "/metrics":
            encode, kind = choose_encoder(headers.get("Accept", ""))
            return Answer(HTTPStatus.OK, kind, encode(self._registry))
        if path == "/healthz":
            status, facts = self.health()
            return Answer(status, "application/json", json.dumps(facts).encode() + b"\n")
        return NOTHING
