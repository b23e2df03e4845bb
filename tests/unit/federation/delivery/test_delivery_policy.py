"""What a reliable party does without a policy of its own: for whom it waits, where it stops, whom
it tells."""

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mtcd.federation.delivery.journal import MemoryJournal
from mtcd.federation.delivery.policy import RecoveryPolicy
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.model import Glm
from mtcd.network.changes import with_changes
from mtcd.network.topology import Change, Network, make_network
from mtcd.protocol.codec.envelopes import Ack, Cancelled, End, Envelope
from mtcd.protocol.party import MONITOR, SERVER, Begin, Message, Part, Progress
from mtcd.training.divergence import DIVERGED
from problems import make_data

MODEL = Glm("ridge")
DATA = make_data(MODEL, 8, [2, 2, 1, 1], seed=1)
CYCLE = make_network("cycle", DATA.clients)
NAMES = {SERVER: "server"} | {k: f"c{k}" for k in range(4)}
WAITING = STCD(stepsize=0.01, walk="tour", acceleration="momentum")
OPTIMAL = MTCD(tokens=2, hops=3, stepsize=0.01, combine="optimal")


def reliable(method: Method, number: int, network: Network = CYCLE) -> ReliableParty:
    return make_reliable_party(
        number, method.parties(MODEL.problem(DATA), network, 0), MemoryJournal(), network
    )


@pytest.mark.parametrize(
    ("method", "number", "down", "waits_for"),
    [
        (WAITING, 0, {2}, {2}),
        (WAITING, 0, {1, 3}, {1, 3}),
        (OPTIMAL, SERVER, {1}, {1}),
        (SVFL(stepsize=0.01), 0, {2}, set()),  # a client needs the server alone
        (SVFL(stepsize=0.01), 0, {2, SERVER}, {SERVER}),
        (SVFL(stepsize=0.01), SERVER, {0, 1, 2}, set()),
        (SVFL(stepsize=0.01), SERVER, {0, 1, 2, 3}, {0, 1, 2, 3}),
    ],
)
def test_for_whom_a_party_waits_and_what_it_says(
    method: Method, number: int, down: set[int], waits_for: set[int]
) -> None:
    party = reliable(method, number)
    assert party.policy.waits_for == frozenset()
    assert party.policy.waiting_reason(NAMES) is None
    for k in sorted(down):
        party.peer_lost(k)
    assert party.policy.waits_for == waits_for
    said = ", ".join(NAMES[k] for k in sorted(waits_for, key=lambda k: NAMES[k]))
    assert party.policy.waiting_reason(NAMES) == (
        f"Training waits for {said}." if waits_for else None
    )
    for k in sorted(down):
        party.peer_found(k)
    assert party.policy.waits_for == frozenset()


def test_the_end_is_passed_on_to_neighbours_where_there_is_no_server_and_the_members_stay() -> None:
    assert reliable(STCD(stepsize=0.01), 1).neighbours == {0, 2}
    assert reliable(MTCD(tokens=2, stepsize=0.01), 1).neighbours is None
    changing = with_changes(CYCLE, [Change(5, leave=["c3"])])
    assert reliable(STCD(stepsize=0.01), 1, changing).neighbours is None


def test_a_party_that_is_asked_to_stop_does_so_at_the_next_report_unless_one_is_down() -> None:
    client, server, lonely = (
        reliable(WAITING, 0),
        reliable(OPTIMAL, SERVER),
        reliable(OPTIMAL, SERVER),
    )
    client.peer_lost(2)
    client.finish("stopped")  # it cannot know of the last sync
    server.finish("stopped")
    for one in (client, server):
        assert (one.stop_request, one.ended) == (("stopped", 0), None)
    lonely.peer_lost(1)
    lonely.finish("stopped")
    assert (lonely.stop_request, lonely.ended) == (None, End("stopped", 0, 0))
    told = [one.to for one in lonely.unacknowledged() if isinstance(one.message.payload, End)]
    assert sorted(told) == [0, 1, 2, 3]


def test_a_party_that_has_diverged_stops_at_once() -> None:
    client, server = reliable(WAITING, 0), reliable(OPTIMAL, SERVER)
    for one in (client, server):
        one.finish(DIVERGED)
        assert (one.stop_request, one.ended, one.ended_here) == (None, End(DIVERGED, 0, 0), True)
        assert one.journal.last()["ended"] == one.ended


def reporting(limit: int, request: tuple[str, int] | None) -> ReliableParty:
    """A party with these limits."""
    party = plain_party()
    party.stop_request = request
    party.limit = lambda report: "iterations" if report.hop >= limit else None
    party.judge = lambda report, status: f"{status} at {report.hop}"
    return party


