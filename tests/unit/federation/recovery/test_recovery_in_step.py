"""How clients that go in step agree on the iteration at which they stop: what each does, one by
one."""

from typing import Any

import numpy as np
import pytest

from mtcd.federation.delivery.journal import MemoryJournal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.federation.recovery.wait import InStep
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.protocol.codec.envelopes import End, Envelope
from mtcd.protocol.party import MONITOR, Message, Part
from mtcd.training.divergence import DIVERGED
from problems import make_data

MODEL = Glm("ridge")
DATA = make_data(MODEL, 8, [2, 2, 1, 1, 1], seed=1)
CLIENTS = 5
PATH = make_network("path", DATA.clients)
NOW = 3
"""The iteration of the client."""


@pytest.fixture
def client() -> ReliableParty:
    """Client 1, between 0 and 2."""
    parties = DCPA(stepsize=0.05).parties(MODEL.problem(DATA), PATH, 0)
    reliable = make_reliable_party(1, parties, MemoryJournal(), PATH)
    reliable.outbox.clear()
    reliable.party.iteration = NOW  # type: ignore[attr-defined]
    return reliable


def told(client: ReliableParty) -> list[tuple[int, Any]]:
    return [(one.to, one.message.payload) for one in client.unacknowledged()]


def cut(client: ReliableParty, *iterations: int) -> tuple[int, End | None]:
    """How many of these reports are left, and the end."""
    messages = [Message(1, MONITOR, Part(i, np.zeros(2))) for i in iterations]
    left, end = client._until_end(messages)
    assert left == messages[: len(left)]
    return len(left), end


def test_envelopes_of_a_sender_are_processed_in_their_order(client: ReliableParty) -> None:
    assert isinstance(client.policy, InStep)
    client.seen = {2: (4, [])}
    for sender, following in ((0, 0), (2, 4)):
        deferred = [
            client.policy.must_defer(
                Envelope(sender, 1, number, 0, 0, {}, Message(sender, 1, End("stopped", 0, 9)))
            )
            for number in range(following, following + 3)
        ]
        assert deferred == [False, True, True]


def test_a_client_that_is_asked_to_stop_proposes_an_iteration_that_no_client_has_finished(
    client: ReliableParty,
) -> None:
    client.finish("stopped")
    end = End("stopped", 0, NOW + CLIENTS)
    assert (client.stop_request, client.ended) == (("stopped", NOW + CLIENTS), None)
    assert told(client) == [(0, end), (2, end)]
    assert client.journal.last()["stop_request"] == ("stopped", NOW + CLIENTS)
    client.party.iteration = NOW + 1  # type: ignore[attr-defined]
    client.finish("stopped")  # once more, and later: the earlier one counts
    assert client.stop_request == ("stopped", NOW + CLIENTS)
    assert len(told(client)) == 2


def test_a_client_that_has_diverged_does_not_go_on_in_step(client: ReliableParty) -> None:
    client.finish(DIVERGED)
    end = End(DIVERGED, 0, NOW)
    assert (client.stop_request, client.ended) == (None, end)
    assert told(client) == [(0, end), (2, end)]


def test_nor_does_one_that_hears_of_it(client: ReliableParty) -> None:
    client.policy.receive_end(End(DIVERGED, 0, 2), 0)
    assert (client.stop_request, client.ended) == (None, End(DIVERGED, 0, 2))
    assert told(client) == [(2, End(DIVERGED, 0, 2))]


def test_of_several_proposals_the_earliest_counts_and_is_passed_on(client: ReliableParty) -> None:
    for hop, earliest in ((12, 12), (13, 12), (12, 12), (11, 11)):
        client.policy.receive_end(End(f"from {'abc'[hop - 11]}", 0, hop), 0)
        assert client.stop_request == (f"from {'abc'[earliest - 11]}", earliest)
    assert client.ended is None
    assert [(to, end.hop) for to, end in told(client)] == [(0, 12), (2, 12), (0, 11), (2, 11)]
    client.ended = End("from a", 0, 11)
    client.policy.receive_end(End("late", 0, 10), 2)
    assert client.stop_request == ("from a", 11)


def test_it_stops_at_the_report_of_the_iteration_that_was_proposed(client: ReliableParty) -> None:
    client.stop_request = "stopped", 8
    assert cut(client, 6, 7) == (2, None)
    assert cut(client, 7, 8, 9) == (2, End("stopped", 0, 8))
    assert cut(client, 9) == (1, End("stopped", 0, 9))


@pytest.mark.parametrize("status", ["iterations", "seconds"])
def test_a_limit_of_time_is_proposed_and_one_of_iterations_ends_it_at_once(
    client: ReliableParty, status: str
) -> None:
    client.limit = lambda report: status if report.iteration >= 5 else None
    counted = status == "iterations"
    assert cut(client, 4, 5, 6) == ((2, End("iterations", 0, 5)) if counted else (3, None))
    assert client.stop_request == (None if counted else ("seconds", NOW + CLIENTS))
    if not counted:
        assert cut(client, 6, 7) == (2, None)
        assert cut(client, 8) == (1, End("seconds", 0, 8))
        client.stop_request = "stopped", 6  # an earlier proposal has come
        assert cut(client, 6) == (1, End("stopped", 0, 6))
