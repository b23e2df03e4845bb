"""A party whose address is in use."""

import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Timer

import numpy as np
import pytest

import mtcd
from live import make_bundles, own_table_of
from mtcd.core.errors import MtcdError
from mtcd.federation.listening import runs_already, why_not_listening
from mtcd.federation.names import parse_address
from mtcd.federation.node import link
from mtcd.federation.node.context import NodeContext
from mtcd.federation.node.log import Log
from mtcd.federation.node.node import Node
from mtcd.federation.participant.kinds import participant_of
from mtcd.federation.preflight import FAILED, MET, listening_findings


@pytest.fixture
def party(tmp_path: Path) -> tuple[Callable[[], Node], socket.socket]:
    """How it starts, and another server on its address."""
    data = mtcd.split(np.eye(4), np.arange(4.0), {"a": [0, 1], "b": [2, 3]})
    bundle = make_bundles(tmp_path, data.clients)["a"]
    address = parse_address(bundle.config.address or "")

    def start() -> Node:
        return Node(
            bundle, tmp_path / "run", participant_of(bundle, own_table_of(data, bundle)), None
        )

    return start, socket.create_server((address.host, address.port))


def test_it_is_told_and_leaves_the_folder_to_the_next_start(
    party: tuple[Callable[[], Node], socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    start, other = party
    monkeypatch.setattr(link, "PORT_TIMEOUT_SECONDS", 0.1)
    with other, pytest.raises(MtcdError, match="cannot listen.*Stop"):
        start()
    start().close()


def test_it_waits_for_the_process_that_it_replaces(
    party: tuple[Callable[[], Node], socket.socket],
) -> None:
    start, other = party
    Timer(1.0, other.close).start()
    start().close()


def test_a_second_process_of_a_party_is_told_from_another_program_at_its_port(
    tmp_path: Path,
) -> None:
    bundle = make_bundles(tmp_path, ("a", "b", "c", "d"))["b"]
    place = parse_address(bundle.config.address or "")
    assert why_not_listening(place) is None
    with socket.create_server((place.host, place.port)):
        assert why_not_listening(place) == "Address already in use"
        assert not runs_already(bundle)
    context = NodeContext(bundle, Log("b", None))
    try:
        assert runs_already(bundle)
        (found,) = listening_findings(bundle)
    finally:
        context.close()
    assert found.level == FAILED
    assert "Another process of this party" in found.sentence


def test_a_party_may_listen_on_all_interfaces(tmp_path: Path) -> None:
    """It has another address for those who call it, which its certificate names."""
    bundle = make_bundles(tmp_path, ("a", "b"))["a"]
    port = parse_address(bundle.config.address or "").port
    everywhere = bundle.config.model_copy(update={"listen": f"0.0.0.0:{port}"})
    bundle = replace(bundle, config=everywhere)
    (found,) = listening_findings(bundle)
    assert (found.level, found.sentence) == (MET, f"Can listen on 0.0.0.0:{port}.")
    assert not runs_already(bundle)
    context = NodeContext(bundle, Log("a", None))
    try:
        assert runs_already(bundle)
    finally:
        context.close()
