"""What a party sends over its links: how long messages may be, and how much may wait."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cryptography")

from mtcd.core.errors import DataError, WireError
from mtcd.federation.connections.wire import ANSWER, REQUEST
from mtcd.federation.node.counters import Counters
from mtcd.federation.node.link import NO, NO_ANSWER, IncomingRequest, Link
from mtcd.federation.node.rpc import Rpc, _head, _read_head

LONGEST = 100


class Sending:
    """The link of a party to b, without a socket."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, str, bytes]] = []
        self.answers: list[bytes | None] = []
        self.told: list[str] = []
        self.later: list[Any] = []
        self.connection: Any = SimpleNamespace(
            peer="b",
            unsent_bytes=0,
            send=lambda what, kind, number, body: self.sent.append((what, kind, body)),
        )
        link: Any = object.__new__(Link)
        link.peers = frozenset({"b", "c"})
        link.loop = SimpleNamespace(
            call=lambda act: act(), later=lambda seconds, act: self.later.append((seconds, act))
        )
        link.tell = lambda kind, sentence: self.told.append(sentence)
        link._all = SimpleNamespace(longest=LONGEST)
        link._connections = {"b": self.connection}
        link._counters = Counters(["b", "c"])
        link._numbers = iter(range(100))
        link._open = {"b": {}, "c": {}}
        self.link = link

    def post(self, body: bytes, to: str = "b") -> None:
        self.link.post(to, "x", body, self.answers.append)


@pytest.fixture
def sending() -> Sending:
    return Sending()


def test_a_message_may_have_the_most_bytes_and_no_more(sending: Sending) -> None:
    sending.post(bytes(LONGEST))
    assert sending.sent == [(REQUEST, "x", bytes(LONGEST))]
    assert sending.answers == []
    assert sending.told == []
    sending.post(bytes(LONGEST + 1))
    assert len(sending.sent) == 1
    assert sending.answers == [None]
    assert "101 bytes, more than limits.message_mb" in sending.told[0]
    assert sending.link._counters.sent_bytes["b"] == LONGEST


def test_requests_do_not_pile_up_at_a_slow_link(sending: Sending) -> None:
    sending.connection.unsent_bytes = LONGEST
    sending.post(b"waits too")
    assert len(sending.sent) == 1
    sending.connection.unsent_bytes = LONGEST + 1
    sending.post(b"is not sent")
    assert len(sending.sent) == 1
    assert sending.answers == [None]
    sending.post(b"nobody is there", to="c")
    assert sending.answers == [None, None]


def test_an_answer_that_is_too_long_is_none(sending: Sending) -> None:
    for length in (LONGEST, LONGEST + 1):
        sending.link._answer(sending.connection, 7, bytes(length))
    assert sending.sent == [(ANSWER, "", bytes(LONGEST)), (ANSWER, "", NO_ANSWER)]
    assert "An answer to b has 101 bytes" in sending.told[0]
    assert sending.link._counters.sent_bytes["b"] == LONGEST + len(NO_ANSWER)


def test_a_query_is_answered_once_or_its_time_is_over(sending: Sending) -> None:
    sending.link.query("b", "status", sending.answers.append, 3.0)
    ((seconds, over),) = sending.later
    assert seconds == 3.0
    (answered,) = sending.link._open["b"].values()
    answered(b"here")
    over()
    assert sending.answers == [b"here"]


def test_of_several_answers_to_a_request_the_first_is_sent() -> None:
    replies: list[bytes] = []
    request = IncomingRequest("b", "x", bytearray(b"ask"), replies.append)
    assert request.direct
    request.drop()
    request.answer(b"too late")
    assert replies == [NO_ANSWER]
    assert request.body == b"ask"
    assert not IncomingRequest("b", "x", b"", replies.append, direct=False).direct


def test_a_relayed_request_has_at_most_two_hops_left_for_each_member() -> None:
    members = ["a", "b", "c"]
    for left in (0, 1, 6):
        body = _head("c", left, ["a"])
        assert _read_head(body + b"sealed", members) == ("c", left, ["a"], len(body))
    for left in (-1, 7):
        with pytest.raises(WireError, match="too many hops left"):
            _read_head(_head("c", left, ["a"]), members)
    for to, by in (("d", ["a"]), ("c", ["d"])):
        with pytest.raises(WireError, match="names an unknown party"):
            _read_head(_head(to, 1, by), members)
    with pytest.raises(WireError, match="not that of a relayed request"):
        _read_head(b"\n" + _head("c", 1, ["a"]), members)
    with pytest.raises(WireError, match="not that of a relayed request"):
        _read_head(_head("c", 1, ["a"])[:-1], members)


