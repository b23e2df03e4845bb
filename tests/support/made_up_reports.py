"""Reports made up for the page: any size, any content, known to the last hop."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx


def trace(
    graph: nx.Graph, tokens: int, iterations: int, hops: int, server: bool, seed: int = 0
) -> dict[str, Any]:
    """Tokens that start at the server or at a client, roam at once for some hops, and come back to
    the server."""
    draw = random.Random(seed)
    place = [-1 if server else draw.randrange(len(graph)) for _ in range(tokens)]
    rows: list[tuple[int, int, int, int]] = []
    for iteration in range(1, iterations + 1):
        for hop in range(hops + server):
            for token in range(tokens):
                sender = place[token]
                if server and hop == hops:
                    place[token] = -1
                elif sender < 0:
                    place[token] = draw.randrange(len(graph))
                else:
                    place[token] = draw.choice(sorted(graph[sender]))
                rows.append((token, sender, place[token], iteration))
    token_of, senders, receivers, when = (list(column) for column in zip(*rows, strict=True))
    seconds = [round(0.01 * n, 3) for n in range(len(rows))]
    return {
        "token": token_of,
        "sender": senders,
        "receiver": receivers,
        "iteration": when,
        "seconds": seconds,
        "tokens": tokens,
        "total": len(rows),
        "windows": None,
    }


def network(graph: nx.Graph, clusters: int | None, server: bool, kind: str) -> dict[str, Any]:
    """The network of a graph, its clients around a circle or by a spring layout."""
    layout = (
        nx.circular_layout(graph)
        if len(graph) > 100
        else nx.spring_layout(graph, seed=1, iterations=150)
    )
    edges = [list(edge) for edge in graph.edges]
    return {
        "positions": [
            [float(x) / 2 + 0.5, float(y) / 2 + 0.5]
            for x, y in (layout[k] for k in range(len(graph)))
        ],
        "edges": edges[:6000],
        "edges_total": len(edges),
        "clusters": None
        if clusters is None
        else [k * clusters // len(graph) for k in range(len(graph))],
        "server": server,
        "kind": kind,
    }


def curves(points: int, scale: float = 1.0) -> dict[str, Any]:
    """A gap that falls and an accuracy that rises."""
    steps = range(points)
    return {
        "columns": {
            "iteration": [float(n) for n in steps],
            "bytes": [800.0 * n for n in steps],
            "seconds": [0.02 * n for n in steps],
            "gap": [scale * 0.8**n for n in steps],
            "objective": [2 + scale * 0.8**n for n in steps],
            "train_accuracy": [1 - 0.5 * 0.9**n for n in steps],
        },
        "x": ["iteration", "bytes", "seconds"],
        "y": ["gap", "objective", "train_accuracy"],
    }


def run(
    name: str = "first",
    clients: int = 12,
    tokens: int = 3,
    iterations: int = 5,
    hops: int = 4,
    server: bool = True,
    clusters: int | None = 3,
    degree: int = 4,
) -> dict[str, Any]:
    """A finished run on a small world."""
    graph = nx.connected_watts_strogatz_graph(clients, degree, 0.2, seed=2)
    hopped = trace(graph, tokens, iterations, hops, server)
    known = network(graph, clusters, server, "small world")
    members = [
        {
            "name": f"clinic {k:02d}",
            "cluster": None if clusters is None else known["clusters"][k],
            "features": 3 + k % 5,
            "visits": hopped["sender"].count(k),
            "last_visit": max(
                (t for t, r in zip(hopped["iteration"], hopped["sender"], strict=True) if r == k),
                default=None,
            ),
            "norm": round(0.1 + (k * 37 % 11) / 7, 4),
            "state": "finished",
            "detail": "",
        }
        for k in range(clients)
    ]
    return {
        "name": name,
        "status": "converged",
        "message": "The gap fell below 0.001 after 5 iterations.",
        "facts": [
            ["method", "mtcd"],
            ["step size", "0.01234"],
            ["objective", "2.00039"],
            ["gap", "0.00039"],
        ],
        "notes": ["The step size was chosen from the smoothness of the problem."],
        "yaml": "data: {synthetic: ridge}\nmodel: {kind: ridge, alpha: 10}\n",
        "network": known,
        "trace": hopped,
        "clients": members,
        "curves": curves(40),
        "links": [
            {"link": "client_client", "messages": 60, "floats": 6000, "bytes": 48000},
            {"link": "uplink", "messages": 15, "floats": 1500, "bytes": 12000},
            {"link": "downlink", "messages": 15, "floats": 1500, "bytes": 12000},
        ],
        "ledger": [["messages", "90"], ["bytes", "72,000"], ["cost", "3,060"]],
        "coefficients": [
            {
                "client": f"clinic {k:02d}",
                "column": f"x{j}",
                "value": (-1) ** (j + k) * (5.0 - j) / (k + 1),
            }
            for k in range(min(clients, 4))
            for j in range(5)
        ],
        "gains": False,
    }


def report(*runs: dict[str, Any], mode: str = "file", title: str = "A report") -> dict[str, Any]:
    """A report of these runs."""
    return {"format": 1, "mode": mode, "title": title, "version": "0.1.0", "runs": list(runs)}
