"""What a party says to its person when it cannot begin."""

import socket
from pathlib import Path

import pytest

from hubs import Hub, Passing, linear
from live import make_bundles
from mtcd.core.errors import MtcdError
from mtcd.federation.delivery.journal import FileJournal
from mtcd.federation.node.counters import Counters
from mtcd.federation.node.link import Link
from mtcd.federation.node.loop import Loop
from problems import MODELS, make_data

DATA = make_data(MODELS[0], 10, [2, 1, 2], seed=3)


def test_a_party_that_lost_its_folder_hears_that_the_others_are_in_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Hub(tmp_path, DATA.clients, linear(DATA)) as hub:
        node = hub.nodes["c1"]
        assert hub.ask(Passing("c0", "c1", "ready", b"run")) is None
        node._say_waiting()
        # soon it may begin
        assert not [event for event in node.log.tail if event["event"] in ("early", "refused")]
        monkeypatch.setattr("mtcd.federation.node.node.WAITING_NOTE_SECONDS", -1.0)
        node._say_waiting()
        assert node.log.tail[-1]["event"] == "waiting"  # who leads may still tell it to begin
        node.rpc.link.up.add("c0")
        node._say_waiting()
        assert "--out" in node.log.tail[-1]["text"]


def test_a_port_that_is_taken_is_told_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtcd.federation.node.link.PORT_TIMEOUT_SECONDS", 0.1)
    bundle = make_bundles(tmp_path, DATA.clients)["c0"]
    host, port = str(bundle.config.address).rsplit(":", 1)
    with (
        socket.create_server((host, int(port))),
        pytest.raises(MtcdError, match="already in use") as told,
    ):
        Link(bundle, Loop(), lambda request: None, lambda name, here: None, Counters(()))
    assert ".rs" not in str(told.value)
    assert "another program" in str(told.value)


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
def test_training_begins_when_all_are_ready(
    seed: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server, or the party where a lone token is born, would go on without one that was killed
    before."""
    without = {"server": None, "method": {"kind": "stcd", "stepsize": 0.01}, "seed": seed}
    with Hub(tmp_path, DATA.clients, linear(DATA), **({} if seed is None else without)) as hub:
        ready: list[str] = []
        gone: dict[str, int] = {}
        for name, node in hub.nodes.items():

            def train(*args, name: str = name, train=node._train) -> str | None:  # type: ignore[no-untyped-def]
                ready.append(name)
                return train(*args)

            def go(name: str = name, node=node, go=node._go) -> None:  # type: ignore[no-untyped-def]
                if any(node.number == message.sender for message in node.role.parties.opening):
                    gone[name] = len(ready)
                go()

            monkeypatch.setattr(node, "_train", train)
            monkeypatch.setattr(node, "_go", go)
        hub.train()
    assert list(gone.values()) == [len(hub.nodes)]


@pytest.mark.parametrize("server", [True, False])
def test_started_again_after_the_end_nobody_is_told_twice(server: bool, tmp_path: Path) -> None:
    without = {"server": None, "method": {"kind": "stcd", "stepsize": 0.01}}
    with Hub(tmp_path, DATA.clients, linear(DATA), **({} if server else without)) as hub:
        hub.train()
    for node in hub.nodes.values():
        assert FileJournal(node.folder.journal).last()["outbox"] == []
