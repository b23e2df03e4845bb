"""What a restart, or a stay that is undone, finds: kept apart from what goes on."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mtcd.federation.recovery.iteration_server import IterationServer
from mtcd.federation.recovery.token_history import TokenHistory, live_terms
from mtcd.federation.recovery.uploads import Uploads
from mtcd.protocol.codec.envelopes import Envelope
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token


def test_uploads_are_kept_with_whose_are_there_in_order() -> None:
    uploads: Any = object.__new__(Uploads)
    uploads.party = SimpleNamespace(gathering=SimpleNamespace(here={8: None, 1: None}))
    uploads.requested, uploads.penalties = {2: 5}, [0.5, 0.0]
    assert uploads.snapshot({"party": {"t": 3}, "sent": {}}) == {
        "party": {"t": 3, "gathering": [1, 8]},
        "penalties": [0.5, 0.0],
        "requested": {2: 5},
        "sent": {},
    }


class Party:
    """A client that the token visits."""

    def __init__(self) -> None:
        self.number = 1
        self.copies = {0: "before"}
        self.restored: list[Any] = []

    def state(self) -> dict[str, Any]:
        return {"t": 0}

    def restore(self, state: Any) -> None:
        self.restored.append(state)


def arriving(hop: int, sender: int) -> Envelope:
    token = Token(0, 0, hop, np.ones(2), 0.0)
    return Envelope(sender, 1, 0, 0, 0, {}, Message(sender, 1, token), frozenset({7}))


def test_a_stay_is_undone_to_the_copies_before_it() -> None:
    party = Party()
    history = TokenHistory(party)  # type: ignore[arg-type]
    history.moved_on, history.last_sent = True, arriving(0, 0)
    history.visited(arriving(4, 0))
    assert (history.hop, history.arrival) == (5, (0, frozenset({7})))
    assert (history.moved_on, history.last_sent) == (False, None)
    party.copies[0] = "after"
    history.visited(arriving(5, 1))  # once more, from itself: the same stay
    assert (history.hop, history.arrival) == (6, (0, frozenset({7})))

    history.moved_on = True
    history.truncate(5)
    assert (party.restored, history.hop, history.moved_on) == ([], 6, False)
    history.truncate(4)
    assert party.restored == [{"t": 0, "copies": {0: "before"}}]
    assert (history.hop, history.checkpoint, history.arrival) == (4, None, None)
    history.truncate(1)
    assert len(party.restored) == 1


def test_a_later_term_at_an_earlier_hop_ends_those_before_it() -> None:
    assert live_terms({1: 5, 2: 7, 3: 7}) == {3: 7, 1: 5}
    assert live_terms({1: 5, 2: 3, 4: 4}) == {4: 4, 2: 3}
    assert live_terms({}) == {}


def test_before_its_first_upload_a_client_has_no_penalty_and_no_request() -> None:
    party: Any = SimpleNamespace(clients=3)
    uploads = Uploads(None, party, None)  # type: ignore[arg-type]
    assert uploads.penalties == [0.0, 0.0, 0.0]
    assert uploads.requested == {}


@pytest.mark.parametrize(("down", "waits"), [((), False), ((0, 1), False), ((0, 1, 2), True)])
def test_a_server_waits_when_all_clients_are_down(down: tuple[int, ...], waits: bool) -> None:
    delivery: Any = SimpleNamespace(down=frozenset(down))
    party: Any = SimpleNamespace(clients=3)
    server: Any = object.__new__(IterationServer)
    server.delivery, server.party, server.uploads = delivery, party, None
    uploads: Any = object.__new__(Uploads)
    uploads.party, uploads.policy = party, SimpleNamespace(delivery=delivery)
    for one in (server, uploads):
        assert one.waits_for == (frozenset(down) if waits else frozenset())
