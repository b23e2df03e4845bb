"""A federation over real links, and cheats who call its parties: one with a good certificate,
others without.

The cheat sends over the connections of a party that also runs honestly, so it can spoil all that this
one sends, and say what it likes. The others call with certificates that are not good any more.
"""

import random
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

from live import in_process, make_bundles, nodes_of, run_all
from mtcd.core.errors import WireError
from mtcd.data.vertical import VerticalData
from mtcd.federation.administrator import renew, revoke
from mtcd.federation.connections.refusals import INTERVAL_SECONDS
from mtcd.federation.connections.wire import ALIVE, ANSWER, REQUEST
from mtcd.federation.credentials.authority import Authority
from mtcd.federation.credentials.bundle import Bundle, read_bundle
from mtcd.federation.credentials.certificates import issue, make_authority
from mtcd.federation.credentials.private_files import write_files
from mtcd.federation.delivery.frames import decode_envelope
from mtcd.federation.names import parse_address
from mtcd.federation.node.node import Node
from mtcd.federation.node.rpc import OK
from mtcd.models.glm.party.block import read_block
from own_parts import model_section
from problems import MODELS, make_data
from raw_members import ByHand
from spoiling import spoilt_envelopes

CHEAT, MEGABYTES = "c2", 1
NAME = "clinics"
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


def bundles_and_thieves(
    folder: Path, data: VerticalData
) -> tuple[dict[str, Bundle], dict[str, Path]]:
    """Bundles; and folders of strangers, with an expired certificate of the cheat, with a revoked one,
    and with one of another authority."""
    bundles = make_bundles(folder, data.clients, **SETTINGS)
    root = folder / "bundles"
    config = bundles[CHEAT].config
    thieves = {name: folder / name for name in ("revoked", "expired", "stranger")}
    for thief in thieves.values():
        shutil.copytree(root / CHEAT, thief)
    revoke(root, CHEAT)
    renew(root, CHEAT, 90)
    long_ago = datetime.now(UTC) - timedelta(days=100)
    old = issue(Authority.load(root).issued, CHEAT, parse_address(config.address), 90, now=long_ago)
    write_files(folder / "expired", {"key.pem": old.key_pem, "cert.pem": old.certificate_pem})
    other = issue(make_authority("others"), CHEAT, None, 90)
    write_files(folder / "stranger", {"key.pem": other.key_pem, "cert.pem": other.certificate_pem})
    return {name: read_bundle(root / name) for name in bundles}, thieves


class Cheat:
    """Before every envelope that the honest one sends, spoilt ones of it go out over the same
    connection, and more."""

    def __init__(self, nodes: dict[str, Node]) -> None:
        self.nodes, self.some = nodes, random.Random(2)
        self.link = nodes[CHEAT].rpc.link
        self.spoilt = self.refusals = 0
        self.good: list[tuple[str, bytes]] = []
        """Answers other than refusals, by the kind of the request."""
        self._number = FIRST
        self.post = self.link.post
        self.link.post = self.before  # type: ignore[method-assign]

    def before(self, to: str, kind: str, body: bytes, *rest: Any) -> None:
        if kind == "envelope" and to in self.link.up:
            for spoilt in spoilt_envelopes(body, self.some, 4):
                if not self.is_sound(to, spoilt):
                    self.send(to, kind, spoilt)
                    self.spoilt += 1
            for peer in self.link.up:
                self.where_it_may_not(peer, body)
        self.post(to, kind, body, *rest)

    def send(self, to: str, kind: str, body: bytes) -> None:
        """A request whose number the honest one does not use."""
        self._number += 1
        self.link._open[to][self._number] = lambda answer: self.answered(kind, answer)
        self.link._connections[to].send(REQUEST, kind, self._number, body)

    def answered(self, kind: str, answer: bytes | None) -> None:
        if answer is not None and answer[:1] == OK:
            self.good.append((kind, answer))
        self.refusals += answer is not None and answer[:1] != OK

    def where_it_may_not(self, to: str, body: bytes) -> None:
        """What only the operator may ask, kinds that nobody has, and answers to nothing."""
        for kind in ("control/stop", "control/status", "control/"):
            self.send(to, kind, b"")
        for kind in ("", "*", "**", "envelope/**", "x" * 46, "envelope/x", "nothing"):
            self.send(to, kind, body)
        connection = self.link._connections[to]
        for number in (self.some.randrange(100), 2**64 - 1):
            connection.send(ANSWER, "", number, body)
            connection.send(ANSWER, "envelope", number, b"")
        connection.send(ALIVE, "x", 7, b"with a body")

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


def gets_in(folder: Path, address: str, name: str) -> bool:
    """Whether somebody with the certificate in a folder is admitted in the name of the cheat."""
    try:
        with ByHand(address, folder) as caller:
            caller.say(CHEAT, name, NAME)
            return caller.hear()
    except OSError:
        return False


def test_a_federation_does_not_mind_cheats(tmp_path: Path) -> None:
    data = make_data(LOGISTIC, 20, [2, 1, 3, 2], seed=3)
    bundles, thieves = bundles_and_thieves(tmp_path, data)
    places = {name: str(b.config.address) for name, b in bundles.items() if name != CHEAT}
    nodes = nodes_of(tmp_path, bundles, data)
    admitted = [
        (thief, name)
        for thief, folder in thieves.items()
        for name, address in places.items()
        if gets_in(folder, address, name)
    ]
    assert admitted == []
    sleep(INTERVAL_SECONDS + 1.0)  # refusals are told once a second, and a quick run takes less
    cheat = Cheat(nodes)
    run_all(nodes)
    same = in_process(data, bundles["c0"])
    for client, theta in same.parameters.items():
        np.testing.assert_array_equal(read_block(tmp_path / "runs" / client).theta, theta)
    assert cheat.spoilt > 200
    assert cheat.good == []
    assert cheat.refusals > 100
    for name in places:
        refused = nodes[name].rpc.counters.refused_connections
        assert refused["certificate"] == len(thieves), (name, refused)
    peers = bundles[CHEAT].config.peers
    blamed = {
        name: {e["sender"] for e in node.log.tail if is_blame(e)} for name, node in nodes.items()
    }
    assert blamed == {name: {CHEAT} if name in peers else set() for name in nodes}


def is_blame(event: dict[str, Any]) -> bool:
    """Something was refused, and not because it came before the training."""
    return event["event"] == "refused" and "answered now" not in event["text"]
