"""The trace of a training: against the ledger, the links of the network, and a recount of
visits."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mtcd
from mtcd.core.errors import MtcdError
from mtcd.methods.method import Method
from mtcd.methods.mtcd.client import TokenHost
from mtcd.network.kinds import kind_of
from mtcd.network.topology import KINDS
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER, Message
from mtcd.protocol.token import Token
from mtcd.reporting.trace.trace import MOST_EDGES, MOST_KEPT, Trace
from mtcd.reporting.trace.tracer import MOST_WINDOWS, WINDOW, Tracer
from problems import Case, cases, make_data, mtcd_settings
from traces import assert_same_trace

RIDGE = mtcd.Glm("ridge", alpha=1.0)


def traced(run: mtcd.Run) -> Trace:
    assert run.trace is not None
    return run.trace


def assert_on_links(trace: Trace, network: mtcd.Network) -> None:
    for _, sender, to, _ in trace.messages.tolist():
        if SERVER in (sender, to):
            assert trace.server
        else:
            assert to == sender or to in network.neighbours[sender]


def assert_continuous(trace: Trace) -> None:
    """Every token leaves from where it arrived."""
    at: dict[int, int] = {}
    for token, sender, to, _ in trace.messages.tolist():
        assert at.get(token, sender) == sender
        at[token] = to


def count_visits(patch: pytest.MonkeyPatch) -> Counter[int]:
    """Count the visits of each client, at the clients."""
    counts: Counter[int] = Counter()
    original = TokenHost.pass_on

    def pass_on(host: TokenHost, token: Token) -> object:
        counts[host.number] += token.hop >= 0  # not on a first pass
        return original(host, token)

    patch.setattr(TokenHost, "pass_on", pass_on)
    return counts


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    return count_visits(monkeypatch)


@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_tokens_that_sync_at_a_server(data: st.DataObject) -> None:
    case = data.draw(cases())
    method = data.draw(mtcd_settings(case, ("average", "cluster", "visitors", "optimal")))
    with pytest.MonkeyPatch.context() as patch:
        counts = count_visits(patch)
        run = mtcd.train(
            case.data, case.model, case.network, method, mtcd.Stop(iterations=12), seed=case.seed
        )
    trace, ledger = traced(run), run.ledger
    assert_on_links(trace, case.network)
    assert_continuous(trace)
    assert trace.windows is None
    assert len(trace.messages) == trace.total == ledger.hops + ledger.messages("sent")["downlink"]
    assert (trace.messages[:, 1] != SERVER).sum() == ledger.hops
    assert trace.visits.tolist() == [counts[k] for k in range(case.network.size)]
    assert ((trace.last_visits >= 0) == (trace.visits > 0)).all()
    assert trace.last_visits.max() == run.final.iteration
    assert (np.diff(trace.messages[:, 3]) > -method.timeline().hops_per_sync).all()
    if trace.clusters is not None:  # a token stays in its cluster
        for token, sender, to, _ in trace.messages.tolist():
            assert {trace.clusters[k] for k in (sender, to) if k != SERVER} == {token}


@given(
    case=cases(connected=True), walk=st.sampled_from(["lazy", "metropolis", "tour", "random-tour"])
)
@settings(max_examples=15, deadline=None)
def test_a_lone_token(case: Case, walk: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        counts = count_visits(patch)
        run = mtcd.train(
            case.data,
            case.model,
            case.network,
            mtcd.STCD(stepsize=1e-3, walk=walk),
            mtcd.Stop(iterations=25),
        )
    trace = traced(run)
    assert not trace.server
    assert trace.tokens == 1
    assert_on_links(trace, case.network)
    assert_continuous(trace)
    assert trace.messages[:, 3].tolist() == list(range(1, run.ledger.hops + 1))
    assert trace.visits.tolist() == [counts[k] for k in range(len(trace.clients))]
    senders = trace.messages[:, 1].tolist()
    last = {k: 1 + max(i for i, sender in enumerate(senders) if sender == k) for k in set(senders)}
    assert trace.last_visits.tolist() == [last.get(k, -1) for k in range(len(trace.clients))]


@pytest.mark.parametrize("network", ["path", "complete", "star"])
def test_methods_without_tokens(network: str) -> None:
    data = make_data(RIDGE, 12, [2, 1, 2, 3, 1], seed=1)
    links = mtcd.make_network(network, data.clients)
    svfl, dcpa, tree = (
        mtcd.train(data, RIDGE, links, method, mtcd.Stop(iterations=7))
        for method in (mtcd.SVFL(stepsize=1e-3), mtcd.DCPA(), mtcd.TreeCG())
    )
    sent = [run.ledger.messages("sent") for run in (svfl, dcpa, tree)]
    trace = traced(svfl)
    assert (
        trace.total == len(trace.messages) == sent[0]["uplink"] + sent[0]["downlink"] == 7 * 2 * 5
    )
    assert trace.visits.tolist() == [7] * 5
    assert_continuous(trace)
    trace = traced(dcpa)
    assert trace.total == len(trace.messages) == sent[1]["client_client"] == 7 * 2 * links.edges
    assert_on_links(trace, links)
    rounds = [
        sorted(map(tuple, trace.messages[trace.messages[:, 3] == t][:, 1:3].tolist()))
        for t in range(1, 8)
    ]
    assert rounds == [sorted((k, j) for k in range(5) for j in links.neighbours[k])] * 7
    trace = traced(tree)
    # some are a step ahead
    assert sent[2]["client_client"] <= trace.total <= sent[2]["client_client"] + 2 * 4
    assert_on_links(trace, links)
    assert trace.visits.tolist() == [7] * 5


def test_a_warm_start_collects_before_the_first_token(counted: Counter[int]) -> None:
    data = make_data(RIDGE, 12, [2, 1, 2, 3], seed=1)
    method = mtcd.MTCD(2, 3, stepsize=1e-3)
    first = mtcd.train(data, RIDGE, "cycle", method, mtcd.Stop(iterations=6))
    counted.clear()
    run = mtcd.train(data, RIDGE, "cycle", method, mtcd.Stop(iterations=6), start=first)
    trace = traced(run)
    assert trace.total == len(trace.messages) == run.ledger.hops + 2 * 2
    assert trace.tokens == 2
    assert trace.visits.tolist() == [counted[k] for k in range(4)]


@pytest.mark.parametrize(
    "method",
    [
        mtcd.MTCD(2, 3, 1, 0.05, batch=4),
        mtcd.MTCD(2, 2, 1, 0.05, combine="cluster"),
        mtcd.STCD(1, 0.05),
        mtcd.SVFL(1, 0.05),
    ],
    ids=["batches", "clusters", "stcd", "svfl"],
)
def test_split_networks(method: Method, counted: Counter[int], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from split_problems import case, normed

    one = case(made=normed)  # running means of batch norm are no part of the norm of a block
    run = one.train(method, mtcd.Stop(iterations=6))
    trace = traced(run)
    assert_on_links(trace, one.network)
    assert_continuous(trace)
    assert trace.visits.tolist() == [counted[k] for k in range(4)]
    norms = [
        np.sqrt(
            sum(
                float((value.detach().double() ** 2).sum())
                for value in run.modules[name].parameters()
            )
        )
        for name in trace.clients
    ]
    assert trace.norms is not None
    assert trace.norms == pytest.approx(norms)
    run.save(tmp_path / "run")
    assert_same_trace(mtcd.load_run(tmp_path / "run", one.model).trace, trace)


@given(total=st.integers(0, 5 * MOST_KEPT), watched=st.booleans())
@settings(max_examples=12, deadline=None)
def test_a_long_trace_is_thinned_to_even_windows(total: int, watched: bool) -> None:
    ledger = Ledger()
    tracer, token = Tracer(3, 1, ledger), Token(0, 0, 0, np.zeros(1), 0.0)
    latest: list[tuple[int, int]] = []
    for number in range(total):
        token.hop = number
        ledger.hops = number + 1
        tracer.see(Message(number % 3, (number + 1) % 3, token, 1, 1))
        if watched and number % 1000 == 999:
            latest = [(at, sent[3]) for at, sent in tracer.latest()]
            assert all(at == hop for at, hop in latest)
            assert len(latest) == (0 if number == 999 else WINDOW)
    start = Trace.of(mtcd.make_network("cycle", "abc"), None, False)
    trace = start.with_messages(tracer, ())
    kept = trace.messages[:, 3]
    assert trace.total == total
    assert trace.visits is not None or not total
    if total:
        assert trace.visits.tolist() == [len(range(k, total, 3)) for k in range(3)]  # type: ignore[union-attr]
    if total < MOST_KEPT:
        assert trace.windows is None
        assert kept.tolist() == list(range(total))
        return
    assert MOST_KEPT // 2 <= len(kept) <= MOST_KEPT
    starts = [kept[first] for first, _ in trace.windows]
    assert len(set(np.diff(starts))) == 1
    assert len(starts) <= MOST_WINDOWS
    assert starts[0] == 0
    assert starts[-1] + 2 * (starts[1] - starts[0]) >= total  # they reach to the end
    for first, end in trace.windows:
        assert (np.diff(kept[first:end]) == 1).all()
    assert trace.windows[:, 0].tolist() == [0, *trace.windows[:-1, 1].tolist()]
    assert trace.windows[-1, 1] == len(kept)


DRAWN = {"erdos-renyi", "random-geometric"}


@given(kind=st.sampled_from(sorted(set(KINDS) - DRAWN)), size=st.integers(5, 14))
def test_kinds_are_recognised(kind: str, size: int) -> None:
    clients = [f"c{k}" for k in range(size)]
    found = kind_of(mtcd.make_network(kind, clients))
    primes = (5, 7, 11, 13)
    assert found == ("path" if kind == "grid" and size in primes else kind)


def test_other_networks_are_no_kind() -> None:
    names = [f"c{k}" for k in range(6)]
    # two triangles: as many links as a cycle
    edges = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]
    assert kind_of(mtcd.network_from_edges(edges, names)) == "network"
    ladder = [(0, 1), (1, 2), (0, 3), (3, 4), (4, 5), (2, 5)]  # a grid without its middle rung
    assert kind_of(mtcd.network_from_edges(ladder, names)) == "network"


def test_of_many_links_some_are_kept() -> None:
    K = 250
    trace = Trace.of(mtcd.make_network("complete", [f"c{k}" for k in range(K)]), None, True)
    assert trace.edges_total == K * (K - 1) // 2 > MOST_EDGES
    assert MOST_EDGES / 2 < len(trace.edges) <= MOST_EDGES
    assert len({tuple(edge) for edge in trace.edges.tolist()}) == len(trace.edges)
    assert (trace.edges[:, 0] < trace.edges[:, 1]).all()
    assert np.bincount(trace.edges.ravel(), minlength=K).min() > 0


@pytest.fixture
def saved(tmp_path: Path) -> tuple[mtcd.Run, Path]:
    data = make_data(RIDGE, 12, [2, 1, 2, 3], seed=1)
    run = mtcd.train(
        data,
        RIDGE,
        "path",
        mtcd.MTCD(2, 3, stepsize=1e-3, combine="cluster"),
        mtcd.Stop(iterations=6),
    )
    run.save(tmp_path / "run")
    return run, tmp_path / "run"


def test_a_run_folder_keeps_it_and_older_ones_load_without(saved: tuple[mtcd.Run, Path]) -> None:
    run, folder = saved
    assert_same_trace(mtcd.load_run(folder).trace, traced(run))
    assert (folder / "trace.npz").stat().st_size < 10_000
    (folder / "trace.npz").unlink()
    assert mtcd.load_run(folder).trace is None


@pytest.mark.parametrize(
    "spoilt",
    [
        {"messages": np.array([[0, 0, 4, 1]])},
        {"messages": np.array([[0, -2, 1, 1]])},
        {"messages": np.array([[2, 0, 1, 1]])},
        {"messages": np.array([[0.5, 0, 1, 1]])},
        {"edges": np.array([[0, 4]])},
        {"clusters": np.array([0, 1])},
        {"norms": np.array([[1.0]])},
        {"windows": np.array([[0, 999]])},
    ],
    ids=str,
)
def test_a_file_whose_parts_do_not_fit_is_refused(
    saved: tuple[mtcd.Run, Path], spoilt: dict[str, object]
) -> None:
    run, folder = saved
    replace(traced(run), **spoilt).write(folder / "trace.npz")
    with pytest.raises(MtcdError, match="not a complete run folder"):
        mtcd.load_run(folder)


def test_a_damaged_file_is_refused(saved: tuple[mtcd.Run, Path]) -> None:
    _, folder = saved
    content = (folder / "trace.npz").read_bytes()
    for damaged in (b"", b"\x80\x04nothing", content[: len(content) // 2]):
        (folder / "trace.npz").write_bytes(damaged)
        with pytest.raises(MtcdError, match="not a complete run folder"):
            mtcd.load_run(folder)
