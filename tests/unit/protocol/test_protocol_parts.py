"""Parts of the protocol one by one, on a few messages: monitor, gathering, state of parties,
transport, snapshots."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mtcd.core.errors import MtcdError, WireError
from mtcd.methods.mtcd.client import Share
from mtcd.methods.tours.instruction import Instruction
from mtcd.protocol.codec.envelopes import LONGEST_STATUS, Status
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.engine import Monitor
from mtcd.protocol.gathering import Fresh, Gathering
from mtcd.protocol.model import Visit
from mtcd.protocol.party import (
    MONITOR,
    SERVER,
    Begin,
    Message,
    OnDemand,
    Part,
    Parties,
    Party,
    Progress,
    Recovery,
    send,
)
from mtcd.protocol.snapshots import restored, take
from mtcd.protocol.state import Snapshot, Stateful
from mtcd.protocol.token import Token
from mtcd.protocol.transports.transport import Transport


def token(index: int = 0, t: int = 0, hop: int = 0, length: int = 2, **others: Any) -> Token:
    return Token(index, t, hop, np.zeros(length), 0.0, **others)


def fresh(*numbers: float, penalty: float = 0.0) -> Fresh:
    return Fresh(np.array(numbers), penalty)


def test_a_message_has_the_size_of_its_payload_and_a_hop_only_if_it_is_one() -> None:
    carried = token(length=4)
    assert send(0, 1, carried) == Message(0, 1, carried, 4, 0, unchanged=False)
    assert send(0, 1, carried, hop=True) == Message(0, 1, carried, 4, 4)
    assert Message(0, 1, Begin()) == Message(0, 1, Begin(), 0, 0, False)
    assert (SERVER, MONITOR) == (-1, -2)  # on the wire


def test_the_monitor_waits_for_the_parts_of_all_clients() -> None:
    monitor = Monitor(3)
    assert monitor.ahead(1) is None
    reported = [(1, 4), (0, 4), (1, 5)]
    for sender, iteration in reported:
        assert (
            monitor.collect(Message(sender, MONITOR, Part(iteration, np.array([sender])))) is None
        )
        assert monitor.ahead(sender) == iteration
    whole = monitor.collect(Message(2, MONITOR, Part(4, np.array([2]))))
    assert (whole.hop, whole.t, whole.aggregate, whole.penalty) == (4, 0, None, 0.0)
    assert [part.tolist() for part in whole.parameters] == [[0], [1], [2]]
    assert [monitor.ahead(client) for client in range(3)] == [None, 5, None]
    progress = Progress(1, 1, None, 0.0)
    assert monitor.collect(Message(SERVER, MONITOR, progress)) is progress


def test_uploads_are_summed_when_all_are_here_and_those_who_leave_stay_in_the_sum() -> None:
    gathering = Gathering(3)
    uploads = [
        fresh(1.0, 2.0, penalty=0.5),
        fresh(4.0, 8.0, penalty=0.25),
        fresh(16.0, 32.0, penalty=1.0),
    ]
    assert gathering.add(2, uploads[2]) is None
    assert gathering.add(0, uploads[0]) is None
    whole = gathering.add(1, uploads[1], leaving=[1])
    assert (whole[0].tolist(), whole[1]) == ([21.0, 42.0], 1.75)
    assert gathering.here == {1: uploads[1]}
    assert gathering.add(0, uploads[0]) is None
    assert gathering.add(2, uploads[2]) is not None
    assert gathering.here == {}


class Counting(Transport):
    """Encodes by doubling, and counts."""

    state_fields = ("count",)
    count = 0

    def encode(self, numbers: Any) -> Any:
        self.count += 1
        return 2.0 * numbers

    def decode(self, numbers: Any) -> Any:
        return numbers / 2.0


class Plain(Counting):
    state_fields = ()


class Silent(Party):
    """A party that has a number."""

    state_fields = ("number",)
    number = 0

    def receive(self, message: Message) -> list[Message]:
        return []


def test_a_party_s_state_has_that_of_its_transport_if_there_is_one() -> None:
    party, again = Silent(), Silent()
    party.number = 4
    assert party.state() == {"number": 4}
    transport, other = Counting(), Counting()
    party.equip(transport)
    again.equip(other)
    transport.count = 3
    assert party.state() == {"number": 4, "transport": {"count": 3}}
    again.restore(party.state())
    assert (again.number, other.count) == (4, 3)
    party = Silent()
    party.number = 4
    party.equip(Plain())
    assert party.state() == {"number": 4}
    party.restore({"number": 5})
    assert party.number == 5
    assert not party.is_early(Begin())


def test_parts_of_a_state_that_have_a_state_keep_their_own() -> None:
    class Whole(Stateful):
        state_fields = ("monitor", "number")

        def __init__(self, number: int) -> None:
            self.monitor, self.number = Monitor(2), number

    whole, again = Whole(3), Whole(4)
    whole.monitor.collect(Message(1, MONITOR, Part(6, np.zeros(1))))
    assert whole.state() == {"monitor": whole.monitor.state(), "number": 3}
    kept = again.monitor
    again.restore(whole.state())
    assert again.monitor is kept
    assert (again.number, again.monitor.ahead(1)) == (3, 6)


def test_clients_are_made_once_and_only_when_they_are_used() -> None:
    made: list[int] = []

    def make(number: int) -> Any:
        made.append(number)
        return f"client {number}"

    clients = OnDemand(4, make)
    assert len(clients) == 4
    assert (clients[2], clients[-1], clients[2]) == ("client 2", "client 3", "client 2")
    assert made == [2, 3]
    assert clients[1:3] == ["client 1", "client 2"]
    assert made == [2, 3, 1]
    with pytest.raises(IndexError):
        clients[4]


def test_a_model_is_gathered_from_clients_and_server_where_the_method_says_how() -> None:
    class Client(Silent):
        def parameters(self) -> str:
            return "theta"

    clients: Any = [Client(), Client()]
    server = Silent()
    assert Parties(clients, server, ()).parameters() == ["theta", "theta"]
    gathered = Parties(clients, server, (), gather=lambda clients, server: [*clients, server])
    assert gathered.parameters() == [*clients, server]


def test_a_transport_changes_tokens_in_place_and_copies_other_payloads() -> None:
    transport = Counting()
    roaming = token(slots={"sync_change": np.array([1.0, 3.0]), "gains": np.ones(2)})
    roaming.aggregate = np.array([5.0, 7.0])
    assert transport.sent(roaming, 1) is roaming
    assert roaming.aggregate.tolist() == [10.0, 14.0]
    assert roaming.slots["sync_change"].tolist() == [2.0, 6.0]
    assert roaming.slots["gains"].tolist() == [1.0, 1.0]
    assert transport.received(roaming, 1).aggregate.tolist() == [5.0, 7.0]
    upload = fresh(1.0, 2.0, penalty=3.0)
    sent = transport.sent(upload, 1)
    assert (sent.representation.tolist(), sent.penalty) == ([2.0, 4.0], 3.0)
    assert upload.representation.tolist() == [1.0, 2.0]
    for kept in (Share(1), Progress(1, 1, None, 0.0)):  # no aggregate, or none this time
        assert transport.sent(kept, 1) is kept
    assert transport.count == 3
    assert Transport.reads_objective


@dataclass
class Unknown:
    number: int = 0


def test_a_snapshot_returns_values_of_the_same_types() -> None:
    values = {
        "plain": [None, True, 3, 0.5, "text"],
        (1, "key"): (2, (3.5,)),
        "sets": [{3, 1, 2}, frozenset({"b", "a"})],
        "scalars": [np.float32(1.5), np.int64(7), np.bool_(True)],
        "stored": Instruction(3, (0.5,), keep=2),
    }
    snapshot = take(values)
    found = restored(snapshot)
    assert found == values
    assert [type(one) for one in found["scalars"]] == [np.float32, np.int64, np.bool_]
    assert type(found["sets"][1]) is frozenset
    assert [array.item() for array in snapshot.tensors.values()] == [1.5, 7, True]


def test_arrays_of_a_snapshot_are_kept_once_with_their_order_and_apart_from_the_originals() -> None:
    shared, other = np.arange(3.0), np.asfortranarray(np.arange(6.0).reshape(2, 3))
    snapshot = take([shared, other, (shared,)])
    assert list(snapshot.tensors) == ["0", "1"]
    first, second, (third,) = restored(snapshot)
    assert first is third
    shared[:] = 9.0
    assert first.tolist() == [0.0, 1.0, 2.0]
    assert second.flags.f_contiguous
    np.testing.assert_array_equal(second, other)


@pytest.mark.parametrize("value", [Unknown(), np.array([None, 1]), {"set": 3j}, object()])
def test_only_what_is_declared_goes_into_a_snapshot(value: Any) -> None:
    with pytest.raises(MtcdError, match=r"A \w+ cannot be kept in a checkpoint"):
        take([value])


@pytest.mark.parametrize(
    "content", [{"Unknown": [1]}, {"array": "3"}, {"tuple": 5}, {"Instruction": []}]
)
def test_a_snapshot_of_something_else_is_refused(content: Any) -> None:
    with pytest.raises(MtcdError, match="not of this training"):
        restored(Snapshot({"content": content}, {}))


def test_dropout_is_drawn_for_a_batch_or_for_a_visit_of_all_samples() -> None:
    assert Visit(4, None, 2, 0.5).draw == (4,)
    assert Visit(4, 0, 2, 0.5).draw == (4, 0)
    assert not Visit(4, 0, 2, 0.5).fuses
    assert not Visit(4, 0, 2, 0.5).updates_statistics


def test_no_status_is_longer_than_its_bound() -> None:
    chunks: Any = []
    longest = "a" * LONGEST_STATUS
    field = Status()
    field.name = "status"
    field.write(longest, chunks)
    assert sum(map(len, chunks)) == field.most(Bounds("a run", 3, frozenset(), (12,)))
    with pytest.raises(WireError):
        field.write(longest + "a", chunks)


@pytest.mark.parametrize("own", Recovery)
def test_subclasses_inherit_every_way_to_recover_but_restart(own: Recovery) -> None:
    """They may have state that the base class cannot undo; to say again that it can is up to
    them."""
    base = type("Base", (Party,), {"recovery": own})
    assert base.recovery is own
    assert type("Other", (base,), {}).recovery is (
        Recovery.WAIT if own is Recovery.RESTART else own
    )
    assert type("Same", (base,), {"recovery": own}).recovery is own