def reports(*hops: int) -> list[Message]:
    """A message to a client before each report."""
    told = [Message(SERVER, MONITOR, Progress(hop, hop // 2, np.zeros(1), 0.0)) for hop in hops]
    return [message for report in told for message in (Message(SERVER, 0, None), report)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limit", "asked", "count", "end"),
    [
        (99, None, 6, None),
        (6, None, 4, ("iterations at 6", 3, 6)),
        (99, ("stopped", 0), 2, ("stopped at 4", 2, 4)),
        (99, ("stopped", 6), 4, ("stopped at 6", 3, 6)),
        (99, ("stopped", 7), 6, ("stopped at 8", 4, 8)),
        (99, ("stopped", 9), 6, None),
        (6, ("stopped", 6), 4, ("iterations at 6", 3, 6)),  # the limit is what ends it
    ],
)
def test_messages_are_cut_after_the_first_report_at_which_the_training_ends(
    limit: int, asked: tuple[str, int] | None, count: int, end: tuple[str, int, int] | None
) -> None:
    messages = reports(4, 6, 8)
    sent, found = reporting(limit, asked)._until_end(messages)
    assert sent == messages[:count]
    assert found == (None if end is None else End(*end))


def test_a_part_of_a_model_counts_by_its_iteration() -> None:
    party = reporting(99, ("stopped", 3))
    party.limit, party.judge = (lambda report: None), (lambda report, status: status)
    told = [Message(0, MONITOR, Part(i, np.zeros(1))) for i in (2, 3, 4)]
    assert party._until_end(told) == (told[:2], End("stopped", 0, 3))


def test_an_end_is_accepted_once_and_passed_on_to_all_neighbours_but_its_sender() -> None:
    client = reliable(STCD(stepsize=0.01), 1)
    before = len(client.unacknowledged())
    RecoveryPolicy.receive_end(client.policy, End("converged", 0, 30), 2)
    RecoveryPolicy.receive_end(client.policy, End("stopped", 0, 40), 0)
    told = client.unacknowledged()[before:]
    assert [(one.to, one.message.payload) for one in told] == [(0, End("converged", 0, 30))]
    assert (client.ended, client.ended_here) == (End("converged", 0, 30), False)


def plain_party(*opening: Message) -> ReliableParty:
    """Client 0 of four, with the policy that the others inherit from."""
    party = SVFL(stepsize=0.01).parties(MODEL.problem(DATA), CYCLE, 0).clients[0]
    return ReliableParty(0, party, RecoveryPolicy(), MemoryJournal(), opening, 4).resume()


def test_envelopes_to_each_party_are_numbered_from_0_on_in_their_order() -> None:
    client = plain_party()
    sent = [client.send_control(to, Cancelled(0)) for to in (1, 2, 1, 1, 2)]
    numbered = [(1, 0), (2, 0), (1, 1), (1, 2), (2, 1)]
    assert [(one.to, one.sequence) for one in sent] == numbered
    assert {(one.sender, one.term, one.iteration) for one in sent} == {(0, 0, 0)}
    assert list(client.outbox) == numbered
    client.acknowledge(Ack(0, 1, 1, {}))
    assert list(client.outbox) == [(1, 0), (2, 0), (1, 2), (2, 1)]
    assert client.send_control(1, Cancelled(0)).sequence == 3


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_in_whatever_order_envelopes_arrive_only_those_after_a_gap_are_listed(
    order: tuple[int, ...],
) -> None:
    client = plain_party()
    for count, sequence in enumerate(order, 1):
        envelope = Envelope(1, 0, sequence, 0, 0, {}, Message(1, 0, Cancelled(0)))
        assert not client.is_duplicate(envelope)
        assert client.deliver(envelope).ack == Ack(1, 0, sequence, {})
        assert client.is_duplicate(envelope)
        arrived = set(order[:count])
        gap = min({*range(5)} - arrived)
        assert client.seen == {1: (gap, sorted(k for k in arrived if k > gap))}


def test_a_message_belongs_to_the_iteration_it_names_or_else_to_that_of_its_cause() -> None:
    client = plain_party(Message(0, 1, Begin()))
    cause = Envelope(1, 0, 0, 5, 0, {}, Message(1, 0, Begin()))
    client.send(
        [Message(0, 2, Begin()), Message(0, 2, Cancelled(3)), Message(0, 3, Cancelled(0))], cause
    )
    assert [(one.to, one.iteration) for one in client.unacknowledged()] == [
        (1, 0),
        (2, 5),
        (2, 3),
        (3, 0),
    ]


def test_arrays_take_their_wire_form_on_the_way_to_others_only() -> None:
    client = plain_party()
    transport: Any = SimpleNamespace(
        sent=lambda payload, to: Cancelled(payload.t + 1), state_fields=()
    )
    client.party.transport = transport
    assert [client.send_control(to, Cancelled(4)).message.payload.t for to in (0, 1, SERVER)] == [
        4,
        5,
        5,
    ]


def test_envelopes_after_a_gap_are_listed_in_order() -> None:
    """A set of small numbers gives 8 before 1; what is committed must be the same in every run."""
    client = plain_party()
    for sequence in (8, 1):
        client.deliver(Envelope(1, 0, sequence, 0, 0, {}, Message(1, 0, Cancelled(0))))
    assert client.seen == {1: (0, [1, 8])}
