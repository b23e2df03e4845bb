"""Alignment on ids: the same samples as plain set intersection, and nothing readable on the way."""

import struct
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.core.errors import DataError
from mtcd.federation.alignment import announce, answerer, asker, check_ids, rows_of

SECRET = bytes(range(32))
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
tables = st.lists(st.lists(words, unique=True, min_size=1, max_size=12), min_size=2, max_size=4)
Kind = str


@pytest.fixture(params=["hashed", "psi"])
def kind(request: pytest.FixtureRequest) -> Kind:
    if request.param == "psi":
        pytest.importorskip("private_set_intersection")
    return str(request.param)


def aligned(kind: Kind, holders: Sequence[Sequence[str]]) -> list[list[str]]:
    """The ids of every party in its rows of the common samples; the first asks the others."""
    first, *others = holders
    shared = []
    for ids in others:
        asking = asker(kind, first, SECRET)
        shared.append(asking.shared(answerer(kind, ids, SECRET).respond(asking.request())))
        assert shared[-1] == set(first) & set(ids)
    told = announce(shared)
    return [[ids[row] for row in rows_of(told, ids)] for ids in holders]


def agrees(kind: Kind) -> Callable[[list[list[str]]], None]:
    def check(holders: list[list[str]]) -> None:
        common = sorted(set.intersection(*map(set, holders)))
        if common:
            assert aligned(kind, holders) == [common] * len(holders)
        else:
            with pytest.raises(DataError, match="no sample in common"):
                aligned(kind, holders)

    return check


def test_hashed_matching_is_set_intersection() -> None:
    given(tables)(agrees("hashed"))()


def test_psi_is_set_intersection() -> None:
    pytest.importorskip("private_set_intersection")
    settings(max_examples=25)(given(tables)(agrees("psi")))()


def test_many_ids_of_which_half_are_shared(kind: Kind) -> None:
    holders = [[f"patient {i}" for i in range(start, start + 300)] for start in (0, 100, 150)]
    assert [len(ids) for ids in aligned(kind, holders)] == [150] * 3


def test_no_id_can_be_read_from_messages(kind: Kind) -> None:
    asking = asker(kind, ["patient one", "patient two"], SECRET)
    request = asking.request()
    response = answerer(kind, ["patient one", "patient three"], SECRET).respond(request)
    assert b"patient" not in request + response
    again = asker(kind, ["patient one", "patient two"], SECRET).request()
    assert (again == request) == (kind == "hashed")  # psi has a new key each time


def test_hashed_messages_do_not_tell_the_order_of_a_table() -> None:
    """Rows may be in the order in which patients came."""
    ids = [f"patient {number}" for number in range(40)]
    other = ids[::-1]
    requests = {asker("hashed", table, SECRET).request() for table in (ids, other)}
    (request,) = requests
    responses = {answerer("hashed", table, SECRET).respond(request) for table in (ids, other)}
    assert responses == requests
    digests = [request[place : place + 32] for place in range(0, len(request), 32)]
    assert digests == sorted(digests)
    assert len(digests) == 40


def test_hashes_depend_on_the_secret() -> None:
    ours, theirs = asker("hashed", ["one"], SECRET), answerer("hashed", ["one"], SECRET[::-1])
    assert ours.shared(theirs.respond(ours.request())) == set()
    for bad in (None, b"", b"short", bytes(65)):
        with pytest.raises(DataError, match="parties.key"):
            asker("hashed", ["one"], bad)


@given(st.binary(max_size=120), st.integers(0, 200), st.integers(1, 255))
@settings(max_examples=60)
@pytest.mark.parametrize("which", ["hashed", "psi"])
def test_damaged_messages_are_refused_or_name_own_ids_only(
    which: str, junk: bytes, place: int, flip: int
) -> None:
    if which == "psi":
        pytest.importorskip("private_set_intersection")
    ids = ["a", "b", "c"]
    asking, answering = asker(which, ids, SECRET), answerer(which, ["b", "c", "d"], SECRET)
    request = asking.request()
    response = answering.respond(request)

    def bent(message: bytes) -> bytes:
        place_in = place % len(message)
        return message[:place_in] + bytes([message[place_in] ^ flip]) + message[place_in + 1 :]

    for message in (junk, bent(request), request[: place % len(request)], request + junk):
        with suppress(DataError):
            answering.respond(message)
    for message in (junk, bent(response), response[: place % len(response)], request):
        with suppress(DataError):
            assert asking.shared(message) <= set(ids)


def test_responses_that_were_not_asked_for_are_refused() -> None:
    ours = asker("hashed", ["one", "two"], SECRET)
    with pytest.raises(DataError, match="not asked for"):
        ours.shared(asker("hashed", ["three"], SECRET).request())
    with pytest.raises(DataError, match="sorted list"):
        ours.shared(ours.request()[32:] + ours.request()[:32])


