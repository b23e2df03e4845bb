"""A federation over real links, and cheats who call its parties: one with a good certificate,
others without.

The cheat has the bundle of a party that also runs honestly, so it can record all that this one sends.
It has taken the rules out of its own session, and calls whom it likes.
"""

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography")

import zenoh

from live import in_process, make_bundles, own_table_of, run_all
from mtcd.core.errors import WireError
from mtcd.data.vertical import VerticalData
from mtcd.federation.administrator import renew, revoke
from mtcd.federation.credentials.authority import Authority
from mtcd.federation.credentials.bundle import Bundle, read_bundle
from mtcd.federation.credentials.certificates import issue
from mtcd.federation.credentials.private_files import write_files
from mtcd.federation.delivery.codecs import decode_envelope
from mtcd.federation.names import parse_address
from mtcd.federation.node.link import ANSWER, NUMBER
from mtcd.federation.node.node import Node
from mtcd.federation.node.rpc import OK
from mtcd.federation.transport import alive_key, channel, control_key, message_key, zenoh_config
from mtcd.models.glm.party.block import read_block
from mtcd.models.glm.party.participant import LinearParticipant
from own_parts import model_section
from problems import MODELS, make_data
from spoiling import spoilt_envelopes
from waiting import PATIENCE, until

CHEAT, MEGABYTES = "c2", 1
NAME, NEAR = "clinics", ("c1", "c3", "server")
FIRST = 2**40  # numbers that the honest one does not get to
LOGISTIC = MODELS[5]
SETTINGS: dict[str, Any] = {
    "network": {"kind": "cycle"},
    "method": {"kind": "mtcd", "tokens": 2, "hops": 5, "stepsize": 0.05, "combine": "cluster"},
    "stop": {"iterations": 60},
    "seed": 5,
    "limits": {"lease_ms": 30_000, "message_mb": MEGABYTES},
    "model": model_section(LOGISTIC),
}


class Caller:
    """A session without rules, with the certificate in a folder, that calls these parties in the
    name of the cheat."""

    def __init__(self, config: dict[str, Any], addresses: list[str]) -> None:
        connect = {**config["connect"], "endpoints": [f"tls/{address}" for address in addresses]}
        config = {
            **config,
            "access_control": {"enabled": False},
            "connect": connect,
            "listen": {"endpoints": []},
        }
        self.session = zenoh.open(zenoh.Config.from_json5(json.dumps(config)))
        self.good: list[tuple[str, bytes]] = []
        """Answers other than refusals."""
        self.refusals = 0
        self._asked: dict[int, str] = {}
        self._inboxes = [
            self.session.declare_subscriber(channel(NAME, CHEAT, peer), self.heard) for peer in NEAR
        ]

    def send(self, key: str, body: bytes, query: bool = False) -> None:
        """Without waiting for the answer."""
        number = FIRST + len(self._asked)
        self._asked[number] = key
        if query:
            answered = zenoh.handlers.Callback(
                lambda reply: self.good.append((key, b"")), None, indirect=False
            )
            self.session.get(key, answered, payload=body, timeout=PATIENCE)
        else:
            self.session.put(key, body, attachment=NUMBER.pack(number))

    def heard(self, sample: Any) -> None:
        """Answers to the honest one come by here too."""
        key = None
        if str(sample.key_expr).endswith(ANSWER):
            key = self._asked.get(NUMBER.unpack(sample.attachment.to_bytes())[0])
        if key is not None:
            answer = sample.payload.to_bytes()
            if answer[:1] == OK:
                self.good.append((key, answer))
            self.refusals += answer[:1] not in (b"", OK)


@pytest.fixture
def callers() -> Iterator[list[Caller]]:
    made: list[Caller] = []
    yield made
    for caller in made:
        caller.session.close()


def bundles_and_thieves(
    folder: Path, data: VerticalData
) -> tuple[dict[str, Bundle], dict[str, dict[str, Any]]]:
    """Bundles; and sessions of strangers, with an expired certificate of the cheat, and with a revoked
    one."""
    bundles = make_bundles(folder, data.clients, **SETTINGS)
    root = folder / "bundles"
    config = bundles[CHEAT].config
    for name in ("revoked", "expired"):
        shutil.copytree(root / CHEAT, folder / name)
    revoke(root, CHEAT)
    renew(root, CHEAT, 90)
    long_ago = datetime.now(UTC) - timedelta(days=100)
    old = issue(Authority.load(root).issued, CHEAT, parse_address(config.address), 90, now=long_ago)
    write_files(folder / "expired", {"key.pem": old.key_pem, "cert.pem": old.certificate_pem})
    stranger = make_bundles(folder / "others", data.clients, **SETTINGS)[CHEAT]
    thieves = {name: zenoh_config(config, folder / name) for name in ("revoked", "expired")}
    return {name: read_bundle(root / name) for name in bundles}, thieves | {
        "stranger": stranger.zenoh()
    }


