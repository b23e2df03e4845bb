"""Requests of one party to others: sent, relayed, refused, asked again; by hand, without links."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import networkx as nx
import pytest

pytest.importorskip("cryptography")

from mtcd.core.errors import ConfigError, DataError, MtcdError, WireError
from mtcd.federation.node.counters import Counters
from mtcd.federation.node.link import NO, NO_ANSWER, OK, IncomingRequest
from mtcd.federation.node.rpc import (
    HELLO,
    LONGEST_HEAD_BYTES,
    NOT_KNOWN,
    REFUSED_RETRY_SECONDS,
    RELAY,
    RETRY_SECONDS,
    UNABLE,
    Rpc,
    RpcClient,
    _head,
    _read_head,
    _report,
)

MEMBERS = ["a", "b", "c", "d", "server"]
CYCLE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]


class Party:
    """b, on a cycle of a, b, c and d. What it posts is kept; its neighbours are up."""

    def __init__(self, *up: str, links: Any = CYCLE) -> None:
        self.posted: list[tuple[str, str, bytes]] = []
        self.answers: list[Any] = []
        self.logged: list[tuple[str, ...]] = []
        rpc: Any = object.__new__(Rpc)
        rpc.me = "b"
        rpc.members = MEMBERS
        rpc.counters = Counters(["a", "c", "server"])
        rpc.incompatible = {}
        rpc.link = SimpleNamespace(
            peers={"a", "c", "server"}, post=self.post, up=set(up or ("a", "c"))
        )
        rpc.log = SimpleNamespace(refused=lambda *said: self.logged.append(said))
        rpc.seal = SimpleNamespace(seal=lambda to, kind, body: b"sealed " + body)
        rpc._ending = False
        rpc._graph = nx.Graph(links)
        rpc._graph.add_nodes_from(MEMBERS[:-1])
        rpc._handlers = {}
        self.rpc: Rpc = rpc

    def post(self, to: str, kind: str, body: bytes, done: Any) -> None:
        self.posted.append((to, kind, body))
        self.answers.append(done)

    def gets(self, kind: str, body: bytes = b"", sender: str = "a") -> list[bytes]:
        """How it replies to a request."""
        replies: list[bytes] = []
        self.rpc._on_request(IncomingRequest(sender, kind, body, replies.append))
        return replies


def test_a_request_that_may_go_on_is_passed_to_the_next_with_one_hop_less() -> None:
    party = Party()
    assert party.gets(RELAY, _head("c", 1, ["d"]) + b"sealed") == []
    assert party.posted == [("c", RELAY, _head("c", 0, ["d", "b"]) + b"sealed")]
    replies: list[bytes] = []
    party.rpc._on_request(
        IncomingRequest("a", RELAY, _head("c", 3, []) + b"sealed", replies.append)
    )
    party.answers[-1](b"from c")
    assert replies == [b"from c"]


@pytest.mark.parametrize(
    ("head", "up"),
    [
        (("c", 0, []), ("a", "c")),  # no hops left
        (("d", 3, ["c"]), ("a", "c")),  # it has been at c, and comes from a
        (("d", 3, []), ("a",)),  # no way but back
    ],
)
def test_a_request_that_cannot_go_on_is_dropped(head: Any, up: tuple[str, ...]) -> None:
    party = Party(*up)
    assert party.gets(RELAY, _head(*head) + b"sealed") == [NO_ANSWER]
    assert party.posted == []


def test_a_request_without_a_head_of_one_is_dropped_and_counted() -> None:
    party = Party()
    assert party.gets(RELAY, b"nonsense") == [NO_ANSWER]
    assert [said[:2] for said in party.logged] == [("a", RELAY)]
    assert sum(party.rpc.counters.refused.values()) == 1


def test_the_end_of_a_head_is_looked_for_within_a_limit() -> None:
    most = LONGEST_HEAD_BYTES * (1 + len(MEMBERS))
    head = _head("c", 1, [])[:-1]
    longest = head + b" " * (most - 1 - len(head)) + b"\n"
    assert _read_head(longest + b"sealed", MEMBERS) == ("c", 1, [], most)
    with pytest.raises(WireError, match="not that of a relayed request"):
        _read_head(b" " + longest, MEMBERS)


@pytest.mark.parametrize(
    ("to", "up", "by", "near"),
    [
        ("c", ("a", "c"), (), "c"),
        ("d", ("a", "c"), ("a",), "c"),
        ("d", ("a", "c"), ("c",), "a"),
        ("d", ("a",), (), "a"),
        ("d", ("a", "server"), ("a",), "server"),
        ("d", ("a", "server"), ("a", "server"), None),
        ("server", ("a", "server"), (), "server"),
        ("operator", ("a", "operator"), (), "operator"),
        ("d", ("x",), (), None),
    ],
)
def test_the_next_on_the_way_is_a_neighbour_that_is_up_or_the_server(
    to: str, up: tuple[str, ...], by: tuple[str, ...], near: str | None
) -> None:
    rpc = Party(*up).rpc
    assert rpc._towards(to, by) == near
    assert nx.utils.edges_equal(rpc._graph.edges, nx.Graph(CYCLE).edges), "the links stay"


def test_a_peer_that_is_up_is_asked_directly() -> None:
    party, heard = Party(), []
    party.rpc.ask("a", "x", b"body", lambda *answer: heard.append(answer))
    assert party.posted == [("a", "x", b"body")]
    party.answers[0](OK + b"here")
    assert heard == [(b"here", "")]


@pytest.mark.parametrize(("to", "direct"), [("d", True), ("server", False)])
def test_what_cannot_be_relayed_has_no_answer(to: str, direct: bool) -> None:
    party, heard = Party(), []
    party.rpc.ask(to, "x", b"body", lambda *answer: heard.append(answer), direct)
    assert heard == [(None, "")]
    assert party.posted == []


def test_another_party_is_asked_over_one_neighbour_after_the_other() -> None:
    party, heard = Party(), []
    party.rpc.ask("d", "x", b"body", lambda *answer: heard.append(answer))
    party.answers[0](None)
    party.answers[1](None)
    assert heard == [(None, "")]
    assert {to for to, _, _ in party.posted} == {"a", "c"}
    assert {body for _, _, body in party.posted} == {_head("d", 10, ["b"]) + b"sealed body"}


def test_a_server_posts_to_its_peers_whether_they_are_up_or_not_and_to_nobody_else() -> None:
    party, heard = Party(), []
    party.rpc.seal = None
    for to in ("a", "server", "d"):
        party.rpc.ask(to, "x", b"body", lambda *answer: heard.append(answer))
    assert [to for to, _, _ in party.posted] == ["a", "server"]
    assert heard == [(None, "")]


def test_of_one_that_speaks_another_protocol_greetings_and_refusals_are_taken_alone() -> None:
    party = Party()
    party.rpc.incompatible["a"] = "upgrade"
    taken: list[str] = []
    for kind in (HELLO, UNABLE, "x"):
        party.rpc.on(kind, lambda request: taken.append(request.kind))
    assert [party.gets(kind) for kind in (HELLO, UNABLE, "x", RELAY)] == [
        [],
        [],
        [NO + b"upgrade"],
        [NO + b"upgrade"],
    ]
    assert taken == [HELLO, UNABLE]
    assert party.gets("x", sender="c") == []


def test_a_party_that_ends_drops_all_but_greetings_and_refusals() -> None:
    party, taken = Party(), []
    for kind in (HELLO, UNABLE, "x"):
        party.rpc.on(kind, lambda request: taken.append(request.kind))
    party.rpc.end()
    assert [party.gets(kind) for kind in (HELLO, UNABLE, "x")] == [[], [], [NO_ANSWER]]
    assert taken == [HELLO, UNABLE]


@pytest.mark.parametrize(
    "error", [WireError("hop", "is negative"), DataError("d"), ConfigError("c")]
)
def test_a_handler_that_raises_an_error_refuses_the_request(error: MtcdError) -> None:
    def handle(request: IncomingRequest) -> None:
        raise error

    party = Party()
    party.rpc.on("x", handle)
    (reply,) = party.gets("x")
    assert reply[:1] == NO
    assert [said[:2] for said in party.logged] == [("a", "x")]


def test_a_kind_without_a_handler_is_refused_and_other_errors_end_the_party() -> None:
    party = Party()
    (reply,) = party.gets("x")
    assert NOT_KNOWN.encode() in reply
    assert [said[:2] for said in party.logged] == [("a", "message")]

    def fail(request: IncomingRequest) -> None:
        raise MtcdError("of this party")

    party.rpc.on("x", fail)
    with pytest.raises(MtcdError, match="of this party"):
        party.gets("x")


@pytest.mark.parametrize(
    ("answer", "heard"),
    [
        (None, (None, "")),
        (b"", (None, "")),
        (b"?", (None, "")),
        (NO + b"why\n", (None, "why ")),
        (OK, (b"", "")),
        (OK + b"here", (b"here", "")),
    ],
)
def test_an_answer_is_content_or_a_refusal_or_none(answer: bytes | None, heard: Any) -> None:
    got: list[Any] = []
    _report(lambda *one: got.append(one), answer)
    assert got == [heard]


# Requests to several parties


class Asking:
    """Requests of one party to several, with the answers by hand."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bytes]] = []
        self.done: dict[str, Any] = {}
        self.later: list[tuple[float, Any]] = []
        self.logged: list[Any] = []
        loop: Any = SimpleNamespace(
            later=lambda seconds, act: self.later.append((seconds, act)),
            work=lambda job, then: then(job()),
        )
        log: Any = SimpleNamespace(
            throttled=lambda *said, **more: self.logged.append((*said, more))
        )
        self.client = RpcClient(SimpleNamespace(ask=self.ask), loop, log)  # type: ignore[arg-type]

    def ask(self, name: str, kind: str, body: bytes, done: Any) -> None:
        self.asked.append((name, kind, body))
        self.done[name] = done