def test_others_are_told_no_values_of_a_table() -> None:
    rpc: Any = object.__new__(Rpc)
    noted: list[str] = []
    rpc.note_refused = lambda sender, kind, error: noted.append(str(error))
    replies: list[bytes] = []
    whole = DataError("Row 7 has 'Jane'.", shared="A row has a text.")
    for error in (whole, DataError("A column is missing."), WireError("sizes", "are wrong")):
        rpc.refuse(IncomingRequest("b", "x", b"", replies.append), "x", error)
    assert noted[0] == "Row 7 has 'Jane'."
    assert replies[:2] == [NO + b"A row has a text.", NO + b"A column is missing."]
    assert replies[2].startswith(NO)


class Listening(Sending):
    """The same link, with what it says of peers and of requests."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[tuple[str, bool]] = []
        self.requests: list[IncomingRequest] = []
        self.handled: list[Any] = []
        self.connection.handled = self.handled.append
        link = self.link
        link.up = set()
        link._connections = {}
        link._on_change = lambda peer, up: self.changes.append((peer, up))
        link._on_request = self.requests.append

    def frame(self, what: int, kind: str = "", number: int = 0, body: bytes = b"") -> Any:
        return SimpleNamespace(what=what, kind=kind, number=number, body=bytearray(body))


def test_a_peer_is_up_from_its_connection_to_its_loss() -> None:
    b = Listening()
    b.link.opened(b.connection)
    assert (b.link.up, b.changes) == ({"b"}, [("b", True)])
    b.post(b"under way")
    b.link.lost(b.connection)
    assert (b.link.up, b.changes) == (set(), [("b", True), ("b", False)])
    assert b.answers == [None]
    assert b.link._open["b"] == {}
    b.link.lost(b.connection)
    assert len(b.changes) == 2


def test_an_older_connection_that_is_lost_does_not_take_the_newer_one_with_it() -> None:
    b = Listening()
    newer: Any = SimpleNamespace(**vars(b.connection))
    for connection in (b.connection, newer):
        b.link.opened(connection)
    b.link.lost(b.connection)
    assert b.link.up == {"b"}
    assert b.changes == 2 * [("b", True)]


def test_the_operator_is_no_peer_and_asks_what_is_for_operators_alone() -> None:
    operator = Listening()
    operator.connection.peer = "operator"
    operator.link.opened(operator.connection)
    for kind in ("control/status", "envelope"):
        frame = operator.frame(REQUEST, kind, 5, b"ask")
        operator.link.arrived(operator.connection, frame)
    assert [request.kind for request in operator.requests] == ["control/status"]
    assert operator.sent == [(ANSWER, "", NO_ANSWER)]
    operator.link.lost(operator.connection)
    assert (operator.link.up, operator.changes) == (set(), [])
    assert sum(operator.link._counters.received_bytes.values()) == 0
    assert len(operator.handled) == 2


def test_what_arrives_is_counted_and_goes_to_whom_it_is_for() -> None:
    b = Listening()
    b.link.opened(b.connection)
    b.post(b"?")
    b.link.arrived(b.connection, b.frame(REQUEST, "envelope", 3, b"body"))
    (request,) = b.requests
    assert (request.sender, request.kind, request.body, request.direct) == (
        "b",
        "envelope",
        b"body",
        True,
    )
    request.answer(b"done")
    assert b.sent[-1] == (ANSWER, "", b"\0done")
    (number,) = b.link._open["b"]
    b.link.arrived(b.connection, b.frame(ANSWER, "", number + 1, b"to nobody"))
    assert b.answers == []
    b.link.arrived(b.connection, b.frame(ANSWER, "", number, b"here"))
    b.link.arrived(b.connection, b.frame(ANSWER, "", number, b"again"))
    assert b.answers == [b"here"]
    b.post(b"?")
    (number,) = b.link._open["b"]
    b.link.arrived(b.connection, b.frame(ANSWER, "", number))
    assert b.answers == [b"here", None], "nothing is no answer"
    assert b.link._counters.received_bytes["b"] == len(b"body" + b"to nobody" + b"here" + b"again")
    assert len(b.handled) == 5


def test_a_frame_is_done_with_though_its_handler_fails() -> None:
    b = Listening()

    def fail(request: IncomingRequest) -> None:
        raise DataError("of the handler")

    b.link._on_request = fail
    with pytest.raises(DataError, match="of the handler"):
        b.link.arrived(b.connection, b.frame(REQUEST, "x"))
    assert len(b.handled) == 1


def test_connections_that_are_refused_are_counted_and_told_with_the_last() -> None:
    b = Listening()
    for count, total in ((2, 2), (3, 5)):
        refused: Any = SimpleNamespace(address="10.0.0.1", count=count, why="no name")
        b.link.refused({"name": refused})
        assert b.told[-1] == (
            f"Refused connections of members that are not expected here: {total} so far, the last "
            "with 10.0.0.1 (no name)."
        )
    assert b.link._counters.refused_connections["name"] == 5


def test_the_loop_gives_way_while_much_is_received() -> None:
    b = Listening()
    for much in (True, False):
        b.link.receiving(much)
        assert b.link.loop.may_spin is not much
