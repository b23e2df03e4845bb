"""What the report page expects of its document, written down a second time: names, types, lengths
and ranges."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Unit = Annotated[float, Field(ge=0, le=1)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Party = Annotated[int, Field(ge=-1)]
Client_ = Annotated[int, Field(ge=0)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Network(Strict):
    positions: list[tuple[Unit, Unit]]
    edges: Annotated[list[tuple[Client_, Client_]], Field(max_length=6000)]
    edges_total: Count
    clusters: list[Count] | None
    server: bool
    kind: str


class Trace(Strict):
    token: list[Count]
    sender: list[Party]
    receiver: list[Party]
    iteration: list[Count]
    seconds: list[Number | None]
    tokens: Annotated[int, Field(ge=1)]
    total: Count
    windows: list[tuple[Count, Count]] | None
    hops: list[Count] | None
    all_hops: list[Count] | None
    visits_before: list[list[Count]] | None


class Client(Strict):
    name: str
    cluster: Count | None
    features: Count | None
    visits: Count | None
    last_visit: Count | None
    norm: Number | None
    state: Literal["up", "waiting", "gone", "finished", "unknown"]
    detail: str


class Curves(Strict):
    columns: dict[str, list[Number | None]]
    x: list[Literal["iteration", "hops", "cost", "bytes", "seconds", "epoch"]]
    y: list[str]


class Link(Strict):
    link: str
    messages: Count
    floats: Count
    bytes: Count


class Coefficient(Strict):
    client: str
    column: str
    value: Number


class Run(Strict):
    name: str
    status: str
    message: str
    facts: list[tuple[str, str]]
    notes: list[str]
    yaml: str | None
    network: Network | None
    trace: Trace | None
    clients: list[Client]
    curves: Curves
    links: list[Link]
    ledger: list[tuple[str, str]]
    coefficients: Annotated[list[Coefficient], Field(max_length=200)]
    gains: bool


class Report(Strict):
    format: Literal[1]
    mode: Literal["file", "live", "federation"]
    title: str
    version: str
    runs: list[Run]


def checked(document: dict[str, Any]) -> Report:
    """The document, if the page can show it."""
    report = Report.model_validate_json(json.dumps(document, allow_nan=False))
    assert len({run.name for run in report.runs}) == len(report.runs)
    for run in report.runs:
        _check(run)
    return report


def _check(run: Run) -> None:
    clients = len(run.clients)
    if run.network is not None:
        assert len(run.network.positions) == clients
        assert run.network.clusters is None or len(run.network.clusters) == clients
        assert all(max(edge) < clients for edge in run.network.edges)
        assert run.network.edges_total >= len(run.network.edges)
    if run.trace is not None:
        trace = run.trace
        length = len(trace.token)
        assert {
            len(trace.sender),
            len(trace.receiver),
            len(trace.iteration),
            len(trace.seconds),
        } == {length}
        assert max(trace.token) < trace.tokens
        assert max(*trace.sender, *trace.receiver) < clients
        assert run.network.server or min(*trace.sender, *trace.receiver) >= 0
        assert (trace.windows is None) == (trace.total == length)
        if trace.windows is not None:
            assert [start for start, _ in trace.windows] == [
                0,
                *(end for _, end in trace.windows[:-1]),
            ]
            assert trace.windows[-1][1] == length < trace.total
        assert trace.hops is None or len(trace.hops) == length
        assert trace.all_hops is None or len(trace.all_hops) == trace.tokens
        if trace.visits_before is not None:
            assert [len(visits) for visits in trace.visits_before] == [clients] * len(trace.windows)
    lengths = {len(column) for column in run.curves.columns.values()}
    assert len(lengths) <= 1
    assert {*run.curves.x, *run.curves.y} == run.curves.columns.keys()