def test_answers_come_together_in_the_order_of_the_requests() -> None:
    asking, heard, each = Asking(), [], []
    bodies = {"b": b"1", "a": b"2"}
    asking.client.ask("x", bodies, lambda answers: heard.append([*answers.items()]), each.append)
    assert asking.asked == [("b", "x", b"1"), ("a", "x", b"2")]
    assert asking.client.waits_for == {"a", "b"}
    asking.done["a"](b"of a", "")
    assert (each, heard, asking.client.waits_for) == (["a"], [], {"b"})
    asking.done["a"](b"again", "")
    asking.done["b"](b"of b", "")
    assert (each, asking.client.waits_for) == (["a", "b"], set())
    assert heard == [[("b", b"of b"), ("a", b"of a")]]


def test_without_an_answer_it_is_asked_again_and_later_if_it_refuses() -> None:
    asking = Asking()
    asking.client.ask("align", {"a": b""})
    asking.done["a"](None, "")
    asking.done["a"](None, "why")
    assert [seconds for seconds, _ in asking.later] == [RETRY_SECONDS, REFUSED_RETRY_SECONDS]
    (said,) = asking.logged
    assert said == (
        ("waiting", "align", "a", "why"),
        "a refuses a request to align samples: why",
        {"often": 1},
    )
    asking.later[0][1]()
    assert asking.asked == 2 * [("a", "align", b"")]


