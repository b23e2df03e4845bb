"""The document that the report page shows: one JSON object of plain values, columns as lists.

``render.py`` puts it into a page; ``serve.py`` serves both. Numbers are finite or None, and parties
are numbered in their order; the server is -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

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
    return {
        "name": record.name,
        "status": record.status,
        "message": record.message,
        "facts": facts(record),
        "notes": list(record.notes),
        "yaml": record.yaml,
        "network": None if record.trace is None else _network(record.trace),
        "trace": None if record.trace is None else _trace(record.trace, record),
        "clients": _clients(record),
        "curves": _curves(record),
        "links": _links(record),
        "ledger": ledger_rows(record),
        "coefficients": coefficients(record.coefficients, record.importance),
        "gains": bool(record.importance),
    }


def _network(trace: Trace) -> dict[str, Any]:
    drawn = trace.edges[_spread(len(trace.edges), MOST_DRAWN)]
    clusters = None if trace.clusters is None else trace.clusters.tolist()
    return {
        "positions": _places(
            trace.kind,
            len(trace.clients),
            trace.edges.tobytes(),
            None if clusters is None else tuple(clusters),
            len(trace.edges) < trace.edges_total,
        ),
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
    thinned = trace.windows is not None
    if rows:
        seconds = np.interp(
            iteration, [row.iteration for row in rows], [row.seconds for row in rows]
        )
    else:
        seconds = None
    return {
        "token": token.tolist(),
        "sender": sender.tolist(),
        "receiver": receiver.tolist(),
        "iteration": iteration.tolist(),
        "seconds": [None] * len(iteration) if seconds is None else np.round(seconds, 6).tolist(),
        "tokens": trace.tokens,
        "total": trace.total,
        "windows": None if trace.windows is None else trace.windows.tolist(),
        # what the messages that are kept cannot tell, where others are left out
        "hops": iteration.tolist() if thinned and record.ledger.hops else None,
        "all_hops": _all_hops(trace, record) if thinned else None,
        "visits_before": None if trace.before is None else trace.before.tolist(),
    }


def _all_hops(trace: Trace, record: RunRecord) -> list[int] | None:
    """The hops of each token at the end of a trace with windows: iterations count the hops of a
    token."""
    hops, tokens = record.ledger.hops, trace.tokens
    if not hops or not tokens:
        return None
    last = np.zeros(tokens, np.int64)
    np.maximum.at(last, trace.messages[:, 0], trace.messages[:, 3])
    reached = hops // tokens
    # all tokens are at the same iteration, or on their way through it
    found: list[int] = np.maximum(last, reached).tolist()
    return found


def _clients(record: RunRecord) -> list[dict[str, Any]]:
    trace = record.trace
    K = len(record.clients)
    nothing: list[Any] = [None] * K
    clusters, visits, last, norms = (
        nothing if trace is None or (column := getattr(trace, name)) is None else column.tolist()
        for name in ("clusters", "visits", "last_visits", "norms")
    )
    features = nothing if record.features is None else record.features
    state = "up" if record.status == RUNNING else "finished"
    return [
        {
            "name": record.clients[k],
            "cluster": clusters[k],
            "features": features[k],
            "visits": visits[k],
            "last_visit": None if last[k] == -1 else last[k],
            "norm": finite(norms[k]),
            "state": state,
            "detail": "" if record.families is None else record.families[k],
        }
        for k in range(K)
    ]


def _curves(record: RunRecord) -> dict[str, Any]:
    """The measurements by column; axes and values that this run does not have are left out."""
    rows = [record.history[i] for i in _spread(len(record.history), MOST_POINTS)]
    flat = [row.row() for row in rows]
    floats = sum(record.ledger.floats(record.costs.account).values())
    # bytes of a number
    width = sum(record.ledger.bytes(record.costs.account).values()) / max(1, floats)
    for one, row in zip(flat, rows, strict=True):
        one["bytes"] = round(width * sum(row.floats.values()))
    names = dict.fromkeys(name for one in flat for name in one)
    columns = {name: [finite(one.get(name)) for one in flat] for name in names}
    counted = {f"{what}_{link}" for what in ("messages", "floats") for link in LINKS} | {
        "syncs",
        *X_AXES,
    }
    known = {
        name: column
        for name, column in columns.items()
        if any(value is not None for value in column)
    }
    x = [name for name in X_AXES if any(known.get(name, ()))]
    y = [
        name
        for name in dict.fromkeys(["gap", "objective", *known])
        if name in known and name not in counted
    ]
    return {"columns": {name: known[name] for name in (*x, *y)}, "x": x, "y": y}


def _links(record: RunRecord) -> list[dict[str, Any]]:
    account = record.costs.account
    messages, floats, sizes = (
        getattr(record.ledger, what)(account) for what in ("messages", "floats", "bytes")
    )
    return [
        {"link": link, "messages": messages[link], "floats": floats[link], "bytes": sizes[link]}
        for link in LINKS
        if messages[link]
    ]


def _spread(count: int, most: int) -> Any:
    """The numbers 0 to count - 1, or of too many an even selection with both ends."""
    chosen: ArrayLike
    if count <= most:
        chosen = np.arange(count)
    else:
        chosen = np.linspace(0, count - 1, most).round().astype(int)
    return chosen
