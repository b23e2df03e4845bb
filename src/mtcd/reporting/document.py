"""The document that the report page shows: one JSON object of plain values, columns as lists.

``render.py`` puts it into a page; ``serve.py`` serves both. Numbers are finite or None, and parties
are numbered in their order; the server is -1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from mtcd.core.rows import Rows
from mtcd.protocol.ledger.ledger import LINKS
from mtcd.reporting.layout import layout
from mtcd.reporting.record import RUNNING, RunRecord
from mtcd.reporting.shown import coefficients, facts, finite, ledger_rows
from mtcd.reporting.trace.trace import Trace

FORMAT = 1
MOST_DRAWN = 6000
"""Links."""
MOST_POINTS = 2000
"""Points of a curve."""
X_AXES = ("iteration", "hops", "cost", "bytes", "seconds", "epoch")
COUNTED = {
    "syncs",
    *X_AXES,
    *(f"messages_{link}" for link in LINKS),
    *(f"floats_{link}" for link in LINKS),
}
"""Columns of a history that only grow: no curves of how well it goes."""
Mode = Literal["file", "live", "federation"]


def make_report(
    records: Sequence[RunRecord], mode: Mode, title: str, version: str
) -> dict[str, Any]:
    """The document about these runs, whose names differ."""
    return {
        "format": FORMAT,
        "mode": mode,
        "title": title,
        "version": version,
        "runs": [*map(make_run, records)],
    }


def make_run(record: RunRecord) -> dict[str, Any]:
    """The part of one run."""
    network, messages = None, None
    if record.trace is not None:
        network, messages = _network(record.trace), _trace(record.trace, record)

    return {
        "name": record.name,
        "status": record.status,
        "message": record.message,
        "facts": facts(record),
        "notes": list(record.notes),
        "yaml": record.yaml,
        "network": network,
        "trace": messages,
        "clients": _clients(record),
        "curves": _curves(record),
        "links": _links(record),
        "ledger": ledger_rows(record),
        "coefficients": coefficients(record.coefficients, record.importance),
        "gains": bool(record.importance),
    }


def _network(trace: Trace) -> dict[str, Any]:
    # a browser draws some thousand lines in a second
    drawn = trace.edges[_spread(len(trace.edges), MOST_DRAWN)]
    clusters = _listed(trace.clusters)
    key = None
    if clusters is not None:
        key = tuple(clusters)
    dense = len(trace.edges) < trace.edges_total

    return {
        "positions": _places(trace.kind, len(trace.clients), trace.edges.tobytes(), key, dense),
        "edges": drawn.tolist(),
        "edges_total": trace.edges_total,
        "clusters": clusters,
        "server": trace.server,
        "kind": trace.kind,
    }


# a page in training asks every second, and of 2,000 clients a drawing takes two
@lru_cache(maxsize=16)
def _places(
    kind: str, size: int, edges: bytes, clusters: tuple[int, ...] | None, dense: bool
) -> list[list[float]]:
    # as bytes, because arrays cannot be keys of a cache
    links = np.frombuffer(edges, np.int64).reshape(-1, 2)
    found: list[list[float]] = layout(kind, size, links, clusters, dense).tolist()
    return found


def _trace(trace: Trace, record: RunRecord) -> dict[str, Any] | None:
    """The messages, with the time of training at which they were sent, as the measurements tell
    it."""
    if not len(trace.messages):
        return None

    token, sender, receiver, iteration = trace.messages.T

    rows = record.history
    seconds: list[float | None] = [None] * len(iteration)
    if rows:
        at = [row.iteration for row in rows]
        seconds = np.round(np.interp(iteration, at, [row.seconds for row in rows]), 6).tolist()

    # what the messages that are kept cannot tell, where others are left out
    hops, all_hops = None, None
    if trace.windows is not None:
        all_hops = _all_hops(trace, record)
        if record.ledger.hops:
            hops = iteration.tolist()

    return {
        "token": token.tolist(),
        "sender": sender.tolist(),
        "receiver": receiver.tolist(),
        "iteration": iteration.tolist(),
        "seconds": seconds,
        "tokens": trace.tokens,
        "total": trace.total,
        "windows": _listed(trace.windows),
        "hops": hops,
        "all_hops": all_hops,
        "visits_before": _listed(trace.before),
    }


def _listed(column: Any) -> list[Any] | None:
    """An array as a list; None where the trace has none."""
    if column is None:
        return None
    found: list[Any] = column.tolist()
    return found


def _all_hops(trace: Trace, record: RunRecord) -> list[int] | None:
    """The hops of each token at the end of a trace with windows: iterations count the hops of a
    token."""
    hops, tokens = record.ledger.hops, trace.tokens
    if not hops or not tokens:
        return None
    last = np.zeros(tokens, np.int64)
    np.maximum.at(last, trace.messages[:, 0], trace.messages[:, 3])
    # kept messages may be old: every token has at least come as far as all of them on average
    reached = hops // tokens
    # all tokens are at the same iteration, or on their way through it
    found: list[int] = np.maximum(last, reached).tolist()
    return found


def _clients(record: RunRecord) -> list[dict[str, Any]]:
    K = len(record.clients)
    nothing: list[Any] = [None] * K
    columns: dict[str, Sequence[Any]] = {}
    for name in ("clusters", "visits", "last_visits", "norms"):
        columns[name] = _listed(getattr(record.trace, name, None)) or nothing

    features = record.features or nothing
    families = record.families or [""] * K

    state = "finished"
    if record.status == RUNNING:
        state = "up"

    clients = []
    for k, name in enumerate(record.clients):
        last = columns["last_visits"][k]
        if last == -1:  # no visit yet
            last = None
        clients.append(
            {
                "name": name,
                "cluster": columns["clusters"][k],
                "features": features[k],
                "visits": columns["visits"][k],
                "last_visit": last,
                "norm": finite(columns["norms"][k]),
                "state": state,
                "detail": families[k],
            }
        )
    return clients


def _curves(record: RunRecord) -> dict[str, Any]:
    """The measurements by column; axes and values that this run does not have are left out."""
    # the first and the last among them: where a curve begins and ends is what people read
    rows = [record.history[i] for i in _spread(len(record.history), MOST_POINTS)]
    floats = sum(record.ledger.floats(record.costs.account).values())
    # bytes of a number
    width = sum(record.ledger.bytes(record.costs.account).values()) / max(1, floats)
    flat = Rows()
    for row in rows:
        flat.append(row.row() | {"bytes": round(width * sum(row.floats.values()))})

    known = known_columns(flat, flat.columns)
    # an axis without extent draws nothing; a curve of zeros is one
    x = [name for name in X_AXES if any(known.get(name, ()))]
    values = dict.fromkeys(["gap", "objective", *known])
    y = [name for name in values if name in known and name not in COUNTED]
    return {"columns": {name: known[name] for name in (*x, *y)}, "x": x, "y": y}


def known_columns(
    rows: Sequence[Mapping[str, Any]], names: Iterable[str]
) -> dict[str, list[float | None]]:
    """The columns of these names that have a value in some row."""
    known = {}
    for name in names:
        column = [finite(row.get(name)) for row in rows]
        if set(column) - {None}:
            known[name] = column
    return known


def _links(record: RunRecord) -> list[dict[str, Any]]:
    ledger, account = record.ledger, record.costs.account
    messages, floats = ledger.messages(account), ledger.floats(account)
    sizes = ledger.bytes(account)
    used = [link for link in LINKS if messages[link]]
    return [
        {"link": link, "messages": messages[link], "floats": floats[link], "bytes": sizes[link]}
        for link in used
    ]


def _spread(count: int, most: int) -> Any:
    """The numbers 0 to count - 1, or of too many an even selection with both ends."""
    if count <= most:
        return np.arange(count)
    return np.linspace(0, count - 1, most).round().astype(int)
