"""What a process counts of itself: checked against what really passed over its links, and lies in
its journal."""

import random
from pathlib import Path
from typing import Any

from hubs import Hub, Passing, linear
from live import engine_of, unobserved
from mtcd.core.errors import DataError, WireError
from mtcd.federation.delivery.durations import Durations
from mtcd.federation.delivery.journal import FIELDS
from mtcd.federation.node.counters import REASONS, reason_of
from problems import MODELS, make_data
from spoiling import spoilt_envelopes

DATA = make_data(MODELS[0], 12, [2, 3], seed=1)
SETTINGS: dict[str, Any] = {
    "model": {"kind": "ridge", "alpha": 1.0},
    "method": {"kind": "mtcd", "tokens": 1, "hops": 3, "stepsize": 0.05},
    "stop": {"iterations": 9},
}


def test_what_one_has_sent_another_has_received_and_every_commit_is_in_the_journal(
    tmp_path: Path,
) -> None:
    engine = engine_of(tmp_path, DATA, **SETTINGS)
    unobserved(engine)
    counters = {name: node.rpc.counters for name, node in engine.nodes.items()}
    for name, counts in counters.items():
        assert (
            set(counts.sent_bytes)
            == set(counts.received_bytes)
            == set(engine.bundles[name].config.peers)
        )
        for peer in counts.sent_bytes.keys() & counters.keys():
            assert counts.sent_bytes[peer] > 8 * DATA.samples
            # the last answers may be under way when a party leaves
            assert 0 <= counts.sent_bytes[peer] - counters[peer].received_bytes[name] < 2000
        heads = [
            slot.read_bytes()[: FIELDS.size]
            for slot in (tmp_path / "runs" / name).glob("journal.[01]")
        ]
        assert sum(counts.commits.counts) == max(FIELDS.unpack(head)[1] for head in heads) > 3
        assert 0 < counts.commits.seconds < 60
        assert not any(counts.refused.values())


def test_what_is_refused_is_counted_by_its_reason(tmp_path: Path) -> None:
    some = random.Random(3)
    with Hub(tmp_path, DATA.clients, linear(DATA), **SETTINGS) as hub:
        told = 0

        def spoil(passing: Passing) -> None:
            nonlocal told
            if passing.kind == "envelope" and passing.to == DATA.clients[1]:
                for wrong in spoilt_envelopes(passing.body[:-8], some, 3):
                    answer = hub.ask(passing._replace(body=wrong)) or b""
                    told += answer[:1] == b"\1"  # a refusal

        hub.train(spoil)
        hub.ask(Passing("operator", DATA.clients[0], "nonsense", b""))
        hub.ask(Passing(DATA.clients[1], DATA.clients[0], "control/stop", b""))
        refused = {name: node.rpc.counters.refused for name, node in hub.nodes.items()}
    assert told > 5
    assert sum(refused[DATA.clients[1]].values()) == told
    assert refused[DATA.clients[0]] == {**dict.fromkeys(REASONS, 0), "kind": 1, "sender": 1}


def test_every_error_has_a_reason_of_the_fixed_set() -> None:
    known = {
        WireError("sender", "is not the leader"): "sender",
        WireError("agreement", "is another one"): "run",
        WireError("version", "is 7"): "version",
        WireError("a sealed message of 'b'", "came late"): "seal",
        WireError("the signature of 'b'", "does not fit"): "seal",
        WireError("anything that a payload may have", "is wrong"): "content",
        DataError("The tables differ."): "data",
    }
    assert {error: reason_of(error) for error in known} == known
    assert set(known.values()) | {"kind"} == set(REASONS)


def test_durations_are_counted_below_their_bounds() -> None:
    times = Durations((1.0, 2.0))
    for seconds in (0.5, 1.0, 1.5, 2.5, 100.0):
        times.add(seconds)
    assert times.counts == [2, 1, 2]
    assert times.seconds == 105.5