class Cheat:
    """Before every envelope that the honest one sends, spoilt ones of it go out, and more."""

    def __init__(
        self, nodes: dict[str, Node], bundles: dict[str, Bundle], callers: list[Caller]
    ) -> None:
        self.nodes, self.callers, self.some = nodes, callers, random.Random(2)
        self.federation, self.peers = bundles[CHEAT].config.federation, bundles[CHEAT].config.peers
        self.spoilt = 0
        link = nodes[CHEAT].rpc.link
        self.post = link.post
        link.post = self.before  # type: ignore[method-assign]

    def before(self, to: str, kind: str, body: bytes, *rest: Any) -> None:
        if kind == "envelope":
            cheat, *thieves = self.callers
            for thief in thieves:
                thief.send(self.key(to, CHEAT, kind), body)
            for spoilt in spoilt_envelopes(body, self.some, 4):
                if not self.is_sound(to, spoilt):
                    cheat.send(self.key(to, CHEAT, kind), spoilt)
                    self.spoilt += 1
            self.where_it_may_not(cheat, to, body)
        self.post(to, kind, body, *rest)

    def where_it_may_not(self, cheat: Caller, to: str, body: bytes) -> None:
        """As others, to others, under keys of many, and what only the operator may ask."""
        for name in self.nodes:
            if name != CHEAT:
                cheat.send(control_key(self.federation, name, "stop"), b"", query=True)
                cheat.send(self.key(name, CHEAT, "control/stop"), b"")
                cheat.send(self.key(name, "server", "envelope"), body)
        for wild in (
            self.key(to, "*", "envelope"),
            self.key("*", CHEAT, "envelope"),
            f"mtcd/{self.federation}/**",
        ):
            cheat.send(wild, b"", query=True)
        for wild in ("**", "*", "envelope/**", "l$*", "x" * 5000):
            cheat.send(self.key(to, CHEAT, wild), body, query=True)
        for strange in ("x" * 5000, "envelope/x", "nothing"):
            cheat.send(self.key(to, CHEAT, strange), body)
        cheat.session.put(
            self.key(to, CHEAT, ANSWER), body, attachment=NUMBER.pack(self.some.randrange(100))
        )
        cheat.session.put(self.key(to, CHEAT, ANSWER), body, attachment=b"x")
        cheat.session.put(self.key(to, CHEAT, "envelope"), body)
        cheat.session.delete(alive_key(self.federation, "c0"))

    def key(self, to: str, sender: str, kind: str) -> str:
        return message_key(self.federation, to, sender, kind)

    def is_sound(self, to: str, body: bytes) -> bool:
        trainer = self.nodes[to].trainer
        if trainer is None:
            return False
        expected = trainer._bounds[trainer.numbers[CHEAT]]
        try:
            decode_envelope(body, replace(expected))
        except WireError:
            return False
        return True


def test_a_federation_does_not_mind_cheats(tmp_path: Path, callers: list[Caller]) -> None:
    data = make_data(LOGISTIC, 20, [2, 1, 3, 2], seed=3)
    bundles, thieves = bundles_and_thieves(tmp_path, data)
    addresses = [bundle.config.address for name, bundle in bundles.items() if name != CHEAT]
    nodes = {
        name: Node(
            bundle,
            tmp_path / "runs" / name,
            LinearParticipant(bundle, own_table_of(data, bundle)),
            None,
        )
        for name, bundle in bundles.items()
    }
    for config in (bundles[CHEAT].zenoh(), *thieves.values()):
        callers.append(Caller(config, addresses))
    cheat = Cheat(nodes, bundles, callers)
    big = bytes(2 * MEGABYTES * 1024 * 1024)
    assert until(lambda: len(callers[0].session.info.peers_zid()) == len(addresses))
    callers[0].send(cheat.key("c1", CHEAT, "envelope"), big)
    run_all(nodes)
    same = in_process(data, bundles["c0"])
    for client, theta in same.parameters.items():
        np.testing.assert_array_equal(read_block(tmp_path / "runs" / client).theta, theta)
    assert cheat.spoilt > 200
    assert [caller.good for caller in callers] == [[]] * 4
    assert callers[0].refusals > 100
    assert [caller.refusals for caller in callers[1:]] == [0, 0, 0]  # they are not even heard
    blamed = {
        name: {e["sender"] for e in node.log.tail if is_blame(e)} for name, node in nodes.items()
    }
    assert blamed == {name: {CHEAT} if name in cheat.peers else set() for name in nodes}


def is_blame(event: dict[str, Any]) -> bool:
    """Something was refused, and not because it came before the training."""
    return event["event"] == "refused" and "answered now" not in event["text"]
