"""Connections of members on loopback, over real sockets; some of the members cheat."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bundles_on_disk import EVERYBODY, called, found
from mtcd.federation.administrator import renew, revoke
from mtcd.federation.connections.wire import REQUEST, frame_head
from mtcd.federation.credentials.authority import Authority
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.credentials.certificates import issue
from mtcd.federation.credentials.private_files import write_files
from mtcd.federation.names import parse_address
from raw_members import ByHand, Member
from waiting import until

Open = Callable[[str], Member]


@pytest.fixture
def bundles(tmp_path: Path) -> Path:
    return found(tmp_path / "ours")


@pytest.fixture
def opened(bundles: Path) -> Iterator[Open]:
    members: list[Member] = []

    def open_one(name: str) -> Member:
        members.append(Member(bundles / name))
        return members[-1]

    yield open_one
    for one in members:
        one.close()


def change(bundle: Path, before: str, after: str) -> None:
    """Change the settings of a bundle."""
    party = bundle / "party.yaml"
    assert before in party.read_text()
    party.write_text(party.read_text().replace(before, after, 1))


def address(bundles: Path, name: str) -> str:
    return str(read_bundle(bundles / name).config.address)


@contextmanager
def greeted(bundles: Path) -> Iterator[ByHand]:
    """A connection of b to a, by hand, that a has accepted."""
    with ByHand(address(bundles, "a"), bundles / "b") as b:
        b.say("b", "a")
        assert b.hear()
        yield b


def test_neighbours_and_server_talk_and_nobody_else_does(bundles: Path, opened: Open) -> None:
    members = {name: opened(name) for name in ("c", "a", "b", "server")}  # any order
    linked = [(a, b) for a in members for b in read_bundle(bundles / a).config.peers]
    assert len(linked) == 10
    for one, other in linked:
        assert until(lambda one=one, other=other: other in members[one].link.up)
        answers = members[one].ask(other, one.encode())
        assert until(lambda answers=answers: answers == [b"here"])
        assert (one, "x", one.encode()) in members[other].heard
    assert members["a"].link.up == {"b", "server"}
    answers = members["a"].ask("c")
    assert until(lambda: answers == [None])
    assert all(sender != "a" for sender, _, _ in members["c"].heard)


@pytest.mark.parametrize("who", ["a", "c"])
def test_a_party_that_comes_back_is_connected_again(who: str, opened: Open) -> None:
    b = opened("b")  # b calls a, and c calls b
    for times in (1, 2):
        other = opened(who)
        assert until(lambda times=times: b.seen.count((who, True)) == times)
        other.close()
        assert until(lambda times=times: b.seen.count((who, False)) == times)


def test_requests_to_a_peer_that_is_lost_end_without_an_answer(bundles: Path) -> None:
    """Otherwise whoever waits for one would wait for ever, also when the peer has come back."""
    kept = []
    with Member(bundles / "a") as a, Member(bundles / "b", kept.append) as b:
        assert until(lambda: a.seen == [("b", True)])
        answers = [a.ask("b") for _ in range(3)]
        assert until(lambda: len(kept) == 3)
        b.loop.call(lambda: kept[1].reply(b"later"))
        assert until(lambda: answers[1] == [b"later"])
        assert answers[0] == answers[2] == [], "the others are not answered yet"

        b.loop.call(lambda: kept[0].drop())
        assert until(lambda: answers[0] == [None])
        b.close()
        assert until(lambda: a.seen == [("b", True), ("b", False)])
        assert answers == [[None], [b"later"], [None]], "each once, before the loss is told"
        after = a.ask("b")
        assert until(lambda: after == [None])


# Who may speak, and as whom


@pytest.mark.parametrize(
    ("sender", "receiver", "federation"),
    [
        ("c", "a", "clinics"),
        ("b", "c", "clinics"),
        ("b", "a", "others"),
        ("server", "a", "clinics"),
    ],
)
def test_who_speaks_under_another_name_is_cut_off(
    sender: str, receiver: str, federation: str, bundles: Path, opened: Open
) -> None:
    a = opened("a")
    with ByHand(address(bundles, "a"), bundles / "b") as b:
        b.say(sender, receiver, federation)
        assert not b.hear()
    assert until(lambda: a.refused == {"name": 1})
    assert a.seen == []
    with greeted(bundles) as b:
        b.send(REQUEST, "from c", 1, b"as c")
        assert until(lambda: a.heard == [("b", "from c", b"as c")])  # said by b, whatever it says


def test_a_member_that_is_no_neighbour_is_refused(bundles: Path, opened: Open) -> None:
    c = opened("c")
    with ByHand(address(bundles, "c"), bundles / "a") as a:
        a.say("a", "c")
        assert not a.hear()
    assert until(lambda: c.refused == {"name": 1})
    assert until(lambda: any("'a'" in sentence for sentence in c.told))
    assert c.seen == []


def test_a_member_in_the_place_of_another_is_refused_by_who_calls(
    bundles: Path, opened: Open
) -> None:
    """b calls a; at that address is c, on the same host, with a good certificate."""
    for name in ("key.pem", "cert.pem"):
        (bundles / "a" / name).write_bytes((bundles / "c" / name).read_bytes())
    change(bundles / "a", "certificate: a", "certificate: c")
    opened("a")
    b = opened("b")
    assert until(lambda: "name" in b.refused)
    assert any("the certificate is of 'c', not of a" in sentence for sentence in b.told)
    assert b.seen == []


def test_a_certificate_that_is_bound_to_another_host_is_refused_by_who_calls(
    bundles: Path, opened: Open
) -> None:
    made = issue(Authority.load(bundles).issued, "a", parse_address("10.9.8.7:1"), 90)
    write_files(bundles / "a", {"key.pem": made.key_pem, "cert.pem": made.certificate_pem})
    opened("a")
    b = opened("b")
    assert until(lambda: "certificate" in b.refused)
    assert b.seen == []


def test_the_operator_is_answered_and_can_do_nothing_else(bundles: Path, opened: Open) -> None:
    members = {name: opened(name) for name in ("a", "b", "server")}
    operator = opened("operator")
    for name, member in members.items():
        assert until(lambda name=name: name in operator.link.up)
        answers = operator.ask(name, kind="control/status")
        assert until(lambda answers=answers: answers == [b"here"])
        assert member.heard[-1] == ("operator", "control/status", b"")
        assert "operator" not in member.link.up
        assert all(peer != "operator" for peer, _ in member.seen)
        forbidden = operator.ask(name, kind="envelope")
        assert until(lambda forbidden=forbidden: forbidden == [None])
        assert member.heard[-1][1] == "control/status"
    answers = members["a"].ask("operator", kind="x")
    assert until(lambda: answers == [None])
    assert operator.heard == []


def test_who_has_no_good_certificate_cannot_connect(
    bundles: Path, tmp_path: Path, opened: Open
) -> None:
    theirs = found(tmp_path / "theirs")
    expired = tmp_path / "expired"
    expired.mkdir()
    long_ago = datetime.now(UTC) - timedelta(days=100)
    made = issue(Authority.load(bundles).issued, "b", None, 90, now=long_ago)
    ca = (bundles / "a" / "ca.pem").read_bytes()
    write_files(expired, {"key.pem": made.key_pem, "cert.pem": made.certificate_pem, "ca.pem": ca})
    (theirs / "b" / "ca.pem").write_bytes(ca)

    a = opened("a")
    for folder, certified in ((theirs / "b", True), (expired, True), (bundles / "b", False)):
        with ByHand(address(bundles, "a"), folder, certified) as stranger:
            assert not stranger.hear()
    assert until(lambda: a.refused == {"certificate": 3})
    opened("b")
    assert until(lambda: a.seen == [("b", True)])


def test_a_revoked_certificate_lets_nobody_in_though_its_party_was_renewed(
    bundles: Path, tmp_path: Path, opened: Open
) -> None:
    stolen = {path.name: path.read_bytes() for path in (bundles / "b").glob("*.pem")}
    thief = tmp_path / "thief"
    thief.mkdir()
    write_files(thief, stolen)
    revoke(bundles, "b")
    renew(bundles, "b", 90)
    a = opened("a")
    with ByHand(address(bundles, "a"), thief) as one:
        one.say("b", "a")
        assert not one.hear()
    assert until(lambda: a.refused == {"certificate": 1})
    opened("b")
    assert until(lambda: a.seen == [("b", True)])


def test_a_connection_ends_with_the_certificate_of_either_end(bundles: Path, opened: Open) -> None:
    days = timedelta(days=1)
    soon = datetime.now(UTC) - days + timedelta(seconds=3)
    made = issue(Authority.load(bundles).issued, "b", None, 1, now=soon)
    write_files(bundles / "b", {"key.pem": made.key_pem, "cert.pem": made.certificate_pem})
    change(bundles / "a", "lease_ms: 2000", "lease_ms: 30000")
    a = opened("a")
    with greeted(bundles) as b:
        assert b.is_cut_off()
    assert until(lambda: a.seen == [("b", True), ("b", False)])
    assert until(lambda: a.refused == {"certificate": 1})


# What members send


@pytest.mark.parametrize(
    "head",
    [
        frame_head(REQUEST, "x", 1, 2**63),
        frame_head(REQUEST, "x", 1, 300 * 2**20),
        b"\0" * 64,
        b"\1\5" + b"\xff" * 62,
        b"GET /" + b" " * 59,
    ],
    ids=["of 8 EiB", "of 300 MiB", "zeros", "ones", "HTTP"],
)
def test_who_sends_no_frame_or_one_that_is_too_long_is_cut_off(
    head: bytes, bundles: Path, opened: Open
) -> None:
    a = opened("a")
    with greeted(bundles) as b:
        b.tls.sendall(head)
        assert b.is_cut_off()
    assert until(lambda: a.refused == {"frame": 1})
    assert a.heard == []


def test_large_messages_both_ways_arrive_whole_and_in_order(opened: Open) -> None:
    a, b = opened("a"), opened("b")
    assert until(lambda: a.link.up and b.link.up)
    bodies = [bytes([k]) * (k * 1_000_003) for k in (1, 5, 0, 20, 2)]
    answers = [member.ask(to, body) for member, to in ((a, "b"), (b, "a")) for body in bodies]
    assert until(lambda: all(answer == [b"here"] for answer in answers))
    assert [body for _, _, body in a.heard] == [body for _, _, body in b.heard] == bodies


def test_a_member_that_is_busy_is_sent_no_more_than_it_can_hold(bundles: Path) -> None:
    """It handles nothing for a while: the sender keeps what it does not read."""
    change(bundles / "b", "message_mb: 256", "message_mb: 1")
    with Member(bundles / "a") as a, Member(bundles / "b") as b:
        assert until(lambda: a.link.up and b.link.up)
        b.loop.call(lambda: time.sleep(3.0))  # longer than the lease
        count, size = 60, 2**20
        answers = [a.ask("b", bytes(size)) for _ in range(count)]
        to_b, to_a = a.link._connections["b"], b.link._connections["a"]
        assert until(lambda: to_b.unsent_bytes > 0)
        held = []
        while not b.heard:
            held.append(to_a.unread_bytes)
            time.sleep(0.02)
        assert max(held) < 6 * size
        assert until(lambda: all(answer == [b"here"] for answer in answers))
        assert (a.seen, b.seen) == ([("b", True)], [("a", True)])


def test_a_member_that_only_asks_and_reads_nothing_is_cut_off(bundles: Path) -> None:
    change(bundles / "a", "message_mb: 256", "message_mb: 1")
    large = bytes(2**20)
    with (
        Member(bundles / "a", lambda request: request.reply(large)) as a,
        ByHand(address(bundles, "a"), bundles / "b") as b,
    ):
        b.say("b", "a")
        assert b.hear()
        for number in range(60):
            b.send(REQUEST, "x", number)
        assert until(lambda: a.seen == [("b", True), ("b", False)])
        assert a.refused == {"frame": 1}


# Who is there


def test_a_member_that_says_nothing_is_lost_after_the_lease(bundles: Path, opened: Open) -> None:
    a = opened("a")
    with greeted(bundles) as b:
        assert b.is_cut_off()
    assert until(lambda: a.seen == [("b", True), ("b", False)])
    assert a.refused == {}


def test_members_that_have_nothing_to_say_stay_connected(bundles: Path) -> None:
    for name in ("a", "b"):
        change(bundles / name, "lease_ms: 2000", "lease_ms: 1000")
    with Member(bundles / "a") as a, Member(bundles / "b") as b:
        assert until(lambda: a.link.up and b.link.up)
        time.sleep(3.0)
        assert (a.seen, b.seen) == ([("b", True)], [("a", True)])


def test_a_new_connection_of_a_peer_takes_the_place_of_the_old_one(
    bundles: Path, opened: Open
) -> None:
    """Its host has restarted, and nobody has closed the old one."""
    a = opened("a")
    with ByHand(address(bundles, "a"), bundles / "b") as old:
        old.say("b", "a")
        assert old.hear()
        with ByHand(address(bundles, "a"), bundles / "b") as new:
            new.say("b", "a")
            assert new.hear()
            assert old.is_cut_off()
            new.send(REQUEST, "x", 1, b"new")
            assert until(lambda: a.heard == [("b", "x", b"new")])
    assert a.seen[:3] == [("b", True), ("b", False), ("b", True)]


def test_a_peer_that_is_called_and_connected_opens_no_second_connection(
    bundles: Path, opened: Open
) -> None:
    caller, peer = next((name, peer) for name in EVERYBODY[:4] for peer in called(bundles, name))
    one = opened(caller)
    opened(peer)
    assert until(lambda: peer in one.link.up)
    with ByHand(address(bundles, caller), bundles / peer) as second:
        second.say(peer, caller)
        assert second.is_cut_off()
    assert until(lambda: one.refused == {"name": 1})
    assert peer in one.link.up
    assert (peer, False) not in one.seen


def test_members_connect_over_ipv6(tmp_path: Path) -> None:
    import socket

    from federations import written
    from mtcd.federation.administrator import init_federation

    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    places = {}
    for name in ("a", "b"):
        try:
            with socket.create_server(("::1", 0), family=socket.AF_INET6) as free:
                places[name] = f"[::1]:{free.getsockname()[1]}"
        except OSError:
            pytest.skip("no IPv6 here")
    plan = {"parties": places, "labels__held_by": "a", "network": None, "server": None}
    file = written(tmp_path, **plan, labels__column=None, method={"kind": "stcd"})
    init_federation(file, tmp_path / "bundles", 90)
    with Member(tmp_path / "bundles" / "a") as a, Member(tmp_path / "bundles" / "b") as b:
        assert until(lambda: a.link.up and b.link.up)
        answers = a.ask("b")
        assert until(lambda: answers == [b"here"])