def test_a_refusal_may_count_as_an_answer() -> None:
    asking, heard = Asking(), []
    asking.client.ask(
        "x", {"a": b""}, heard.append, refused=lambda name, why: f"{name} {why}".encode()
    )
    asking.done["a"](None, "")
    assert heard == []
    asking.done["a"](None, "why")
    assert heard == [{"a": b"a why"}]


def test_a_party_that_gives_up_asks_nothing_and_hears_nothing_more() -> None:
    asking, heard = Asking(), []
    asking.client.ask("x", {"a": b""}, heard.append)
    asking.client.give_up()
    assert asking.client.waits_for == set()
    asking.done["a"](b"late", "")
    asking.client.ask("x", {"b": b""}, heard.append)
    asking.client.ask("x", {}, heard.append)
    assert heard == []
    assert asking.asked == [("a", "x", b"")]


def test_nobody_to_ask_is_answered_at_once_and_bodies_may_be_made_meanwhile() -> None:
    asking, heard = Asking(), []
    asking.client.ask("x", {}, heard.append)
    assert heard == [{}]

    def made() -> dict[str, bytes]:
        assert asking.client.waits_for == {"a"}
        return {"b": b"made"}

    asking.client.ask_when_made("x", ["a"], made, heard.append)
    assert asking.client.waits_for == {"b"}
    assert asking.asked == [("b", "x", b"made")]
