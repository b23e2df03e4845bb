"""Requests that pass through others, where links are cut of which only their ends know."""

import json
from pathlib import Path
from typing import Any

import pytest

from hubs import Hub, Passing, linear
from live import own_table_of
from mtcd.models.glm.party.participant import LinearParticipant
from problems import MODELS, make_data

DATA = make_data(MODELS[0], 8, [1, 1, 1, 1, 1], seed=0)
STCD = {"kind": "stcd", "stepsize": 0.01}
CYCLE = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]


def ask(
    folder: Path,
    links: list[tuple[int, int]],
    cut: list[tuple[int, int]],
    to: str = "c2",
    **settings: Any,
) -> list[Any]:
    """What c0 hears from c2, or from somebody else."""
    names = [f"c{k}" for k in range(5)]
    pairs = [[names[a], names[b]] for a, b in links]
    hub = Hub(
        folder,
        DATA.clients,
        lambda bundle: LinearParticipant(bundle, own_table_of(DATA, bundle)),
        network={"links": pairs},
        **({"server": None, "method": STCD} | settings),
    )
    for name, wire in hub.wires.items():
        wire.up = {
            p
            for p in wire.peers
            if not {(name, p), (p, name)} & {(names[a], names[b]) for a, b in cut}
        }
        wire.up -= {"server"}
    hub.nodes["c2"].rpc.on("hello", lambda asked: asked.answer(b"hello " + asked.sender.encode()))
    heard: list[Any] = []
    hub.nodes["c0"].rpc.ask(to, "hello", b"", lambda answer, why: heard.append(answer))
    for _ in range(100):
        if heard:
            break
        assert hub.act() or hub.deliver()
    for node in hub.nodes.values():
        node.log.close()
        node.folder.close()
    return heard


@pytest.mark.parametrize(
    ("links", "cut"),
    [
        (CYCLE, []),
        (CYCLE, [(1, 2)]),  # c1 is the shorter way, but cannot go on
        ([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)], [(2, 3)]),
        ([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)], [(1, 2)]),
        ([(0, 2), (0, 1), (1, 2), (2, 3), (3, 4)], [(0, 2)]),  # also to a neighbour
    ],
    ids=["nothing cut", "round the cycle", "the one way", "the other way", "to a neighbour"],
)
def test_a_way_is_found_round_a_cut(
    links: list[tuple[int, int]], cut: list[tuple[int, int]], tmp_path: Path
) -> None:
    assert ask(tmp_path, links, cut) == [b"hello c0"]


def test_where_there_is_no_way_there_is_no_answer(tmp_path: Path) -> None:
    assert ask(tmp_path, CYCLE, [(1, 2), (2, 3)]) == [None]


def test_a_server_that_is_not_there_is_asked_by_nobody_else(tmp_path: Path) -> None:
    settings = {"server": "127.0.0.1:7447", "method": {"kind": "svfl", "stepsize": 0.01}}
    assert ask(tmp_path, CYCLE, [], to="server", **settings) == [None]


def test_an_old_start_that_comes_again_over_others_starts_nothing(tmp_path: Path) -> None:
    """The party in between has kept what it passed on, and sends it to one that has a new
    folder."""
    data = make_data(MODELS[0], 8, [1, 1, 1], seed=0)
    kept: list[Passing] = []
    path = {"links": [["c0", "c1"], ["c1", "c2"]]}
    with Hub(tmp_path, data.clients, linear(data), network=path, server=None, method=STCD) as hub:
        hub.meddle = lambda passing: (
            kept.append(passing) if passing.to == "c2" and passing.kind == "relay" else None
        )
        hub.train()
    assert hub.nodes["c2"].trainer is not None
    hub.nodes = hub.make_nodes(tmp_path / "again", linear(data))
    with hub:
        hub.nodes["c2"]._begin()
        hub.wires["c2"].up = {"c1"}
        for passing in kept:
            hub.ask(passing)
            while hub.act() or hub.deliver():
                pass
        assert hub.nodes["c2"].trainer is None
        hub.train()
        assert hub.nodes["c2"].status == hub.nodes["c0"].status == "iterations"


def test_the_server_has_no_requests_relayed_to_it(tmp_path: Path) -> None:
    """It has no key of the parties, so that nobody could tell who asks."""
    settings = {"server": "127.0.0.1:7447", "method": {"kind": "svfl", "stepsize": 0.01}}
    with Hub(tmp_path, DATA.clients, linear(DATA), **settings) as hub:
        head = json.dumps({"to": "server", "left": 2, "by": []}).encode()
        answer = hub.ask(Passing("c1", "server", "relay", head + b"\nsealed"))
        assert answer is None
        refused = hub.nodes["server"].log.tail[-1]
        assert refused["sender"] == "c1"
        assert "is the server, which accepts no relayed requests" in refused["text"]