def test_a_hash_that_comes_twice_is_refused() -> None:
    """Whoever answers could otherwise make a request look as long as it likes."""
    ours = asker("hashed", ["one"], SECRET)
    assert ours.shared(ours.request()) == {"one"}
    for side in (ours.shared, answerer("hashed", ["one"], SECRET).respond):
        with pytest.raises(DataError, match="sorted list"):
            side(2 * ours.request())


@pytest.mark.parametrize(("size", "fits"), [(15, False), (16, True), (64, True), (65, False)])
def test_a_secret_has_16_to_64_bytes(size: int, fits: bool) -> None:
    for side in (asker, answerer):
        if fits:
            side("hashed", ["one"], bytes(size))
            continue
        with pytest.raises(DataError, match="parties.key"):
            side("hashed", ["one"], bytes(size))


def test_ids_are_checked_on_both_sides(kind: Kind) -> None:
    for side in (asker, answerer):
        with pytest.raises(DataError, match="Rows 1 and 2 have the same id"):
            side(kind, ["one", "one"], SECRET)


def test_a_psi_response_of_nothing_is_to_another_request() -> None:
    psi = pytest.importorskip("mtcd.federation.psi")
    ours = psi.PsiAsker(["one"])
    with pytest.raises(DataError, match="to another request"):
        ours.shared(psi.LENGTH.pack(0))
    for short in (b"", psi.LENGTH.pack(0)[:-1], psi.LENGTH.pack(1)):
        with pytest.raises(DataError, match="is cut short"):
            ours.shared(short)


def test_a_psi_response_to_another_request_is_refused() -> None:
    pytest.importorskip("private_set_intersection")
    other = asker("psi", ["one"])
    response = answerer("psi", ["one"]).respond(other.request())
    with pytest.raises(DataError, match="another request"):
        asker("psi", ["one", "two"]).shared(response)


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ([], "no rows"),
        (["a", ""], "Row 2 has no id"),
        (["secret", "x", "secret"], "Rows 1 and 3"),
        (["\ud800"], "row 1 is not valid text"),
    ],
)
def test_bad_ids_are_told_by_row_never_by_value(ids: list[str], told: str) -> None:
    with pytest.raises(DataError, match=told) as error:
        check_ids(ids)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "announced",
    [
        b"",
        b"\xff",
        b"{}",
        b"[]",
        b"[1]",
        b'["b", "a"]',
        b'["a", "a"]',
        b'["a", "z"]',
        b'"a"',
        b"[" * 100_000,
    ],
)
def test_bad_announcements_are_refused(announced: bytes) -> None:
    with pytest.raises(DataError, match="announcement of common ids"):
        rows_of(announced, ["b", "a"])


def test_a_psi_response_does_not_tell_the_order_of_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows may be in the order of a diagnosis: what is blinded is sorted by what nobody can
    read."""
    psi = pytest.importorskip("mtcd.federation.psi")
    monkeypatch.setattr(psi, "CHUNK", 7)  # the library sorts what it gets at once
    asker = psi.PsiAsker(["a"])
    for ids in ([f"id{i}" for i in range(40)], [f"id{i}" for i in reversed(range(40))]):
        response = psi.PsiAnswerer(ids).respond(asker.request())
        size = psi.LENGTH.unpack_from(response)[0]
        setup = psi.library.ServerSetup()
        setup.ParseFromString(response[psi.LENGTH.size : psi.LENGTH.size + size])
        blinded = list(setup.raw.encrypted_elements)
        assert len(blinded) == 40
        assert blinded == sorted(blinded)


def test_a_psi_response_with_a_filter_is_refused() -> None:
    """A filter has false positives: ids that only one party has would count as common."""
    pytest.importorskip("private_set_intersection")
    from private_set_intersection import python as library

    ours = asker("psi", ["one"])
    whole = answerer("psi", ["one"]).respond(ours.request())
    (size,) = struct.unpack_from(">Q", whole)
    server = library.server.CreateWithNewKey(True)
    setup = server.CreateSetupMessage(1e-9, 1, ["one"], library.DataStructure.BLOOM_FILTER)
    content = setup.SerializeToString()
    filtered = struct.pack(">Q", len(content)) + content + whole[8 + size :]
    with pytest.raises(DataError, match="holds a filter, not a set"):
        ours.shared(filtered)
    assert ours.shared(whole) == {"one"}


def test_a_psi_request_asks_for_something_that_the_asker_can_announce() -> None:
    """Without ids, or for the size of the intersection alone."""
    pytest.importorskip("private_set_intersection")
    from private_set_intersection import python as library

    empty = library.Request(reveal_intersection=True).SerializeToString()
    sizes = library.client.CreateWithNewKey(False).CreateRequest(["one"]).SerializeToString()
    for request in (b"", empty, sizes):
        with pytest.raises(DataError, match="A request of private set intersection is empty"):
            answerer("psi", ["one"]).respond(request)
