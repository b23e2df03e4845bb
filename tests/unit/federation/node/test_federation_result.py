"""After the end: who is told the result first, and what a party says of itself while it still
waits for it."""

from types import SimpleNamespace
from typing import Any

import pytest

from federations import changed
from mtcd.federation.credentials.bundle_schema import BundleConfig, bundle_config
from mtcd.federation.file import check_keys, network_of
from mtcd.federation.node.ending import Leaving
from mtcd.federation.node.final_check import farthest_first
from mtcd.federation.node.presence import HAS_ENDED


def bundle(network: Any, server: str | None, method: dict[str, Any]) -> BundleConfig:
    parties = {name: f"127.0.0.1:{7001 + k}" for k, name in enumerate("abcde")}
    told = changed(
        parties=parties, server=server, labels={"held_by": "b"}, network=network, method=method
    )
    federation = check_keys(told, "here")
    return bundle_config(federation, "b", network_of(federation), dict.fromkeys(federation.places))


def test_those_who_pass_the_result_on_hear_it_after_those_behind_them() -> None:
    assert farthest_first(bundle({"kind": "path"}, None, {"kind": "dcpa"})) == [
        ["e"],
        ["d"],
        ["a", "c"],
    ]


def test_the_server_hears_it_last() -> None:
    method = {"kind": "mtcd", "tokens": 1, "hops": 3}
    groups = farthest_first(bundle({"kind": "path"}, "127.0.0.1:7000", method))
    assert groups == [["e"], ["d"], ["a", "c"], ["server"]]


@pytest.mark.parametrize(("waits", "said"), [(True, b"run-7"), (False, b"run-7" + HAS_ENDED)])
def test_a_party_that_waits_for_the_result_does_not_say_that_it_has_ended(
    waits: bool, said: bytes
) -> None:
    asked: list[bytes] = []
    link = SimpleNamespace(up={"b"}, peers={"b"})
    rpc = SimpleNamespace(link=link, ask=lambda name, kind, body, done: asked.append(body))
    trainer: Any = SimpleNamespace(
        reliable=SimpleNamespace(ended=object(), outbox={}, number=0),
        names={0: "a", 1: "b"},
        rpc=rpc,
        loop=SimpleNamespace(now=lambda: 0.0, later=lambda seconds, act: None),
        known_ended=set(),
        awaits_reports=lambda: waits,
        run="run-7",
    )
    rpc_client: Any = SimpleNamespace(waits_for=set())
    Leaving(trainer, rpc_client, lambda: None, lambda: None).step()
    assert asked == [said]
